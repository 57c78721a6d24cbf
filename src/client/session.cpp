#include "client/session.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <csignal>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/harmless.h"
#include "client/timed_look.h"
#include "os/clock.h"

extern char** environ;

namespace gpu_platform::client {

namespace {

int interrupt_pipe[2] = {-1, -1};

extern "C" void note_interrupt(int) {
  const int saved = errno;
  const char byte = 1;
  [[maybe_unused]] const ssize_t written = ::write(interrupt_pipe[1], &byte, 1);
  errno = saved;
}

int watch_signals() {
  if (interrupt_pipe[0] < 0 && ::pipe2(interrupt_pipe, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  struct sigaction action{};
  action.sa_handler = note_interrupt;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return interrupt_pipe[0];
}

void pause_for(base::Duration duration, int fd) {
  pollfd watched{fd, POLLIN, 0};
  ::poll(&watched, 1, static_cast<int>(base::whole_milliseconds(duration)));
}

base::Instant wall_clock() {
  return os::wall_now();
}

base::Instant steady_clock_time() {
  return base::Instant(os::monotonic_ns());
}

std::size_t terminal_width(const ProcessEnvironment& process_environment, int fd) {
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  std::size_t columns = 0;
  if (const auto text = variable(process_environment, "COLUMNS")) {
    std::from_chars(text->data(), text->data() + text->size(), columns);
  }
  return columns > 0 ? columns : 80;
}

// At most so many characters of UTF-8 text.
std::string first_characters(std::string text, std::size_t most) {
  std::size_t characters = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_one = (static_cast<unsigned char>(text[i]) & 0xc0) != 0x80;
    if (begins_one && characters++ == most) {
      text.resize(i);
      break;
    }
  }
  return text;
}

// There is no call that only reads it. This program has one thread.
unsigned current_umask() {
  const mode_t mask = ::umask(022);
  ::umask(mask);
  return mask;
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd watched{fd, POLLOUT, 0};
      ::poll(&watched, 1, -1);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

}  // namespace

namespace {

PathKind path_kind_of(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? PathKind::kNothing : PathKind::kUnknown;
  }
  if (S_ISDIR(status.st_mode)) return PathKind::kFolder;
  const bool is_program = S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0;
  return is_program ? PathKind::kProgram : PathKind::kFile;
}

PathKind path_kind(const std::string& path) {
  return timed_look(path_kind_of, path).value_or(PathKind::kUnknown);
}

}  // namespace

ProcessEnvironment environment_of_process() {
  ProcessEnvironment result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    result.environment.emplace_back(*entry);
  }
  char directory[PATH_MAX];
  if (::getcwd(directory, sizeof directory) != nullptr) result.directory = directory;
  result.umask = current_umask();
  result.uid = ::getuid();
  if (::isatty(result.out_fd) == 1) {
    result.width = terminal_width(result, result.out_fd);
  }
  result.now = wall_clock;
  result.steady = steady_clock_time;
  result.watch_interrupts = watch_signals;
  result.pause = pause_for;
  result.path_kind = path_kind;
  return result;
}

std::optional<std::string> variable(const ProcessEnvironment& process_environment,
                                    std::string_view name) {
  for (const std::string& entry : process_environment.environment) {
    const bool is_it =
        entry.size() > name.size() + 1 && entry.starts_with(name) && entry[name.size()] == '=';
    if (is_it) return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

bool wants_color(const ProcessEnvironment& process_environment) {
  if (variable(process_environment, "NO_COLOR")) return false;
  if (variable(process_environment, "CLICOLOR_FORCE").value_or("0") != "0") return true;
  return process_environment.width != 0 &&
         variable(process_environment, "TERM").value_or("dumb") != "dumb";
}

bool Console::out(std::string_view bytes) {
  progress({});
  if (text_ != nullptr) text_->append(bytes);
  if (out_failed_ || text_ != nullptr) return !out_failed_;
  if (write_all(process_environment_.out_fd, bytes)) return true;
  out_failed_ = true;
  error(fmt::format("cannot write to standard output: {}", std::strerror(errno)));
  return false;
}

void Console::err(std::string_view bytes) {
  progress({});
  if (text_ != nullptr) {
    text_->append(bytes);
  } else {
    write_all(process_environment_.err_fd, bytes);
  }
}

bool Console::shows_progress() const {
  return text_ == nullptr && ::isatty(process_environment_.err_fd) == 1;
}

void Console::progress(std::string_view text) {
  if (text.empty() && !has_progress_) return;
  if (!shows_progress()) return;
  has_progress_ = !text.empty();
  const std::size_t width = terminal_width(process_environment_, process_environment_.err_fd);
  write_all(process_environment_.err_fd,
            fmt::format("\r\x1b[K{}", first_characters(harmless(text), width - 1)));
}

std::string Console::option_of(std::string_view field) const {
  std::string name(field.substr(0, field.find('[')));
  std::ranges::replace(name, '_', '-');
  const auto is_known = [&](const std::string& option) {
    return std::ranges::find(options_, option) != options_.end();
  };
  const auto without = [](std::string_view text, std::string_view end) {
    if (text.ends_with(end)) text.remove_suffix(end.size());
    return std::string(text);
  };
  std::string_view added = name;
  if (added.starts_with("add-")) added.remove_prefix(4);
  for (const std::string& word : {name, without(name, "s"), without(name, "-seconds"),
                                  without(name, "-bytes"), without(added, "s")}) {
    if (const std::string option = "--" + word; is_known(option)) return option;
  }
  return {};
}

void Console::note(std::string_view text) {
  err("gpu-platform: " + harmless(text) + "\n");
}
void Console::error(std::string_view text) {
  err("error: " + harmless(text) + "\n");
}
void Console::warning(std::string_view text) {
  err("warning: " + harmless(text) + "\n");
}

}  // namespace gpu_platform::client
