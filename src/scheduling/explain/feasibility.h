#pragma once

#include <cstdint>
#include <deque>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/units.h"
#include "model/job.h"
#include "model/node.h"
#include "scheduling/explain/gpu_offer.h"

namespace gpu_platform::scheduling {

// Why no node could ever hold a request: the first constraint that none of the nodes which satisfy
// all earlier ones satisfies.
enum class Feasibility : std::uint8_t {
  kGpuType,
  kGpuMemory,
  kGpus,
  kSockets,  // strict NUMA placement
  kCpus,
  kMemory,
  kFits
};

// Whether an empty, healthy version of some node could hold a request, or one part of a gang:
// present use, the state of nodes and the state of GPUs are ignored. The request must outlive the
// check.
class FeasibilityCheck {
 public:
  explicit FeasibilityCheck(const model::ResourceRequest& request);

  FeasibilityCheck(const FeasibilityCheck&) = delete;
  FeasibilityCheck& operator=(const FeasibilityCheck&) = delete;

  void visit(const model::Node& node);
  Feasibility verdict() const { return verdict_; }
  // Ok, or kFailedPrecondition with the field of the request at fault and a message that names the
  // most it could be: "gpus: 16 asked, the largest node has 8 GPUs".
  base::Status status() const;

 private:
  struct Choice {
    explicit Choice(model::ResourceRequest of) : request(std::move(of)), offers(request) {}
    model::ResourceRequest request;
    GpuOffers offers;  // refers to it
  };
  void visit(const model::Node& node, Choice& choice);
  // Where not all nodes may be used.
  std::string_view allowed() const;
  std::string_view kind() const;  // of the GPUs, where the request narrows it
  std::string_view with_the_gpus() const;
  std::string_view with_the_rest() const;

  const model::ResourceRequest& request_;
  std::deque<Choice> choices_;  // one for each type, as placement tries them
  Feasibility verdict_;         // of the node that comes furthest
  // The most that nodes which satisfy all earlier constraints have.
  base::Bytes max_gpu_memory_;
  std::uint32_t max_gpus_ = 0;
  std::uint32_t max_on_socket_ = 0;
  std::uint32_t max_cpus_ = 0;
  base::Bytes max_memory_;
};

// Of a request for one node. `nodes` offers for_each(visit(key, const model::Node&)), as
// base::PersistentMap<model::Node> does.
template <class Nodes>
base::Status could_ever_fit(const Nodes& nodes, const model::ResourceRequest& request) {
  FeasibilityCheck check(request);
  nodes.for_each([&](const auto&, const model::Node& node) { check.visit(node); });
  return check.status();
}

}  // namespace gpu_platform::scheduling
