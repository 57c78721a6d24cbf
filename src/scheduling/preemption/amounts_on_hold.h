#pragma once

#include <map>

#include "model/allocation.h"
#include "model/ids.h"
#include "scheduling/node_shape.h"

namespace gpu_platform::scheduling {

// How many CPUs and how much memory are held on each node, by all preemption holds together. Of
// GPUs no account is kept: one that is held is nobody else's.
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
