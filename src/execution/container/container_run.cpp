#include "execution/container/container_run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/container/answer_fields.h"
#include "execution/container/attempt_container.h"
#include "execution/container/container_cleanup.h"
#include "execution/container/container_failure.h"
#include "execution/container/container_rules.h"
#include "execution/container/container_setup.h"
#include "execution/container/create_body.h"
#include "execution/container/engine_calls.h"
#include "execution/container/engine_open.h"
#include "execution/container/first_process.h"
#include "execution/container/hijacked_stream.h"
#include "execution/container/image_start.h"
#include "execution/container/output_frames.h"
#include "execution/container/request_checks.h"
#include "execution/container/run_signals.h"
#include "execution/container/start_hold.h"
#include "execution/container/terminal_link.h"
#include "node/cgroup.h"
#include "node/protocol.h"
#include "node/site_hooks.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr int kRetryMs = 500;
constexpr int kRemovals = 4;
constexpr base::Duration kTurnPause = base::milliseconds(10);
constexpr int kLongestPauseMs = 32;
constexpr int kLookMs = 5'000;                 // how often a silent container is looked at
constexpr std::int64_t kLostAfterMs = 30'000;  // without the engine and without a process
constexpr std::size_t kMaxReport = 600;
constexpr int kStarts = 3;  // where the engine goes away meanwhile
constexpr base::Duration kHoldPause = base::milliseconds(2);

