#include "client/exec_session.h"

#include <array>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/percent.h"
#include "client/channel.h"
#include "client/detach_keys.h"
#include "client/exit_code.h"

namespace gpu_platform::client {

namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kMaxInterrupts = 3;

// The person's terminal without its line editing and keys of its own, as long as this lives.
class RawTerminal {
 public:
  explicit RawTerminal(int fd) : fd_(fd) {
    if (::tcgetattr(fd, &saved_) != 0) return;
    termios raw = saved_;
    ::cfmakeraw(&raw);
    is_raw_ = ::tcsetattr(fd, TCSADRAIN, &raw) == 0;
  }
  ~RawTerminal() {
    if (is_raw_) ::tcsetattr(fd_, TCSADRAIN, &saved_);
  }
  RawTerminal(const RawTerminal&) = delete;
  RawTerminal& operator=(const RawTerminal&) = delete;

 private:
  int fd_;
  bool is_raw_ = false;
  termios saved_{};
};

// Tells when a descriptor can be read, through an epoll of its own: asio would make the descriptor
// itself not blocking, and with it that of the shell that we share it with. What epoll does not
// take (a file) can always be read.
class Readable {
 public:
  Readable(asio::io_context& io, int fd) : io_(io), epoll_(io) {
    const int handle = ::epoll_create1(EPOLL_CLOEXEC);
    epoll_event event{};
    event.events = EPOLLIN;
    is_always_ = handle < 0 || ::epoll_ctl(handle, EPOLL_CTL_ADD, fd, &event) != 0;
    if (handle >= 0) epoll_.assign(handle);
  }

  template <class Handler>
  void wait(Handler&& handler) {
    if (is_always_) {
      asio::post(io_, std::forward<Handler>(handler));
      return;
    }
    epoll_.async_wait(asio::posix::stream_descriptor::wait_read,
                      [handler = std::forward<Handler>(handler)](const error_code& error) {
                        if (!error) handler();
                      });
  }
  void stop() {
    error_code ignored;
    epoll_.close(ignored);
  }

 private:
  asio::io_context& io_;
  asio::posix::stream_descriptor epoll_;
  bool is_always_ = false;
};

class ExecSession {
 public:
  ExecSession(Console& console, asio::io_context& io, std::shared_ptr<Channel> channel,
              const StayOptions& options)
      : console_(console),
        io_(io),
        channel_(std::move(channel)),
        options_(options),
        input_(io, console.process_environment().in_fd),
        signals_(io) {
    if (!options_.watches_signals) return;
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) signals_.add(signal);
    if (options_.has_terminal) signals_.add(SIGWINCH);
  }

  Stayed run() {
    std::optional<RawTerminal> raw;
    if (options_.has_terminal) raw.emplace(console_.process_environment().in_fd);
    channel_->begin({[this](const model::Frame& frame) { take(frame); },
                     [this] { leave(Stayed::Why::kLost, kNoExitCode); }});
    if (options_.watches_signals) watch_signals();
    io_.run();
    return stayed_;
  }

 private:
  // ---- from the job

  void take(const model::Frame& frame) {
    if (const auto* output = std::get_if<model::OutputFrame>(&frame)) {
      if (!console_.out(output->bytes)) leave(Stayed::Why::kLeft, kFailure);
    } else if (const auto* error = std::get_if<model::ErrorOutputFrame>(&frame)) {
      console_.err(error->bytes);
    } else if (const auto* taken = std::get_if<model::TakenFrame>(&frame)) {
      window_.taken(taken->bytes);
      if (options_.log != nullptr) options_.log->taken(taken->bytes);
      read_input();
    } else if (const auto* opened = std::get_if<model::OpenedFrame>(&frame)) {
      is_open_ = true;
      if (options_.log != nullptr) go_on_after(opened->received);
      read_input();
    } else if (const auto* end = std::get_if<model::EndFrame>(&frame)) {
      take_end(*end);
    }
  }

  void take_end(const model::EndFrame& end) {
    switch (end.end) {
      case model::ChannelEnd::kExited:
        return leave(Stayed::Why::kEnded, end.value, end.text);
      case model::ChannelEnd::kSignalled:
        return leave(Stayed::Why::kEnded, 128 + end.value, end.text);
      case model::ChannelEnd::kNotOpened:
        return leave(Stayed::Why::kNotOpened,
                     end.value != 0 ? end.value : static_cast<int>(kRunRefused), end.text);
      case model::ChannelEnd::kDetached:
        return leave(Stayed::Why::kDetached, kNoExitCode, end.text);
    }
  }

  void leave(Stayed::Why why, int code, std::string_view words = {}) {
    if (has_left_) return;
    has_left_ = true;
    stayed_ = {why, code, std::string(words)};
    channel_->close();
    input_.stop();
    signals_.cancel();
    io_.stop();
  }

