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
#include "execution/container/container_gpus.h"
#include "execution/container/container_places.h"
#include "execution/container/container_rules.h"
#include "execution/container/create_body.h"
#include "execution/container/credentials_search.h"
#include "execution/container/engine_calls.h"
#include "execution/container/engine_open.h"
#include "execution/container/fetched_images.h"
#include "execution/container/first_process.h"
#include "execution/container/hijacked_stream.h"
#include "execution/container/image_fetch.h"
#include "execution/container/image_platform.h"
#include "execution/container/image_start.h"
#include "execution/container/mount_stages.h"
#include "execution/container/output_frames.h"
#include "execution/container/request_checks.h"
#include "execution/container/start_hold.h"
#include "execution/container/terminal_link.h"
#include "node/cgroup.h"
#include "node/protocol.h"
#include "node/site_hooks.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/descriptor.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr unsigned kKillTimeout = 10;  // seconds
constexpr int kRetryMs = 500;
constexpr int kRemovals = 4;
constexpr base::Duration kTurnPause = base::milliseconds(10);
constexpr int kLongestPauseMs = 32;
constexpr int kLookMs = 5'000;                 // how often a silent container is looked at
constexpr std::int64_t kLostAfterMs = 30'000;  // without the engine and without a process
constexpr std::size_t kMaxReport = 600;
constexpr std::size_t kMaxOrders = 64;
constexpr int kAnnotationsMinor = 43;  // the first version of the API that has them
constexpr int kStarts = 3;             // where the engine goes away meanwhile
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

extern "C" void end_at_once(int) {
  _exit(128 + SIGKILL);
}

class ContainerRun {
 public:
  ContainerRun(const ContainerRunOptions& options, ContainerRules rules, std::string bytes,
               int signal_fd)
      : o_(options),
        rules_(std::move(rules)),
        bytes_(std::move(bytes)),
        signal_fd_(signal_fd),
        images_(options.root),
        engine_(rules_.socket, signal_fd, [this] { return take_signals(); }) {
    engine_.set_hopeless([this] { return is_hopeless(); });
  }

  ContainerDone<int> run() {
    const auto request = node::decode_request(bytes_);
    if (!request || !request->container.is_given())
      return container_failed("the request is damaged");
    request_ = &*request;
    const auto prepared = prepare();
    auto code = prepared ? live() : std::unexpected(prepared.error());
    remove();
    return code;
  }

  bool ran_out_of_memory() const { return ran_out_of_memory_; }
  // Nothing is left with the engine.
  bool is_clean() const { return id_.empty(); }

 private:
  std::string image() const {
    return std::string(request_->container.image.substr(0, request_->container.image.size() - 1));
  }

  std::string platform() const {
    return std::string(
        request_->container.platform.substr(0, request_->container.platform.size() - 1));
  }

  // The engine is our own user's, and puts the container into no cgroup of ours.
  bool is_rootless() const { return o_.cgroup.empty(); }

  model::ImagePull pull() const {
    const auto asked = static_cast<model::ImagePull>(request_->container.pull);
    const bool asks_registry = rules_.always_pulls && asked == model::ImagePull::kMissing;
    return asks_registry ? model::ImagePull::kAlways : asked;
  }

