#include "cli/screen/screen.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "cli/text/state_color.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

// xterm's, which every terminal in use understands.
constexpr std::string_view kEnter = "\x1b[?1049h\x1b[?25l";
constexpr std::string_view kLeave = "\x1b[?25h\x1b[?1049l";
constexpr std::string_view kClearAll = "\x1b[H\x1b[J";
constexpr std::string_view kClearLine = "\x1b[K";

std::unexpected<base::Error> screen_failed(std::string_view what) {
  return base::fail(base::ErrorCode::kInternal, fmt::format("{}: {}", what, std::strerror(errno)));
}

sigset_t resize_signal() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGWINCH);
  return set;
}

// Takes one escape sequence off the text; its key, or 0 for one that means nothing here.
char take_sequence(std::string_view& text) {
  text.remove_prefix(1);
  if (text.empty() || (text.front() != '[' && text.front() != 'O')) return 0;
  text.remove_prefix(1);
  const std::size_t end = text.find_first_not_of("0123456789;");
  if (end == std::string_view::npos) {
    text = {};
    return 0;
  }
  const std::string_view parameters = text.substr(0, end);
  const char last = text[end];
  text.remove_prefix(end + 1);
  if (last == 'A') return kKeyUp;
  if (last == 'B') return kKeyDown;
  if (last == '~' && parameters == "5") return kKeyPageUp;
  if (last == '~' && parameters == "6") return kKeyPageDown;
  return 0;
}

}  // namespace

std::vector<char> keys_of(std::string_view bytes) {
  std::vector<char> keys;
  while (!bytes.empty()) {
    if (bytes.front() == '\x1b') {
      if (const char key = take_sequence(bytes); key != 0) keys.push_back(key);
      continue;
    }
    if (bytes.front() >= ' ' && bytes.front() <= '~') keys.push_back(bytes.front());
    if (bytes.front() == '\r' || bytes.front() == '\n') keys.push_back(kKeyEnter);
    if (bytes.front() == '\t') keys.push_back(kKeyTab);
    if (bytes.front() == '\x7f' || bytes.front() == '\b') keys.push_back(kKeyBackspace);
    bytes.remove_prefix(1);
  }
  return keys;
}

bool Screen::is_possible(const ProcessEnvironment& process_environment) {
  const auto terminal = variable(process_environment, "TERM");
  return process_environment.width != 0 && terminal.has_value() && *terminal != "dumb";
}

base::Result<std::unique_ptr<Screen>> Screen::open(Console& console) {
  std::unique_ptr<Screen> screen(new Screen(console));
  screen->events_ = ::epoll_create1(EPOLL_CLOEXEC);
  if (screen->events_ < 0) return screen_failed("epoll");
  screen->interrupts_ = console.process_environment().watch_interrupts();
  if (screen->interrupts_ >= 0) TRY(screen->watch(screen->interrupts_));
  // Blocked, so that it waits in the descriptor and none is missed.
  const sigset_t resize = resize_signal();
  ::pthread_sigmask(SIG_BLOCK, &resize, nullptr);
  screen->resizes_ = ::signalfd(-1, &resize, SFD_CLOEXEC | SFD_NONBLOCK);
  if (screen->resizes_ < 0) return screen_failed("signalfd");
  TRY(screen->watch(screen->resizes_));
  screen->take_keyboard();
  console.out(kEnter);
  return screen;
}

Screen::~Screen() {
  const ProcessEnvironment& around = console_.process_environment();
  if (resizes_ >= 0) {
    console_.out(kLeave);
    ::close(resizes_);
  }
  if (has_keys_) ::tcsetattr(around.in_fd, TCSAFLUSH, &saved_);
  if (events_ >= 0) ::close(events_);
  const sigset_t resize = resize_signal();
  ::pthread_sigmask(SIG_UNBLOCK, &resize, nullptr);
}

base::Status Screen::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(events_, EPOLL_CTL_ADD, fd, &event) != 0) return screen_failed("epoll");
  return {};
}

// Without a keyboard (input from a file) the screen is shown all the same.
void Screen::take_keyboard() {
  const int in = console_.process_environment().in_fd;
  if (::isatty(in) != 1 || ::tcgetattr(in, &saved_) != 0 || !watch(in)) return;
  termios raw = saved_;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  raw.c_cc[VMIN] = 0;
  raw.c_cc[VTIME] = 0;
  // Stopped or killed by these, the terminal would be left as we made it.
  raw.c_cc[VSUSP] = _POSIX_VDISABLE;
  raw.c_cc[VQUIT] = _POSIX_VDISABLE;
  has_keys_ = ::tcsetattr(in, TCSAFLUSH, &raw) == 0;
}

ScreenSize Screen::size() const {
  winsize size{};
  const bool known = ::ioctl(console_.process_environment().out_fd, TIOCGWINSZ, &size) == 0 &&
                     size.ws_col > 0 && size.ws_row > 0;
  if (!known) return {console_.process_environment().width, 24};
  return {size.ws_col, size.ws_row};
}

void Screen::draw(const std::vector<std::string>& lines) {
  std::string bytes;
  const ScreenSize now = size();
  if (now != shown_size_) {
    // A terminal of another size may show anything.
    bytes += kClearAll;
    shown_.clear();
    shown_size_ = now;
  }
  for (std::size_t i = 0; i < std::max(lines.size(), shown_.size()); ++i) {
    const std::string line = i < lines.size() ? lines[i] : std::string();
    if (line == (i < shown_.size() ? shown_[i] : std::string())) continue;
    bytes += fmt::format("\x1b[{};1H{}", i + 1, line);
    // Behind the last column, the terminal would clear the character in it.
    if (display_width(without_colors(line)) < now.columns) bytes += kClearLine;
  }
  shown_ = lines;
  if (!bytes.empty()) console_.out(bytes);
}

ScreenInput Screen::read() {
  ScreenInput input;
  std::array<char, 256> bytes;
  signalfd_siginfo signal{};
  while (::read(resizes_, &signal, sizeof signal) > 0) input.resized = true;
  if (interrupts_ >= 0) input.interrupted = ::read(interrupts_, bytes.data(), bytes.size()) > 0;
  if (!has_keys_) return input;
  const ssize_t got = ::read(console_.process_environment().in_fd, bytes.data(), bytes.size());
  if (got > 0) {
    input.keys = keys_of({bytes.data(), static_cast<std::size_t>(got)});
  } else {
    // VMIN 0: nothing typed and a terminal that is gone look alike; only the latter stays readable.
    epoll_event event{};
    const bool still = ::epoll_wait(events_, &event, 1, 0) > 0;
    if (still && event.data.fd == console_.process_environment().in_fd) input.interrupted = true;
  }
  return input;
}

}  // namespace gpu_platform::cli
