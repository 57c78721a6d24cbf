#include "execution/process/process_engine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <span>
#include <thread>

#include <fmt/format.h>

#include "execution/job_variables.h"
#include "execution/process/attempts.h"
#include "execution/process/gpu_resets.h"
#include "execution/process/job_request.h"
#include "execution/process/kept_output.h"
#include "execution/process/launcher_link.h"
#include "execution/process/mps_sets.h"
#include "execution/process/preflights.h"
#include "host/user_directory.h"
#include "model/job_spec.h"
#include "node/protocol.h"
#include "node/record.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/packet_socket.h"

namespace gpu_platform::execution {

namespace {

constexpr std::int64_t kFirstReconnect = base::milliseconds(20).value();
constexpr std::int64_t kLongestReconnect = base::milliseconds(1000).value();
// A launcher that lived this long is not in a loop of crashes.
constexpr std::int64_t kSettled = base::milliseconds(1000).value();

base::Result<std::string> read_boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  if (!std::getline(file, boot_id) || boot_id.empty()) {
    return base::fail(base::ErrorCode::kInternal, "the boot id of this host cannot be read");
  }
  return boot_id;
}

// A host is one node and the nodes that are emulated on it.
base::Status check_is_here(const StartOrder& order) {
  const auto real = std::ranges::count(order.nodes, false, &LaunchNode::emulated);
  if (real <= 1) return {};
  return base::invalid("nodes", "the process engine starts processes on its own host only");
}

// A request too large for a message, in memory that cannot change any more.
base::Result<os::Descriptor> to_memory_file(std::string_view bytes) {
  os::Descriptor file(memfd_create("launch-request", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  std::string_view rest = bytes;
  while (file.is_open() && !rest.empty()) {
    const ssize_t wrote = write(file.get(), rest.data(), rest.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return std::unexpected(base::system_error("write a request to memory", errno));
    rest.remove_prefix(static_cast<std::size_t>(wrote));
  }
  constexpr int kSeals = F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (!file.is_open() || fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return std::unexpected(base::system_error("make a request in memory", errno));
  }
  return file;
}

}  // namespace

class ProcessEngine::Worker {
 public:
  struct ChannelRequest {
    model::ChannelOrder order;
    ChannelOpened done;
  };
  struct FileRequest {
    node::OpenFile order;
    std::shared_ptr<const os::Descriptor> answer;  // where the launcher answers
  };
  struct DriverRequest {
    std::string node;
    node::RunDriver order;
    std::shared_ptr<const os::Descriptor> answer;  // where the driver program answers
  };
  struct TimeSlice {
    base::Duration slice;
  };
  struct UserKnown {};  // what waits for a user is to be tried again
  using Order = std::variant<StartOrder, StopOrder, LimitOrder, SignalOrder, ForgetOrder,
                             std::vector<KnownAttempt>, ChannelRequest, FileRequest, UserKnown,
                             node::RemoveOutput, ResetOrder, DriverRequest, TimeSlice,
                             node::WarnOfMemory, node::GpuIsIdle>;

  Worker(const ProcessEngineOptions& options, const EnvironmentSource& environment,
         ObservationSink& sink, std::string boot_id)
      : options_(options),
        environment_(environment),
        told_(*this, sink),
        attempts_(std::move(boot_id), told_,
                  {options.time_slice,
                   {options.mps_control, options.board_places, options.private_folders},
                   base::milliseconds(static_cast<std::int64_t>(options.start_timeout_ms)),
                   options.tell_mps_loss}),
        link_({options.data_dir + "/node", options.node_program, options.launcher_socket,
               options.hooks, options.launcher_rules, options.containers}),
        resets_({options.board_places, options.hold_probe, options.reset_limit_ms,
                 options.check_limit_ms, options.deep_check_limit_ms},
                sink),
        users_(options.users != nullptr ? options.users : std::make_shared<host::UserDirectory>()) {
  }

  ~Worker() {
    {
      const std::lock_guard lock(bell_->mutex);
      bell_->worker = nullptr;
    }
    stopping_ = true;
    wake();
    if (thread_.joinable()) thread_.join();
  }

  base::Status open() {
    epoll_.reset(epoll_create1(EPOLL_CLOEXEC));
    mailbox_.reset(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (!epoll_.is_open() || !mailbox_.is_open()) {
      return std::unexpected(base::system_error("make the engine's event handles", errno));
    }
    add(mailbox_.get(), EPOLLIN);
    thread_ = std::thread([this] { run(); });
    std::unique_lock lock(mutex_);
    opened_.wait_for(lock, std::chrono::milliseconds(options_.open_timeout_ms),
                     [this] { return node_part_known_; });
    if (node_part_known_) return {};
    return base::fail(base::ErrorCode::kUnavailable,
                      link_error_.empty() ? "the launcher does not answer" : link_error_);
  }

  void post(Order order) {
    bool was_empty = false;
    {
      const std::lock_guard lock(mutex_);
      was_empty = orders_.empty();
      orders_.push_back(std::move(order));
    }
    if (was_empty) wake();
  }

  NodePart node_part() const {
    const std::lock_guard lock(mutex_);
    return node_part_;
  }

  // What is done before the attempt's start; empty: nothing.
  std::string step_of(model::AttemptId attempt) const {
    const std::lock_guard lock(mutex_);
    const auto step = steps_.find(attempt);
    return step == steps_.end() ? std::string() : step->second;
  }

 private:
  // The user directory, which may outlive the engine, wakes the engine through this.
  struct Bell {
    explicit Bell(Worker* of) : worker(of) {}
    std::mutex mutex;
    Worker* worker;
  };

  // ---- the loop

  void run() {
    connect();
    while (!stopping_) {
      wait();
      if (stopping_) break;
      take_orders();
      maintain_link();
      flush();
    }
    link_.hang_up();
  }

  void wait() {
    epoll_event events[64];
    const int timeout = timeout_ms();
    watch_new_handles();
    const int count = epoll_wait(epoll_.get(), events, std::size(events), timeout);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == fifo_.get()) {
        read_notices();
      } else if (fd == mailbox_.get()) {
        std::uint64_t wakes = 0;
        [[maybe_unused]] const ssize_t got = read(fd, &wakes, sizeof wakes);
      } else if (fd == link_.fd()) {
        read_link();
      } else if (!resets_.read(fd)) {
        attempts_.supervisor_ended(fd, os::monotonic_ns());
      }
    }
  }

  int timeout_ms() {
    const std::int64_t now = os::monotonic_ns();
    std::optional<std::int64_t> next = attempts_.do_due(now);
    if (const auto due = resets_.do_due(now)) next = std::min(next.value_or(*due), *due);
    if (link_.fd() < 0) next = std::min(next.value_or(reconnect_at_), reconnect_at_);
    take_checks();
    flush();  // what was due may have messages
    if (take_checks()) return 0;
    // A launch may wait for its MPS server since.
    if (const auto due = attempts_.do_due(now)) next = std::min(next.value_or(*due), *due);
    if (!next) return -1;
    return static_cast<int>(
        std::clamp<std::int64_t>((*next - now) / base::milliseconds(1).value() + 1, 0, 60'000));
  }

  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t wrote = write(mailbox_.get(), &one, sizeof one);
  }

  void add(int fd, std::uint32_t events) {
    epoll_event event{};
    event.events = events;
    event.data.fd = fd;
    epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  // A closed handle leaves epoll by itself, because no other process has it open.
  void watch_new_handles() {
    for (const int fd : attempts_.take_new_handles()) add(fd, EPOLLIN);
    for (const int fd : resets_.take_new_handles()) add(fd, EPOLLIN);
  }

  // ---- orders

  // Not before the first launcher has answered: only then is it certain that no earlier launcher is
  // still at work on an attempt that adopt() will judge.
  void take_orders() {
    if (!was_up_) return;
    std::vector<Order> orders;
    {
      const std::lock_guard lock(mutex_);
      orders.swap(orders_);
    }
    for (const Order& order : orders) take(order);
  }

  void take(const Order& order) {
    if (const auto* start = std::get_if<StartOrder>(&order)) {
      attempts_.start(*start);
    } else if (const auto* stop = std::get_if<StopOrder>(&order)) {
      attempts_.stop(*stop, os::monotonic_ns());
      preflights_.give_up(stop->attempt, os::monotonic_ns());
    } else if (const auto* limit = std::get_if<LimitOrder>(&order)) {
      attempts_.set_limit(*limit);
    } else if (const auto* signal = std::get_if<SignalOrder>(&order)) {
      attempts_.signal(*signal);
    } else if (const auto* forget = std::get_if<ForgetOrder>(&order)) {
      note_step(forget->attempt, {});
      attempts_.forget(*forget);
    } else if (const auto* channel = std::get_if<ChannelRequest>(&order)) {
      take_channel(*channel);
    } else if (const auto* file = std::get_if<FileRequest>(&order)) {
      if (up_) link_.send(file->order, file->answer->get());
    } else if (const auto* removal = std::get_if<node::RemoveOutput>(&order)) {
      if (up_) link_.send(*removal);
    } else if (const auto* time = std::get_if<TimeSlice>(&order)) {
      attempts_.use_time_slice(time->slice);
    } else if (const auto* warning = std::get_if<node::WarnOfMemory>(&order)) {
      if (up_) link_.send(*warning);
    } else if (const auto* idle = std::get_if<node::GpuIsIdle>(&order)) {
      if (up_) link_.send(*idle);
    } else if (const auto* reset = std::get_if<ResetOrder>(&order)) {
      resets_.add(*reset);
    } else if (const auto* request = std::get_if<DriverRequest>(&order)) {
      node::RunDriver run = request->order;
      run.board = board_files_of(options_.board_places, request->node);
      if (up_) link_.send(run, request->answer->get());
    } else if (std::holds_alternative<UserKnown>(order)) {
      try_again();
    } else {
      attempts_.adopt(std::get<std::vector<KnownAttempt>>(order), os::monotonic_ns());
    }
  }

  // ---- checks before starts

  // Returns whether one has ended.
  bool take_checks() {
    const std::vector<PreflightOutcome> ended = preflights_.take_ended(os::monotonic_ns());
    for (const PreflightOutcome& outcome : ended) {
      note_step(outcome.attempt, {});
      attempts_.check_ended(outcome);
    }
    return !ended.empty();
  }

  // Returns whether the start waits for its check.
  bool is_to_be_checked(model::AttemptId id) {
    const StartOrder* const order = attempts_.begin_check(id);
    if (order == nullptr) return false;
    const bool is_deep = order->spec->preflight == model::Preflight::kDeep;
    note_step(id, fmt::format("checking its GPUs ({})", is_deep ? "deep" : "quick"));
    preflights_.begin(*order, os::monotonic_ns());
    return true;
  }

  // Returns whether the start waits for its MPS server, or has ended because there is none.
  bool is_to_be_served(model::AttemptId id) {
    const bool waits = attempts_.begin_mps(id, os::monotonic_ns());
    note_step(id, waits ? "making its MPS server ready" : "");
    return waits;
  }

  void note_step(model::AttemptId id, std::string step) {
    const std::lock_guard lock(mutex_);
    if (step.empty()) {
      steps_.erase(id);
    } else {
      steps_[id] = std::move(step);
    }
  }

  // ---- the user that a job runs as

  // Nothing: the user database is being asked, and try_again() follows.
  std::optional<base::Result<UserIdentity>> user_of(const model::JobSpec& spec) {
    const auto found = users_->user_now(spec.uid, [bell = bell_] {
      const std::lock_guard lock(bell->mutex);
      if (bell->worker != nullptr) bell->worker->post(UserKnown{});
    });
    if (!found) return std::nullopt;
    if (*found) {
      const host::User& user = **found;
      return UserIdentity{user.name, user.home, user.shell, spec.uid};
    }
    // Arbitrary ids in containers have no entry.
    const bool is_own = spec.uid == geteuid() && found->error().code == base::ErrorCode::kNotFound;
    if (is_own) return UserIdentity{{}, {}, {}, spec.uid};
    return base::Result<UserIdentity>(std::unexpected(found->error()));
  }

  void try_again() {
    auto& launches = attempts_.launches();
    launches.insert(launches.begin(), unnamed_launches_.begin(), unnamed_launches_.end());
    unnamed_launches_.clear();
    for (const ChannelRequest& channel : std::exchange(unnamed_channels_, {})) {
      take_channel(channel);
    }
  }

  // ---- channels

  void take_channel(const ChannelRequest& channel) {
    const StartOrder* const started = attempts_.order_of_running(channel.order.attempt);
    if (started == nullptr) {
      return channel.done(
          base::fail(base::ErrorCode::kFailedPrecondition, "the job is not running any more"));
    }
    os::Descriptor file;  // a client that attaches to the job itself runs no command
    if (!channel.order.is_attach()) {
      const auto user = user_of(*started->spec);
      if (!user) return unnamed_channels_.push_back(channel);
      auto made = request_beside(*started, channel.order.command, *user);
      if (!made) return channel.done(std::unexpected(std::move(made).error()));
      file = std::move(*made);
    }
    channel.done(open_channel(channel.order, std::move(file)));
  }

  // Returns what a command beside the job is run with. Without a command, a connection is made.
  base::Result<os::Descriptor> request_beside(StartOrder job,
                                              const std::vector<std::string>& command,
                                              const base::Result<UserIdentity>& user) {
    auto spec = std::make_shared<model::JobSpec>(*job.spec);
    if (!command.empty()) spec->command = command;
    spec->takes_input = false;
    spec->terminal.reset();
    spec->idle_timeout.reset();
    job.spec = std::move(spec);
    TRY_ASSIGN(const std::string request, request_for(job, user));
    return to_memory_file(request);
  }

  base::Result<os::Descriptor> open_channel(const model::ChannelOrder& order,
                                            const os::Descriptor& file) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      return std::unexpected(base::system_error("make a channel", errno));
    }
    os::Descriptor ours(ends[0]);
    const os::Descriptor theirs(ends[1]);
    const std::string start =
        node::encode_channel_start({order.terminal, order.port, order.without_output});
    const bool sent = up_ && os::send_packet(ours.get(), start, file.get()) &&
                      link_.send(node::OpenChannel{order.attempt, order.is_attach()},
                                 theirs.get()) == LauncherLink::Sent::kYes;
    if (sent) return ours;
    return base::fail(base::ErrorCode::kUnavailable,
                      "the launcher does not answer just now; try again in a moment");
  }

  // ---- what comes in

  void read_notices() {
    // A multiple of the frame: what is left in the FIFO begins with a whole one again.
    char frames[node::kNoticeSize * 128];
    while (true) {
      const ssize_t got = read(fifo_.get(), frames, sizeof frames);
      if (got <= 0) return;
      const std::string_view all(frames, static_cast<std::size_t>(got));
      for (std::size_t at = 0; at + node::kNoticeSize <= all.size(); at += node::kNoticeSize) {
        const auto notice = node::decode_notice(all.substr(at, node::kNoticeSize));
        if (!notice) continue;
        attempts_.notice(*notice);
        if (notice->kind == node::Notice::Kind::kEntered) {
          enter_on_board(notice->attempt, notice->started.pid);
        }
      }
    }
  }

  void read_link() {
    while (link_.fd() >= 0) {
      LauncherLink::Received received = link_.receive();
      if (received.closed) {
        link_lost("the launcher ended");
        return;
      }
      if (!received.message) return;
      if (const auto* welcome = std::get_if<node::Welcome>(&*received.message)) {
        greeted(*welcome, std::move(received.fd));
      } else if (const auto* refused = std::get_if<node::Refused>(&*received.message)) {
        link_lost("the launcher refuses us: " + refused->why);
        return;
      } else {
        attempts_.answer(*received.message, std::move(received.fd), os::monotonic_ns());
      }
    }
  }

  // An emulated board shows the job's processes, as a driver would once they use its GPUs.
  void enter_on_board(model::AttemptId attempt, std::uint32_t pid) const {
    if (!options_.enter_on_board) return;
    const StartOrder* const order = attempts_.order_of(attempt);
    if (order == nullptr) return;
    const auto node = std::ranges::find(order->nodes, true, &LaunchNode::emulated);
    if (node == order->nodes.end()) return;
    const std::vector<std::string> uuids = uuids_of(node->gpus);
    if (!uuids.empty()) options_.enter_on_board(node->node_name, uuids, pid);
  }

  // What the attempts tell the core. A start is told again when a new daemon finds the job running:
  // its board must hear of it then, too, to follow what the job states.
  class Told final : public ObservationSink {
   public:
    Told(const Worker& worker, ObservationSink& core) : worker_(worker), core_(core) {}

    void observe(Observation observation) override {
      if (const auto* started = std::get_if<Started>(&observation)) {
        worker_.enter_on_board(started->attempt, static_cast<std::uint32_t>(started->pid));
      }
      core_.observe(std::move(observation));
    }

   private:
    const Worker& worker_;
    ObservationSink& core_;
  };

  // ---- the launcher

  void connect() {
    connected_at_ = os::monotonic_ns();
    if (const base::Status status = link_.connect(); !status) {
      link_lost(status.error().message);
      return;
    }
    add(link_.fd(), EPOLLIN);
    waits_for_launcher_ = false;
  }

  // The FIFO through which supervisors tell is the launcher's; without it their records are looked
  // at when they end.
  void greeted(const node::Welcome& welcome, os::Descriptor notices) {
    up_ = true;
    fifo_ = std::move(notices);
    if (fifo_.is_open()) add(fifo_.get(), EPOLLIN);
    attempts_.use_folder(welcome.folder);
    if (was_up_) attempts_.launcher_is_new(os::monotonic_ns());
    was_up_ = true;
    hides_other_gpus_ = node::hides_other_gpus(welcome.guards);
    const std::lock_guard lock(mutex_);
    node_part_ = {welcome.isolation == node::Isolation::kCgroup,
                  welcome.can_switch_user,
                  welcome.detail,
                  as_configured(welcome.guards),
                  welcome.pid,
                  welcome.folder};
    node_part_known_ = true;
    opened_.notify_all();
  }

  void link_lost(std::string why) {
    link_.hang_up();
    up_ = false;
    const std::int64_t now = os::monotonic_ns();
    if (now - connected_at_ > kSettled) reconnect_delay_ = kFirstReconnect;
    reconnect_at_ = now + reconnect_delay_;
    reconnect_delay_ = std::min(reconnect_delay_ * 2, kLongestReconnect);
    const std::lock_guard lock(mutex_);
    link_error_ = std::move(why);
  }

  void maintain_link() {
    if (link_.fd() < 0 && os::monotonic_ns() >= reconnect_at_) connect();
  }

  void flush() {
    if (!up_) return;
    LauncherLink::Sent sent = LauncherLink::Sent::kYes;
    auto& messages = attempts_.messages();
    while (sent == LauncherLink::Sent::kYes && !messages.empty()) {
      sent = link_.send(messages.front());
      if (sent == LauncherLink::Sent::kYes) messages.pop_front();
    }
    auto& launches = attempts_.launches();
    while (sent == LauncherLink::Sent::kYes && !launches.empty()) {
      sent = launch(launches.front());
      if (sent == LauncherLink::Sent::kYes) launches.pop_front();
    }
    if (sent == LauncherLink::Sent::kYes) {
      sent = resets_.go_on(
          [this](const node::RunDriver& run, int socket) { return link_.send(run, socket); },
          os::monotonic_ns());
    }
    if (sent == LauncherLink::Sent::kBroken) {
      link_lost("the launcher ended");
      return;
    }
    wait_for_launcher(sent == LauncherLink::Sent::kNotNow);
  }

  void wait_for_launcher(bool wait) {
    if (wait == waits_for_launcher_) return;
    waits_for_launcher_ = wait;
    epoll_event event{};
    event.events = wait ? EPOLLIN | EPOLLOUT : EPOLLIN;
    event.data.fd = link_.fd();
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, link_.fd(), &event);
  }

  // kYes also where there is nothing to send any more.
  LauncherLink::Sent launch(model::AttemptId id) {
    if (is_to_be_checked(id) || is_to_be_served(id)) return LauncherLink::Sent::kYes;
    const StartOrder* order = attempts_.order_to_launch(id);
    if (order == nullptr) return LauncherLink::Sent::kYes;
    const auto user = user_of(*order->spec);
    if (!user) {
      unnamed_launches_.push_back(id);
      return LauncherLink::Sent::kYes;
    }
    const base::Result<std::string> request = request_for(*order, *user);
    if (!request) {
      const bool fault_of_job = request.error().code == base::ErrorCode::kInvalidArgument ||
                                request.error().code == base::ErrorCode::kResourceExhausted;
      const bool lacks_environment = request.error().code == base::ErrorCode::kDataLoss;
      attempts_.launch_impossible(
          id, fault_of_job ? std::optional<std::uint8_t>(126) : std::nullopt,
          request.error().message,
          lacks_environment ? model::EndReason::kEnvironmentLost : model::EndReason::kLaunchFailed);
      return LauncherLink::Sent::kYes;
    }
    node::Launch message{id, request->size() > node::kMaxInlineRequest, *request};
    os::Descriptor file;
    if (message.in_memory_file) {
      auto made = to_memory_file(*request);
      if (!made) {
        attempts_.launch_impossible(id, std::nullopt, made.error().message);
        return LauncherLink::Sent::kYes;
      }
      file = std::move(*made);
      message.request = {};
    }
    const LauncherLink::Sent sent = link_.send(message, file.get());
    if (sent == LauncherLink::Sent::kYes) attempts_.launch_sent(id);
    return sent;
  }

  // The launcher knows what the host can hold, but not what is asked of it for each job.
  std::vector<node::GuardState> as_configured(std::vector<node::GuardState> guards) const {
    for (node::GuardState& state : guards) {
      const bool is_folders = state.guard == node::Guard::kFolders;
      const bool is_list = state.guard == node::Guard::kProcessList;
      if ((is_folders || is_list) && !options_.private_folders) {
        state = {state.guard, false, "switched off (execution.private_tmp: false)"};
      } else if (is_list && !options_.hide_processes) {
        state = {state.guard, false, "switched off (execution.hide_processes: false)"};
      }
    }
    return guards;
  }

  base::Result<std::string> request_for(const StartOrder& order,
                                        const base::Result<UserIdentity>& known) {
    const model::JobSpec& spec = *order.spec;
    TRY(check_is_here(order));
    std::string submitted;
    if (!spec.environment_ref.empty()) {
      auto kept = environment_.environment(spec.environment_ref);
      if (!kept) {
        if (is_environment_lost(kept.error())) {
          return base::fail(base::ErrorCode::kDataLoss, std::string(kEnvironmentLostDetail));
        }
        return base::fail(kept.error().code,
                          "the job's environment cannot be read: " + kept.error().message);
      }
      submitted = *std::move(kept);
    }
    TRY_ASSIGN(const UserIdentity user, known);
    RequestOptions options;
    options.node_program = options_.node_program;
    options.board_places = options_.board_places;
    options.cuda = {options_.cuda_names, hides_other_gpus_};
    options.mps = attempts_.mps_client_of(order.attempt);
    if (is_mps_client(order) && !options.mps) {
      return base::fail(base::ErrorCode::kUnavailable,
                        "where its MPS server is, is not known just now; try again in a moment");
    }
    options.output_file_bytes = options_.output_file_bytes;
    options.output_files = options_.output_files;
    options.max_processes = options_.max_processes;
    options.private_folders = options_.private_folders;
    options.hide_processes = options_.hide_processes;
    options.start_timeout_ms = options_.start_timeout_ms;
    options.output_limit_bytes = options_.output_limit_bytes;
    return launch_request(order, submitted, user, options);
  }

  const ProcessEngineOptions options_;
  const EnvironmentSource& environment_;
  Told told_;
  Attempts attempts_;
  LauncherLink link_;
  GpuResets resets_;
  Preflights preflights_{resets_};
  const std::shared_ptr<host::UserDirectory> users_;
  std::vector<model::AttemptId> unnamed_launches_;  // they wait for their user
  std::vector<ChannelRequest> unnamed_channels_;
  os::Descriptor epoll_;
  os::Descriptor fifo_;
  os::Descriptor mailbox_;
  bool up_ = false;
  bool was_up_ = false;
  bool hides_other_gpus_ = false;  // as the launcher says
  bool waits_for_launcher_ = false;
  std::int64_t connected_at_ = 0;
  std::int64_t reconnect_at_ = 0;
  std::int64_t reconnect_delay_ = kFirstReconnect;

  mutable std::mutex mutex_;  // guards what is below, up to the thread
  std::condition_variable opened_;
  std::vector<Order> orders_;
  NodePart node_part_;
  bool node_part_known_ = false;
  std::string link_error_;
  std::map<model::AttemptId, std::string> steps_;  // before the start, in words

  std::atomic<bool> stopping_ = false;
  std::thread thread_;
  std::shared_ptr<Bell> bell_ = std::make_shared<Bell>(this);
};

base::Result<std::unique_ptr<ProcessEngine>> ProcessEngine::open(
    const ProcessEngineOptions& options, const EnvironmentSource& environment,
    ObservationSink& sink) {
  if (!options.data_dir.starts_with('/')) {
    return base::invalid("data_dir", "the data directory must be an absolute path");
  }
  if (options.output_files == 0 || options.output_file_bytes == 0) {
    return base::invalid("output_files", "kept output needs room for at least one byte");
  }
  // The launcher checks them too, but what it finds it can only print.
  if (const std::string why = node::error_of(options.hooks); !why.empty()) {
    return base::invalid("execution", "execution." + why);
  }
  TRY_ASSIGN(std::string boot_id, read_boot_id());
  auto worker = std::make_unique<Worker>(options, environment, sink, boot_id);
  TRY(worker->open());
  return std::unique_ptr<ProcessEngine>(new ProcessEngine(std::move(worker), std::move(boot_id)));
}

ProcessEngine::ProcessEngine(std::unique_ptr<Worker> worker, std::string boot_id)
    : boot_id_(std::move(boot_id)), worker_(std::move(worker)) {}
ProcessEngine::~ProcessEngine() = default;

void ProcessEngine::start(const StartOrder& order) {
  worker_->post(order);
}
void ProcessEngine::stop(const StopOrder& order) {
  worker_->post(order);
}
void ProcessEngine::set_limit(const LimitOrder& order) {
  worker_->post(order);
}
void ProcessEngine::signal(const SignalOrder& order) {
  worker_->post(order);
}
void ProcessEngine::warn_of_memory(model::AttemptId attempt, base::Bytes used, base::Bytes part) {
  const auto mib = [](base::Bytes bytes) {
    return static_cast<std::uint32_t>(bytes.value() / base::kMiB.value());
  };
  worker_->post(node::WarnOfMemory{attempt, mib(used), mib(part)});
}
void ProcessEngine::warn_of_idle(model::AttemptId attempt, std::uint32_t stops_in_minutes) {
  worker_->post(node::warning_of_idle(attempt, stops_in_minutes));
}
void ProcessEngine::give_turn_on(std::string gpu_uuid) {
  worker_->post(node::GpuIsIdle{std::move(gpu_uuid)});
}
void ProcessEngine::forget(const ForgetOrder& order) {
  worker_->post(order);
}
void ProcessEngine::reset(const ResetOrder& order) {
  worker_->post(order);
}
void ProcessEngine::use_time_slice(base::Duration slice) {
  worker_->post(Worker::TimeSlice{slice});
}
void ProcessEngine::adopt(const std::vector<KnownAttempt>& known) {
  worker_->post(known);
}
void ProcessEngine::open_channel(model::ChannelOrder order, ChannelOpened done) {
  worker_->post(Worker::ChannelRequest{std::move(order), std::move(done)});
}
base::Result<os::Descriptor> ProcessEngine::ask_for_users_file(std::uint32_t uid,
                                                               std::string path) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(base::system_error("make a socket", errno));
  }
  os::Descriptor ours(ends[0]);
  // Closed here with the last copy of the order, so that a launcher that goes is noticed.
  worker_->post(
      Worker::FileRequest{{uid, std::move(path)}, std::make_shared<const os::Descriptor>(ends[1])});
  return ours;
}
base::Result<os::Descriptor> ProcessEngine::ask_driver(const std::string& node_name,
                                                       node::RunDriver request) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return std::unexpected(base::system_error("make a socket", errno));
  }
  os::Descriptor ours(ends[0]);
  worker_->post(Worker::DriverRequest{node_name, std::move(request),
                                      std::make_shared<const os::Descriptor>(ends[1])});
  return ours;
}

std::string ProcessEngine::step_of(model::AttemptId attempt) const {
  std::string step = worker_->step_of(attempt);
  return step.empty() ? container_step(node_part().folder, attempt) : step;
}
std::string ProcessEngine::output_of(model::AttemptId attempt) const {
  return kept_output_path(node_part().folder, attempt);
}
bool ProcessEngine::has_output(model::JobId job) const {
  return has_kept_output(node_part().folder, job);
}
void ProcessEngine::remove_output(std::vector<model::JobId> jobs) {
  std::span<const model::JobId> left = jobs;
  while (!left.empty()) {
    const auto some = left.first(std::min(left.size(), node::kMaxOutputRemovals));
    worker_->post(node::RemoveOutput{{some.begin(), some.end()}});
    left = left.subspan(some.size());
  }
}

NodePart ProcessEngine::node_part() const {
  return worker_->node_part();
}

}  // namespace gpu_platform::execution
