#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "model/job.h"
#include "model/node.h"
#include "model/wait_reason.h"
#include "scheduling/explain/gpu_offer.h"

namespace gpu_platform::scheduling {

// Counts why a request, or one part of a gang, does not start on each node of a set. Every node
// counts once: under the first constraint that it fails, in the order of model::Shortage, or under
// kFits. If the request accepts several types, the one that comes furthest counts. Works on
// model::Node values, so on published snapshots as well.
class ShortageCounter {
 public:
  // `rules`: which GPUs may be shared, for a request for a part of one.
  explicit ShortageCounter(const model::ResourceRequest& request, model::Sharing rules = {});
  ShortageCounter(const ShortageCounter&) = delete;
  ShortageCounter& operator=(const ShortageCounter&) = delete;

  // Counts the node; what is withheld counts as out of service.
  void visit(const model::Node& node, const Withheld& withheld = {});
  // Counts the node, of which reservations of others take something. Returns true if the request
  // fits but for them.
  bool visit_reserved(const model::Node& node, const Withheld& by_others);
  // Returns whether the request fits there, without counting it.
  bool fits_on(const model::Node& node, const Withheld& withheld);
  // Only constraints that some node fails (or kFits), ascending. They add up to the number of
  // visited nodes.
  std::vector<model::WaitCount> counts() const;
  // The visited nodes that are up and could hold the request if nothing else ran on them; of the
  // engine that has most of them, because a gang lies on nodes of one.
  std::uint32_t nodes_up_that_could_hold() const;

 private:
  struct Choice {
    explicit Choice(model::ResourceRequest of) : request(std::move(of)), offers(request) {}
    model::ResourceRequest request;
    GpuOffers offers;  // refers to it
  };
  struct Judgement {
    model::WaitCount shortage;
    bool could_hold = false;
  };
  Judgement judge(const model::Node& node, const Withheld& withheld);
  void count(const model::Node& node, const Judgement& judgement);
  model::WaitCount shortage_on(Choice& choice, const model::Node& node, const Withheld& withheld,
                               bool& could_hold) const;

  const model::Sharing rules_;
  std::deque<Choice> choices_;  // one for each type, as placement tries them
  std::array<model::WaitCount, model::kShortages> counts_ = {};
  std::array<std::uint32_t, model::kEngineKinds> could_hold_ = {};
};

// `nodes` offers for_each(visit(key, const model::Node&)), as base::PersistentMap<model::Node>
// does.
template <class Nodes>
std::vector<model::WaitCount> count_shortages(const Nodes& nodes,
                                              const model::ResourceRequest& request,
                                              const model::Sharing& rules = {}) {
  ShortageCounter counter(request, rules);
  nodes.for_each([&](const auto&, const model::Node& node) { counter.visit(node); });
  return counter.counts();
}

}  // namespace gpu_platform::scheduling
