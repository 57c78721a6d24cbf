#include "scheduling/pools/surplus.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gpu_platform::scheduling {

namespace {

using base::GpuShare;

GpuShare beyond(GpuShare amount, GpuShare limit) {
  return std::max(GpuShare(), amount - limit);
}

// Fills these parts, of which each has a weight, and returns what is left.
GpuShare fill_by_weight(std::vector<SurplusPart*> parts, GpuShare left) {
  // A part that wants less for its weight has all it wants first.
  std::ranges::stable_sort(parts, [](const SurplusPart* a, const SurplusPart* b) {
    return a->wanted.value() * b->weight < b->wanted.value() * a->weight;
  });
  std::int64_t weights = 0;
  for (const SurplusPart* part : parts) weights += part->weight;
  for (SurplusPart* part : parts) {
    const GpuShare by_weight(left.value() * part->weight / weights);
    part->share = std::min(part->wanted, by_weight);
    left -= part->share;
    weights -= part->weight;
  }
  return left;
}

// Returns the demand as far as the own limits of the holder go.
GpuShare within_limits(const Guarantee& own, GpuShare demand) {
  if (own.borrow_limit) demand = std::min(demand, own.gpus + *own.borrow_limit);
  if (own.max_gpus) demand = std::min(demand, *own.max_gpus);
  return demand;
}

}  // namespace

void fill(SurplusParts& parts, GpuShare surplus) {
  std::vector<SurplusPart*> weighted;
  std::vector<SurplusPart*> others;
  for (auto& [holder, part] : parts) (part.weight > 0 ? weighted : others).push_back(&part);
  const GpuShare left = fill_by_weight(std::move(weighted), surplus);
  for (SurplusPart* part : others) part->weight = 1;
  fill_by_weight(others, left);
  for (SurplusPart* part : others) part->weight = 0;
}

SurplusParts surplus_parts(const PoolBalance& balance, const WaitingGpus& waiting) {
  SurplusParts parts;
  if (!balance.is_active() || !balance.guarantees().has_weights) return parts;
  const auto demand_of = [&](const QuotaSubject& holder) {
    const auto found = waiting.find(holder);
    return balance.held_by(holder) + (found == waiting.end() ? GpuShare() : found->second);
  };
  GpuShare surplus = balance.guarantees().shared;
  for (const auto& [holder, own] : balance.guarantees().of) {
    const GpuShare demand = demand_of(holder);
    surplus += std::min(own.lend_limit, beyond(own.gpus, demand));
    parts[holder] = {own.weight,
                     beyond(balance.held_by(holder), own.gpus),
                     beyond(within_limits(own, demand), own.gpus),
                     {}};
  }
  const QuotaSubject none;
  parts[none] = {1, balance.held_by(none), demand_of(none), {}};
  fill(parts, surplus);
  return parts;
}

std::optional<model::SurplusExcess> surplus_excess(const SurplusParts& parts,
                                                   const PoolBalance& balance,
                                                   const QuotaSubject& holder) {
  const auto part = parts.find(holder);
  if (part == parts.end() || part->second.share >= part->second.wanted) return std::nullopt;
  const GpuShare held = beyond(balance.held_by(holder), balance.guarantee_of(holder));
  if (held < part->second.share) return std::nullopt;
  return model::SurplusExcess{holder.holder, holder.name, thousandths_of(held),
                              thousandths_of(part->second.share)};
}

}  // namespace gpu_platform::scheduling
