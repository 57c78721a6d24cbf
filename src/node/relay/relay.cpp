#include "node/relay/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "node/cgroup.h"
#include "node/channel_refusal.h"
#include "node/process_tree.h"
#include "node/received_request.h"
#include "node/relay/container_entry.h"
#include "node/relay/job_entry.h"
#include "node/syscalls.h"
#include "node/terminal.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/packet_socket.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr int kStartTimeoutMs = 10'000;  // for the daemon to say what the channel is for
constexpr std::int64_t kHangUpGraceMs = 5'000;
constexpr int kKilledTogetherMs = 100;
constexpr int kTurns = 16;  // of output, before signals and input are looked at again

bool dont_block(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0;
}

// Returns a foreign word for a log line, without its final NUL.
std::string printable(std::string_view word) {
  constexpr std::size_t kMaxBytes = 256;
  std::string text(word.substr(0, std::min(word.find('\0'), kMaxBytes)));
  std::ranges::replace_if(text, [](char c) { return c <= ' ' || c > '~'; }, '?');
  return text;
}

// One thing to read output from, as long as it has any.
struct Source {
  int fd = -1;  // -1: none, or at its end
  bool is_error = false;
};

class Relay {
 public:
  explicit Relay(const RelayOptions& options) : o_(options), channel_(options.channel) {}

  void run() {
    const std::string why = start();
    if (!why.empty()) {
      refuse_channel(channel_, why, refusal_value_);
      return;
    }
    tell("begins");
    send(model::OpenedFrame{});
    while (!is_over()) {
      wait();
      take_signals();
      look_at_job();
      if (deadline_ != 0 && os::boot_ms() >= deadline_) kill_command();
      read_control();
      read_frames();
      feed_input();
      pass_output();
      if (has_ended() && pending_.empty() && !end_sent_) send_end();
    }
    tell("ends");
  }

 private:
  // Arguments may be secrets: of a command only the first word is told.
  void tell(std::string_view what) const {
    if (o_.log_fd < 0) return;
    std::string line = "gpu-platform-node: channel=" + std::to_string(getpid()) +
                       " attempt=" + attempt_name(o_.attempt) +
                       " uid=" + std::to_string(request_.user.uid);
    line += start_.port != 0 ? " port=" + std::to_string(start_.port)
                             : " exec=" + printable(request_.command.front());
    line += " " + std::string(what) + "\n";
    [[maybe_unused]] const ssize_t wrote = write(o_.log_fd, line.data(), line.size());
  }

  // ---- set-up; each step answers why it failed, or nothing

