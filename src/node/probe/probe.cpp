#include "node/probe/probe.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "hardware/host_file/host_file.h"
#include "hardware/hwloc/hwloc_host.h"
#include "hardware/procfs/procfs_host.h"
#include "os/clock.h"

namespace gpu_platform::node {
namespace {

using hardware::GpuCondition;

// The fixed properties are read again this often, in case a GPU was added; a GPU that goes shows in
// its next reading. Without a whole driver it is asked more often, in case one was loaded.
constexpr base::Duration kInventoryInterval = base::minutes(5);
constexpr base::Duration kDriverInterval = base::seconds(60);

// Some 35 calls for each GPU, so rare beside the dozen of each poll.
constexpr base::Duration kSlowReadInterval = base::seconds(30);

// A millisecond of the driver for each GPU that has several processes.
constexpr base::Duration kLoadInterval = base::seconds(5);

// On a host with hundreds of CPUs the kernel takes a millisecond to sum up its counters.
constexpr base::Duration kHostInterval = base::seconds(5);

// A driver call that takes longer than this and can be interrupted ends the process: the daemon
// gave up on it long ago, or is gone itself.
constexpr unsigned kGiveUpSeconds = 180;

// From this compute capability on (Hopper) NVML counts activity by itself, without the part of the
// GPU that profilers need.
constexpr std::uint32_t kCountedByNvml = 9;

std::vector<hardware::DcgmGpu> wanted_of_dcgm(const std::vector<hardware::GpuDescription>& gpus) {
  std::vector<hardware::DcgmGpu> wanted;
  for (const hardware::GpuDescription& gpu : gpus) {
    if (!gpu.uuid) continue;
    const bool is_counted =
        !gpu.compute_capability || gpu.compute_capability->major >= kCountedByNvml;
    wanted.push_back({*gpu.uuid, !is_counted});
  }
  return wanted;
}

}  // namespace

Probe::Probe(ProbeOptions options)
    : options_(std::move(options)),
      output_(options_.fd),
      events_(options_.source.library, output_),
      slow_(options_.source, {.readings = std::max(kSlowReadInterval, options_.interval),
                              .loads = std::max(kLoadInterval, options_.interval)}),
      dcgm_(options_.dcgm, options_.interval),
      kernel_log_(options_.kernel_log, output_),
      host_metrics_(options_.data_folder) {
  auto running = hardware::open_procfs_host();
  if (options_.host_description.empty()) {
    host_ = hardware::open_hwloc_host(std::move(running));
    return;
  }
  const auto kernel = running->describe();
  host_ = hardware::open_host_file(options_.host_description, kernel ? kernel->boot_id : "");
}

void Probe::run() {
  output_.send(encode(ProbeMessage(ProbeHello{})));
  kernel_log_.start();
  std::int64_t next_ns = os::boot_ns();
  ReadNow asked;
  while (true) {
    alarm(kGiveUpSeconds);
    const bool is_of_all = asked.uuids.empty();
    // Only with readings of all, which tell whether another look is due.
    const bool is_due = is_inventory_due_ || os::boot_ns() >= next_inventory_ns_;
    if (is_due && is_of_all) report_inventory();
    report_readings(asked);
    // Readings of all keep their rhythm; after a pause of the machine missed ones are not made up
    // for. Those that were asked for come in addition: of some GPUs, they move nothing.
    if (is_of_all && os::boot_ns() >= next_ns) {
      next_ns = std::max(next_ns + options_.interval.value(), os::boot_ns());
    }
    Woken woken = wait(next_ns);
    if (woken.by == Wake::kHangUp) std::_Exit(0);
    asked = std::move(woken.asked);
  }
}

void Probe::ensure_library() {
  // The fall-back is kept no longer than it has to be.
  if (gpus_.library && gpus_.fallback.empty()) return;
  drop_library();
  problem_.reset();
  auto opened = open_library(options_.source);
  if (opened) {
    gpus_ = std::move(*opened);
  } else {
    problem_ = std::move(opened).error();
  }
}

// A driver that was loaded anew needs a fresh start, for which every thread has to let go of it.
void Probe::drop_library() {
  gpus_ = {};
  events_.suspend();
  slow_.suspend();
  dcgm_.suspend();
}

hardware::Inventory Probe::take_inventory(hardware::HostDescription host) {
  hardware::Inventory inventory;
  inventory.host = std::move(host);
  ensure_library();
  if (gpus_.library) {
    inventory.driver = gpus_.library->describe_driver();
    auto gpus = gpus_.library->list_gpus();
    if (gpus) {
      inventory.gpus = std::move(*gpus);
      inventory.links = gpus_.library->links();
      inventory.fallback = gpus_.fallback;
    } else {
      problem_ = std::move(gpus).error();
      drop_library();
    }
  }
  for (hardware::GpuDescription& gpu : inventory.gpus) {
    if (!gpu.pci_address) continue;
    const auto node = host_->numa_node_of(*gpu.pci_address);
    if (node) gpu.numa_node = node;
  }
  inventory.problem = problem_;
  return inventory;
}

void Probe::report_inventory() {
  is_inventory_due_ = false;
  auto host = host_->describe();
  if (!host) {
    output_.send(encode(ProbeMessage(ProbeError{host.error().message})));
    is_inventory_due_ = true;
    return;
  }
  hardware::Inventory inventory = take_inventory(std::move(*host));
  const bool is_whole = gpus_.library && gpus_.fallback.empty();
  next_inventory_ns_ = os::boot_ns() + (is_whole ? kInventoryInterval : kDriverInterval).value();
  keep_uuids(inventory.gpus);
  dcgm_.set_gpus(wanted_of_dcgm(inventory.gpus));
  if (gpus_.library) resume_watchers();
  std::string bytes = encode(ProbeMessage(std::move(inventory)));
  if (bytes == sent_inventory_) return;
  if (output_.send(bytes)) {
    sent_inventory_ = std::move(bytes);
  } else {
    is_inventory_due_ = true;
  }
}

void Probe::keep_uuids(const std::vector<hardware::GpuDescription>& gpus) {
  uuids_.clear();
  for (const hardware::GpuDescription& gpu : gpus) {
    if (gpu.index >= uuids_.size()) uuids_.resize(gpu.index + 1);
    uuids_[gpu.index] = gpu.uuid.value_or("");
  }
}

void Probe::resume_watchers() {
  slow_.set_gpu_count(uuids_.size());
  slow_.resume();
  if (gpus_.fallback.empty()) events_.resume();
  if (!options_.dcgm.libraries.empty()) dcgm_.resume();
}

// Returns the GPUs of which readings are wanted. Nothing means all, also if a GPU is asked for that
// the driver did not list.
std::optional<std::vector<std::uint32_t>> Probe::indexes_of(const ReadNow& asked) const {
  if (asked.uuids.empty()) return std::nullopt;
  std::vector<std::uint32_t> indexes;
  for (const std::string& uuid : asked.uuids) {
    const auto found = std::ranges::find(uuids_, uuid);
    if (uuid.empty() || found == uuids_.end()) return std::nullopt;
    indexes.push_back(static_cast<std::uint32_t>(found - uuids_.begin()));
  }
  return indexes;
}

void Probe::report_readings(const ReadNow& asked) {
  ProbeReadings readings;
  readings.began_ns = os::boot_ns();
  auto indexes = indexes_of(asked);
  readings.is_partial = indexes.has_value();
  readings.is_energy_new = asked.with_energy;
  if (!indexes) {
    indexes.emplace(uuids_.size());
    std::iota(indexes->begin(), indexes->end(), 0U);
  }
  for (const std::uint32_t i : *indexes) {
    if (!gpus_.library) break;
    hardware::GpuReading reading = gpus_.library->read(i);
    if (reading.condition == GpuCondition::kAnswering) {
      if (asked.with_energy) slow_.take_energy(i, gpus_.library->read_energy(i));
      slow_.complete(reading);
      dcgm_.complete(uuids_[i], reading);
    } else {
      // A GPU that went away may be one of many changes: look at all at the next interval.
      is_inventory_due_ = true;
    }
    readings.gpus.push_back(std::move(reading));
  }
  const auto is_silent = [](const hardware::GpuReading& gpu) {
    return gpu.condition == GpuCondition::kNotAnswering;
  };
  if (!readings.is_partial && !readings.gpus.empty() &&
      std::ranges::all_of(readings.gpus, is_silent))
    drop_library();
  readings.events = events_.silence();
  readings.slow_reads = slow_.silence();
  if (!readings.is_partial && readings.began_ns >= next_host_metrics_ns_) {
    readings.host = host_metrics_.read();
    // The readings of an interval of 5 s keep to it only nearly.
    next_host_metrics_ns_ =
        readings.began_ns + kHostInterval.value() - options_.interval.value() / 2;
  }
  output_.send(encode(ProbeMessage(std::move(readings))));
}

Probe::Woken Probe::wait(std::int64_t until_ns) {
  while (true) {
    const std::int64_t left_ns = until_ns - os::boot_ns();
    if (left_ns <= 0) return {};
    pollfd socket{options_.fd, POLLIN, 0};
    const int ready = ::poll(&socket, 1, static_cast<int>((left_ns + 999'999) / 1'000'000));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return {Wake::kHangUp, {}};
    if (ready == 0) return {};
    char buffer[kMaxProbeRequest];
    const ssize_t size = ::recv(options_.fd, buffer, sizeof buffer, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (size <= 0) return {Wake::kHangUp, {}};
    auto request = decode_probe_request({buffer, static_cast<std::size_t>(size)});
    // A daemon that speaks another protocol starts another probe.
    if (!request) return {Wake::kHangUp, {}};
    events_.report_progress();
    return {Wake::kReadNow, *std::move(request)};
  }
}

}  // namespace gpu_platform::node
