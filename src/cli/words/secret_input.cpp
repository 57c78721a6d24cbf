#include "cli/words/secret_input.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include "http/server.h"
#include "os/descriptor.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kMaxBytesOfToken = 16 * 1024;
constexpr char kInterrupt = '\x03';
constexpr char kEndOfInput = '\x04';
constexpr char kBackspace = '\x08';
constexpr char kDelete = '\x7f';
constexpr char kEraseLine = '\x15';

base::Result<std::string> read_up_to_end(int fd, const std::string& what) {
  std::string text;
  std::array<char, 4096> bytes{};
  while (text.size() <= kMaxBytesOfToken) {
    const ssize_t got = ::read(fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::unexpected(base::system_error("read " + what, errno));
    if (got == 0) break;
    text.append(bytes.data(), static_cast<std::size_t>(got));
  }
  return text;
}

// The terminal without echo, while it lives. Keys that would end or stop the program come as bytes:
// it must never leave a terminal that shows nothing.
class Silence {
 public:
  explicit Silence(int fd) : fd_(fd), is_on_(::tcgetattr(fd, &saved_) == 0) {
    termios silent = saved_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO | ICANON | ISIG);
    silent.c_cc[VMIN] = 1;
    silent.c_cc[VTIME] = 0;
    is_on_ = is_on_ && ::tcsetattr(fd, TCSAFLUSH, &silent) == 0;
  }
  ~Silence() {
    if (is_on_) ::tcsetattr(fd_, TCSAFLUSH, &saved_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;
  bool is_on() const { return is_on_; }

 private:
  int fd_;
  termios saved_{};
  bool is_on_;
};

std::optional<std::string> type_in(int fd) {
  std::string text;
  char key = 0;
  while (text.size() <= kMaxBytesOfToken) {
    const ssize_t got = ::read(fd, &key, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0 || key == '\n' || key == '\r' || key == kEndOfInput) break;
    if (key == kInterrupt) return std::nullopt;
    if (key == kEraseLine) {
      text.clear();
    } else if (key != kBackspace && key != kDelete) {
      text.push_back(key);
    } else if (!text.empty()) {
      text.pop_back();
    }
  }
  return text;
}

base::Result<std::optional<std::string>> ask(Console& console, std::string_view prompt) {
  const int fd = console.process_environment().in_fd;
  const Silence silence(fd);
  if (!silence.is_on()) {
    return base::invalid("--token-file",
                         "there is no terminal to type a token in: give --token-file FILE or "
                         "--token-stdin");
  }
  console.err(prompt);
  auto typed = type_in(fd);
  console.err("\n");
  return typed;
}

base::Result<std::string> read_from_file(const std::string& path) {
  const os::Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.is_open()) return std::unexpected(base::system_error("open " + path, errno));
  return read_up_to_end(fd.get(), path);
}

std::string trimmed(const std::string& text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

}  // namespace

base::Result<std::optional<std::string>> read_token(const TokenSource& source, Console& console,
                                                    std::string_view prompt) {
  std::optional<std::string> text;
  if (source.file) {
    TRY_ASSIGN(text, read_from_file(*source.file));
  } else if (source.from_stdin) {
    TRY_ASSIGN(text, read_up_to_end(console.process_environment().in_fd, "standard input"));
  } else {
    TRY_ASSIGN(text, ask(console, prompt));
    if (!text) return std::optional<std::string>();
  }
  std::string token = trimmed(*text);
  // What was typed instead is not repeated: it may be a secret of something else.
  if (!http::is_valid_token(token)) {
    return base::invalid(source.file ? "--token-file" : "token",
                         "not a token: a token is one word of ASCII characters");
  }
  return std::optional(std::move(token));
}

}  // namespace gpu_platform::cli