  // Returns whether what waits is to be given up.
  bool take_signals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      // A person at the terminal may give up what has not begun.
      if (info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT) is_stopped_ = true;
      if (info.ssi_signo == SIGWINCH) is_resized_ = true;
      if (info.ssi_signo == SIGUSR1 && !std::exchange(is_killed_, true)) alarm(kKillTimeout);
      const bool is_order = static_cast<int>(info.ssi_signo) == node::container_signal_number();
      if (is_order && owed_signals_.size() < kMaxOrders) owed_signals_.push_back(info.ssi_int);
    }
    pass_on_signals();
    return !has_begun_ && !is_making_ && (is_stopped_ || is_killed_);
  }

  // Those of a rootless container, once its first process is known: no cgroup has it.
  void pass_on_signals() {
    if (!first_.is_there()) return;
    for (const int signal : std::exchange(owed_signals_, {})) {
      signal_processes_beside(first_, signal);
    }
    if (is_killed_) node::signal_pidfd(first_.handle.get(), SIGKILL);
  }

  // Waits for signals besides; false: one of them ends what waits.
  bool wait(base::Duration time) {
    const std::int64_t until = os::boot_ms() + base::whole_milliseconds(time);
    for (std::int64_t left = 1; left > 0; left = until - os::boot_ms()) {
      pollfd signals{signal_fd_, POLLIN, 0};
      poll(&signals, 1, static_cast<int>(std::max<std::int64_t>(until - os::boot_ms(), 0)));
      if (take_signals()) return false;
    }
    return true;
  }
  LongStep long_step() {
    return {[this](const std::string& doing) { write_report(o_.report_fd, "doing: " + doing); },
            [this](base::Duration time) { return wait(time); }};
  }

  ContainerDone<> prepare() {
    if (auto allowed = check_rules(); !allowed) return allowed;
    if (auto opened = open_engine(engine_, rules_.socket, long_step()); !opened) return opened;
    if (auto fits = is_rootless() ? check_own_engine() : find_cgroup(); !fits) return fits;
    if (auto fits = check_engine(); !fits) return fits;
    if (auto found = find_gpus(); !found) return found;
    if (auto opened = open_mounts(); !opened) return opened;
    return get_image();
  }

  ContainerDone<> find_cgroup() {
    const auto mount =
        node::find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
    if (!mount || !o_.cgroup.starts_with(*mount))
      return container_failed("its cgroup cannot be found");
    engine_cgroup_ = o_.cgroup.substr(*mount == "/" ? 0 : mount->size());
    return {};
  }

  // Another's engine would have other rights than the job's user, and would not know its uid.
  ContainerDone<> check_own_engine() {
    auto info = engine_.get("/info");
    if (!info) return container_failed("the container engine", info.error());
    info_ = *std::move(info);
    if (engine_.is_podman() && flag_field(info_, "Rootless")) return {};
    return container_failed(
        "the container engine is not a Podman without root's rights, and the node part has none "
        "itself");
  }

  // What is about to be used is not removed meanwhile.
  ContainerDone<> get_image() {
    images_.note_use(image(), os::wall_now());
    const auto fetched = fetch_image(
        engine_, {image(), pull(), platform(), [this] { return credentials(); }}, long_step());
    long_step().tell("");
    if (!fetched) return std::unexpected(fetched.error());
    images_.note_fetch(image(), *fetched, os::wall_now());
    image_ = *fetched;
    if (auto fits = check_host_platform("image " + image(), image_.platform); !fits) return fits;
    return is_rootless() ? ContainerDone<>() : prepare_start();
  }

  // What the image says of its start and its volumes is looked at here, because the engine would do
  // it as root.
  ContainerDone<> prepare_start() {
    const Json& config = image_.config;
    if (image_.id.empty()) return container_failed("the engine did not report the image's id");
    if (std::string why = error_in_volumes(config); !why.empty())
      return container_failed(fmt::format("image {} has a volume that {}", image(), why));
    const std::string_view asked = request_->container.workdir;
    std::string workdir(asked.substr(0, asked.size() - 1));
    if (workdir.empty()) workdir = workdir_of_image(config);
    if (std::string why = model::error_in_workdir(workdir); !why.empty())
      return container_failed(fmt::format("the directory '{}' {}", workdir, why));
    if (auto made = hold_.make(start_folder(o_.cgroup, o_.attempt), user(), workdir); !made)
      return made;
    start_ = {kStartProgram, kFirstWord, workdir};
    return {};
  }

  RegistryCredentials credentials() {
    return search_credentials(
        {&rules_, user(), image(), signal_fd_, [this] { return take_signals(); }});
  }

  std::string cluster() const {
    if (is_rootless()) return o_.cluster;
    const std::string base = o_.cgroup.substr(0, o_.cgroup.rfind('/'));
    return base.substr(base.rfind('/') + 1);
  }

  ContainerDone<> open_mounts() {
    if (is_rootless()) return stages_.look_at(mounts_);
    const std::string begin = mounts_folder_begin(cluster(), o_.attempt);
    if (auto opened = stages_.open(user(), mounts_, begin); !opened) return opened;
    if (gpu_way_ != GpuWay::kNodes) return {};
    if (!board_files_.empty()) return stages_.open_board_files(user(), board_files_, begin);
    for (const std::string& file : rules_.driver_files) {
      if (auto opened = stages_.open_driver_file(file, begin); !opened) return opened;
    }
    return {};
  }

  // With root's rights we make them ourselves.
  ContainerDone<std::vector<ContainerPlace>> places() const {
    std::vector<ContainerPlace> places;
    for (const OpenMount& mount : stages_.opened()) {
      places.push_back({mount.source, mount.target, mount.read_only, 0});
    }
    for (const std::string_view text : request_->container.tmpfs) {
      const auto tmpfs = model::parse_container_tmpfs(text.substr(0, text.size() - 1));
      if (!tmpfs) return container_failed(tmpfs.error().message);
      places.push_back({"", tmpfs->target, false, static_cast<std::uint64_t>(tmpfs->size.value())});
    }
    return places;
  }

  ContainerDone<> check_rules() {
    auto mounts = check_request(rules_, *request_);
    if (!mounts) return std::unexpected(mounts.error());
    mounts_ = *std::move(mounts);
    return check_host_platform("--platform", platform());
  }

  // The rules allow the files of an emulated board: they are the job's as its GPUs are.
  ContainerDone<> find_gpus() {
    gpu_way_ = gpu_way(*request_, rules_, info_, engine_.api_minor());
    if (gpu_way_ != GpuWay::kNodes) return {};
    if (is_rootless() && !request_->container.board_files.empty()) {
      return container_failed(
          "a container has emulated GPUs only where the node part has root's rights");
    }
    for (const std::string_view text : request_->container.board_files) {
      auto mount = model::parse_container_mount(text.substr(0, text.size() - 1));
      if (!mount) return container_failed("the emulated board: " + mount.error().message);
      board_files_.push_back(*std::move(mount));
    }
    return gpu_nodes_.find(*request_, mounts_folder_begin(cluster(), o_.attempt));
  }

  // Podman takes a quarter of a second for this, and says the driver of a container that is made in
  // no time: see check_driver_of_made().
  ContainerDone<> check_engine() {
    if (is_rootless()) return {};  // its cgroups of any kind are not ours
    if (engine_.is_podman() && !is_gpu_way_the_engines(*request_, rules_, engine_.api_minor())) {
      return {};
    }
    auto info = engine_.get("/info");
    if (!info) return container_failed("the container engine", info.error());
    info_ = *std::move(info);
    return check_driver(text_field(info_, "CgroupDriver"));
  }

  // With systemd's driver the parent must be one of systemd's slices, and the attempt's is none.
  static ContainerDone<> check_driver(const std::string& driver) {
    if (driver == "cgroupfs") return {};
    return container_failed(
        fmt::format("the container engine has the cgroup driver '{}'; jobs need one with "
                    "cgroupfs",
                    driver));
  }

  ContainerDone<> check_driver_of_made() {
    if (!info_.is_null()) return {};
    const auto made = engine_.get("/libpod/containers/" + id_ + "/json");
    if (!made) return container_failed("the engine", made.error());
    return check_driver(text_field(field(*made, "HostConfig"), "CgroupManager"));
  }

  node::Identity user() const {
    node::Identity user;
    user.uid = o_.uid;
    user.gid = o_.gid;
    user.name = o_.name;
    for (const std::string& group : o_.groups) {
      std::uint32_t number = 0;
      std::from_chars(group.data(), group.data() + group.size(), number);
      user.groups.push_back(number);
    }
    return user;
  }

  // ---- its life

  ContainerDone<int> live() {
    ContainerPlan plan = this->plan();
    const auto body = create_body(plan);
    if (!body) return container_failed(body.error().message);
    words_ = (*body)["Cmd"].get<std::vector<std::string>>();
    if (take_signals()) return 128 + SIGTERM;
    if (auto made = create(*body); !made) return std::unexpected(made.error());
    for (int starts = 1;; ++starts) {
      auto output = start();
      if (output || !output.error().is_away || starts == kStarts) {
        if (!output) return not_started(output.error());
        const auto goes_on = look_at_first(plan);
        if (!goes_on) return std::unexpected(goes_on.error());
        if (!*goes_on) return 128 + SIGTERM;
        stages_.remove();  // the container has its own of them
        is_resized_ = true;
        pump(*output);
        return with_outcome(wait_for_end());
      }
      if (auto back = open_engine(engine_, rules_.socket, long_step()); !back)
        return std::unexpected(back.error());
      if (take_signals()) return 128 + SIGTERM;
    }
  }

  // Podman makes the container's processes when it is attached to. A container that an engine
  // started before it went away says so: 304.
  Answered<HijackedStream> start() {
    auto output = attach();
    if (!output) return output;
    if (take_signals()) return std::unexpected(EngineFailure{});
    has_begun_ = true;
    const auto started = engine_.post("/containers/" + id_ + "/start");
    if (started || started.error().status == 304) return output;
    has_begun_ = !started.error().is_away;
    return std::unexpected(started.error());
  }

  ContainerDone<int> not_started(const EngineFailure& failure) const {
    if (failure.message.empty()) return 128 + SIGTERM;  // stopped before it
    return container_failed(failure.message, code_of_start(failure.message));
  }

  ContainerPlan plan() {
    ContainerPlan plan;
    plan.request = request_;
    plan.rules = &rules_;
    plan.attempt = o_.attempt;
    plan.cluster = cluster();
    plan.cgroup = engine_cgroup_;
    plan.uid = o_.uid;
    plan.gid = o_.gid;
    if (!is_rootless()) plan.groups = o_.groups;  // no others are in its user namespace
    if (is_rootless()) {
      plan.mounts = stages_.opened();
    } else {
      plan.mounts = hold_.mounts();  // nothing of a user
      plan.start = start_;
      plan.entrypoint = entrypoint_of_image(image_.config);
    }
    plan.has_annotations = engine_.api_minor() >= kAnnotationsMinor;
    set_gpus(plan);
    name_ = plan.cluster + "-" + o_.attempt;
    return plan;
  }

  void set_gpus(ContainerPlan& plan) const {
    plan.gpu_way = gpu_way_;
    if (gpu_way_ != GpuWay::kNodes) return;
    if (!request_->container.board_files.empty()) {
      for (const ContainerDevice& node : gpu_nodes_.found()) {
        plan.mounts.push_back({node.source, node.target, false});
      }
      return;
    }
    plan.gpu_nodes = gpu_nodes_.found();
    if (!is_rootless()) return;
    for (const std::string& file : rules_.driver_files) plan.mounts.push_back({file, file, true});
  }

  std::string create_path() const {
    std::string query;
    http::append_query(query, "name", name_);
    if (!platform().empty()) http::append_query(query, "platform", platform());
    return "/containers/create?" + query;
  }

  // Held until it is closed; closed already where a stop came first, or there is no folder for it.
  os::Descriptor take_turn() {
    const std::string path = o_.root + "/run/create.turn";
    os::Descriptor turn(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    while (turn.is_open() && flock(turn.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK || !wait(kTurnPause)) return {};
    }
    return turn;
  }

  // A stop waits for the answer: an engine that is left alone with it makes the container all the
  // same, and it would stay.
  Answered<> post_create_once(const Json& body) {
    const os::Descriptor turn = is_rootless() ? take_turn() : os::Descriptor();
    if (is_stopped_ || is_killed_) return std::unexpected(EngineFailure{0, "stopped meanwhile"});
    is_making_ = true;
    auto made = engine_.post(create_path(), body);
    is_making_ = false;
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
      const bool is_confused = !made && is_rootless() && made.error().status == 500 &&
                               made.error().message.contains("/etc/subuid");
      if (!is_confused || !wait(pause)) break;
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
    if (!is_rootless() && !is_same_image(used, image_.id))
      return container_failed(fmt::format("image {} has changed meanwhile", image()));
    return check_driver_of_made();
  }

  // An engine with another driver refuses the cgroup as a parent, in words about slices.
  std::unexpected<ContainerFailure> not_made(const EngineFailure& failure) {
    if (info_.is_null() && !failure.is_away) {
      const auto info = engine_.get("/info");
      const auto fits = info ? check_driver(text_field(*info, "CgroupDriver")) : ContainerDone<>();
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
    const bool is_ours = has_all(field(field(*found, "Config"), "Labels"), body["Labels"]) &&
                         text_field(field(*found, "HostConfig"), "CgroupParent") == engine_cgroup_;
    if (is_ours) static_cast<void>(engine_.remove("/containers/" + name_ + "?force=1&v=1"));
  }

  // False: a stop came first.
  ContainerDone<bool> look_at_first(const ContainerPlan& plan) {
    const auto found = engine_.get("/containers/" + id_ + "/json");
    if (!found || !found->is_object())
      return container_failed("the engine did not report what runs");
    const auto pid = static_cast<int>(number_field(field(*found, "State"), "Pid"));
    if (pid <= 0) return true;  // the engine says how it ended
    if (!is_rootless()) return let_go(pid, plan);
    const std::string why = error_in_rootless(pid, plan);
    if (!why.empty()) return container_failed(why);
    return true;
  }

  // It is our own program, which waits until all is as it was asked for.
  ContainerDone<bool> let_go(int pid, const ContainerPlan& plan) {
    const auto start = read_start(start_folder(o_.cgroup, o_.attempt));
    if (!start) return container_failed("the container's start cannot be read");
    const auto first =
        wait_for_held(pid, o_.cgroup, *start, [this] { return wait(kHoldPause) && !is_to_end(); });
    if (!first) return std::unexpected(first.error());
    if (!first->is_there()) return !is_to_end();
    std::string why = error_in_held(*first, plan, *start);
    if (first->has_ended()) return true;
    if (!why.empty()) return container_failed(why);
    auto places = this->places();
    if (!places) return std::unexpected(places.error());
    const auto put = put_places(*first, user(), *std::move(places), [this](int fd) {
      pollfd fds[] = {{fd, POLLIN, 0}, {signal_fd_, POLLIN, 0}};
      poll(fds, std::size(fds), -1);
      take_signals();
      return !is_to_end();
    });
    if (is_to_end()) return false;
    if (!put) return std::unexpected(put.error());
    if (!hold_.say_go()) return container_failed("the container's start cannot go on");
    return true;
  }

  bool is_to_end() const { return is_stopped_ || is_killed_; }

  // Our program ends with the codes that the engines' own tools have for it.
  ContainerDone<int> with_outcome(ContainerDone<int> end) const {
    const bool may_be_ours = end && (*end == kNotExecutable || *end == kNoProgram);
    const auto outcome = may_be_ours && !is_rootless() ? hold_.outcome() : std::nullopt;
    if (!outcome) return end;
    return container_failed(describe_outcome(*outcome, start_.back(), words_), *end);
  }

  // What came for it before it could be found is for it, too.
  std::string error_in_rootless(std::int64_t pid, const ContainerPlan& plan) {
    first_ = hold_first_process(static_cast<int>(pid));
    if (!first_.is_there()) return {};  // it has just ended
    pass_on_signals();
    const std::string folder = "/proc/" + std::to_string(pid);
    const std::string status = os::read_small_file(AT_FDCWD, (folder + "/status").c_str());
    const std::string gpu = missing_gpu_node(*request_, folder + "/root");
    if (first_.has_ended()) return {};
    if (!gpu.empty()) return "the engine started it without the GPU " + gpu;
    return error_in_process(status, plan);
  }

  Answered<HijackedStream> attach() {
    const bool takes_input = request_->takes_input;
    const bool has_terminal = request_->terminal.has_value();
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
      if (std::exchange(is_resized_, false)) resize();
      pollfd fds[1 + HijackedStream::kHandles] = {{signal_fd_, POLLIN, 0}};
      output.watch(fds + 1);
      const int ready = poll(fds, std::size(fds), kLookMs);
      take_signals();
      if (ready == 0 && is_hopeless()) return;
      output.work();
    }
  }

  void resize() {
    const auto size = request_->terminal ? TerminalLink::size() : std::nullopt;
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
      pollfd signals{signal_fd_, POLLIN, 0};
      poll(&signals, 1, pause_ms);
      take_signals();
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
      pollfd signals{signal_fd_, POLLIN, 0};
      poll(&signals, 1, kRetryMs);
      take_signals();
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
    is_resized_ = true;
    if (output) pump(*output);
  }

  // No process of it is left for a while, and the engine has not said that it ended.
  bool is_hopeless() {
    if (!has_begun_) return false;
    const std::int64_t now = os::boot_ms();
    if (empty_since_ == 0 || !is_empty()) empty_since_ = now;
    return now - empty_since_ > kLostAfterMs;
  }

  bool is_empty() const {
    if (is_rootless()) return !first_.is_there() || first_.has_ended();
    const os::Descriptor group(open(o_.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return !group.is_open() || node::cgroup_is_empty(group.get());
  }

  void note_memory(int code, const Answered<>& found) {
    ran_out_of_memory_ = found && flag_field(field(*found, "State"), "OOMKilled");
    if (code == 128 + SIGKILL && !is_killed_ && !is_stopped_ && used_up_memory()) {
      ran_out_of_memory_ = true;
    }
  }

  // Engines miss that at times (Podman with cgroup v1 beside v2), and the container's group, which
  // knows it, is gone by now. The group above has the peak: a process that was killed where all of
  // the memory had been used was killed for that.
  bool used_up_memory() const {
    if (request_->memory_bytes == 0 || is_rootless()) return false;
    constexpr std::uint64_t kPage = 4096;
    const auto peak = node::peak_of_engine_groups(o_.cgroup);
    return peak && *peak + kPage > request_->memory_bytes;
  }

  void remove() {
    has_begun_ = true;  // no signal stops this
    stages_.remove();
    hold_.remove();
    if (!id_.empty()) {
      images_.note_use(image(), os::wall_now());
      // An engine may refuse it while it is still busy with the start.
      for (int tries = 0; !id_.empty() && tries < kRemovals; ++tries) {
        if (tries > 0) poll(nullptr, 0, kRetryMs);
        const auto removed = engine_.remove("/containers/" + id_ + "?force=1&v=1");
        const bool is_gone = removed || removed.error().status == 404;
        const bool is_final = is_gone || removed.error().is_away || is_killed_;
        if (is_gone) id_.clear();
        if (is_final) break;
      }
    }
  }

  const ContainerRunOptions& o_;
  const ContainerRules rules_;
  const std::string bytes_;
  const int signal_fd_;
  const FetchedImages images_;
  EngineCalls engine_;
  const node::LaunchRequest* request_ = nullptr;
  std::string engine_cgroup_;
  std::string name_;
  std::string id_;
  std::vector<model::ContainerMount> mounts_;
  std::vector<model::ContainerMount> board_files_;
  MountStages stages_;
  ImageOnHost image_;
  StartHold hold_;                  // of a container that is root's
  std::vector<std::string> start_;  // what it is started with
  std::vector<std::string> words_;  // the job's program and its arguments
  Json info_;                       // the engine's
  GpuWay gpu_way_ = GpuWay::kNone;
  GpuNodes gpu_nodes_;
  TerminalLink terminal_;
  HeldProcess first_;              // of a rootless container
  std::vector<int> owed_signals_;  // to its processes
  bool is_stopped_ = false;
  bool is_killed_ = false;
  bool is_resized_ = false;
  bool is_making_ = false;  // the engine has been asked to make the container
  bool has_begun_ = false;
  bool ran_out_of_memory_ = false;
  std::int64_t empty_since_ = 0;  // on the boot clock; 0: not known to be
};

// Signals wait for us to look.
int open_signals() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, SIGTERM);
  sigaddset(&ours, SIGUSR1);
  sigaddset(&ours, SIGINT);
  sigaddset(&ours, SIGWINCH);
  sigaddset(&ours, node::container_signal_number());
  sigprocmask(SIG_BLOCK, &ours, nullptr);
  struct sigaction at_once{};
  at_once.sa_handler = end_at_once;
  sigaction(SIGALRM, &at_once, nullptr);
  // The others that a terminal sends are none of our business.
  for (const int other : {SIGPIPE, SIGHUP, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU}) {
    signal(other, SIG_IGN);
  }
  return signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

int run_container(const ContainerRunOptions& options) {
  const auto give_up = [&](const ContainerFailure& failure, bool is_clean = true) {
    write_all(2, fmt::format("gpu-platform: {}\n", failure.why));
    write_report(options.report_fd, "failed: " + failure.why, is_clean);
    return failure.exit_code;
  };
  const int signals = open_signals();
  // A supervisor that is killed leaves its container to its cgroup; without one it ends with us.
  if (options.cgroup.empty()) prctl(PR_SET_PDEATHSIG, SIGUSR1);
  std::string why = node::error_in_rules(options.rules);
  if (!why.empty()) return give_up({why});
  auto rules = parse_container_rules(os::read_small_file(AT_FDCWD, options.rules.c_str()));
  if (!rules) return give_up({options.rules + ": " + rules.error().message});
  ContainerRun run(options, *std::move(rules), read_all(options.request_fd), signals);
  const auto code = run.run();
  if (!code) return give_up(code.error(), run.is_clean());
  write_report(options.report_fd, run.ran_out_of_memory() ? "oom" : "ended", run.is_clean());
  return *code;
}

}  // namespace gpu_platform::execution