std::string read_all(int fd) {
  std::string bytes;
  char buffer[16 * 1024];
  for (ssize_t got = 0; (got = read(fd, buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, static_cast<std::size_t>(got));
  }
  return bytes;
}

bool has_all(const Json& labels, const Json& wanted) {
  for (const auto& [key, value] : wanted.items()) {
    if (Json(text_field(labels, key.c_str())) != value) return false;
  }
  return true;
}

// The report is one line, which is written over the one before; a second one at the end says that
// nothing is left to clean up.
void write_report(int fd, std::string text, bool is_clean = false) {
  text.resize(std::min(text.size(), kMaxReport));
  std::ranges::replace(text, '\n', ' ');
  text += is_clean ? "\nclean\n" : "\n";
  const ssize_t wrote = pwrite(fd, text.data(), text.size(), 0);
  if (wrote > 0 && ftruncate(fd, wrote) != 0) return;  // what follows the line is not read
}

class ContainerRun {
 public:
  ContainerRun(const ContainerRunOptions& options, const ContainerRules& rules,
               const node::LaunchRequest& request, RunSignals& signals)
      : o_(options),
        rules_(rules),
        request_(request),
        signals_(signals),
        engine_(rules.socket, signals.fd(), [this] { return signals_.take(); }),
        setup_(options, rules, request, engine_, signals, long_step()) {
    engine_.set_hopeless([this] { return is_hopeless(); });
  }

  ContainerDone<int> run() {
    const auto prepared = setup_.prepare();
    auto code = prepared ? live() : std::unexpected(prepared.error());
    remove();
    return code;
  }

  bool ran_out_of_memory() const { return ran_out_of_memory_; }
  // Nothing is left with the engine.
  bool is_clean() const { return id_.empty(); }

 private:
  LongStep long_step() {
    return {[this](const std::string& doing) { write_report(o_.report_fd, "doing: " + doing); },
            [this](base::Duration time) { return signals_.wait(time); }};
  }

  ContainerDone<> check_driver_of_made() {
    if (setup_.knows_driver()) return {};
    const auto made = engine_.get("/libpod/containers/" + id_ + "/json");
    if (!made) return container_failed("the engine", made.error());
    return ContainerSetup::check_driver(text_field(field(*made, "HostConfig"), "CgroupManager"));
  }

  // ---- its life

  ContainerDone<int> live() {
    const ContainerPlan plan = setup_.plan();
    name_ = plan.cluster + "-" + plan.attempt;
    const auto body = create_body(plan);
    if (!body) return container_failed(body.error().message);
    words_ = (*body)["Cmd"].get<std::vector<std::string>>();
    if (signals_.take()) return 128 + SIGTERM;
    if (auto made = create(*body); !made) return std::unexpected(made.error());
    for (int starts = 1;; ++starts) {
      auto output = start();
      if (output || !output.error().is_away || starts == kStarts) {
        if (!output) return not_started(output.error());
        const auto goes_on = look_at_first(plan);
        if (!goes_on) return std::unexpected(goes_on.error());
        if (!*goes_on) return 128 + SIGTERM;
        setup_.stages().remove();  // the container has its own of them
        signals_.set_resized();
        pump(*output);
        return with_outcome(wait_for_end());
      }
      if (auto back = open_engine(engine_, rules_.socket, long_step()); !back)
        return std::unexpected(back.error());
      if (signals_.take()) return 128 + SIGTERM;
    }
  }

  // Podman makes the container's processes when it is attached to. A container that an engine
  // started before it went away says so: 304.
  Answered<HijackedStream> start() {
    auto output = attach();
    if (!output) return output;
    if (signals_.take()) return std::unexpected(EngineFailure{});
    signals_.set_begun(true);
    const auto started = engine_.post("/containers/" + id_ + "/start");
    if (started || started.error().status == 304) return output;
    signals_.set_begun(!started.error().is_away);
    return std::unexpected(started.error());
  }

  ContainerDone<int> not_started(const EngineFailure& failure) const {
    if (failure.message.empty()) return 128 + SIGTERM;  // stopped before it
    return container_failed(failure.message, code_of_start(failure.message));
  }

  std::string create_path() const {
    std::string query;
    http::append_query(query, "name", name_);
    if (!setup_.platform().empty()) http::append_query(query, "platform", setup_.platform());
    return "/containers/create?" + query;
  }

  // Held until it is closed; closed already where a stop came first, or there is no folder for it.
  os::Descriptor take_turn() {
    const std::string path = o_.root + "/run/create.turn";
    os::Descriptor turn(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    while (turn.is_open() && flock(turn.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK || !signals_.wait(kTurnPause)) return {};
    }
    return turn;
  }

  // A stop waits for the answer: an engine that is left alone with it makes the container all the
  // same, and it would stay.
  Answered<> post_create_once(const Json& body) {
    const os::Descriptor turn = setup_.is_rootless() ? take_turn() : os::Descriptor();
    if (signals_.is_to_end()) return std::unexpected(EngineFailure{0, "stopped meanwhile"});
    signals_.set_making(true);
    auto made = engine_.post(create_path(), body);
    signals_.set_making(false);
    return made;
  }

  // Podman reads a user's subordinate ids with a library that creates at the same time confuse
  // (4.3.1): it then finds none, or Podman dies of it. So the platform's creates take turns. Others
  // of the user may be in the way all the same: the next try finds the ids, so only what is refused
  // again is.
  Answered<> post_create(const Json& body) {
    constexpr int kTries = 6;
    base::Duration pause = base::milliseconds(50);
    auto made = post_create_once(body);
    for (int tries = 1; tries < kTries; ++tries, pause = pause * 2) {
      const bool is_confused = !made && setup_.is_rootless() && made.error().status == 500 &&
                               made.error().message.contains("/etc/subuid");
      if (!is_confused || !signals_.wait(pause)) break;
      made = post_create_once(body);
    }
    return made;
  }

  // A name that is taken is not this attempt's own container: the attempt is started once.
  ContainerDone<> create(const Json& body) {
    auto made = post_create(body);
    if (!made && made.error().is_away) {
      if (auto back = open_engine(engine_, rules_.socket, long_step()); !back) return back;
      remove_half_made(body);
      made = post_create(body);
    }
    if (!made) return not_made(made.error());
    id_ = text_field(*made, "Id");
    if (id_.empty() || id_.find_first_not_of("0123456789abcdef") != std::string::npos) {
      id_.clear();
      return container_failed("the engine reported no container");
    }
    const auto read_back = engine_.get("/containers/" + id_ + "/json");
    if (!read_back) return container_failed("the engine", read_back.error());
    if (std::string why = difference(body, *read_back); !why.empty()) return container_failed(why);
    const std::string used = text_field(*read_back, "Image");
    if (!setup_.is_rootless() && !is_same_image(used, setup_.found_image().id))
      return container_failed(fmt::format("image {} has changed meanwhile", setup_.image()));
    return check_driver_of_made();
  }

  // An engine with another driver refuses the cgroup as a parent, in words about slices.
  std::unexpected<ContainerFailure> not_made(const EngineFailure& failure) {
    if (!setup_.knows_driver() && !failure.is_away) {
      const auto info = engine_.get("/info");
      const auto fits = info ? ContainerSetup::check_driver(text_field(*info, "CgroupDriver"))
                             : ContainerDone<>();
      if (!fits) return std::unexpected(fits.error());
    }
    return container_failed("the engine makes no container", failure);
  }

  // An engine that went away in the middle of a create may have made it. What has our name and not
  // our labels and our place is not ours.
  void remove_half_made(const Json& body) {
    const auto found = engine_.get("/containers/" + name_ + "/json");
    if (!found) return;
    // An image may have labels of its own.
    const bool is_ours =
        has_all(field(field(*found, "Config"), "Labels"), body["Labels"]) &&
        text_field(field(*found, "HostConfig"), "CgroupParent") == setup_.engine_cgroup();
    if (is_ours) static_cast<void>(engine_.remove("/containers/" + name_ + "?force=1&v=1"));
  }

  // False: a stop came first.
  ContainerDone<bool> look_at_first(const ContainerPlan& plan) {
    const auto found = engine_.get("/containers/" + id_ + "/json");
    if (!found || !found->is_object())
      return container_failed("the engine did not report what runs");
    const auto pid = static_cast<int>(number_field(field(*found, "State"), "Pid"));
    if (pid <= 0) return true;  // the engine says how it ended
    if (!setup_.is_rootless()) return let_go(pid, plan);
    const std::string why = error_in_rootless(pid, plan);
    if (!why.empty()) return container_failed(why);
    return true;
  }

  // It is our own program, which waits until all is as it was asked for.
  ContainerDone<bool> let_go(int pid, const ContainerPlan& plan) {
    const auto start = read_start(start_folder(o_.cgroup, o_.attempt));
    if (!start) return container_failed("the container's start cannot be read");
    const auto first = wait_for_held(pid, o_.cgroup, *start, [this] {
      return signals_.wait(kHoldPause) && !signals_.is_to_end();
    });
    if (!first) return std::unexpected(first.error());
    if (!first->is_there()) return !signals_.is_to_end();
    std::string why = error_in_held(*first, plan, *start);
    if (first->has_ended()) return true;
    if (!why.empty()) return container_failed(why);
    auto places = setup_.places();
    if (!places) return std::unexpected(places.error());
    const auto put = put_places(*first, setup_.user(), *std::move(places), [this](int fd) {
      pollfd fds[] = {{fd, POLLIN, 0}, {signals_.fd(), POLLIN, 0}};
      poll(fds, std::size(fds), -1);
      signals_.take();
      return !signals_.is_to_end();
    });
    if (signals_.is_to_end()) return false;
    if (!put) return std::unexpected(put.error());
    if (!setup_.hold().say_go()) return container_failed("the container's start cannot go on");
    return true;
  }

  // Our program ends with the codes that the engines' own tools have for it.
  ContainerDone<int> with_outcome(ContainerDone<int> end) const {
    const bool may_be_ours = end && (*end == kNotExecutable || *end == kNoProgram);
    const auto outcome =
        may_be_ours && !setup_.is_rootless() ? setup_.hold().outcome() : std::nullopt;
    if (!outcome) return end;
    return container_failed(describe_outcome(*outcome, setup_.start().back(), words_), *end);
  }

  // What came for it before it could be found is for it, too.
  std::string error_in_rootless(std::int64_t pid, const ContainerPlan& plan) {
    signals_.pass_to(hold_first_process(static_cast<int>(pid)));
    if (!signals_.first().is_there()) return {};  // it has just ended
    const std::string folder = "/proc/" + std::to_string(pid);
    const std::string status = os::read_small_file(AT_FDCWD, (folder + "/status").c_str());
    const std::string gpu = missing_gpu_node(request_, folder + "/root");
    if (signals_.first().has_ended()) return {};
    if (!gpu.empty()) return "the engine started it without the GPU " + gpu;
    return error_in_process(status, plan);
  }

  Answered<HijackedStream> attach() {
    const bool takes_input = request_.takes_input;
    const bool has_terminal = request_.terminal.has_value();
    if (has_terminal) terminal_.make_raw();
    auto raw = engine_.hijack("/containers/" + id_ + "/attach?stream=1&stdout=1&stderr=1" +
                              (takes_input ? "&stdin=1" : ""));
    if (!raw) return std::unexpected(std::move(raw).error());
    HijackedStream stream(*std::move(raw), {takes_input ? 0 : -1, has_terminal});
    stream.let_input_in();
    return stream;
  }

  void pump(HijackedStream& output) {
    while (!output.has_ended()) {
      if (signals_.take_resized()) resize();
      pollfd fds[1 + HijackedStream::kHandles] = {{signals_.fd(), POLLIN, 0}};
      output.watch(fds + 1);
      const int ready = poll(fds, std::size(fds), kLookMs);
      signals_.take();
      if (ready == 0 && is_hopeless()) return;
      output.work();
    }
  }

  void resize() {
    const auto size = request_.terminal ? TerminalLink::size() : std::nullopt;
    if (!size) return;
    static_cast<void>(engine_.post_brief(
        fmt::format("/containers/{}/resize?h={}&w={}", id_, size->rows, size->columns)));
  }

  // The engine may be restarted meanwhile: the container goes on, and its end is asked for again.
  // An engine that lists it as ended is not waited for: Podman's wait is for its own cleanup, too,
  // which takes as long as the start. Its output ends some milliseconds before the engine knows.
  ContainerDone<int> wait_for_end() {
    for (int pause_ms = 1; pause_ms <= kLongestPauseMs; pause_ms *= 2) {
      const auto found = engine_.get_brief("/containers/" + id_ + "/json");
      if (!found) break;
      if (const auto code = code_of_ended(*found)) return *code;
      pollfd signals{signals_.fd(), POLLIN, 0};
      poll(&signals, 1, pause_ms);
      signals_.take();
    }
    while (true) {
      const auto waited = engine_.post_slow("/containers/" + id_ + "/wait");
      if (waited && field(*waited, "StatusCode").is_number_integer()) {
        const int code = static_cast<int>(number_field(*waited, "StatusCode"));
        note_memory(code, engine_.get("/containers/" + id_ + "/json"));
        return code;
      }
      if (!waited && waited.error().status == 404)
        return container_failed("the engine has lost it");
      if (is_hopeless()) return container_failed("the engine did not report how it ended");
      pollfd signals{signals_.fd(), POLLIN, 0};
      poll(&signals, 1, kRetryMs);
      signals_.take();
      follow_again();
    }
  }

  std::optional<int> code_of_ended(const Json& found) {
    const Json state = field(found, "State");
    const std::string status = text_field(state, "Status");
    const bool is_over = status == "exited" || status == "stopped";
    if (!is_over || flag_field(state, "Running")) return std::nullopt;
    if (!field(state, "ExitCode").is_number_integer()) return std::nullopt;
    const int code = static_cast<int>(number_field(state, "ExitCode"));
    note_memory(code, found);
    return code;
  }

  // What the container prints while the engine is away is lost.
  void follow_again() {
    const auto found = engine_.get("/containers/" + id_ + "/json");
    if (!found || !flag_field(field(*found, "State"), "Running")) return;
    auto output = attach();
    signals_.set_resized();
    if (output) pump(*output);
  }

  // No process of it is left for a while, and the engine has not said that it ended.
  bool is_hopeless() {
    if (!signals_.has_begun()) return false;
    const std::int64_t now = os::boot_ms();
    if (empty_since_ == 0 || !is_empty()) empty_since_ = now;
    return now - empty_since_ > kLostAfterMs;
  }

  bool is_empty() const {
    if (setup_.is_rootless()) return !signals_.first().is_there() || signals_.first().has_ended();
    const os::Descriptor group(open(o_.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return !group.is_open() || node::cgroup_is_empty(group.get());
  }

  void note_memory(int code, const Answered<>& found) {
    ran_out_of_memory_ = found && flag_field(field(*found, "State"), "OOMKilled");
    if (code == 128 + SIGKILL && !signals_.is_to_end() && used_up_memory()) {
      ran_out_of_memory_ = true;
    }
  }

  // Engines miss that at times (Podman with cgroup v1 beside v2), and the container's group, which
  // knows it, is gone by now. The group above has the peak: a process that was killed where all of
  // the memory had been used was killed for that.
  bool used_up_memory() const {
    if (request_.memory_bytes == 0 || setup_.is_rootless()) return false;
    constexpr std::uint64_t kPage = 4096;
    const auto peak = node::peak_of_engine_groups(o_.cgroup);
    return peak && *peak + kPage > request_.memory_bytes;
  }

  void remove() {
    signals_.set_begun(true);  // no signal stops this
    setup_.stages().remove();
    setup_.hold().remove();
    if (!id_.empty()) {
      setup_.images().note_use(setup_.image(), os::wall_now());
      // An engine may refuse it while it is still busy with the start.
      for (int tries = 0; !id_.empty() && tries < kRemovals; ++tries) {
        if (tries > 0) poll(nullptr, 0, kRetryMs);
        const auto removed = engine_.remove("/containers/" + id_ + "?force=1&v=1");
        const bool is_gone = removed || removed.error().status == 404;
        const bool is_final = is_gone || removed.error().is_away || signals_.is_killed();
        if (is_gone) id_.clear();
        if (is_final) break;
      }
    }
  }

  const ContainerRunOptions& o_;
  const ContainerRules& rules_;
  const node::LaunchRequest& request_;
  RunSignals& signals_;
  EngineCalls engine_;
  ContainerSetup setup_;
  std::string name_;
  std::string id_;
  std::vector<std::string> words_;  // the job's program and its arguments
  TerminalLink terminal_;
  bool ran_out_of_memory_ = false;
  std::int64_t empty_since_ = 0;  // on the boot clock; 0: not known to be
};

}  // namespace

int run_container(const ContainerRunOptions& options) {
  const auto give_up = [&](const ContainerFailure& failure, bool is_clean = true) {
    write_all(2, fmt::format("gpu-platform: {}\n", failure.why));
    write_report(options.report_fd, "failed: " + failure.why, is_clean);
    return failure.exit_code;
  };
  RunSignals signals;
  // A supervisor that is killed leaves its container to its cgroup; without one it ends with us.
  if (options.cgroup.empty()) prctl(PR_SET_PDEATHSIG, SIGUSR1);
  std::string why = node::error_in_rules(options.rules);
  if (!why.empty()) return give_up({why});
  auto rules = parse_container_rules(os::read_small_file(AT_FDCWD, options.rules.c_str()));
  if (!rules) return give_up({options.rules + ": " + rules.error().message});
  const std::string bytes = read_all(options.request_fd);
  const auto request = node::decode_request(bytes);
  if (!request || !request->container.is_given()) return give_up({"the request is damaged"});
  ContainerRun run(options, *rules, *request, signals);
  const auto code = run.run();
  if (!code) return give_up(code.error(), run.is_clean());
  write_report(options.report_fd, run.ran_out_of_memory() ? "oom" : "ended", run.is_clean());
  return *code;
}

}  // namespace gpu_platform::execution