  std::string start() {
    sigset_t all;
    sigfillset(&all);
    signal_fd_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0) return failed("make a handle for signals");
    std::string why = read_start();
    if (why.empty()) why = find_job();
    if (why.empty()) why = start_.port != 0 ? connect_to_port() : start_command();
    if (why.empty()) why = become_user();
    return why;
  }

  static std::string failed(std::string_view what) {
    return std::string(what) + ": " + strerror(errno);
  }

  std::string read_start() {
    pollfd channel{channel_, POLLIN, 0};
    if (poll(&channel, 1, kStartTimeoutMs) != 1) return "nothing was asked for";
    const os::Packet packet = os::receive_packet(channel_, buffer_, sizeof buffer_);
    if (packet.kind != os::Packet::Kind::kMessage) return "nothing was asked for";
    const auto start = decode_channel_start(packet.bytes);
    const std::string_view bytes = map_request(packet.fd);
    if (packet.fd >= 0) close(packet.fd);
    const auto request = decode_request(bytes);
    if (!start || !request) return "the request is damaged";
    if (!dont_block(channel_)) return failed("prepare the channel");
    start_ = *start;
    request_ = *request;
    if (request_.user.uid != o_.user.uid) return "the job is another user's";
    request_.user = o_.user;
    return objection_to(request_, o_.boot_id);
  }

  std::string find_job() {
    const Record& record = o_.record;
    if (request_.container.is_given()) return find_container();
    const int pid = static_cast<int>(record.started->pid);
    job_fd_ = open_pidfd(pid);
    if (job_fd_ < 0 || !is_its_own(pid)) return "the job has just ended";
    entry_ = {&request_,    o_.cgroup_fd,        pid,      o_.limits, attempt_name(o_.attempt),
              o_.oom_score, o_.filters_syscalls, channel_, job_fd_};
    return {};
  }

  // Its processes are found by the program that speaks to the engine.
  std::string find_container() {
    if (o_.container_client.empty() || o_.cgroup_fd < 0) {
      return "commands cannot be run in this job's container";
    }
    container_ = {&request_,
                  o_.container_client,
                  o_.container_rules,
                  o_.record.beginning->cgroup,
                  attempt_name(o_.attempt),
                  channel_};
    return {};
  }

  // From here on nothing needs more than the user's own rights, and what is signalled may be named
  // by what the user's programs have done to their terminal.
  std::string become_user() {
    for (const int fd : {o_.cgroup_fd, o_.notice_fd}) {
      if (fd >= 0) close(fd);
    }
    if (geteuid() == 0) {
      const SwitchFailure failure = UserSwitch(request_.user).become();
      if (failure.what != nullptr) {
        if (pid_ > 0) kill(pid_, SIGKILL);
        return std::string("become user ") + std::to_string(request_.user.uid) + ": " +
               failure.what;
      }
    }
    const bool is_bound = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // not to be traced by the user's processes
    return is_bound ? std::string() : failed("give up rights");
  }

  // The pid may have been given to another process since: the cgroup, or the start time, tells.
  bool is_its_own(int pid) const {
    const std::uint64_t ticks = o_.record.started->start_ticks;
    if (o_.cgroup_fd < 0) return ticks != 0 && start_ticks_of(pid) == ticks;
    const std::string file = "/proc/" + std::to_string(pid) + "/cgroup";
    const auto path = find_cgroup2_path(os::read_small_file(AT_FDCWD, file.c_str()));
    return path && path->size() > 1 && o_.record.beginning->cgroup.ends_with(*path);
  }

  std::string connect_to_port() {
    const Connected connected = request_.container.is_given()
                                    ? connect_in_container(container_, start_.port)
                                    : connect_as_job(entry_, start_.port);
    if (connected.fd < 0) return connected.why;
    input_ = connected.fd;
    output_.fd = fcntl(connected.fd, F_DUPFD_CLOEXEC, 3);
    return output_.fd >= 0 && dont_block(connected.fd) ? std::string()
                                                       : failed("prepare the connection");
  }

  std::string start_command() {
    if (request_.container.is_given()) return start_in_container();
    Streams streams;
    std::string why = start_.terminal ? make_terminal(streams) : make_pipes(streams);
    if (!why.empty()) return why;
    const Entered entered = enter_with_command(entry_, streams);
    close(streams.input);
    if (!start_.terminal) {
      close(streams.output);
      close(streams.error);
    }
    pid_ = entered.pid;
    refusal_value_ = entered.value;
    if (pid_ > 0) tell_of_command();
    return entered.why;
  }

  // A terminal is the engine's to make, in the container; what is typed and shown comes by pipes.
  std::string start_in_container() {
    Streams streams;
    std::string why = make_pipes(streams);
    if (!why.empty()) return why;
    const EnteredContainer entered = enter_container(container_, streams, start_.terminal);
    for (const int fd : {streams.input, streams.output, streams.error}) close(fd);
    pid_ = entered.pid;
    control_ = entered.control;
    refusal_value_ = entered.value;
    return entered.why;
  }

  // Best effort: a FIFO that is full loses nothing but a line in a list.
  void tell_of_command() const {
    if (o_.notice_fd < 0) return;
    Notice notice;
    notice.kind = Notice::Kind::kEntered;
    notice.attempt = o_.attempt;
    notice.started.pid = static_cast<std::uint32_t>(pid_);
    const std::string frame = encode_notice(notice);
    [[maybe_unused]] const ssize_t wrote = write(o_.notice_fd, frame.data(), frame.size());
  }

  std::string make_terminal(Streams& streams) {
    Terminal terminal;
    if (!open_terminal(*start_.terminal, request_.user.uid, geteuid() == 0, terminal)) {
      return failed("make a terminal");
    }
    streams = {terminal.theirs, terminal.theirs, terminal.theirs, true};
    terminal_ = input_ = output_.fd = terminal.ours;
    return {};
  }

  std::string make_pipes(Streams& streams) {
    int in[2];
    int out[2];
    int err[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
      return failed("make pipes");
    }
    streams = {in[0], out[1], err[1], false};
    input_ = in[1];
    output_.fd = out[0];
    error_ = {err[0], true};
    const bool ready = dont_block(input_) && dont_block(output_.fd) && dont_block(error_.fd);
    return ready ? std::string() : failed("prepare pipes");
  }

  // ---- the loop

  bool is_over() const {
    if (pid_ > 0) return false;  // not reaped yet
    return peer_gone_ || (end_sent_ && pending_.empty());
  }

  // Nothing more will come from inside the job.
  bool has_ended() const {
    if (start_.port != 0) return (output_.fd < 0 && error_.fd < 0) || job_ended_;
    return pid_ < 0 && drained_;
  }

  void wait() {
    const bool wants_output = pending_.empty();
    pollfd fds[] = {
        {peer_gone_ ? -1 : channel_, static_cast<short>(POLLIN | (pending_.empty() ? 0 : POLLOUT)),
         0},
        {signal_fd_, POLLIN, 0},
        {job_ended_ ? -1 : job_fd_, POLLIN, 0},
        {waiting_.empty() ? -1 : input_, POLLOUT, 0},
        {wants_output ? output_.fd : -1, POLLIN, 0},
        {wants_output ? error_.fd : -1, POLLIN, 0},
        {control_, POLLIN, 0},
    };
    const bool has_more = pid_ < 0 && start_.port == 0 && !drained_ && wants_output;
    int timeout = -1;
    if (deadline_ != 0) {
      timeout = static_cast<int>(std::clamp<std::int64_t>(deadline_ - os::boot_ms(), 0, 60'000));
    }
    if (has_more) timeout = 0;
    poll(fds, std::size(fds), timeout);
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    }
    int status = 0;
    if (pid_ > 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
      end_.end = WIFSIGNALED(status) ? model::ChannelEnd::kSignalled : model::ChannelEnd::kExited;
      end_.value =
          static_cast<std::uint8_t>(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
      pid_ = -1;
    }
  }

  void look_at_job() {
    pollfd job{job_fd_, POLLIN, 0};
    if (job_ended_ || poll(&job, 1, 0) != 1) return;
    job_ended_ = true;
    // With a cgroup the job's supervisor ends everything in it, but an interactive shell would use
    // up the grace time. Without a cgroup nothing else ends the command.
    hang_up_command();
  }

  // What the program beside a container says of its command's end.
  void read_control() {
    while (control_ >= 0) {
      const os::Packet packet = os::receive_packet(control_, buffer_, sizeof buffer_, MSG_DONTWAIT);
      if (packet.fd >= 0) close(packet.fd);
      if (packet.kind == os::Packet::Kind::kNothing) return;
      const auto frame = packet.kind == os::Packet::Kind::kMessage
                             ? model::decode_frame(packet.bytes)
                             : std::optional<model::Frame>();
      const auto* end = frame ? std::get_if<model::EndFrame>(&*frame) : nullptr;
      if (end != nullptr) words_ = end->text;
      if (!frame) close_control();
    }
  }

  void close_control() {
    if (control_ >= 0) close(std::exchange(control_, -1));
  }

  void tell_control(const model::Frame& frame) const {
    if (control_ >= 0) os::send_packet(control_, model::encode_frame(frame));
  }

  // ---- from the client

  void read_frames() {
    while (!peer_gone_) {
      const os::Packet packet = os::receive_packet(channel_, buffer_, sizeof buffer_);
      if (packet.fd >= 0) close(packet.fd);
      if (packet.kind == os::Packet::Kind::kNothing) return;
      const auto frame = packet.kind == os::Packet::Kind::kMessage
                             ? model::decode_frame(packet.bytes)
                             : std::optional<model::Frame>();
      if (!frame || !take(*frame)) return lose_peer();
    }
  }

  // False: not a frame that a client may send now.
  bool take(const model::Frame& frame) {
    if (const auto* input = std::get_if<model::InputFrame>(&frame)) return take_input(*input);
    if (std::holds_alternative<model::EndOfInputFrame>(frame)) {
      input_ends_ = true;
    } else if (const auto* resize = std::get_if<model::ResizeFrame>(&frame)) {
      if (terminal_ >= 0) resize_terminal(terminal_, resize->size);
      tell_control(*resize);
    } else if (const auto* order = std::get_if<model::SignalFrame>(&frame)) {
      signal_command(order->signal);
    } else {
      return false;
    }
    return true;
  }

  bool take_input(const model::InputFrame& input) {
    if (input_ends_ || waiting_.size() + input.bytes.size() > model::kInputWindow) return false;
    waiting_ += input.bytes;
    return true;
  }

  void feed_input() {
    while (!waiting_.empty() && input_ >= 0) {
      const ssize_t wrote = write_input();
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (wrote < 0) {
        close_input();
        break;
      }
      taken_ += static_cast<std::uint32_t>(wrote);
      waiting_.erase(0, static_cast<std::size_t>(wrote));
    }
    if (input_ < 0) {  // no process reads it any more: dropped, so that the client need not wait
      taken_ += static_cast<std::uint32_t>(waiting_.size());
      waiting_.clear();
    } else if (input_ends_ && waiting_.empty()) {
      close_input();
    }
  }

  ssize_t write_input() const {
    if (start_.port != 0) return ::send(input_, waiting_.data(), waiting_.size(), MSG_NOSIGNAL);
    return write(input_, waiting_.data(), waiting_.size());
  }

  void close_input() {
    if (start_.port != 0) {
      shutdown(input_, SHUT_WR);
    } else if (!start_.terminal || (request_.container.is_given() && !input_ends_)) {
      close(input_);
    } else if (input_ends_) {
      waiting_.clear();
      termios modes{};
      const bool known = tcgetattr(input_, &modes) == 0;
      const char end = static_cast<char>(known ? modes.c_cc[VEOF] : 4);
      [[maybe_unused]] const ssize_t wrote = write(input_, &end, 1);
    }
    input_ = -1;
  }

  // ---- to the client

  void pass_output() {
    for (int turn = 0; turn < kTurns; ++turn) {
      flush();
      if (!pending_.empty()) return;
      if (taken_ > 0) {
        send(model::TakenFrame{std::exchange(taken_, 0)});
        continue;
      }
      // One after the other, so that neither keeps the other waiting.
      std::swap(output_, error_);
      if (!read_one(output_) && !read_one(error_)) {
        if (pid_ < 0) drained_ = true;
        return;
      }
    }
  }

  // False when there is nothing now.
  bool read_one(Source& source) {
    if (source.fd < 0) return false;
    const ssize_t got = read(source.fd, buffer_, model::kMaxFrameBytes);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
    if (got <= 0) {
      // This is the end of a pipe or a connection; for a terminal it means that no process holds
      // its other side.
      if (!start_.terminal) close(source.fd);
      source.fd = -1;
      return false;
    }
    if (peer_gone_) return true;
    const std::string_view bytes(buffer_, static_cast<std::size_t>(got));
    if (source.is_error) {
      send(model::ErrorOutputFrame{bytes});
    } else {
      send(model::OutputFrame{bytes});
    }
    return true;
  }

  void send(const model::Frame& frame) {
    pending_ = model::encode_frame(frame);
    flush();
  }

  void flush() {
    if (pending_.empty()) return;
    if (peer_gone_ || os::send_packet(channel_, pending_)) {
      pending_.clear();
    } else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) {
      pending_.clear();
      lose_peer();
    }
  }

  void send_end() {
    end_sent_ = true;
    if (is_killed_with_job()) job_ended_ = true;
    std::string text = words_;
    if (job_ended_) text = "job " + std::to_string(o_.attempt.job.value) + " has ended";
    end_.text = text;
    send(end_);
  }

  // A job's end kills all of its cgroup at once; which of its processes is gone first says nothing.
  bool is_killed_with_job() const {
    if (end_.end != model::ChannelEnd::kSignalled || end_.value != SIGKILL) return false;
    pollfd job{job_fd_, POLLIN, 0};
    return poll(&job, 1, kKilledTogetherMs) == 1;
  }

  // ---- the command

  void lose_peer() {
    if (peer_gone_) return;
    peer_gone_ = true;
    hang_up_command();
  }

  void hang_up_command() {
    if (pid_ <= 0 || deadline_ != 0) return;
    if (request_.container.is_given()) return close_control();  // it knows what that means
    signal_command(SIGHUP);
    signal_command(SIGCONT);
    deadline_ = os::boot_ms() + kHangUpGraceMs;
  }

  void kill_command() {
    if (pid_ > 0) kill(-pid_, SIGKILL);
    deadline_ = os::boot_ms() + kHangUpGraceMs;
  }

  // The command is not reaped yet, so its group is its own.
  void signal_command(int signal) {
    if (pid_ <= 0) return;
    if (request_.container.is_given()) {
      return tell_control(model::SignalFrame{static_cast<std::uint8_t>(signal)});
    }
    const pid_t group = foreground_group();
    if (group <= 0) {
      kill(-pid_, signal);
      return;
    }
    // The kernel knows the group itself, not only its number, but takes none other this way.
    const bool is_key = signal == SIGINT || signal == SIGQUIT || signal == SIGTSTP;
    if (is_key && ioctl(terminal_, TIOCSIG, signal) == 0) return;
    kill(-group, signal);
    if (group != pid_ && signal == SIGHUP) kill(-pid_, signal);
  }

  // The terminal's, if it still is of the session that was made for the command: its number may
  // have been left on the terminal by a group that is gone, and belong to another by now. 0: none.
  pid_t foreground_group() const {
    pid_t session = 0;
    pid_t group = 0;
    const bool is_known = terminal_ >= 0 && ioctl(terminal_, TIOCGSID, &session) == 0 &&
                          ioctl(terminal_, TIOCGPGRP, &group) == 0;
    const bool is_its_own = is_known && session == pid_ && group > 1 && getsid(group) == session;
    return is_its_own ? group : 0;
  }

  const RelayOptions& o_;
  const int channel_;
  ChannelStart start_;
  LaunchRequest request_;
  EntryOptions entry_;
  ContainerEntry container_;
  std::uint8_t refusal_value_ = 0;
  int signal_fd_ = -1;
  int job_fd_ = -1;    // -1: another process looks at it
  int control_ = -1;   // to the program beside a container
  std::string words_;  // its last ones
  int pid_ = -1;       // of the command, until it is reaped
  int terminal_ = -1;
  int input_ = -1;
  Source output_;
  Source error_;
  std::string waiting_;  // input that was not taken yet
  bool input_ends_ = false;
  std::uint32_t taken_ = 0;  // not told yet
  std::string pending_;      // a frame on its way to the client
  bool drained_ = false;     // after the command's end all its output was read
  bool job_ended_ = false;
  bool peer_gone_ = false;
  bool end_sent_ = false;
  std::int64_t deadline_ = 0;  // 0: none
  model::EndFrame end_;
  char buffer_[model::kMaxFrame + 1];
};

void take_own_place(const RelayOptions& options) {
  struct sigaction regular{};
  regular.sa_handler = SIG_DFL;
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  sigaction(SIGCHLD, &regular, nullptr);
  setsid();
  prctl(PR_SET_NAME, "gp-relay");
  if (options.title.empty()) return;
  const std::string title = "gp-relay " + attempt_name(options.attempt);
  const std::size_t size = std::min(title.size(), options.title.size() - 1);
  memset(options.title.data(), 0, options.title.size());
  memcpy(options.title.data(), title.data(), size);
}

}  // namespace

void run_relay(const RelayOptions& options) {
  take_own_place(options);
  Relay(options).run();
  _exit(0);
}

}  // namespace gpu_platform::node
