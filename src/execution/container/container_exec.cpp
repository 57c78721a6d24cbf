#include "execution/container/container_exec.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "execution/container/answer_fields.h"
#include "execution/container/attempt_container.h"
#include "execution/container/container_rules.h"
#include "execution/container/hijacked_stream.h"
#include "execution/container/start_hold.h"
#include "model/channel.h"
#include "node/cgroup.h"
#include "node/protocol.h"
#include "node/received_request.h"
#include "node/site_hooks.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/packet_socket.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

using EntryJson = nlohmann::json;

constexpr std::int64_t kHangUpGraceMs = 5'000;  // as a relay gives a process
constexpr std::int64_t kAfterKillMs = 5'000;    // for the engine to see the end
constexpr std::int64_t kAfterContainerMs = 3'000;
constexpr std::int64_t kExitCodeMs = 10'000;
constexpr std::int64_t kUnsettledMs = 20'000;  // for the engine to execute the program that waits
constexpr std::int64_t kFirstLookMs = 5;
constexpr std::int64_t kMaxPauseMs = 50;  // of the looks at what waits
constexpr std::int64_t kMaxLookMs = 500;
constexpr int kConnectMs = 10'000;
constexpr std::size_t kMaxOwedSignals = 64;

node::Identity identity_of(const ContainerRunOptions& place) {
  node::Identity user;
  user.uid = place.uid;
  user.gid = place.gid;
  for (const std::string& group : place.groups) {
    std::uint32_t number = 0;
    std::from_chars(group.data(), group.data() + group.size(), number);
    user.groups.push_back(number);
  }
  return user;
}

ContainerDone<ContainerRules> read_rules(const std::string& path) {
  if (const std::string why = node::error_in_rules(path); !why.empty()) {
    return container_failed(why);
  }
  auto rules = parse_container_rules(os::read_small_file(AT_FDCWD, path.c_str()));
  if (!rules) return container_failed(path + ": " + rules.error().message);
  return *std::move(rules);
}

void tell(int relay, const model::Frame& frame, int fd = -1) {
  os::send_packet(relay, model::encode_frame(frame), fd);
}

int refuse(int relay, const ContainerFailure& failure) {
  tell(relay, model::EndFrame{model::ChannelEnd::kNotOpened,
                              static_cast<std::uint8_t>(failure.exit_code), failure.why});
  return failure.exit_code;
}

class ContainerExec {
 public:
  ContainerExec(const ContainerEntryOptions& options, ContainerRules rules)
      : o_(options), rules_(std::move(rules)) {
    begin_to_speak(o_.place.report_fd);
  }

  ContainerDone<int> run() {
    const std::string_view bytes = node::map_request(o_.place.request_fd);
    const auto request = node::decode_request(bytes);
    if (!request) return container_failed("the request is damaged");
    if (auto opened = engine_->open(); !opened) return container_failed(kEngine, opened.error());
    auto found = find_container(*engine_, o_.place.cgroup, o_.place.attempt);
    if (!found) return std::unexpected(std::move(found).error());
    container_ = *std::move(found);
    if (auto made = make_word(); !made) return std::unexpected(std::move(made).error());
    if (auto made = create(*request); !made) return std::unexpected(std::move(made).error());
    auto stream = engine_->hijack("/exec/" + id_ + "/start",
                                  {{"Detach", false}, {"Tty", o_.terminal.has_value()}});
    if (!stream && !is_gone_) return container_failed(kEngine, stream.error());
    if (!stream) return end_unheard();
    tell(o_.place.report_fd, model::OpenedFrame{});
    const int code = follow(HijackedStream(*std::move(stream), {0, o_.terminal.has_value()}));
    say_end(code);
    return code;
  }

 private:
  static constexpr const char* kEngine = "the container engine";
  static constexpr const char* kAnother = "the engine started another program";

