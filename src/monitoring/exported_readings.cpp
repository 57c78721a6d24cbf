#include "monitoring/exported_readings.h"

#include <cstdint>
#include <utility>
#include <variant>

#include "hardware/readings.h"
#include "model/node_lookup.h"

namespace gpu_platform::monitoring {

ExportedReadings::ExportedReadings(execution::ObservationSink& sink, SnapshotNow snapshot,
                                   host::UserDirectory& users, telemetry::FrameListener& frames,
                                   ReadingTap::Clock wall)
    : snapshot_(std::move(snapshot)),
      wall_(std::move(wall)),
      monitor_(sink, snapshot_, {}, users),
      tap_(
          *this, snapshot_,
          [this](const std::string& uuid, std::uint32_t pid) {
            return monitor_.owner_of(uuid, pid);
          },
          frames, wall_) {}

std::size_t ExportedReadings::take(const std::string& node,
                                   std::map<std::string, model::GpuMetrics> gpus) {
  const auto snapshot = snapshot_();
  const model::Node* const known =
      model::node_named(snapshot->nodes, *snapshot->nodes_by_name, node);
  if (known == nullptr) return 0;
  hardware::Inventory inventory;
  node::ProbeReadings readings;
  for (auto& [uuid, metrics] : gpus) {
    if (!model::index_of_gpu(*known, uuid)) continue;
    const auto index = static_cast<std::uint32_t>(readings.gpus.size());
    hardware::GpuDescription description;
    description.index = index;
    description.uuid = uuid;
    inventory.gpus.push_back(std::move(description));
    hardware::GpuReading reading;
    static_cast<model::GpuMetrics&>(reading) = std::move(metrics);
    reading.index = index;
    readings.gpus.push_back(std::move(reading));
  }
  const std::size_t taken = readings.gpus.size();
  if (taken == 0) return 0;
  tap_.on_report({.node_name = node, .content = std::move(inventory)});
  tap_.on_report({.node_name = node, .content = std::move(readings)});
  return taken;
}

// What the tap has passed on.
void ExportedReadings::on_report(node::ProbeReport report) {
  if (const auto* inventory = std::get_if<hardware::Inventory>(&report.content)) {
    uuids_.clear();
    for (const hardware::GpuDescription& gpu : inventory->gpus) uuids_.push_back(*gpu.uuid);
  }
  if (const auto* readings = std::get_if<node::ProbeReadings>(&report.content)) {
    monitor_.take_readings(report.node_name, uuids_, *readings);
  }
}

std::shared_ptr<const model::GpuReading> ExportedReadings::latest(std::string_view uuid) const {
  auto reading = monitor_.latest(uuid);
  if (reading == nullptr || wall_() - reading->at > kCurrentFor) return nullptr;
  return reading;
}

}  // namespace gpu_platform::monitoring
