#include "node/probe/kernel_log_watcher.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>
#include <utility>

#include "node/probe/probe_protocol.h"

namespace gpu_platform::node {
namespace {

constexpr std::size_t kLongestRead = 16 * 1024;  // the kernel's records have 8 KiB at most
constexpr int kMaxReads = 4096;                  // in one turn
constexpr std::size_t kMaxLinesAtOnce = 64;      // in one message
constexpr int kRetryMs = 250;                    // what the daemon did not take
// After each turn, so that a storm is joined and costs little.
constexpr auto kRest = std::chrono::milliseconds(10);
constexpr auto kAfterEnd = std::chrono::seconds(1);

}  // namespace

base::Result<KernelLogReader> KernelLogReader::open(const std::string& path) {
  os::Descriptor log(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!log.is_open()) return std::unexpected(base::system_error(path, errno));
  // What is older was told by an earlier probe, or is of no use any more. A pipe has no end.
  (void)::lseek(log.get(), 0, SEEK_END);
  return KernelLogReader(std::move(log));
}

KernelLogReader::Progress KernelLogReader::read() {
  char buffer[kLongestRead];
  for (int i = 0; i < kMaxReads; ++i) {
    const ssize_t size = ::read(log_.get(), buffer, sizeof buffer);
    if (size > 0) {
      take({buffer, static_cast<std::size_t>(size)});
    } else if (size < 0 && errno == EAGAIN) {
      return Progress::kUpToDate;
    } else if (size == 0 || (errno != EINTR && errno != EPIPE)) {
      // EPIPE: the kernel has overwritten what was next, and goes on with the oldest that it has.
      return Progress::kEnded;
    }
  }
  return Progress::kMore;
}

void KernelLogReader::wait(int limit_ms) const {
  pollfd log{log_.get(), POLLIN, 0};
  (void)::poll(&log, 1, limit_ms);
}

// A record has one line, and further ones that begin with a blank.
void KernelLogReader::take(std::string_view records) {
  while (!records.empty()) {
    const std::size_t end = std::min(records.find('\n'), records.size());
    if (const auto record = hardware::read_kernel_record(records.substr(0, end))) {
      take_record(*record);
    }
    records.remove_prefix(std::min(end + 1, records.size()));
  }
}

void KernelLogReader::take_record(const hardware::KernelRecord& record) {
  if (sequence_ && record.sequence > *sequence_ + 1) lost_ += record.sequence - *sequence_ - 1;
  sequence_ = record.sequence;
  if (!record.is_of_kernel) return;
  auto line = hardware::read_kernel_line(record.text);
  if (!line) return;
  if (!kept_.empty() && hardware::join(kept_.back(), *line)) return;
  if (kept_.size() == kMaxKept) {
    lost_ += kept_.front().count;
    kept_.pop_front();
  }
  kept_.push_back(*std::move(line));
}

std::vector<hardware::KernelLine> KernelLogReader::oldest(std::size_t most) const {
  const std::size_t count = std::min(kept_.size(), most);
  return {kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(count)};
}

void KernelLogReader::remove(std::size_t count) {
  const std::size_t there = std::min(kept_.size(), count);
  kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(there));
  lost_ = 0;
}

void KernelLogWatcher::start() {
  if (!path_.empty()) std::thread([this] { run(); }).detach();
}

void KernelLogWatcher::run() const {
  pthread_setname_np(pthread_self(), "kernel-log");
  auto log = KernelLogReader::open(path_);
  if (!log) {
    output_.send(encode(ProbeMessage(ProbeKernelLog{{}, 0, log.error().message})));
    return;
  }
  while (true) {
    log->wait(log->has_news() ? kRetryMs : -1);
    const auto progress = log->read();
    tell(*log);
    if (progress == KernelLogReader::Progress::kEnded) {
      std::this_thread::sleep_for(kAfterEnd);
    } else {
      std::this_thread::sleep_for(kRest);
    }
  }
}

void KernelLogWatcher::tell(KernelLogReader& log) const {
  while (log.has_news()) {
    ProbeKernelLog message{log.oldest(kMaxLinesAtOnce), log.lost(), {}};
    const std::size_t count = message.lines.size();
    if (!output_.send(encode(ProbeMessage(std::move(message))))) return;
    log.remove(count);
  }
}

}  // namespace gpu_platform::node
