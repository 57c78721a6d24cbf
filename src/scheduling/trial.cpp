#include "scheduling/trial.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace gpu_platform::scheduling {

GpuMask gpus_of(const model::NodeAllocation& part) {
  GpuMask gpus = 0;
  for (const model::GpuGrant& grant : part.grants) {
    CHECK(grant.gpu_index < kMaxGpusPerNode);
    gpus |= GpuMask{1} << grant.gpu_index;
  }
  return gpus;
}

namespace {

const model::GpuGrant& grant_of(const model::Allocation& part) {
  return part.nodes.front().grants.front();
}

model::GpuRef gpu_of(const model::Allocation& part) {
  return {part.nodes.front().node, grant_of(part).gpu_index};
}

// Returns a GPU that no job has yet, as the first part finds it.
PartState state_when_opened(const Cluster::NodeRecord& record, std::uint32_t gpu,
                            model::ShareMode mode) {
  const ShapeClass& shape_class = *record.shape_class;
  const GpuMask bit = GpuMask{1} << gpu;
  const auto pool = std::ranges::find_if(
      shape_class.pools, [&](const GpuPool& each) { return (each.gpus & bit) != 0; });
  CHECK(pool != shape_class.pools.end());
  return {.type = pool->type,
          .mode = mode,
          .free_share = base::kWholeGpu,
          .free_memory = pool->memory,
          .tenants = {},
          .is_open = (record.in_service & record.terms.gpus_in(mode) & bit) != 0};
}

bool is_part_free(const Cluster& cluster, const model::Allocation& allocation, Accepts accepts) {
  const Cluster::NodeRecord* record = cluster.find(allocation.nodes.front().node);
  if (record == nullptr || !record->free.is_up) return false;
  const FreeState& free = record->free;
  const model::NodeAllocation& part = allocation.nodes.front();
  if (free.cpus < part.cpus || free.memory < part.memory) return false;
  const model::GpuGrant& grant = grant_of(allocation);
  const GpuMask bit = GpuMask{1} << grant.gpu_index;
  const PartState* state = cluster.gpu_parts().find(gpu_of(allocation));
  if (state == nullptr) {
    const GpuMask there = free.gpus | (accepts == Accepts::kDegraded ? free.degraded : 0);
    return (there & bit) != 0;
  }
  return !state->is_withheld && (record->in_service & bit) != 0 && state->mode == grant.mode &&
         state->free_share >= grant.share && state->free_memory >= grant.memory &&
         cluster.gpu_parts().admits(*state, allocation.tenant);
}

}  // namespace

bool is_free(const Cluster& cluster, const model::Allocation& allocation, Accepts accepts) {
  if (model::is_part(allocation)) return is_part_free(cluster, allocation, accepts);
  return std::ranges::all_of(allocation.nodes, [&](const model::NodeAllocation& part) {
    const Cluster::NodeRecord* record = cluster.find(part.node);
    if (record == nullptr || !record->free.is_up) return false;
    const FreeState& free = record->free;
    const GpuMask gpus = gpus_of(part);
    const GpuMask there = free.gpus | (accepts == Accepts::kDegraded ? free.degraded : 0);
    return (there & gpus) == gpus && free.cpus >= part.cpus && free.memory >= part.memory;
  });
}

void Trial::take(const model::Allocation& allocation) {
  if (model::is_part(allocation)) return take_part(allocation);
  for (const model::NodeAllocation& part : allocation.nodes) {
    const Cluster::NodeRecord* record = cluster_.find(part.node);
    CHECK(record != nullptr);
    FreeState free = record->free;
    const GpuMask gpus = gpus_of(part);
    CHECK(((free.gpus | free.degraded) & gpus) == gpus);
    CHECK(free.cpus >= part.cpus && free.memory >= part.memory);
    free.gpus &= ~gpus;
    free.degraded &= ~gpus;
    free.cpus -= part.cpus;
    free.memory -= part.memory;
    log_.write(cluster_, part.node, free);
  }
}

void Trial::take_part(const model::Allocation& allocation) {
  const model::NodeAllocation& part = allocation.nodes.front();
  const model::GpuGrant& grant = grant_of(allocation);
  const Cluster::NodeRecord* record = cluster_.find(part.node);
  CHECK(record != nullptr);
  FreeState free = record->free;
  const PartState* known = cluster_.gpu_parts().find(gpu_of(allocation));
  PartState state;
  if (known != nullptr) {
    state = *known;
  } else {
    const GpuMask bit = GpuMask{1} << grant.gpu_index;
    CHECK(((free.gpus | free.degraded) & bit) != 0);
    free.gpus &= ~bit;
    free.degraded &= ~bit;
    state = state_when_opened(*record, grant.gpu_index, grant.mode);
  }
  add_part(state, grant, allocation.tenant);
  CHECK(free.cpus >= part.cpus && free.memory >= part.memory);
  free.cpus -= part.cpus;
  free.memory -= part.memory;
  log_.write(cluster_, part.node, free);
  write(gpu_of(allocation), state);
}

