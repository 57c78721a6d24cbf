#include "shims/steps/own_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "cli/jobs/job_end.h"
#include "client/answer.h"
#include "client/exit_code.h"
#include "client/request_text.h"
#include "shims/steps/job_end.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_calls.h"

namespace gpu_platform::shims {

namespace {

constexpr base::Duration kOneLook = base::milliseconds(50);
constexpr base::Duration kUsualWait = base::seconds(1);  // then nothing is looked at any more
constexpr std::size_t kMaxTyped = 4096;

bool is_waiting_state(v1::JobState state) {
  return state == v1::JOB_STATE_HELD || state == v1::JOB_STATE_PENDING ||
         state == v1::JOB_STATE_QUEUED;
}

std::string text_of_signal(int number) {
  v1::SignalJobRequest request;
  request.set_signal(fmt::format("{}", number));
  return client::request_text(request);
}

// Blocks them; a descriptor tells of them instead.
int watch(std::initializer_list<int> numbers) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : numbers) sigaddset(&watched, number);
  ::sigprocmask(SIG_BLOCK, &watched, nullptr);
  return ::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK);
}

// A terminal's keys on their way to the tasks. They do not get the terminal itself: whether srun is
// in its foreground is decided where srun reads.
class Keys {
 public:
  explicit Keys(int terminal) : terminal_(terminal) {
    if (::pipe2(ends_, O_CLOEXEC) != 0) return;
    ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
  }
  Keys(const Keys&) = delete;
  Keys& operator=(const Keys&) = delete;
  ~Keys() {
    for (const int fd : ends_)
      if (fd >= 0) ::close(fd);
  }
  // What the tasks read.
  int end() const { return ends_[0]; }

  pollfd wanted() const {
    if (ends_[1] < 0) return {-1, 0, 0};
    return typed_.empty() ? pollfd{terminal_, POLLIN, 0} : pollfd{ends_[1], POLLOUT, 0};
  }
  void pass_on() {
    if (typed_.empty()) return read();
    const ssize_t written = ::write(ends_[1], typed_.data(), typed_.size());
    if (written > 0) typed_.erase(0, static_cast<std::size_t>(written));
    if (written < 0 && errno != EAGAIN && errno != EINTR) finish();  // no task reads any more
  }

 private:
  void read() {
    std::array<char, kMaxTyped> bytes;
    const ssize_t got = ::read(terminal_, bytes.data(), bytes.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0) return finish();
    typed_.assign(bytes.data(), static_cast<std::size_t>(got));
  }
  void finish() {
    typed_.clear();
    if (ends_[1] >= 0) ::close(std::exchange(ends_[1], -1));
  }

  int terminal_;
  int ends_[2] = {-1, -1};
  std::string typed_;
};

