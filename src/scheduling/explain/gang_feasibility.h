#pragma once

#include <cstdint>

#include "base/result.h"
#include "model/job.h"
#include "model/node.h"
#include "scheduling/cluster.h"

namespace gpu_platform::scheduling {

// Whether gangs could ever be placed: the nodes as they would be if all were up and healthy and
// nothing ran on them, and placement itself on these. Built once for an inventory; a change of a
// node is told by a new one. Thread: one owner.
class EmptyCluster {
 public:
  template <class Nodes>
  explicit EmptyCluster(const Nodes& nodes) {
    nodes.for_each([this](const auto&, const model::Node& node) { add(node); });
  }

  // For a request that is a gang. Ok, or kFailedPrecondition with the field at fault and the
  // largest gang of such parts that there could be: "nodes: 16 asked, 12 could give 8 GPUs each".
  base::Status could_ever_fit(const model::ResourceRequest& request);

 private:
  void add(const model::Node& node);
  std::uint32_t max_parts(const model::ResourceRequest& request);
  bool fits(const model::ResourceRequest& request);

  Cluster cluster_;
};

}  // namespace gpu_platform::scheduling
