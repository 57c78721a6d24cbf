#include "shims/steps/task_streams.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <fmt/format.h>
#include <pty.h>
#include <termios.h>
#include <unistd.h>

namespace gpu_platform::shims {

namespace {

constexpr std::size_t kMaxInput = 64 * 1024;
constexpr std::size_t kLongestLine = 64 * 1024;
constexpr int kReadsAtOnce =
    16;  // a task that never stops writing does not keep the others waiting

base::Error stream_error(const char* what) {
  return base::system_error(what, errno);
}

void close_once(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

void write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) {
      pollfd ready = {fd, POLLOUT, 0};
      ::poll(&ready, 1, -1);
      continue;
    }
    if (written < 0) return;  // as for a program whose output is closed
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

void make_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

TaskStreams::~TaskStreams() {
  for (Source& source : sources_) {
    close_once(source.fd);
    close_once(source.end_of_task);
  }
  for (Reader& reader : readers_) {
    close_once(reader.fd);
    close_once(reader.end_of_task);
  }
}

base::Status TaskStreams::open(std::uint32_t task, Outlet outlet) {
  if (rules_.input == StreamRules::Input::kCopied &&
      std::ranges::find(rules_.readers, task) != rules_.readers.end()) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(stream_error("pipe"));
    make_nonblocking(ends[1]);
    readers_.push_back({ends[1], ends[0], task});
  }
  if (!carries_output()) return {};
  TRY(open_source(task, outlet.output, false));
  return open_source(task, outlet.error, true);
}

base::Status TaskStreams::open_source(std::uint32_t task, int target, bool is_error) {
  Source source;
  source.task = task;
  source.target = target;
  source.is_error = is_error;
  if (rules_.is_unbuffered && !is_error) {
    if (::openpty(&source.fd, &source.end_of_task, nullptr, nullptr, nullptr) != 0)
      return std::unexpected(stream_error("openpty"));
    termios mode = {};
    ::tcgetattr(source.end_of_task, &mode);
    ::cfmakeraw(&mode);
    ::tcsetattr(source.end_of_task, TCSANOW, &mode);
    for (const int fd : {source.fd, source.end_of_task}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  } else {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return std::unexpected(stream_error("pipe"));
    source.fd = ends[0];
    source.end_of_task = ends[1];
  }
  make_nonblocking(source.fd);
  sources_.push_back(std::move(source));
  return {};
}

base::Status TaskStreams::take(std::uint32_t task) {
  for (const Reader& reader : readers_) {
    if (reader.task == task && ::dup2(reader.end_of_task, 0) < 0)
      return std::unexpected(stream_error("dup2"));
  }
  for (const Source& source : sources_) {
    if (source.task == task && ::dup2(source.end_of_task, source.is_error ? 2 : 1) < 0)
      return std::unexpected(stream_error("dup2"));
  }
  return {};
}

void TaskStreams::forked(std::uint32_t task) {
  for (Reader& reader : readers_)
    if (reader.task == task) close_once(reader.end_of_task);
  for (Source& source : sources_)
    if (source.task == task) close_once(source.end_of_task);
}

bool TaskStreams::is_input_wanted() const {
  return !is_input_over_ && input_.size() < kMaxInput &&
         std::ranges::any_of(readers_, [](const Reader& reader) { return reader.fd >= 0; });
}

void TaskStreams::add_to(std::vector<pollfd>& waiting) const {
  if (is_input_wanted()) waiting.push_back({0, POLLIN, 0});
  for (const Reader& reader : readers_) {
    if (reader.fd < 0) continue;
    const short events = reader.at < input_.size() ? POLLOUT : 0;  // its end is always told
    waiting.push_back({reader.fd, events, 0});
  }
  for (const Source& source : sources_)
    if (source.fd >= 0) waiting.push_back({source.fd, POLLIN, 0});
}

void TaskStreams::handle(const std::vector<pollfd>& waiting) {
  const auto is_ready = [&](int fd) {
    return fd >= 0 && std::ranges::any_of(waiting, [&](const pollfd& one) {
             return one.fd == fd && one.revents != 0;
           });
  };
  if (is_input_wanted() && is_ready(0)) read_input();
  for (Reader& reader : readers_)
    if (reader.fd >= 0) write_input(reader);
  forget_written();
  for (Source& source : sources_)
    if (is_ready(source.fd)) read_source(source);
}

void TaskStreams::read_input() {
  std::array<char, kMaxInput> bytes;
  const ssize_t got = ::read(0, bytes.data(), bytes.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    is_input_over_ = true;
  } else {
    input_.append(bytes.data(), static_cast<std::size_t>(got));
  }
}

// SIGPIPE is ignored: a task that reads no more is no mistake.
void TaskStreams::write_input(Reader& reader) {
  while (reader.at < input_.size()) {
    const ssize_t written =
        ::write(reader.fd, input_.data() + reader.at, input_.size() - reader.at);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EAGAIN) return;
    if (written < 0) return close_once(reader.fd);
    reader.at += static_cast<std::size_t>(written);
  }
  if (is_input_over_) return close_once(reader.fd);
  pollfd end = {reader.fd, 0, 0};
  if (::poll(&end, 1, 0) > 0 && (end.revents & POLLERR) != 0) close_once(reader.fd);
}

void TaskStreams::forget_written() {
  std::size_t all = input_.size();
  for (const Reader& reader : readers_)
    if (reader.fd >= 0) all = std::min(all, reader.at);
  input_.erase(0, all);
  for (Reader& reader : readers_) reader.at -= std::min(reader.at, all);
}

void TaskStreams::read_source(Source& source) {
  std::array<char, kLongestLine> bytes;
  for (int reads = 0; reads < kReadsAtOnce; ++reads) {
    const ssize_t got = ::read(source.fd, bytes.data(), bytes.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {  // a terminal's end is an error
      end_line(source);
      return close_once(source.fd);
    }
    pass_on(source, {bytes.data(), static_cast<std::size_t>(got)});
  }
}

void TaskStreams::pass_on(Source& source, std::string_view bytes) {
  if (!rules_.is_labelled) return write_all(source.target, bytes);
  source.line += bytes;
  const std::size_t width = fmt::format("{}", rules_.tasks - 1).size();
  const std::string label = fmt::format("{:>{}}: ", source.task, width);
  std::string passed;
  while (!source.line.empty()) {
    const std::size_t end = source.line.find('\n');
    const bool is_whole = end != std::string::npos;
    if (!is_whole && !rules_.is_unbuffered && source.line.size() < kLongestLine) break;
    const std::size_t size = is_whole ? end + 1 : source.line.size();
    passed += (source.is_in_line ? "" : label) + source.line.substr(0, size);
    source.line.erase(0, size);
    source.is_in_line = !is_whole;
  }
  write_all(source.target, passed);
}

void TaskStreams::end_line(Source& source) {
  if (!rules_.is_labelled || (source.line.empty() && !source.is_in_line)) return;
  pass_on(source, "\n");
}

void TaskStreams::finish() {
  for (Source& source : sources_) {
    if (source.fd < 0) continue;
    read_source(source);
    if (source.fd >= 0) end_line(source);
  }
}

}  // namespace gpu_platform::shims