  // A relay that hangs up ends every wait for the engine. What must be done then is done by calls
  // that wait for nothing but the engine.
  void begin_to_speak(int interrupt_fd) {
    engine_.emplace(rules_.socket, interrupt_fd, [this] {
      take_orders();
      return is_gone_;
    });
  }

  // The command waits for it.
  ContainerDone<> make_word() {
    auto start = read_start(start_folder(o_.place.cgroup, o_.place.attempt));
    // Before, root works in the container, and nothing of a user may.
    if (!start || !start->goes_on) return container_failed("the job's container does not run");
    start_ = *std::move(start);
    word_ = StartWord::make(start_.folder,
                            fmt::format("{}-{}-{}", kFirstWord, getpid(), os::boot_ms()));
    if (word_.is_made()) return {};
    return container_failed(fmt::format("prepare a command in the container: {}", strerror(errno)));
  }

  ContainerDone<> create(const node::LaunchRequest& request) {
    EntryJson body = {{"AttachStdin", true},      {"AttachStdout", true},
                      {"AttachStderr", true},     {"Tty", o_.terminal.has_value()},
                      {"Privileged", false},      {"Cmd", EntryJson::array()},
                      {"Env", EntryJson::array()}};
    for (const std::string& word : {std::string(kStartProgram), word_.name(), start_.workdir}) {
      body["Cmd"].push_back(word);
    }
    // Each ends with a NUL. Without a user the engine takes the container's, with its groups.
    for (const std::string_view word : request.command) {
      body["Cmd"].push_back(std::string(word.substr(0, word.size() - 1)));
    }
    for (const std::string_view entry : request.environment) {
      body["Env"].push_back(std::string(entry.substr(0, entry.size() - 1)));
    }
    const auto made = engine_->post("/containers/" + container_.id + "/exec", body);
    if (!made && made.error().status == 409) {
      return container_failed("the job's container does not run");
    }
    if (!made) return container_failed("the engine starts no command", made.error());
    id_ = text_field(*made, "Id");
    if (id_.empty() || id_.find_first_not_of("0123456789abcdef") != std::string::npos) {
      return container_failed("the engine reported no command");
    }
    return {};
  }

  // ---- the loop

  int follow(HijackedStream stream) {
    next_look_ = os::boot_ms();
    while (!stream.has_ended() && (give_up_at_ == 0 || os::boot_ms() < give_up_at_)) {
      pollfd fds[2 + HijackedStream::kHandles] = {
          {is_gone_ ? -1 : o_.place.report_fd, POLLIN, 0},
          {container_has_ended_ ? -1 : container_.first.handle.get(), POLLIN, 0}};
      stream.watch(fds + 2);
      poll(fds, std::size(fds), poll_timeout());
      take_orders();
      look_at_container();
      look_at_command();
      if (is_gone_) hang_up();
      obey();
      if (command_.is_there()) stream.let_input_in();
      stream.work();
    }
    return exit_code();
  }

