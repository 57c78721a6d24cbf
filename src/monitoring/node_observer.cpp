#include "monitoring/node_observer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "discovery/describe_node.h"
#include "logging/line.h"
#include "os/clock.h"

namespace gpu_platform::monitoring {

namespace {

// A process that is just ending may show no memory.
constexpr std::uint32_t kWithheldReadings = 3;

// Returns whether the driver tells the memory of all processes; nothing if there are none.
std::optional<bool> tells_memory(const node::ProbeReadings& readings) {
  std::optional<bool> tells;
  for (const hardware::GpuReading& gpu : readings.gpus) {
    if (gpu.condition != hardware::GpuCondition::kAnswering) continue;
    if (!gpu.processes) return false;
    for (const hardware::GpuProcess& process : *gpu.processes) {
      if (!process.memory) return false;
      tells = true;
    }
  }
  return tells;
}

std::vector<model::ShareMode> share_modes_of(const NodeObserver::Site& site) {
  std::vector<model::ShareMode> modes;
  if (site.freezes_jobs) modes.push_back(model::ShareMode::kTimeSlice);
  if (site.serves_mps) modes.push_back(model::ShareMode::kMps);
  return modes;
}

logging::Source probe_of(const std::string& node) {
  return logging::of_platform("the probe of " + node);
}

}  // namespace

void NodeObserver::on_report(node::ProbeReport report) {
  if (const auto* problem = std::get_if<node::ProbeProblem>(&report.content)) {
    log_.warn(probe_of(report.node_name), "probe node={} trouble={}", report.node_name,
              logging::quoted(problem->message, logging::kLongestLine));
    memory_.lose_readings(report.node_name);
    gate_.lose_readings(report.node_name);
    return;
  }
  if (const auto* inventory = std::get_if<hardware::Inventory>(&report.content)) {
    take_inventory(report, *inventory);
  } else if (const auto* readings = std::get_if<node::ProbeReadings>(&report.content)) {
    const std::vector<std::string>& uuids = uuids_[report.node_name];
    const SeenProcesses seen = monitor_.take_readings(report.node_name, uuids, *readings);
    // Before the gate, which lets ends pass that wait for them.
    health_.take_readings(report.node_name, uuids, *readings);
    memory_.take_readings(report.node_name, uuids, *readings, seen);
    gate_.take_readings(report.node_name, uuids, *readings, seen);
    look_for_memory(report.node_name, *readings);
  } else if (auto* events = std::get_if<node::ProbeEvents>(&report.content)) {
    take_events(report.node_name, std::move(*events));
  } else if (auto* log = std::get_if<node::ProbeKernelLog>(&report.content)) {
    take_kernel_log(report.node_name, std::move(*log));
  }
}

// What the kernel's log has told before is no news. An event of no known GPU stays as it is.
void NodeObserver::take_events(const std::string& node, node::ProbeEvents events) {
  const std::int64_t now_ns = os::boot_ns();
  std::erase_if(events.events, [&](hardware::GpuEvent& event) {
    if (event.kind != hardware::GpuEventKind::kXid || event.uuid.empty()) return false;
    event.count = xids_.take(XidTeller::kDriver, event.uuid, event.value, event.count, now_ns);
    return event.count == 0;
  });
  for (const hardware::GpuEvent& event : events.events) {
    if (event.kind == hardware::GpuEventKind::kXid) log_xid(node, event);
  }
  monitor_.take_events(events);
  health_.take_events(node, events);
  gate_.take_events(node, events.until_ns);
}

void NodeObserver::log_xid(const std::string& node, const hardware::GpuEvent& event) {
  // A program can cause some of them as often as it likes: they hide no other.
  const auto source =
      logging::of_platform(fmt::format("XID {} of GPU {}", event.value, event.uuid));
  log_.error(source, "node={} gpu={} xid={} times={}", node, event.uuid, event.value, event.count);
}

void NodeObserver::take_kernel_log(const std::string& node, node::ProbeKernelLog log) {
  if (!log.problem.empty()) {
    log_.info(probe_of(node),
              "node={} the kernel's log is not read ({}): faults are known from the driver alone",
              node, log.problem);
  }
  if (log.lost > 0) {
    log_.warn(probe_of(node), "node={} kernel_log_lost={}", node, log.lost);
  }
  for (hardware::KernelLine& line : log.lines) take_kernel_line(node, std::move(line));
}

void NodeObserver::take_kernel_line(const std::string& node, hardware::KernelLine line) {
  using hardware::KernelLineKind;
  if (line.kind == KernelLineKind::kSwitchError) {
    log_.error(logging::of_platform(fmt::format("SXid {} of {}", line.code, line.place)),
               "node={} nvswitch={} sxid={} fatal={} times={}", node, line.place, line.code,
               line.is_fatal, line.count);
    return health_.take_kernel_line(node, {}, line);
  }
  const auto& places = uuids_by_place_[node];
  const auto found = places.find(line.place);
  if (found == places.end()) return;  // no GPU of the platform's
  const std::string& uuid = found->second;
  mps_faults_.take_kernel_line(uuid, line);
  if (line.kind != KernelLineKind::kPcieError) {
    const auto teller =
        line.kind == KernelLineKind::kXid ? XidTeller::kKernelLog : XidTeller::kOffTheBus;
    line.count = xids_.take(teller, uuid, line.code, line.count, os::boot_ns());
    if (line.count == 0) return;
    const hardware::GpuEvent event{
        {}, uuid, hardware::GpuEventKind::kXid, 0, line.code, line.gpu_instance, line.count};
    log_xid(node, event);
    monitor_.take_events(node::ProbeEvents{{event}, 0, 0});
  }
  health_.take_kernel_line(node, uuid, line);
}

void NodeObserver::take_inventory(const node::ProbeReport& report,
                                  const hardware::Inventory& inventory) {
  monitor_.take_inventory(inventory);
  std::vector<std::string>& uuids = uuids_[report.node_name];
  uuids.clear();
  for (const hardware::GpuDescription& gpu : inventory.gpus) {
    if (gpu.index >= uuids.size()) uuids.resize(gpu.index + 1);
    uuids[gpu.index] = gpu.uuid.value_or("");
    const std::string place = hardware::pci_place_of(gpu.pci_address.value_or(""));
    if (gpu.uuid && !place.empty()) uuids_by_place_[report.node_name][place] = *gpu.uuid;
  }
  auto described = discovery::describe_node({report.node_name, report.emulated}, inventory,
                                            known_gpus_[report.node_name]);
  if (!described) {
    log_.error(probe_of(report.node_name), "node={} cannot be used: {}", report.node_name,
               described.error().message);
    settle(report.node_name, 0);
    return;
  }
  for (const std::string& note : described->notes) {
    log_.warn(probe_of(report.node_name), "node={} note={}", described->info.name,
              logging::quoted(note, logging::kLongestLine));
  }
  log_.info(probe_of(report.node_name), "node={} gpus={} cpus={} memory_bytes={} emulated={}",
            described->info.name, described->info.gpus.size(), described->info.cpus,
            described->info.memory.value(), described->info.emulated);
  described->info.capacity = site_.capacity;
  const auto place = site_.places.find(described->info.name);
  if (place != site_.places.end()) described->info.network = place->second;
  described->info.watches_gpu_memory = true;
  described->info.share_modes = share_modes_of(site_);
  described_[report.node_name] = {described->info};
  const std::size_t gpus = described->info.gpus.size();
  sink_.observe(execution::NodeObserved{std::move(described->info)});
  health_.take_inventory(report.node_name, inventory);
  settle(report.node_name, gpus);
}

// Where drivers withhold it (some virtual GPUs), nothing is promised of it.
void NodeObserver::look_for_memory(const std::string& node, const node::ProbeReadings& readings) {
  const auto found = described_.find(node);
  const std::optional<bool> tells = tells_memory(readings);
  if (found == described_.end() || !tells) return;
  Described& described = found->second;
  described.withheld = *tells ? 0 : described.withheld + 1;
  if (described.withheld < kWithheldReadings || !described.info.watches_gpu_memory) return;
  log_.warn(probe_of(node), "node={} note=\"its driver withholds the memory of processes\"", node);
  described.info.watches_gpu_memory = false;
  sink_.observe(execution::NodeObserved{described.info});
}

void NodeObserver::settle(const std::string& node, std::size_t gpus) {
  {
    const std::lock_guard lock(mutex_);
    gpus_[node] = gpus;
  }
  changed_.notify_all();
}

bool NodeObserver::wait_for_all(const std::set<std::string>& names,
                                std::chrono::milliseconds limit) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, limit, [&] {
    return std::ranges::all_of(names, [&](const auto& name) { return gpus_.contains(name); });
  });
}

std::size_t NodeObserver::gpu_count() const {
  const std::lock_guard lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [node, gpus] : gpus_) sum += gpus;
  return sum;
}

}  // namespace gpu_platform::monitoring
