#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"
#include "model/resource_request.h"
#include "scheduling/gpu_layout.h"

// A node as placement sees it: the fixed part (its shape) and what is free now. These values have
// no owner and no thread.

namespace gpu_platform::scheduling {

struct GpuKind {
  std::string type;  // catalogue name
  base::Bytes memory;
  std::int32_t numa_node = -1;  // -1: not known
  std::int32_t socket = -1;     // -1: not known

  friend auto operator<=>(const GpuKind&, const GpuKind&) = default;
};

// Nodes of one shape are interchangeable apart from what is free on them.
struct NodeShape {
  std::uint32_t cpus = 0;
  base::Bytes memory;
  std::vector<GpuKind> gpus;       // by index
  std::vector<Nearness> nearness;  // of each pair of GPUs, in the order of model::Topology::links
  model::EngineKind engine = model::EngineKind::kProcess;
  model::CapacityClass capacity = model::CapacityClass::kOnDemand;

  friend auto operator<=>(const NodeShape&, const NodeShape&) = default;
};

// Returns whether the request may use nodes of that shape at all, by its engines and its capacity.
bool may_use(const model::ResourceRequest& request, const NodeShape& shape);

NodeShape shape_of(const model::Node& node);
// The same as shape == shape_of(node), without building one.
bool has_shape(const model::Node& node, const NodeShape& shape);

// The part of the shape that says how its GPUs lie: many shapes have the same.
GpuLayout layout_of(const NodeShape& shape);

// The resources of a node that new work can get now: whole GPUs alone. What is free of a GPU that
// jobs have parts of is in PartIndex. A node that is not up gives none, also if some
// is free. Our jobs and others together may use more than the node has, because others come without
// asking us: what jobs give back makes up for that first.
struct FreeState {
  bool is_up = false;
  GpuMask gpus = 0;
  std::uint32_t cpus = 0;
  base::Bytes memory;
  std::uint32_t missing_cpus = 0;  // used beyond what the node has; then `cpus` is zero
  base::Bytes missing_memory = {};
  // GPUs that are DEGRADED and held by no attempt: only jobs that accept such get them, so no group
  // and no search of another job looks at them.
  GpuMask degraded = 0;

  friend auto operator<=>(const FreeState&, const FreeState&) = default;
};

FreeState free_state_of(const model::Node& node);
// Adds the CPUs and the memory that a job gives back.
void give_back(FreeState& free, const model::NodeAllocation& part);
// The GPUs that take new work as soon as no attempt holds them.
GpuMask gpus_in_service(const model::Node& node);
// Those that do for jobs that accept degraded ones, and for no other.
GpuMask gpus_degraded(const model::Node& node);

}  // namespace gpu_platform::scheduling
