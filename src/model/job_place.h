#pragma once

#include <cstdint>
#include <string>

#include "base/units.h"
#include "model/capacity.h"

namespace gpu_platform::model {

// A kind of place that a job accepts, with what the job would hold there on all its nodes: enough
// to say what it would cost.
struct JobPlace {
  std::string gpu_type;  // empty: it asks for no GPUs
  CapacityClass capacity = CapacityClass::kOnDemand;
  std::string node;  // one such node
  base::GpuShare share;
  std::uint64_t cpus = 0;
  base::Bytes memory;
  base::Duration limit;  // its time limit, at the speed of the type

  friend bool operator==(const JobPlace&, const JobPlace&) = default;
};

}  // namespace gpu_platform::model
