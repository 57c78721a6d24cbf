#include "scheduling/explain/shortages.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/units.h"
#include "scheduling/node_shape.h"
#include "scheduling/placement/demand.h"

namespace gpu_platform::scheduling {

namespace {

using model::Shortage;
using model::WaitCount;

std::uint32_t mib_rounded_up(base::Bytes bytes) {
  const std::int64_t mib = (bytes.value() - 1) / base::kMiB.value() + 1;
  return static_cast<std::uint32_t>(
      std::min<std::int64_t>(mib, std::numeric_limits<std::uint32_t>::max()));
}

WaitCount shortage_of_rest(const FreeState& free, const Demand& demand) {
  if (free.cpus < demand.cpus) return {Shortage::kCpus, 1, demand.cpus - free.cpus};
  if (free.memory < demand.memory) {
    return {Shortage::kMemory, 1, mib_rounded_up(demand.memory - free.memory)};
  }
  return {Shortage::kFits, 1, 0};
}

// The same for a request for a part, as far as GPUs go; nothing where a GPU has room.
std::optional<WaitCount> shortage_of_part(const PartOffer& offer) {
  if (offer.is_kept_from_root) return WaitCount{Shortage::kKeptFromRoot, 1, 0};
  if (!offer.is_shared) return WaitCount{Shortage::kNotShared, 1, 0};
  if (!offer.is_in_service) return WaitCount{Shortage::kGpusOffline, 1, 1};
  if (offer.shortage == Shortage::kFits) return std::nullopt;
  return WaitCount{offer.shortage, 1, offer.short_by};
}

// Returns the node's first failing constraint, as a count of one node. `part` is of a request for a
// part of a GPU.
WaitCount first_shortage(const model::ResourceRequest& request, const model::Node& node,
                         const GpuOffer& offer, const std::optional<PartOffer>& part,
                         const Demand& demand, bool is_shut) {
  const FreeState free = free_state_of(node);
  if (is_shut || !free.is_up) return {Shortage::kNodeState, 1, 0};
  if (request.gpus > 0) {
    const bool is_barred = !request.barred_types.empty() || offer.has_unnamed;
    if (is_barred && !offer.has_type) return {Shortage::kExcluded, 1, 0};
    if (!request.gpu_types.empty() && !offer.has_type) return {Shortage::kGpuType, 1, 0};
    if (offer.has_type && offer.capable == 0) return {Shortage::kGpuMemory, 1, 0};
    if (part) {
      const auto of_part = shortage_of_part(*part);
      return of_part ? *of_part : shortage_of_rest(free, demand);
    }
    const std::uint32_t when_empty = gpus_when_empty(request, offer);
    if (has_gpus_when_empty(request, offer) && when_empty < request.gpus) {
      return {Shortage::kGpusOffline, 1, request.gpus - when_empty};
    }
    if (offer.free < request.gpus) return {Shortage::kGpus, 1, request.gpus - offer.free};
    if (!may_cross_sockets(request, offer) && offer.free_on_socket < request.gpus) {
      return {Shortage::kSockets, 1, request.gpus - offer.free_on_socket};
    }
  }
  return shortage_of_rest(free, demand);
}

}  // namespace

ShortageCounter::ShortageCounter(const model::ResourceRequest& request, model::Sharing rules)
    : rules_(std::move(rules)) {
  for (model::ResourceRequest& choice : by_choice(request))
    choices_.emplace_back(std::move(choice));
}

WaitCount ShortageCounter::shortage_on(Choice& choice, const model::Node& node,
                                       const Withheld& withheld, bool& could_hold) const {
  const model::ResourceRequest& request = choice.request;
  const GpuOffer offer = request.gpus > 0 ? choice.offers.of(node, withheld.gpus) : GpuOffer{};
  const Demand demand = demand_on(request, {.cpus = node.cpus,
                                            .memory = node.memory,
                                            .gpus = static_cast<std::uint32_t>(node.gpus.size())});
  std::optional<PartOffer> part;
  if (model::is_part(request)) part = choice.offers.part_of(node, rules_, withheld.gpus);
  could_hold |= node.state == model::NodeState::kUp && !withheld.whole_node &&
                gpus_when_empty(request, offer) >= request.gpus && (!part || part->is_in_service) &&
                demand.cpus <= node.cpus && demand.memory <= node.memory;
  return first_shortage(request, node, offer, part, demand, withheld.whole_node);
}

ShortageCounter::Judgement ShortageCounter::judge(const model::Node& node,
                                                  const Withheld& withheld) {
  Judgement judgement{{Shortage::kExcluded, 1, 0}};
  if (!may_use(choices_.front().request, node.id)) return judgement;
  WaitCount& found = judgement.shortage;
  if (!choices_.front().request.engines.contains(node.engine)) {
    found.shortage = Shortage::kEngine;
    return judgement;
  }
  if (!model::accepts(choices_.front().request.capacity, node.capacity)) {
    found.shortage = Shortage::kCapacity;
    return judgement;
  }
  for (Choice& choice : choices_) {
    const WaitCount of_choice = shortage_on(choice, node, withheld, judgement.could_hold);
    const bool is_further =
        of_choice.shortage > found.shortage ||
        (of_choice.shortage == found.shortage && of_choice.short_by < found.short_by);
    if (is_further) found = of_choice;
  }
  return judgement;
}

void ShortageCounter::count(const model::Node& node, const Judgement& judgement) {
  const WaitCount& found = judgement.shortage;
  WaitCount& count = counts_[static_cast<std::size_t>(found.shortage)];
  count.short_by = count.nodes == 0 ? found.short_by : std::min(count.short_by, found.short_by);
  ++count.nodes;
  could_hold_[static_cast<std::size_t>(node.engine)] += judgement.could_hold ? 1 : 0;
}

void ShortageCounter::visit(const model::Node& node, const Withheld& withheld) {
  count(node, judge(node, withheld));
}

bool ShortageCounter::visit_reserved(const model::Node& node, const Withheld& by_others) {
  Judgement judgement = judge(node, {});
  const bool is_reserved =
      judgement.shortage.shortage == Shortage::kFits && !fits_on(node, by_others);
  if (is_reserved) judgement.shortage.shortage = Shortage::kReserved;
  count(node, judgement);
  return is_reserved;
}

bool ShortageCounter::fits_on(const model::Node& node, const Withheld& withheld) {
  return judge(node, withheld).shortage.shortage == Shortage::kFits;
}

std::uint32_t ShortageCounter::nodes_up_that_could_hold() const {
  return std::ranges::max(could_hold_);
}

std::vector<WaitCount> ShortageCounter::counts() const {
  std::vector<WaitCount> result;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    if (counts_[i].nodes == 0) continue;
    result.push_back(counts_[i]);
    result.back().shortage = static_cast<Shortage>(i);
  }
  return result;
}

}  // namespace gpu_platform::scheduling
