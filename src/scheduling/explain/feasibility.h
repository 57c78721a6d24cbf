#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/units.h"
#include "model/job.h"
#include "model/node.h"
#include "model/resource_request.h"
#include "scheduling/cluster.h"
#include "scheduling/explain/gpu_offer.h"

namespace gpu_platform::scheduling {

// The reason why no node could ever hold a request: the first constraint that fails on every node
// that satisfies all earlier ones.
enum class Feasibility : std::uint8_t {
  kCapacity,
  kGpuType,
  kGpuMemory,
  kShared,  // of a part: no GPU may be shared so
  kGpus,
  kSockets,  // strict NUMA placement
  kCpus,
  kMemory,
  kFits
};

// Checks whether an empty, healthy version of some node could hold a request, or one part of a
// gang: present use, the state of nodes and the state of GPUs are ignored. The request must outlive
// the check.
class FeasibilityCheck {
 public:
  // `rules`: which GPUs may be shared, for a request for a part of one.
  explicit FeasibilityCheck(const model::ResourceRequest& request, model::Sharing rules = {});

  FeasibilityCheck(const FeasibilityCheck&) = delete;
  FeasibilityCheck& operator=(const FeasibilityCheck&) = delete;

  void visit(const model::Node& node);
  Feasibility verdict() const { return verdict_; }
  // Returns Ok, or kFailedPrecondition with the field at fault and a message that names the largest
  // possible value: "gpus 16: the largest node has 8 GPUs".
  base::Status status() const;

 private:
  struct Choice {
    explicit Choice(model::ResourceRequest of) : request(std::move(of)), offers(request) {}
    model::ResourceRequest request;
    GpuOffers offers;  // refers to it
  };
  void visit(const model::Node& node, Choice& choice);
  bool are_all_listed() const;  // its lists exclude no node
  // For a request that may not use all nodes: by its lists, its engines or its capacity.
  base::Status not_shared() const;
  std::string_view allowed() const;
  std::string_view allowed_nodes() const;
  std::string_view kind() const;  // the GPU type, if the request narrows it
  std::string_view with_the_gpus() const;
  std::string_view with_the_rest() const;

  const model::ResourceRequest& request_;
  const model::Sharing rules_;
  std::deque<Choice> choices_;      // one for each type, as placement tries them
  bool has_passed_ = false;         // a node was left out for its engine or its capacity class
  bool is_kept_from_root_ = false;  // a GPU may be shared so, but not with a job of root
  Feasibility verdict_;             // the verdict of the node that comes furthest
  // The largest amounts on nodes that satisfy all earlier constraints.
  base::Bytes max_gpu_memory_;
  std::uint32_t max_gpus_ = 0;
  std::uint32_t max_on_socket_ = 0;
  std::uint32_t max_cpus_ = 0;
  base::Bytes max_memory_;
};

// Checks a request for one node. `nodes` offers for_each(visit(key, const model::Node&)), as
// base::PersistentMap<model::Node> does.
template <class Nodes>
base::Status could_ever_fit(const Nodes& nodes, const model::ResourceRequest& request,
                            const model::Sharing& rules = {}) {
  FeasibilityCheck check(request, rules);
  nodes.for_each([&](const auto&, const model::Node& node) { check.visit(node); });
  return check.status();
}

// Says whether gangs could ever be placed. It runs placement itself on the nodes as they would be
// if all were up, healthy and empty. It is built once for an inventory; after a change of a node
// the owner builds a new one. Thread: one owner.
class EmptyCluster {
 public:
  template <class Nodes>
  explicit EmptyCluster(const Nodes& nodes) {
    nodes.for_each([this](const auto&, const model::Node& node) { add(node); });
  }

  // Checks a request that is a gang. Returns Ok, or kFailedPrecondition with the field at fault and
  // the largest possible gang of such parts: "nodes 16: at most 12 nodes can each give 8 GPUs of
  // one type".
  base::Status could_ever_fit(const model::ResourceRequest& request);

 private:
  void add(const model::Node& node);
  std::uint32_t max_parts(const model::ResourceRequest& request);
  bool fits(const model::ResourceRequest& request);

  Cluster cluster_;
};

}  // namespace gpu_platform::scheduling
