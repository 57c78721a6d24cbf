#pragma once

#include <map>

#include "model/allocation.h"
#include "model/ids.h"
#include "scheduling/node_shape.h"

namespace gpu_platform::scheduling {

// The CPUs and memory of each node in all preemption holds together. GPUs are not counted, because
// a GPU is in one hold at most.
class AmountsOnHold {
 public:
  void add(const model::Allocation& held);
  void remove(const model::Allocation& held);  // added before
  // What is held on the node of that part beside the part itself, which has been added.
  FreeState beside(const model::NodeAllocation& part) const;

 private:
  struct Amount {
    std::uint32_t cpus = 0;
    base::Bytes memory;
  };
  std::map<model::NodeId, Amount> on_;
};

}  // namespace gpu_platform::scheduling
