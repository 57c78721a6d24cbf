#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "hardware/kernel_log.h"
#include "node/probe/gpu_watchers.h"
#include "os/descriptor.h"

// Follows the kernel's log, where the probe may read it: it tells of XIDs that NVML does not
// report, with their details, also while the driver hangs.

namespace gpu_platform::node {

// Reads what is new in a log in the form of /dev/kmsg. Lines that tell of no GPU are skipped, those
// that tell the same are one with a count, and of too many the oldest are dropped. Thread: one
// owner.
class KernelLogReader {
 public:
  static constexpr std::size_t kMaxKept = 256;

  // Begins at the log's end. An error says what the kernel says.
  static base::Result<KernelLogReader> open(const std::string& path);

  enum class Progress { kMore, kUpToDate, kEnded };
  // Takes what is there, without waiting, and no more than some thousand records.
  Progress read();
  // Waits until there is something to read, or for that long; forever if it is negative.
  void wait(int limit_ms) const;

  bool has_news() const { return !kept_.empty() || lost_ > 0; }
  // The oldest ones, this many at most. They stay until remove().
  std::vector<hardware::KernelLine> oldest(std::size_t most) const;
  // Records that were overwritten before they were read, and lines that were dropped.
  std::uint64_t lost() const { return lost_; }
  // Forgets the oldest ones and what was lost, which were told.
  void remove(std::size_t count);

 private:
  explicit KernelLogReader(os::Descriptor log) : log_(std::move(log)) {}
  void take(std::string_view records);
  void take_record(const hardware::KernelRecord& record);

  os::Descriptor log_;
  std::deque<hardware::KernelLine> kept_;
  std::uint64_t lost_ = 0;
  std::optional<std::uint64_t> sequence_;  // of the latest record
};

// The thread that tells the daemon of it. It makes no call into the driver. Never joined: the
// process ends by _Exit.
class KernelLogWatcher {
 public:
  // `output` outlives this. An empty path: nothing is read.
  KernelLogWatcher(std::string path, const ProbeOutput& output)
      : path_(std::move(path)), output_(output) {}
  KernelLogWatcher(const KernelLogWatcher&) = delete;
  KernelLogWatcher& operator=(const KernelLogWatcher&) = delete;

  void start();

 private:
  void run() const;
  void tell(KernelLogReader& log) const;

  const std::string path_;
  const ProbeOutput& output_;
};

}  // namespace gpu_platform::node
