#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "base/persistent_map.h"
#include "base/result.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/resource_request.h"
#include "scheduling/explain/feasibility.h"

namespace gpu_platform::controller {

// Says whether a request could ever be met. There are few kinds of requests and nodes change
// rarely, so each kind is computed once per inventory.
// Ownership: values. Thread: one owner.
class Feasibility {
 public:
  // `sharing`: which GPUs may be shared.
  base::Status check(const base::PersistentMap<model::Node>& nodes,
                     const model::ResourceRequest& request, const model::Sharing& sharing);
  // Call it after a change of the nodes, or of the policy.
  void forget();

 private:
  base::Status judge(const base::PersistentMap<model::Node>& nodes,
                     const model::ResourceRequest& request, const model::Sharing& sharing);

  std::vector<std::pair<model::ResourceRequest, base::Status>> known_;
  std::optional<scheduling::EmptyCluster> empty_;  // once a gang has asked
};

}  // namespace gpu_platform::controller
