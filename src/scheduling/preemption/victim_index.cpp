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
  if (victim.yields_to_class) {
    auto& rows = by_class_[from(victim.priority_class)];
    rows[victim.preempt_min_runtime].insert({victim.started_at, victim.attempt});
  }
  if (victim.is_borrowed) {
    auto& rows = borrowed_[std::min(victim.stops, kMaxStopRows)];
    rows[victim.pool].insert(borrowing_age(victim));
  }
  for (const auto& part : victim.allocation.nodes) on_[part.node].insert(victim.attempt);
  if (model::is_part(victim.allocation)) ++part_shares_[model::share_of(victim.allocation)];
  const model::AttemptId id = victim.attempt;
  victims_.emplace(id, std::move(victim));
}

void VictimIndex::erase(model::AttemptId attempt) {
  const auto known = victims_.find(attempt);
  if (known == victims_.end()) return;
  const Victim& victim = known->second;
  if (victim.yields_to_class) {
    auto& rows = by_class_[from(victim.priority_class)];
    const auto row = rows.find(victim.preempt_min_runtime);
    row->second.erase({victim.started_at, victim.attempt});
    if (row->second.empty()) rows.erase(row);
  }
  if (victim.is_borrowed) {
    auto& rows = borrowed_[std::min(victim.stops, kMaxStopRows)];
    const auto row = rows.find(victim.pool);
    row->second.erase(borrowing_age(victim));
    if (row->second.empty()) rows.erase(row);
  }
  if (model::is_part(victim.allocation)) {
    const auto row = part_shares_.find(model::share_of(victim.allocation));
    if (--row->second == 0) part_shares_.erase(row);
  }
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

std::optional<base::Instant> VictimIndex::next_of_age(base::Instant now, std::size_t first) const {
  std::optional<base::Instant> next;
  for (std::size_t i = first; i < kClasses; ++i) {
    for (const auto& [least, row] : by_class_[i]) {
      const auto old_enough = of_age(row, now, least);
      if (old_enough == row.begin()) continue;
      const base::Instant at = std::prev(old_enough)->started_at + least;
      next = std::min(next.value_or(at), at);
    }
  }
  return next;
}

std::optional<base::Instant> VictimIndex::next_to_reclaim(base::Instant now,
                                                          const PoolNames& pools) const {
  std::optional<base::Instant> next;
  for (const auto& rows : borrowed_) {
    for (const std::string& pool : pools) {
      const auto row = rows.find(pool);
      if (row == rows.end()) continue;
      const auto old_enough = of_age(row->second, now, {});
      if (old_enough == row->second.begin()) continue;
      const base::Instant at = std::prev(old_enough)->started_at;
      next = std::min(next.value_or(at), at);
    }
  }
  return next;
}

}  // namespace gpu_platform::scheduling
