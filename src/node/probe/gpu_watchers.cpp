#include "node/probe/gpu_watchers.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "hardware/nvidia_smi/nvidia_smi_library.h"
#include "hardware/nvml/nvml_library.h"

namespace gpu_platform::node {
namespace {

using hardware::GpuEvent;
using hardware::LibraryProblem;
using hardware::ProblemKind;

// The thread comes out of the driver at least this often, so that it can let go of it.
constexpr base::Duration kEventWait = base::seconds(2);
constexpr base::Duration kAfterProblem = base::seconds(5);
constexpr base::Duration kAfterNoEvents = base::seconds(60);
constexpr std::size_t kMaxEventsAtOnce = 64;
constexpr std::size_t kMaxEventsKept = 1024;

}  // namespace

std::expected<OpenedLibrary, LibraryProblem> open_library(const GpuSource& source) {
  auto nvml = hardware::open_nvml(source.library);
  if (nvml) return OpenedLibrary{std::move(*nvml), {}};
  LibraryProblem problem = std::move(nvml).error();
  if (source.nvidia_smi.empty()) return std::unexpected(std::move(problem));
  auto tool = hardware::open_nvidia_smi(source.nvidia_smi);
  if (tool) {
    return OpenedLibrary{
        std::move(*tool),
        fmt::format("NVML cannot be used ({}), so nvidia-smi is asked instead: it is slower, and "
                    "links between GPUs and driver events are not seen",
                    problem.message)};
  }
  if (tool.error().kind != ProblemKind::kNoLibrary) {
    problem.message += fmt::format("; nvidia-smi does not help: {}", tool.error().message);
  }
  return std::unexpected(std::move(problem));
}

bool ProbeOutput::send(const std::string& bytes) const {
  while (true) {
    const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    return sent == static_cast<ssize_t>(bytes.size());
  }
}

// ---- events

base::Duration EventWatcher::turn() {
  hand_on();
  if (!source_) {
    auto opened = hardware::open_nvml_events(library_);
    if (!opened) return kAfterProblem;
    source_ = std::move(*opened);
    if (!source_) return kAfterNoEvents;
  }
  base::Duration limit = kEventWait;
  for (std::size_t i = 0; i < kMaxEventsAtOnce; ++i) {
    enter(limit);
    auto event = source_->wait(limit);
    if (!event) {
      // A GPU fell off the bus, or the driver is going: subscribe anew to what is left.
      source_.reset();
      hand_on();
      return kAfterProblem;
    }
    if (!*event) break;
    keep(std::move(**event));
    limit = base::Duration();  // what is there already
  }
  hand_on();
  return {};
}

void EventWatcher::release() {
  source_.reset();
}

void EventWatcher::keep(GpuEvent event) {
  if (kept_.size() == kMaxEventsKept) {
    kept_.pop_front();
    ++dropped_;
  }
  kept_.push_back(std::move(event));
}

void EventWatcher::hand_on() {
  while (!kept_.empty()) {
    const std::size_t count = std::min(kept_.size(), kMaxEventsAtOnce);
    const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(count);
    if (!output_.send(encode(ProbeMessage(ProbeEvents{{kept_.begin(), end}, dropped_})))) return;
    kept_.erase(kept_.begin(), end);
    dropped_ = 0;
  }
}

// ---- slow readings

void SlowReader::set_gpu_count(std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (latest_.size() != count) latest_.assign(count, std::nullopt);
}

std::optional<model::GpuSlowMetrics> SlowReader::latest(std::size_t index) const {
  const std::lock_guard lock(mutex_);
  return index < latest_.size() ? latest_[index] : std::nullopt;
}

base::Duration SlowReader::turn() {
  if (!library_) {
    auto opened = open_library(source_);
    if (!opened) return interval_;
    library_ = std::move(opened->library);
  }
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = latest_.size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    enter();
    model::GpuSlowMetrics reading = library_->read_slow(static_cast<std::uint32_t>(i));
    const std::lock_guard lock(mutex_);
    if (i < latest_.size()) latest_[i] = std::move(reading);
  }
  return interval_;
}

void SlowReader::release() {
  library_.reset();
  const std::lock_guard lock(mutex_);
  latest_.assign(latest_.size(), std::nullopt);
}

}  // namespace gpu_platform::node
