#include "monitoring/reading_tap.h"

#include <algorithm>
#include <memory>
#include <variant>

#include "model/node_lookup.h"
#include "telemetry/frame_values.h"

namespace gpu_platform::monitoring {

namespace {

// Of which something is remembered: a node may be described before the published state has it.
constexpr std::size_t kMaxGoneNodes = 1'000;

// Null: no attempt has a part of it, or the published state has no such GPU.
const model::Gpu* find_shared(const model::Node* node, const std::string& uuid) {
  if (node == nullptr) return nullptr;
  const auto index = model::index_of_gpu(*node, uuid);
  if (!index) return nullptr;
  const auto is_part = [](const model::GpuHolder& holder) {
    return holder.share < base::kWholeGpu;
  };
  const model::Gpu& gpu = node->gpus[*index];
  return std::ranges::any_of(gpu.holders, is_part) ? &gpu : nullptr;
}

std::vector<telemetry::SharedGpu::Holder> holders_of(const model::Gpu& gpu) {
  std::vector<telemetry::SharedGpu::Holder> holders;
  for (const model::GpuHolder& holder : gpu.holders) {
    holders.push_back({holder.attempt, holder.share, holder.mode});
  }
  return holders;
}

}  // namespace

void ReadingTap::on_report(node::ProbeReport report) {
  if (const auto* inventory = std::get_if<hardware::Inventory>(&report.content)) {
    take_inventory(report.node_name, *inventory);
  }
  const auto* const readings = std::get_if<node::ProbeReadings>(&report.content);
  if (readings == nullptr) return next_.on_report(std::move(report));
  const std::string node = report.node_name;
  Taken taken = take_readings(node, *readings);
  next_.on_report(std::move(report));
  // Only now it is known whose the processes are.
  for (Shared& shared : taken.shared) {
    std::ranges::move(uses_of(node, std::move(shared)), std::back_inserter(taken.frames));
  }
  if (taken.frames.empty()) return;
  const base::Instant now = wall_();
  for (telemetry::Frame& frame : taken.frames) frame.at = now;
  frames_.take(std::make_shared<const std::vector<telemetry::Frame>>(std::move(taken.frames)));
}

void ReadingTap::take_inventory(const std::string& node, const hardware::Inventory& inventory) {
  std::vector<SeenGpu>& known = gpus_[node];
  std::vector<SeenGpu> now;
  for (const hardware::GpuDescription& gpu : inventory.gpus) {
    if (gpu.index >= now.size()) now.resize(gpu.index + 1);
    SeenGpu& seen = now[gpu.index];
    seen.uuid = gpu.uuid.value_or("");
    const auto before = std::ranges::find(known, seen.uuid, &SeenGpu::uuid);
    if (before != known.end()) seen.idle_power = before->idle_power;
  }
  known = std::move(now);
}

// A cluster that grows and shrinks gives its nodes new names.
void ReadingTap::forget_gone_nodes(const controller::Snapshot& snapshot) {
  if (gpus_.size() <= snapshot.nodes.size() + kMaxGoneNodes) return;
  std::erase_if(gpus_, [&](const auto& node) {
    return model::node_named(snapshot.nodes, *snapshot.nodes_by_name, node.first) == nullptr;
  });
}

ReadingTap::Taken ReadingTap::take_readings(const std::string& node,
                                            const node::ProbeReadings& readings) {
  Taken taken;
  const auto snapshot = snapshot_();
  forget_gone_nodes(*snapshot);
  const model::Node* const known =
      model::node_named(snapshot->nodes, *snapshot->nodes_by_name, node);
  std::vector<SeenGpu>& gpus = gpus_[node];
  taken.frames.reserve(readings.gpus.size() + 1);
  for (const hardware::GpuReading& reading : readings.gpus) {
    const bool answers = reading.condition == hardware::GpuCondition::kAnswering;
    if (!answers || reading.index >= gpus.size() || gpus[reading.index].uuid.empty()) continue;
    SeenGpu& seen = gpus[reading.index];
    taken.frames.push_back({.subject = {.of = telemetry::Of::kGpu, .node = node, .uuid = seen.uuid},
                            .values = telemetry::values_of(reading),
                            .is_energy_new = readings.is_energy_new});
    if (reading.utilization_percent == 0U && reading.power) {
      seen.idle_power = std::min(seen.idle_power.value_or(*reading.power), *reading.power);
    }
    const model::Gpu* const shared = find_shared(known, seen.uuid);
    if (shared == nullptr) continue;
    taken.shared.push_back(
        {.uuid = seen.uuid,
         .gpu = {.holders = holders_of(*shared),
                 .utilization_percent = reading.utilization_percent,
                 .power = reading.power,
                 .idle_power = seen.idle_power},
         .processes = reading.processes.value_or(std::vector<hardware::GpuProcess>()),
         .tells_processes = reading.processes.has_value()});
  }
  if (readings.host) {
    taken.frames.push_back({.subject = {.of = telemetry::Of::kHost, .node = node},
                            .values = telemetry::values_of(*readings.host)});
  }
  return taken;
}

std::vector<telemetry::Frame> ReadingTap::uses_of(const std::string& node, Shared shared) {
  if (shared.tells_processes) shared.gpu.processes.emplace();
  for (const hardware::GpuProcess& process : shared.processes) {
    shared.gpu.processes->push_back(
        {owner_of_(shared.uuid, process.pid), process.memory, process.sm_percent});
  }
  std::vector<telemetry::Frame> frames;
  for (const telemetry::Use& use : telemetry::attribute(shared.gpu)) {
    std::vector<telemetry::Value> values = telemetry::values_of(use);
    if (values.empty()) continue;
    frames.push_back({.subject = {.of = telemetry::Of::kUse,
                                  .node = node,
                                  .uuid = shared.uuid,
                                  .attempt = use.attempt},
                      .values = std::move(values)});
  }
  return frames;
}

}  // namespace gpu_platform::monitoring
