#include "monitoring/node_observer.h"

#include <algorithm>

#include "discovery/describe_node.h"
#include "logging/line.h"

namespace gpu_platform::monitoring {

namespace {

logging::Source probe_of(const std::string& node) {
  return logging::of_platform("the probe of " + node);
}

}  // namespace

void NodeObserver::on_report(node::ProbeReport report) {
  if (const auto* problem = std::get_if<node::ProbeProblem>(&report.content)) {
    log_.warn(probe_of(report.node_name), "probe node={} trouble={}", report.node_name,
              logging::quoted(problem->message, logging::kLongestLine));
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
    gate_.take_readings(report.node_name, uuids, *readings, seen);
  } else if (const auto* events = std::get_if<node::ProbeEvents>(&report.content)) {
    for (const hardware::GpuEvent& event : events->events) {
      if (event.kind != hardware::GpuEventKind::kXid) continue;
      // A program can cause some of them as often as it likes: they hide no other.
      const auto source =
          logging::of_platform(fmt::format("XID {} of GPU {}", event.value, event.uuid));
      log_.error(source, "node={} gpu={} xid={} times={}", report.node_name, event.uuid,
                 event.value, event.count);
    }
    monitor_.take_events(*events);
    health_.take_events(report.node_name, *events);
    gate_.take_events(report.node_name, events->until_ns);
  }
}

void NodeObserver::take_inventory(const node::ProbeReport& report,
                                  const hardware::Inventory& inventory) {
  monitor_.take_inventory(inventory);
  std::vector<std::string>& uuids = uuids_[report.node_name];
  uuids.clear();
  for (const hardware::GpuDescription& gpu : inventory.gpus) {
    if (gpu.index >= uuids.size()) uuids.resize(gpu.index + 1);
    uuids[gpu.index] = gpu.uuid.value_or("");
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
  const std::size_t gpus = described->info.gpus.size();
  sink_.observe(execution::NodeObserved{std::move(described->info)});
  health_.take_inventory(report.node_name, inventory);
  settle(report.node_name, gpus);
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
