#include "api/part_walls.h"

#include "api/convert/enums.h"
#include "api/convert/job.h"

namespace gpu_platform::api {

namespace {

// The grant of the job's latest attempt on that GPU; null if it has none there.
const model::GpuGrant* grant_on(const controller::Snapshot& snapshot, const model::Job& job,
                                const v1::Gpu& gpu) {
  if (job.attempts.empty()) return nullptr;
  for (const model::NodeAllocation& part : job.attempts.back().allocation.nodes) {
    const model::Node* const node = snapshot.nodes.find(part.node.value);
    if (node == nullptr || node->name != gpu.node()) continue;
    for (const model::GpuGrant& grant : part.grants) {
      if (grant.gpu_index == gpu.index()) return &grant;
    }
  }
  return nullptr;
}

}  // namespace

void put_walls(const controller::Snapshot& snapshot, v1::Gpu& gpu) {
  for (v1::GpuPart& part : *gpu.mutable_parts()) {
    const auto id = to_job_id(part.job());
    const model::Job* const job = id ? snapshot.jobs.find(id->value) : nullptr;
    const model::GpuGrant* const grant = job == nullptr ? nullptr : grant_on(snapshot, *job, gpu);
    if (grant == nullptr) continue;
    part.set_memory_rung(to_proto(grant->wall.memory));
    part.set_compute_rung(to_proto(grant->wall.compute));
  }
}

}  // namespace gpu_platform::api
