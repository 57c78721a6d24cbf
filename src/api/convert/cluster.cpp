#include "api/convert/cluster.h"

#include <algorithm>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/gpu_health.h"
#include "api/convert/gpu_metrics.h"

namespace gpu_platform::api {

namespace {

// A node that is not up takes no new work, also if its GPUs are free.
bool can_take_work(const model::Node& node, const model::Gpu& gpu) {
  return node.state == model::NodeState::kUp && model::is_free(gpu);
}

base::GpuShare held_share(const model::Gpu& gpu) {
  base::GpuShare sum;
  for (const model::GpuHolder& holder : gpu.holders) sum += holder.share;
  return sum;
}

bool is_shared(const model::Gpu& gpu) {
  return !gpu.holders.empty() && gpu.holders.front().mode != model::ShareMode::kNone;
}

// What new jobs may get of it.
base::GpuShare free_share(const model::Node& node, const model::Gpu& gpu) {
  if (can_take_work(node, gpu)) return base::kWholeGpu;
  const bool takes_parts =
      node.state == model::NodeState::kUp && model::is_in_service(gpu) && is_shared(gpu);
  if (!takes_parts) return {};
  return std::max(base::kWholeGpu - held_share(gpu), base::GpuShare());
}

void put_reading(const model::GpuReading& reading, v1::Gpu& out) {
  put_metrics(reading, out);
  for (const model::GpuProcess& process : reading.processes) {
    if (process.is_unmanaged) to_proto(process, *out.add_unmanaged_processes());
  }
}

// The mean over the GPUs that have a reading.
void put_measured_use(v1::Status& out) {
  double sum = 0;
  int read = 0;
  for (const v1::Gpu& gpu : out.gpus()) {
    if (!gpu.has_utilization_percent()) continue;
    sum += gpu.utilization_percent() / 100;
    ++read;
  }
  if (read > 0) out.set_gpu_utilization(sum / read);
}

// Returns when the operator's taint ends by itself; unset if it does not.
base::Instant end_of(const model::Taints& taints) {
  const model::Taint* const own = model::find_taint(taints, model::TaintSource::kOperator);
  return own == nullptr ? base::Instant() : own->until;
}

}  // namespace

void add_parts(const model::Gpu& gpu, GpuParts& out) {
  if (!is_shared(gpu)) return;
  for (const model::GpuHolder& holder : gpu.holders) {
    v1::GpuPart& part = *out.Add();
    part.set_job(fmt::format_int(holder.attempt.job.value).str());
    part.set_share(in_gpus(holder.share));
    part.set_memory_bytes(static_cast<std::uint64_t>(holder.memory.value()));
    part.set_mode(to_proto(holder.mode));
  }
}

double free_gpus_of(const model::Node& node, const model::Gpu& gpu) {
  return in_gpus(free_share(node, gpu));
}

void to_proto(const model::Node& node, v1::Node& out) {
  out.set_name(node.name);
  out.set_state(to_proto(node.state));
  out.set_emulated(node.emulated);
  out.set_cpus(node.cpus);
  out.set_cpus_allocated(node.cpus_used);
  out.set_memory_bytes(static_cast<std::uint64_t>(node.memory.value()));
  out.set_memory_allocated_bytes(static_cast<std::uint64_t>(node.memory_used.value()));
  out.set_total_gpus(static_cast<std::uint32_t>(node.gpus.size()));
  std::uint32_t available = 0;
  base::GpuShare share;
  for (const model::Gpu& gpu : node.gpus) {
    available += can_take_work(node, gpu) ? 1 : 0;
    share += free_share(node, gpu);
  }
  out.set_available_gpus(available);
  out.set_available_share(in_gpus(share));
  if (!node.driver_version.empty()) out.set_driver_version(node.driver_version);
  out.set_boot_id(node.boot_id);
  const std::string& cause = node.cause;
  if (!cause.empty()) out.set_reason(cause);
  if (const base::Instant until = end_of(node.taints); until.is_set()) {
    to_proto(until, *out.mutable_changed_until());
  }
  if (!node.network.domain.empty()) out.set_domain(node.network.domain);
  if (!node.network.rack.empty()) out.set_rack(node.network.rack);
  if (!node.network.zone.empty()) out.set_zone(node.network.zone);
  out.set_engine(std::string(model::to_string(node.engine)));
  out.set_others_cpus(node.others_cpus);
  out.set_others_memory_bytes(static_cast<std::uint64_t>(node.others_memory.value()));
  out.set_capacity(to_proto(node.capacity));
}

namespace {

// What a draining node means for its GPUs: they run out their jobs and take no new ones.
model::GpuState shown_state(const model::Gpu& gpu, const model::Node& node) {
  const bool takes_work = gpu.state == model::GpuState::kAvailable ||
                          gpu.state == model::GpuState::kAllocated ||
                          gpu.state == model::GpuState::kInUse;
  const bool is_draining = node.state == model::NodeState::kDraining && takes_work;
  return is_draining ? model::GpuState::kDraining : gpu.state;
}

}  // namespace

void to_proto(const model::Gpu& gpu, const model::Node& node, std::uint32_t index,
              const model::GpuReading* reading, v1::Gpu& out) {
  out.set_node(node.name);
  out.set_index(index);
  out.set_uuid(gpu.info.uuid);
  out.set_model(gpu.info.model);
  out.set_type(gpu.info.type);
  out.set_state(to_proto(shown_state(gpu, node)));
  out.set_emulated(node.emulated);
  model::JobId last;
  for (const model::GpuHolder& holder : gpu.holders) {
    if (holder.attempt.job == last) continue;
    last = holder.attempt.job;
    out.add_jobs(fmt::format_int(last.value).str());
  }
  add_parts(gpu, *out.mutable_parts());
  out.set_free_share(free_gpus_of(node, gpu));
  out.set_memory_total_bytes(static_cast<std::uint64_t>(gpu.info.memory.value()));
  if (gpu.info.numa_node >= 0) out.set_numa_node(static_cast<std::uint32_t>(gpu.info.numa_node));
  if (reading != nullptr) put_reading(*reading, out);
  if (std::string reason = reason_of(gpu, node, reading); !reason.empty()) {
    out.set_reason(std::move(reason));
  }
  if (!gpu.changed_by.empty()) out.set_changed_by(gpu.changed_by);
  if (gpu.changed_at.is_set()) to_proto(gpu.changed_at, *out.mutable_changed_at());
  if (const base::Instant until = end_of(gpu.taints); until.is_set()) {
    to_proto(until, *out.mutable_changed_until());
  }
}

void to_proto(const Nodes& nodes, const ReadingOf& reading_of, v1::Status& out) {
  std::uint32_t total = 0;
  std::uint32_t available = 0;
  base::GpuShare held;
  base::GpuShare free;
  nodes.for_each([&](std::uint64_t, const model::Node& node) {
    v1::Node& node_out = *out.add_nodes();
    to_proto(node, node_out);
    total += node_out.total_gpus();
    available += node_out.available_gpus();
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      const model::Gpu& gpu = node.gpus[i];
      to_proto(gpu, node, i, reading_of(gpu.info.uuid).get(), *out.add_gpus());
      held += held_share(gpu);
      free += free_share(node, gpu);
    }
  });
  out.set_total_gpus(total);
  out.set_available_gpus(available);
  out.set_available_share(in_gpus(free));
  const double capacity = static_cast<double>(total) * static_cast<double>(base::kWholeGpu.value());
  out.set_utilization(total == 0 ? 0.0 : static_cast<double>(held.value()) / capacity);
  put_measured_use(out);
}

}  // namespace gpu_platform::api