  int poll_timeout() const {
    if (is_gone_ && kill_at_ == 0) return 0;  // it went during a call to the engine
    const bool looks = !command_.is_there() && !container_has_ended_;
    std::int64_t next = 0;
    for (const std::int64_t at : {looks ? next_look_ : 0, kill_at_, give_up_at_}) {
      if (at != 0 && (next == 0 || at < next)) next = at;
    }
    if (next == 0) return -1;
    return static_cast<int>(std::clamp<std::int64_t>(next - os::boot_ms(), 0, 60'000));
  }

  void give_up_after(std::int64_t ms) {
    if (give_up_at_ == 0) give_up_at_ = os::boot_ms() + ms;
  }

  void look_at_container() {
    if (container_has_ended_ || !container_.first.has_ended()) return;
    container_has_ended_ = true;
    give_up_after(kAfterContainerMs);
  }

  // Until the engine knows its process, and the kernel says that it waits and what it is.
  void look_at_command() {
    const std::int64_t now = os::boot_ms();
    if (command_.is_there() || container_has_ended_ || now < next_look_) return;
    look_ms_ = std::min(look_ms_ * 2, kMaxPauseMs);
    next_look_ = now + look_ms_;
    const auto told = engine_->get("/exec/" + id_ + "/json");
    const auto pid = static_cast<int>(told ? number_field(*told, "Pid") : 0);
    if (pid <= 0) return;
    HeldProcess process = hold_process_in(o_.place.cgroup, pid);
    if (process.is_there() && is_held(pid, start_)) {
      const std::string why = error_of(pid);
      if (why.empty()) return let_go(std::move(process));
      return end_what_is_wrong(why, pid, process);
    }
    if (unsettled_since_ == 0) unsettled_since_ = now;
    if (now - unsettled_since_ < kUnsettledMs) return;
    const std::string why = process.is_there() ? kAnother : outside(pid);
    if (!why.empty()) end_what_is_wrong(why, pid, process);
  }

  void let_go(HeldProcess process) {
    command_ = std::move(process);
    if (!size_) size_ = o_.terminal;
    if (is_gone_ || word_.say_go()) return;
    failure_ = "the command cannot go on";
    kill_command();
  }

  std::string error_of(int pid) const {
    const auto status_of = [](int number) {
      return os::read_small_file(AT_FDCWD, fmt::format("/proc/{}/status", number).c_str());
    };
    ContainerPlan plan;
    plan.rules = &rules_;
    plan.uid = o_.place.uid;
    plan.gid = o_.place.gid;
    plan.groups = o_.place.groups;
    plan.cgroup = o_.place.cgroup;
    const std::string status = status_of(pid);
    const std::string first = status_of(container_.first.pid);
    const bool has_ended = status.empty() || status.find("\nState:\tZ") != std::string::npos;
    if (has_ended || container_.first.has_ended()) return {};
    return error_in_entered(status, first, plan);
  }

  std::string outside(int pid) const {
    const bool is_there = hold_process_beside(container_.first, pid).is_there();
    return is_there ? "the engine started it outside of the job's cgroup" : std::string();
  }

  // What the engine names is ended only if it is in the attempt's cgroup or in the container.
  void end_what_is_wrong(const std::string& why, int pid, HeldProcess& process) {
    failure_ = why;
    if (!process.is_there()) process = hold_process_beside(container_.first, pid);
    if (process.is_there()) node::signal_pidfd(process.handle.get(), SIGKILL);
    next_look_ = os::boot_ms() + kMaxLookMs;
    give_up_after(kAfterKillMs);
  }

  // ---- orders of the relay

  void take_orders() {
    char buffer[model::kMaxFrame + 1];
    while (!is_gone_) {
      const os::Packet packet =
          os::receive_packet(o_.place.report_fd, buffer, sizeof buffer, MSG_DONTWAIT);
      if (packet.fd >= 0) close(packet.fd);
      if (packet.kind == os::Packet::Kind::kNothing) return;
      const auto frame = packet.kind == os::Packet::Kind::kMessage
                             ? model::decode_frame(packet.bytes)
                             : std::optional<model::Frame>();
      if (!frame) {
        is_gone_ = true;
      } else if (const auto* order = std::get_if<model::SignalFrame>(&*frame)) {
        if (owed_signals_.size() < kMaxOwedSignals) owed_signals_.push_back(order->signal);
      } else if (const auto* size = std::get_if<model::ResizeFrame>(&*frame)) {
        size_ = size->size;
      }
    }
  }

  void obey() {
    if (!command_.is_there()) return;
    for (const int signal : std::exchange(owed_signals_, {})) send_signal(signal);
    const auto size = std::exchange(size_, std::nullopt);
    if (!size || !o_.terminal || is_gone_) return;
    static_cast<void>(engine_->post_brief(
        fmt::format("/exec/{}/resize?h={}&w={}", id_, size->rows, size->columns)));
  }

  // The relay has gone: its command may end by itself, but not stay.
  void hang_up() {
    const std::int64_t now = os::boot_ms();
    if (kill_at_ == 0) {
      speak_alone();
      kill_at_ = now + kHangUpGraceMs;
      give_up_after(kHangUpGraceMs + kAfterKillMs);
      owed_signals_.insert(owed_signals_.end(), {SIGHUP, SIGCONT});
    } else if (now >= kill_at_) {
      kill_at_ = now + kMaxLookMs;
      kill_command();
    }
  }

  void speak_alone() {
    begin_to_speak(-1);
    static_cast<void>(engine_->open());  // where that fails, so do the calls
  }

  // The relay went while the engine was asked for the start.
  int end_unheard() {
    speak_alone();
    const std::int64_t until = os::boot_ms() + kAfterKillMs;
    while (!command_.is_there() && os::boot_ms() < until) {
      look_at_container();
      if (container_has_ended_) break;
      look_at_command();
      poll(nullptr, 0, poll_timeout() < 0 ? 0 : std::min<int>(poll_timeout(), kMaxLookMs));
    }
    kill_command();
    return kNoContainer;
  }

  // ---- signals and the end

  // With a terminal the group in its foreground, as the keys of a terminal do.
  int group_of_command() const {
    const std::string stat =
        os::read_small_file(AT_FDCWD, fmt::format("/proc/{}/stat", command_.pid).c_str());
    const std::size_t name_end = stat.rfind(')');
    int group = 0;
    int foreground = 0;
    const bool is_read =
        name_end != std::string::npos &&
        sscanf(stat.c_str() + name_end + 1, " %*c %*d %d %*d %*d %d", &group, &foreground) == 2;
    if (!is_read || command_.has_ended()) return 0;
    return o_.terminal && foreground > 1 ? foreground : group;
  }

  // For any numbers, only processes in the attempt's cgroup are hit.
  void send_signal(int signal) {
    const int group = group_of_command();
    const os::Descriptor cgroup(open(o_.place.cgroup.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (group > 1 && cgroup.is_open()) {
      node::signal_process_group(cgroup.get(), group, signal);
    }
    const bool is_last_word = signal == SIGHUP || signal == SIGKILL;
    if (is_last_word && group != command_.pid) {
      node::signal_pidfd(command_.handle.get(), signal);
    }
  }

  void kill_command() {
    if (command_.is_there() && !command_.has_ended()) send_signal(SIGKILL);
  }

  // The engine's word on it comes a little after the end of its output. A command that has closed
  // its output may go on.
  int exit_code() {
    std::int64_t until = os::boot_ms() + kExitCodeMs;
    while (failure_.empty() && os::boot_ms() < until) {
      const auto told = engine_->get("/exec/" + id_ + "/json");
      const bool runs = told && flag_field(*told, "Running");
      if (told && !runs) return told_code(*told);
      look_at_container();
      if (container_has_ended_) return 128 + SIGKILL;
      if (is_gone_) hang_up();
      if (give_up_at_ != 0 && os::boot_ms() >= give_up_at_) break;
      const bool lives = runs && command_.is_there() && !command_.has_ended();
      if (lives && !is_gone_) until = os::boot_ms() + kExitCodeMs;
      pollfd fds[] = {{is_gone_ ? -1 : o_.place.report_fd, POLLIN, 0},
                      {lives ? command_.handle.get() : -1, POLLIN, 0}};
      poll(fds, std::size(fds), lives ? kMaxLookMs : kFirstLookMs);
      take_orders();
      obey();
    }
    kill_command();
    if (failure_.empty()) failure_ = "the engine did not report how the command ended";
    return kNoContainer;
  }

  // A job's kill reaches its processes one after the other, this one maybe first.
  int told_code(const EntryJson& told) {
    const int code = static_cast<int>(number_field(told, "ExitCode") & 0xff);
    pollfd container{container_.first.handle.get(), POLLIN, 0};
    if (code == 128 + SIGKILL && !is_gone_) poll(&container, 1, kMaxLookMs);
    look_at_container();
    return code;
  }

  void say_end(int code) const {
    std::string text = failure_;
    if (text.empty() && container_has_ended_) {
      const std::string& attempt = o_.place.attempt;
      text = "job " + attempt.substr(0, attempt.find('-')) + " has ended";
    }
    tell(o_.place.report_fd,
         model::EndFrame{model::ChannelEnd::kExited, static_cast<std::uint8_t>(code), text});
  }

  const ContainerEntryOptions& o_;
  const ContainerRules rules_;
  KeptStart start_;
  StartWord word_;
  std::optional<EngineCalls> engine_;
  AttemptContainer container_;
  bool container_has_ended_ = false;
  std::string id_;
  HeldProcess command_;  // seen, and found to be right
  std::int64_t next_look_ = 0;
  std::int64_t look_ms_ = kFirstLookMs;
  std::int64_t unsettled_since_ = 0;
  std::string failure_;                      // of a command that had begun
  std::optional<model::TerminalSize> size_;  // not told yet
  std::vector<int> owed_signals_;
  bool is_gone_ = false;  // the relay
  std::int64_t kill_at_ = 0;
  std::int64_t give_up_at_ = 0;
};

// ---- a connection

// Connects within the container's network; -1: errno says why not.
int connect_to_port(std::uint16_t port) {
  os::Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (!made.is_open()) return -1;
  if (connect(made.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    return made.release();
  }
  if (errno != EINPROGRESS && errno != EAGAIN) return -1;
  pollfd writable{made.get(), POLLOUT, 0};
  int error = ETIMEDOUT;
  socklen_t size = sizeof error;
  if (poll(&writable, 1, kConnectMs) == 1) {
    getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  errno = error;
  return error == 0 ? made.release() : -1;
}

ContainerDone<int> connect_in_container(const ContainerEntryOptions& options,
                                        const ContainerRules& rules) {
  const ContainerRunOptions& place = options.place;
  EngineCalls engine(rules.socket, place.report_fd, [] { return true; });
  if (auto opened = engine.open(); !opened) {
    return container_failed("the container engine", opened.error());
  }
  const auto found = find_container(engine, place.cgroup, place.attempt);
  if (!found) return std::unexpected(found.error());
  const std::string path = fmt::format("/proc/{}/ns/net", found->first.pid);
  const os::Descriptor network(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!network.is_open() || found->first.has_ended()) {
    return container_failed("the job's container does not run");
  }
  if (setns(network.get(), CLONE_NEWNET) != 0) {
    return container_failed(fmt::format("enter the container's network: {}", strerror(errno)));
  }
  const node::SwitchFailure failure = node::UserSwitch(identity_of(place)).become();
  if (failure.what != nullptr || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return container_failed(fmt::format("become user {}", place.uid));
  }
  const os::Descriptor connected(connect_to_port(options.port));
  if (!connected.is_open()) {
    return container_failed(
        fmt::format("port {} of 127.0.0.1: connect: {}", options.port, strerror(errno)));
  }
  tell(place.report_fd, model::OpenedFrame{}, connected.get());
  return 0;
}

}  // namespace

int run_container_exec(const ContainerEntryOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  auto rules = read_rules(options.place.rules);
  if (!rules) return refuse(options.place.report_fd, rules.error());
  const auto code = ContainerExec(options, *std::move(rules)).run();
  return code ? *code : refuse(options.place.report_fd, code.error());
}

int run_container_connect(const ContainerEntryOptions& options) {
  signal(SIGPIPE, SIG_IGN);
  const auto rules = read_rules(options.place.rules);
  if (!rules) return refuse(options.place.report_fd, rules.error());
  const auto code = connect_in_container(options, *rules);
  return code ? *code : refuse(options.place.report_fd, code.error());
}

}  // namespace gpu_platform::execution