void Trial::release_part(const model::Allocation& allocation) {
  const model::NodeAllocation& part = allocation.nodes.front();
  const Cluster::NodeRecord* record = cluster_.find(part.node);
  const PartState* known = cluster_.gpu_parts().find(gpu_of(allocation));
  CHECK(record != nullptr && known != nullptr);
  FreeState free = record->free;
  PartState state = *known;
  remove_part(state, grant_of(allocation), allocation.tenant);
  const GpuMask bit = GpuMask{1} << grant_of(allocation).gpu_index;
  if (state.tenants.empty() && !state.is_withheld) {
    free.gpus |= bit & record->in_service;
    free.degraded |= bit & record->degraded;
  }
  const NodeShape& shape = *record->shape_class->shape;
  give_back(free, part);
  free.cpus = std::min(free.cpus, shape.cpus);
  free.memory = std::min(free.memory, shape.memory);
  log_.write(cluster_, part.node, free);
  write(gpu_of(allocation), state);
}

void Trial::release(const model::Allocation& allocation) {
  if (model::is_part(allocation)) return release_part(allocation);
  for (const model::NodeAllocation& part : allocation.nodes) {
    const Cluster::NodeRecord* record = cluster_.find(part.node);
    CHECK(record != nullptr);
    FreeState free = record->free;
    const GpuMask gpus = gpus_of(part);
    CHECK(((free.gpus | free.degraded) & gpus) == 0);
    const NodeShape& shape = *record->shape_class->shape;
    free.gpus |= gpus & record->in_service;
    free.degraded |= gpus & record->degraded;
    // A node may have fewer than when the job was placed.
    give_back(free, part);
    free.cpus = std::min(free.cpus, shape.cpus);
    free.memory = std::min(free.memory, shape.memory);
    log_.write(cluster_, part.node, free);
  }
}

void Trial::withhold(model::NodeId node, const FreeState& amount) {
  const Cluster::NodeRecord* record = cluster_.find(node);
  CHECK(record != nullptr);
  FreeState free = record->free;
  free.gpus &= ~amount.gpus;
  free.degraded &= ~amount.gpus;
  free.cpus -= std::min(free.cpus, amount.cpus);
  free.memory -= std::min(free.memory, amount.memory);
  log_.write(cluster_, node, free);
  withhold_parts(node, amount.gpus);
}

void Trial::withhold_parts(model::NodeId node, GpuMask gpus) {
  for (GpuMask left = cluster_.gpu_parts().on(node) & gpus; left != 0; left &= left - 1) {
    const model::GpuRef gpu{node, static_cast<std::uint32_t>(std::countr_zero(left))};
    PartState state = *cluster_.gpu_parts().find(gpu);
    if (state.is_withheld) continue;
    state.is_withheld = true;
    write(gpu, state);
  }
}

void Trial::withhold_part(const model::GpuRef& gpu, const model::GpuGrant& part,
                          const std::vector<model::Tenant>& tenants) {
  const PartState* known = cluster_.gpu_parts().find(gpu);
  const GpuMask bit = GpuMask{1} << gpu.index;
  PartState state;
  if (known == nullptr) {
    const Cluster::NodeRecord* record = cluster_.find(gpu.node);
    if (record == nullptr || ((record->free.gpus | record->free.degraded) & bit) == 0) return;
    state = state_when_opened(*record, gpu.index, part.mode);
    withhold_gpus(gpu.node, bit);
  } else if (known->mode != part.mode) {
    return withhold_parts(gpu.node, bit);
  } else {
    state = *known;
  }
  state.free_share -= std::min(state.free_share, part.share);
  state.free_memory -= std::min(state.free_memory, part.memory);
  state.tenants.insert(state.tenants.end(), tenants.begin(), tenants.end());
  std::ranges::sort(state.tenants);
  write(gpu, state);
}

void Trial::withhold_gpus(model::NodeId node, GpuMask gpus) {
  withhold_parts(node, gpus);
  const Cluster::NodeRecord* record = cluster_.find(node);
  if (record == nullptr || ((record->free.gpus | record->free.degraded) & gpus) == 0) return;
  FreeState free = record->free;
  free.gpus &= ~gpus;
  free.degraded &= ~gpus;
  log_.write(cluster_, node, free);
}

void Trial::expose_degraded() {
  for (const model::NodeId node : cluster_.nodes_with_degraded()) {
    FreeState free = cluster_.find(node)->free;
    if (free.degraded == 0) continue;
    free.gpus |= free.degraded;
    free.degraded = 0;
    log_.write(cluster_, node, free);
  }
}

void Trial::shut(model::NodeId node) {
  const Cluster::NodeRecord* record = cluster_.find(node);
  if (record == nullptr || !record->free.is_up) return;
  FreeState free = record->free;
  free.is_up = false;
  log_.write(cluster_, node, free);
}

}  // namespace gpu_platform::scheduling
