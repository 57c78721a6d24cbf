#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/persistent_map.h"
#include "base/result.h"
#include "model/job.h"
#include "model/node.h"
#include "scheduling/explain/gang_feasibility.h"

namespace gpu_platform::controller {

// Whether a request could ever be met. Requests come in few kinds and nodes change rarely: each
// kind is worked out once per inventory.
// Ownership: values. Thread: one owner.
class Feasibility {
 public:
  base::Status check(const base::PersistentMap<model::Node>& nodes,
                     const model::ResourceRequest& request);
  // Nodes have changed.
  void forget();

 private:
  base::Status judge(const base::PersistentMap<model::Node>& nodes,
                     const model::ResourceRequest& request);

  std::vector<std::pair<model::ResourceRequest, base::Status>> known_;
  std::optional<scheduling::EmptyCluster> empty_;  // once a gang has asked
};

}  // namespace gpu_platform::controller
