#include "scheduling/preemption/victim_index.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace gpu_platform::scheduling {

void VictimIndex::put(Victim victim) {
  const auto known = victims_.find(victim.attempt);
  if (known != victims_.end()) {
    if (known->second == victim) return;
    erase(victim.attempt);
  }
  for_each_row(victim,
               [&](std::size_t row) { by_age_[row].insert({victim.started_at, victim.attempt}); });
  for (const auto& part : victim.allocation.nodes) on_[part.node].insert(victim.attempt);
  const model::AttemptId id = victim.attempt;
  victims_.emplace(id, std::move(victim));
}

void VictimIndex::erase(model::AttemptId attempt) {
  const auto known = victims_.find(attempt);
  if (known == victims_.end()) return;
  const Victim& victim = known->second;
  for_each_row(victim, [&](std::size_t row) { by_age_[row].erase({victim.started_at, attempt}); });
  for (const auto& part : victim.allocation.nodes) {
    const auto there = on_.find(part.node);
    there->second.erase(attempt);
    if (there->second.empty()) on_.erase(there);
  }
  victims_.erase(known);
}

const std::set<model::AttemptId>* VictimIndex::on(model::NodeId node) const {
  const auto found = on_.find(node);
  return found == on_.end() ? nullptr : &found->second;
}

VictimIndex::Ages::const_iterator VictimIndex::first_of_age(std::size_t row, base::Instant now,
                                                            base::Duration least) const {
  return by_age_[row].lower_bound({now + (base::Duration() - least), model::AttemptId()});
}

std::optional<base::Instant> VictimIndex::next_of_age(base::Instant now, base::Duration least,
                                                      model::PriorityClass above) const {
  std::optional<base::Instant> next;
  for (auto row = static_cast<std::size_t>(above) + 1; row < kClasses; ++row) {
    const auto first = first_of_age(row, now, least);
    if (first == by_age_[row].begin()) continue;
    const base::Instant at = std::prev(first)->started_at + least;
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

}  // namespace gpu_platform::scheduling
