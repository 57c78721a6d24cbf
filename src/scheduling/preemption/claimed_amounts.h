#pragma once

#include <map>

#include "model/allocation.h"
#include "model/ids.h"
#include "scheduling/node_shape.h"

namespace gpu_platform::scheduling {

// How many CPUs and how much memory are claimed on each node, by all claims together. Of GPUs no
// account is kept: one that is claimed is nobody else's.
class ClaimedAmounts {
 public:
  void add(const model::Allocation& claimed);
  void remove(const model::Allocation& claimed);  // added before
  // What is claimed on the node of that part beside the part itself, which has been added.
  FreeState beside(const model::NodeAllocation& part) const;

 private:
  struct Amount {
    std::uint32_t cpus = 0;
    base::Bytes memory;
  };
  std::map<model::NodeId, Amount> on_;
};

}  // namespace gpu_platform::scheduling
