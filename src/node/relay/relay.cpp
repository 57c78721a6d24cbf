#include "node/relay/relay.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "node/cgroup_freezer.h"
#include "node/channel_refusal.h"
#include "node/relay/channel_input.h"
#include "node/relay/channel_opening.h"
#include "node/relay/channel_output.h"
#include "node/relay/command.h"
#include "os/clock.h"
#include "os/packet_socket.h"

namespace gpu_platform::node {

namespace {

constexpr int kKilledTogetherMs = 100;
constexpr int kTurns = 16;  // of output, before signals and input are looked at again

// Returns a foreign word for a log line, without its final NUL.
std::string printable(std::string_view word) {
  constexpr std::size_t kMaxBytes = 256;
  std::string text(word.substr(0, std::min(word.find('\0'), kMaxBytes)));
  std::ranges::replace_if(text, [](char c) { return c <= ' ' || c > '~'; }, '?');
  return text;
}

class Relay {
 public:
  explicit Relay(const RelayOptions& options) : o_(options), channel_(options.channel) {}

  void run() {
    const std::string why = start();
    if (!why.empty()) {
      refuse_channel(channel_, why, opened_.refusal_value);
      return;
    }
    tell("begins");
    send(model::OpenedFrame{});
    while (!is_over()) {
      wait();
      take_signals();
      look_at_job();
      command_.kill_if_due();
      command_.read_control(buffer_);
      read_frames();
      input_.feed();
      pass_output();
      if (has_ended() && pending_.empty() && !end_sent_) send_end();
    }
    tell("ends");
  }

 private:
  std::string start() {
    sigset_t all;
    sigfillset(&all);
    signal_fd_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0) return std::string("make a handle for signals: ") + strerror(errno);
    std::string why = open_channel(o_, opened_);
    if (!why.empty()) return why;
    command_.begin(opened_);
    input_.begin(opened_);
    output_.begin(opened_);
    return {};
  }

  // Arguments may be secrets: of a command only the first word is told.
  void tell(std::string_view what) const {
    if (o_.log_fd < 0) return;
    std::string line = "gpu-platform-node: channel=" + std::to_string(getpid()) +
                       " attempt=" + attempt_name(o_.attempt) +
                       " uid=" + std::to_string(opened_.request.user.uid);
    line += is_connection() ? " port=" + std::to_string(opened_.start.port)
                            : " exec=" + printable(opened_.request.command.front());
    line += " " + std::string(what) + "\n";
    [[maybe_unused]] const ssize_t wrote = write(o_.log_fd, line.data(), line.size());
  }

  // ---- the loop

  bool is_connection() const { return opened_.start.port != 0; }

  bool is_over() const {
    if (command_.is_running()) return false;  // not reaped yet
    return peer_gone_ || (end_sent_ && pending_.empty());
  }

  // Nothing more will come from inside the job.
  bool has_ended() const {
    if (is_connection()) return output_.is_at_end() || job_ended_;
    return !command_.is_running() && drained_;
  }

  void wait() {
    const bool wants_output = pending_.empty();
    pollfd fds[] = {
        {peer_gone_ ? -1 : channel_, static_cast<short>(POLLIN | (pending_.empty() ? 0 : POLLOUT)),
         0},
        {signal_fd_, POLLIN, 0},
        {job_ended_ ? -1 : opened_.job_fd, POLLIN, 0},
        {input_.waits_for(), POLLOUT, 0},
        {wants_output ? output_.output() : -1, POLLIN, 0},
        {wants_output ? output_.error() : -1, POLLIN, 0},
        {command_.control(), POLLIN, 0},
    };
    const bool has_more = !command_.is_running() && !is_connection() && !drained_ && wants_output;
    poll(fds, std::size(fds), has_more ? 0 : timeout_ms());
  }

  // Until the command is to be killed; -1: for ever.
  int timeout_ms() const {
    if (command_.deadline_ms() == 0) return -1;
    const std::int64_t left_ms = command_.deadline_ms() - os::boot_ms();
    return static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 60'000));
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    }
    command_.reap(end_);
  }

  void look_at_job() {
    pollfd job{opened_.job_fd, POLLIN, 0};
    if (job_ended_ || poll(&job, 1, 0) != 1) return;
    job_ended_ = true;
    // With a cgroup the job's supervisor ends everything in it, but an interactive shell would use
    // up the grace time. Without a cgroup nothing else ends the command.
    command_.hang_up();
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
      wake_job();
    }
  }

  // So that a job that takes turns on its GPU can answer. Not for each of many frames.
  void wake_job() {
    if (opened_.freezer < 0 || os::boot_ms() < wake_again_ms_) return;
    wake_again_ms_ = os::boot_ms() + kThawAgainMs;
    thaw_by(opened_.freezer);
  }

  // False: not a frame that a client may send now.
  bool take(const model::Frame& frame) {
    if (const auto* input = std::get_if<model::InputFrame>(&frame)) {
      return input_.take(input->bytes);
    }
    if (std::holds_alternative<model::EndOfInputFrame>(frame)) {
      input_.take_end();
    } else if (const auto* resize = std::get_if<model::ResizeFrame>(&frame)) {
      command_.resize(*resize);
    } else if (const auto* order = std::get_if<model::SignalFrame>(&frame)) {
      command_.signal(order->signal);
    } else {
      return false;
    }
    return true;
  }

  void lose_peer() {
    if (peer_gone_) return;
    peer_gone_ = true;
    wake_job();
    command_.hang_up();
  }

  // ---- to the client

  void pass_output() {
    for (int turn = 0; turn < kTurns; ++turn) {
      flush();
      if (!pending_.empty()) return;
      if (const std::uint32_t taken = input_.count_taken(); taken > 0) {
        send(model::TakenFrame{taken});
        continue;
      }
      const auto frame = output_.next(buffer_);
      if (!frame) {
        drained_ = drained_ || !command_.is_running();
        return;
      }
      if (!peer_gone_) send(*frame);
    }
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
    std::string text = command_.last_words();
    if (job_ended_) text = "job " + std::to_string(o_.attempt.job.value) + " has ended";
    end_.text = text;
    send(end_);
  }

  // A job's end kills all of its cgroup at once; which of its processes is gone first says nothing.
  bool is_killed_with_job() const {
    if (end_.end != model::ChannelEnd::kSignalled || end_.value != SIGKILL) return false;
    pollfd job{opened_.job_fd, POLLIN, 0};
    return poll(&job, 1, kKilledTogetherMs) == 1;
  }

  const RelayOptions& o_;
  const int channel_;
  OpenedChannel opened_;
  Command command_;
  ChannelInput input_;
  ChannelOutput output_;
  int signal_fd_ = -1;
  std::string pending_;   // a frame on its way to the client
  bool drained_ = false;  // after the command's end all its output was read
  bool job_ended_ = false;
  bool peer_gone_ = false;
  bool end_sent_ = false;
  std::int64_t wake_again_ms_ = 0;
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