  // ---- from the person

  void read_input() {
    if (!is_open_ || is_waiting_ || is_at_end_ || window_.most() <= keys_.held()) return;
    is_waiting_ = true;
    input_.wait([this] { input_ready(); });
  }

  void input_ready() {
    is_waiting_ = false;
    if (has_left_) return;
    std::array<char, model::kMaxFrameBytes> bytes;
    const std::size_t most = window_.most() - keys_.held();
    const ssize_t got = ::read(console_.process_environment().in_fd, bytes.data(), most);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return read_input();
    if (got <= 0) {
      if (options_.log != nullptr) options_.log->end();
      return end_input();
    }
    send_input({bytes.data(), static_cast<std::size_t>(got)});
    if (!has_left_) read_input();
  }

  void end_input() {
    is_at_end_ = true;
    channel_->send(model::EndOfInputFrame{});
  }

  // What an earlier channel had sent and the job never got.
  void go_on_after(std::uint64_t received) {
    std::string_view missing = options_.log->missing_after(received);
    window_.sent(missing.size());
    while (!missing.empty()) {
      const std::string_view part = missing.substr(0, model::kMaxFrameBytes);
      channel_->send(model::InputFrame{part});
      missing.remove_prefix(part.size());
    }
    if (options_.log->has_ended()) end_input();
  }

  void send_input(std::string_view typed) {
    const std::string bytes = options_.can_detach ? keys_.filter(typed) : std::string(typed);
    if (!bytes.empty()) {
      window_.sent(bytes.size());
      if (options_.log != nullptr) options_.log->sent(bytes);
      channel_->send(model::InputFrame{bytes});
    }
    if (keys_.were_pressed()) leave(Stayed::Why::kLeft, kOk);
  }

  void watch_signals() {
    signals_.async_wait([this](const error_code& error, int signal) {
      if (error || has_left_) return;
      take_signal(signal);
      if (!has_left_) watch_signals();
    });
  }

  void take_signal(int signal) {
    if (signal == SIGWINCH) {
      if (const auto size = terminal_size(console_.process_environment())) {
        channel_->send(model::ResizeFrame{*size});
      }
      return;
    }
    const bool is_last = signal == SIGINT && ++interrupts_ >= kMaxInterrupts;
    // In a raw terminal no key makes a signal: this one is for us.
    if (!options_.passes_signals || signal == SIGHUP || is_last) {
      return leave(Stayed::Why::kSignalled, 128 + signal);
    }
    channel_->send(model::SignalFrame{static_cast<std::uint8_t>(signal)});
  }

  Console& console_;
  asio::io_context& io_;
  std::shared_ptr<Channel> channel_;
  const StayOptions options_;
  Readable input_;
  asio::signal_set signals_;
  InputWindow window_;
  DetachKeys keys_;
  bool is_open_ = false;
  bool is_waiting_ = false;
  bool is_at_end_ = false;
  bool has_left_ = false;
  int interrupts_ = 0;
  Stayed stayed_;
};

}  // namespace

std::string exec_target(const std::string& id, std::span<const std::string> command,
                        const std::optional<model::TerminalSize>& terminal) {
  std::string target = fmt::format("/v1/jobs/{}/exec?", base::percent_encoded(id));
  for (const std::string& word : command) {
    target += fmt::format("command={}&", base::percent_encoded(word));
  }
  if (!terminal) return target + "terminal=false";
  return target +
         fmt::format("terminal=true&columns={}&rows={}", terminal->columns, terminal->rows);
}

std::optional<model::TerminalSize> terminal_size(const ProcessEnvironment& process_environment) {
  if (::isatty(process_environment.in_fd) != 1) return std::nullopt;
  winsize size{};
  if (::ioctl(process_environment.in_fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 ||
      size.ws_row == 0) {
    return model::TerminalSize{};
  }
  return model::TerminalSize{size.ws_col, size.ws_row};
}

Stayed stay_with(Console& console, asio::io_context& io, std::shared_ptr<Channel> channel,
                 const StayOptions& options) {
  return ExecSession(console, io, std::move(channel), options).run();
}

int stay_with_command(Console& console, asio::io_context& io, std::shared_ptr<Channel> channel,
                      bool has_terminal) {
  const Stayed stayed = stay_with(console, io, std::move(channel),
                                  {.has_terminal = has_terminal, .passes_signals = !has_terminal});
  if (stayed.why == Stayed::Why::kLost) {
    console.note("the daemon has gone, and the session with it; the job goes on");
  } else if (!stayed.words.empty()) {
    console.note(stayed.words);
  }
  return stayed.code;
}

}  // namespace gpu_platform::client
