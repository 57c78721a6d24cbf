#include "node/probe/gpu_watchers.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "hardware/nvidia_smi/nvidia_smi_library.h"
#include "hardware/nvml/nvml_library.h"
#include "os/clock.h"

namespace gpu_platform::node {
namespace {

using hardware::LibraryProblem;
using hardware::ProblemKind;
using hardware::ProcessLoad;

// The thread comes out of the driver at least this often, so that it can let go of it, and can say
// soon that there was nothing.
constexpr base::Duration kEventWait = base::milliseconds(250);
// While the daemon waits for word of that.
constexpr base::Duration kShortEventWait = base::milliseconds(50);
constexpr base::Duration kReportsFor = base::milliseconds(500);
constexpr base::Duration kAfterProblem = base::seconds(5);
constexpr base::Duration kAfterNoEvents = base::seconds(60);
constexpr std::size_t kMaxEventsAtOnce = 64;  // in one message
constexpr std::size_t kMaxEventsInTurn = 1024;

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

void EventWatcher::report_progress() {
  if (is_listening_) {
    reports_until_ns_ = os::boot_ns() + kReportsFor.value();
  } else {
    output_.send(encode(ProbeMessage(ProbeEvents{{}, 0, kNoEventsEver})));
  }
}

base::Duration EventWatcher::longest_wait() const {
  return reports_until_ns_ > os::boot_ns() ? kShortEventWait : kEventWait;
}

base::Duration EventWatcher::turn() {
  hand_on();
  if (!source_) {
    auto opened = hardware::open_nvml_events(library_);
    if (!opened) return kAfterProblem;
    source_ = std::move(*opened);
    if (!source_) return kAfterNoEvents;
    is_listening_ = true;
  }
  base::Duration limit = longest_wait();
  for (std::size_t i = 0; i < kMaxEventsInTurn; ++i) {
    enter(limit);
    auto event = source_->wait(limit);
    if (!event) {
      // A GPU fell off the bus, or the driver is going: subscribe anew to what is left.
      release();
      hand_on();
      return kAfterProblem;
    }
    if (!*event) {
      // Nothing is there: whatever was told before now has been seen.
      const std::int64_t now_ns = os::boot_ns();
      const bool is_asked = reports_until_ns_ > now_ns;
      if (hand_on() && is_asked) output_.send(encode(ProbeMessage(ProbeEvents{{}, 0, now_ns})));
      return {};
    }
    kept_.add(std::move(**event));
    limit = base::Duration();  // what is there already
  }
  hand_on();
  return {};
}

void EventWatcher::release() {
  is_listening_ = false;
  source_.reset();
}

// Returns whether nothing is left.
bool EventWatcher::hand_on() {
  while (!kept_.empty()) {
    ProbeEvents message{kept_.oldest(kMaxEventsAtOnce), kept_.dropped(), 0};
    const std::size_t count = message.events.size();
    if (!output_.send(encode(ProbeMessage(std::move(message))))) return false;
    kept_.remove(count);
  }
  return true;
}

// ---- slow readings

void SlowReader::set_gpu_count(std::size_t count) {
  const std::lock_guard lock(mutex_);
  if (gpus_.size() != count) gpus_.assign(count, {});
}

void SlowReader::complete(hardware::GpuReading& reading) {
  const std::lock_guard lock(mutex_);
  if (reading.index >= gpus_.size()) return;
  Gpu& gpu = gpus_[reading.index];
  reading.slow = gpu.slow;
  gpu.has_several = reading.processes && reading.processes->size() > 1;
  if (!gpu.has_several) {
    gpu.loads.clear();
    return;
  }
  for (hardware::GpuProcess& process : *reading.processes) {
    const auto load = std::ranges::lower_bound(gpu.loads, process.pid, {}, &ProcessLoad::pid);
    const bool is_known = load != gpu.loads.end() && load->pid == process.pid;
    if (is_known) process.sm_percent = load->sm_percent;
  }
}

void SlowReader::take_energy(std::uint32_t index, std::optional<std::uint64_t> millijoules) {
  const std::lock_guard lock(mutex_);
  if (index >= gpus_.size()) return;
  Gpu& gpu = gpus_[index];
  if (!gpu.slow) gpu.slow.emplace();
  gpu.slow->energy_mj = millijoules;
  gpu.energy_ns = os::boot_ns();
}

base::Duration SlowReader::turn() {
  if (!library_) {
    auto opened = open_library(source_);
    if (!opened) return intervals_.readings;
    library_ = std::move(opened->library);
  }
  std::size_t count = 0;
  {
    const std::lock_guard lock(mutex_);
    count = gpus_.size();
  }
  const std::int64_t now_ns = os::boot_ns();
  if (now_ns >= next_readings_ns_) {
    read_all(count);
    next_readings_ns_ = now_ns + intervals_.readings.value();
  }
  if (now_ns >= next_loads_ns_) {
    read_loads(count);
    next_loads_ns_ = now_ns + intervals_.loads.value();
  }
  return base::Duration(std::min(next_readings_ns_, next_loads_ns_) - os::boot_ns());
}

void SlowReader::read_all(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    enter();
    const std::int64_t began_ns = os::boot_ns();
    model::GpuSlowMetrics reading = library_->read_slow(static_cast<std::uint32_t>(i));
    const std::lock_guard lock(mutex_);
    if (i >= gpus_.size()) continue;
    Gpu& gpu = gpus_[i];
    // A counter that seemed to go back would seem to be restarted.
    if (gpu.slow && gpu.energy_ns >= began_ns) reading.energy_mj = gpu.slow->energy_mj;
    gpu.slow = std::move(reading);
  }
}

void SlowReader::read_loads(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    {
      const std::lock_guard lock(mutex_);
      if (i >= gpus_.size() || !gpus_[i].has_several) continue;
    }
    enter();
    std::vector<ProcessLoad> loads = library_->read_loads(static_cast<std::uint32_t>(i));
    const std::lock_guard lock(mutex_);
    if (i < gpus_.size()) gpus_[i].loads = std::move(loads);
  }
}

void SlowReader::release() {
  library_.reset();
  next_readings_ns_ = next_loads_ns_ = 0;
  const std::lock_guard lock(mutex_);
  gpus_.assign(gpus_.size(), {});
}

}  // namespace gpu_platform::node
