#include "api/part_walls.h"

#include "api/convert/enums.h"
#include "api/convert/job.h"

namespace gpu_platform::api {

namespace {

struct Place {
  const std::string& node;
  std::uint32_t gpu = 0;
};

// The grant of the job's latest attempt on that GPU; null if it has none there.
const model::GpuGrant* grant_on(const controller::Snapshot& snapshot, const model::Job& job,
                                const Place& place) {
  if (job.attempts.empty()) return nullptr;
  for (const model::NodeAllocation& part : job.attempts.back().allocation.nodes) {
    const model::Node* const node = snapshot.nodes.find(part.node.value);
    if (node == nullptr || node->name != place.node) continue;
    for (const model::GpuGrant& grant : part.grants) {
      if (grant.gpu_index == place.gpu) return &grant;
    }
  }
  return nullptr;
}

void put_walls_of(const controller::Snapshot& snapshot, const Place& place,
                  google::protobuf::RepeatedPtrField<v1::GpuPart>& parts) {
  for (v1::GpuPart& part : parts) {
    const auto id = to_job_id(part.job());
    const model::Job* const job = id ? snapshot.jobs.find(id->value) : nullptr;
    const model::GpuGrant* const grant = job == nullptr ? nullptr : grant_on(snapshot, *job, place);
    if (grant == nullptr) continue;
    part.set_memory_rung(to_proto(grant->wall.memory));
    part.set_compute_rung(to_proto(grant->wall.compute));
  }
}

}  // namespace

void put_walls(const controller::Snapshot& snapshot, v1::Gpu& gpu) {
  put_walls_of(snapshot, {gpu.node(), gpu.index()}, *gpu.mutable_parts());
}

void put_walls(const controller::Snapshot& snapshot, v1::NodeTopology& node) {
  for (v1::TopologyGpu& gpu : *node.mutable_gpus()) {
    put_walls_of(snapshot, {node.node(), gpu.index()}, *gpu.mutable_parts());
  }
}

}  // namespace gpu_platform::api