// A stream of srun's own, or nothing where it was started without.
int stream_or_nothing(int fd) {
  return ::fcntl(fd, F_GETFD) >= 0 ? fd : ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

class OwnJob {
 public:
  OwnJob(CommandCall& call, client::Client& client, const RendezvousPlace& place, int signals,
         std::string id, const OwnJobRules& rules)
      : call_(call),
        client_(client),
        place_(place),
        signals_(signals),
        id_(std::move(id)),
        rules_(rules),
        began_(call.around().steady()),
        end_(call, id_) {
    if (::isatty(call.around().in_fd) == 1) keys_.emplace(call.around().in_fd);
  }

  int run() {
    while (true) {
      const std::array<int, 3> found = wait();
      if (found[1] != 0 && take_signals()) return 1;
      if (found[0] != 0 && !connection_)
        meet();
      else if (found[0] != 0)
        listen();
      else if (found[2] != 0)
        return finish();
      if (!connection_ && !was_met_ && looks_in_vain()) return give_up();
    }
  }

 private:
  int finish() {
    const auto& ended = end_.wait();
    const bool was_cancelled =
        ended && !was_met_ && (*ended)->job.state() == v1::JOB_STATE_CANCELLED;
    if (!was_cancelled) return srun_code(call_, ended, is_told_);
    tell("Job has been cancelled");
    return call_.fail("Unable to allocate resources: Job/step already completing or completed");
  }

  // What there is of: the other side, signals, the job's end.
  std::array<int, 3> wait() {
    std::array<pollfd, 4> waiting = {{{connection_ ? connection_->fd() : place_.fd(), POLLIN, 0},
                                      {signals_, POLLIN, 0},
                                      {end_.fd(), POLLIN, 0},
                                      {-1, 0, 0}}};
    if (connection_ && keys_) waiting[3] = keys_->wanted();
    if (::poll(waiting.data(), waiting.size(), poll_timeout_ms()) <= 0) return {};
    if (waiting[3].revents != 0) keys_->pass_on();
    return {waiting[0].revents, waiting[1].revents, waiting[2].revents};
  }

  base::Duration waited() const { return call_.around().steady() - began_; }

  // A job that begins is not given up, however long its start takes.
  bool is_due() const { return rules_.start_timeout && waited() >= *rules_.start_timeout; }
  bool is_new() const { return !was_told_to_wait_ && waited() < kUsualWait; }

  int poll_timeout_ms() const {
    if (was_met_) return -1;
    if (is_due() || is_new()) return static_cast<int>(base::whole_milliseconds(kOneLook));
    if (!rules_.start_timeout) return -1;
    const base::Duration left = std::max(*rules_.start_timeout - waited(), base::milliseconds(1));
    return static_cast<int>(std::min<std::int64_t>(base::whole_milliseconds(left), INT_MAX));
  }

  // Tells that the job waits. True when it may not wait any longer.
  bool looks_in_vain() {
    if (!is_due() && !is_new()) return false;
    if (!waits_for_room(client_, id_)) return false;
    const bool may_wait = !rules_.start_timeout || rules_.start_timeout->value() > 0;
    if (!was_told_to_wait_ && may_wait)
      tell(fmt::format("job {} queued and waiting for resources", id_));
    was_told_to_wait_ = true;
    return is_due();
  }

  void meet() {
    auto met = place_.accept();
    if (!met) return;  // a process of another user
    const client::ProcessEnvironment& around = call_.around();
    const int input = keys_ ? keys_->end() : stream_or_nothing(around.in_fd);
    const auto lent = met->lend_streams(
        {input, stream_or_nothing(around.out_fd), stream_or_nothing(around.err_fd)});
    if (!lent) return;
    if (was_told_to_wait_ && !was_met_)
      tell(fmt::format("job {} has been allocated resources", id_));
    was_met_ = true;
    connection_.emplace(std::move(*met));
  }

  // The other side tells that the tasks have ended, or goes without a word: then the job has ended,
  // or begins once more.
  void listen() {
    if (const auto line = connection_->read_line(); line && *line == "ended") {
      is_told_ = true;
    } else {
      connection_.reset();
    }
  }

  // True: leave.
  bool take_signals() {
    signalfd_siginfo info = {};
    while (::read(signals_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      const int number = static_cast<int>(info.ssi_signo);
      if (connection_) {
        [[maybe_unused]] const auto sent = connection_->send_line(fmt::format("signal {}", number));
      } else if (number != SIGCONT && number != SIGALRM) {
        return revoke();
      }
    }
    return false;
  }

  bool revoke() {
    cancel();
    if (!was_met_) tell(fmt::format("Job allocation {} has been revoked", id_));
    return true;
  }

  int give_up() {
    cancel();
    return call_.fail("Unable to allocate resources: Requested nodes are busy");
  }

  void cancel() {
    const auto cancelled = client_.post("/v1/jobs/" + id_ + "/cancel");
    if (!cancelled) call_.fail(cancelled.error());
    // Without the daemon its end would be waited for.
    if (!cancelled) ::_exit(1);
  }

  void tell(const std::string& text) {
    if (!rules_.is_quiet) call_.console().err(fmt::format("srun: {}\n", text));
  }

  CommandCall& call_;
  client::Client& client_;
  const RendezvousPlace& place_;
  const int signals_;
  const std::string id_;
  const OwnJobRules rules_;
  const base::Instant began_;
  std::optional<Keys> keys_;
  JobEnd end_;
  std::optional<Connection> connection_;
  bool was_met_ = false;
  bool is_told_ = false;  // of the tasks' end
  bool was_told_to_wait_ = false;
};

}  // namespace

base::Result<std::optional<base::Duration>> start_timeout_of(const Settings& settings) {
  if (!settings.has("immediate")) return std::optional<base::Duration>();
  if (settings.value("immediate").empty()) return std::optional(base::seconds(0));
  const auto read = parse_number(settings.value("immediate"), 0);
  if (!read) return base::invalid("--immediate", read.error().message);
  return std::optional(base::seconds(*read));
}

bool waits_for_room(client::Client& client, const std::string& id) {
  const auto job = get_job(client, id);
  if (!job) return false;
  if (job->state() == v1::JOB_STATE_HELD || job->state() == v1::JOB_STATE_PENDING) return true;
  return job->state() == v1::JOB_STATE_QUEUED && job->wait_reason().code() != "NOT_EVALUATED";
}

bool starts_in_time(client::Client& client, const std::string& id, base::Duration start_timeout,
                    CommandCall& call, client::Interrupts& interrupts) {
  const auto& around = call.around();
  const base::Instant began = around.steady();
  while (true) {
    const bool waits = waits_for_room(client, id);
    const auto job = get_job(client, id);
    if (job && !is_waiting_state(job->state())) return true;
    if (waits && around.steady() - began >= start_timeout) break;
    around.pause(kOneLook, interrupts.fd());
    pollfd pressed = {interrupts.fd(), POLLIN, 0};
    if (interrupts.fd() >= 0 && ::poll(&pressed, 1, 0) > 0 && !interrupts.handle()) return false;
  }
  const auto cancelled = client.post("/v1/jobs/" + id + "/cancel");
  if (!cancelled) call.fail(cancelled.error());
  return false;
}

SignalsFromAfar::SignalsFromAfar(CommandCall& call, std::string id)
    : signals_(watch({SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2})) {
  if (signals_ < 0 || ::pipe2(stop_, O_CLOEXEC) != 0) return;
  thread_ = std::thread([this, &call, id = std::move(id)] { pass_on(call, id); });
}

SignalsFromAfar::~SignalsFromAfar() {
  if (stop_[1] >= 0) ::close(stop_[1]);
  if (thread_.joinable()) thread_.join();
  for (const int fd : {signals_, stop_[0]})
    if (fd >= 0) ::close(fd);
}

void SignalsFromAfar::pass_on(CommandCall& call, const std::string& id) {
  auto client = call.client();
  if (!client) return;
  std::array<pollfd, 2> waiting = {{{signals_, POLLIN, 0}, {stop_[0], POLLIN, 0}}};
  while (::poll(waiting.data(), waiting.size(), -1) >= 0 && waiting[1].revents == 0) {
    signalfd_siginfo info = {};
    if (::read(signals_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) continue;
    const int number = static_cast<int>(info.ssi_signo);
    const bool is_end = number == SIGHUP || number == SIGQUIT;
    const auto done = is_end ? client->post("/v1/jobs/" + id + "/cancel")
                             : client->post("/v1/jobs/" + id + "/signal", text_of_signal(number));
    if (!done) call.fail(done.error());
  }
}

int watch_srun_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  return watch({SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCONT, SIGALRM});
}

int stay_with_own_job(CommandCall& call, client::Client& client, const RendezvousPlace& place,
                      int signals, const std::string& id, const OwnJobRules& rules) {
  return OwnJob(call, client, place, signals, id, rules).run();
}

int srun_code(CommandCall& call, const client::Called<std::optional<client::EndedJob>>& ended,
              bool is_told) {
  if (!ended) return call.fail(ended.error());
  const v1::Job& job = (*ended)->job;
  const bool says_all = is_told || job.has_exit_code();
  if (!says_all || !client::name_at(job, v1::Job::kReasonFieldNumber).empty())
    call.console().err(fmt::format("srun: error: {}\n", cli::describe_end(job)));
  const int code = client::exit_code_of_job(job);
  return code == client::kNoExitCode ? 1 : code;
}

}  // namespace gpu_platform::shims
