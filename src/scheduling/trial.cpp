#include "scheduling/trial.h"

#include <algorithm>

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

bool is_free(const Cluster& cluster, const model::Allocation& allocation, Accepts accepts) {
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

void Trial::release(const model::Allocation& allocation) {
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
}

void Trial::withhold_gpus(model::NodeId node, GpuMask gpus) {
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
