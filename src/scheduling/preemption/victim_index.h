#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"
#include "model/job.h"

namespace gpu_platform::scheduling {

// A running attempt that may be stopped to make room for another job.
struct Victim {
  model::AttemptId attempt;
  // Its own, or that of jobs that were stopped for it: jobs of a class above it may stop it.
  model::PriorityClass priority_class = model::PriorityClass::kLow;
  base::Instant started_at;
  model::Allocation allocation;
  bool yields_to_class = true;     // to jobs of a higher class
  bool is_borrowed = false;        // a holder within its guarantee may reclaim it
  std::string pool = {};           // in which it borrows
  bool yields_to_overdue = false;  // to overdue jobs of other teams, of its class or above
  std::string team = {};           // whose oldest job becomes overdue (order/starvation_queue.h)
  base::Duration preempt_min_runtime = {};  // it is not stopped by class or as overdue before
  base::Duration reclaim_min_runtime = {};  // it is not reclaimed before
  std::uint32_t stops = 0;                  // how often the job was stopped before

  friend bool operator==(const Victim&, const Victim&) = default;
};

// All possible victims, by node and by age, so that a search looks only at nodes that have some.
// The search itself checks whether a victim has run long enough.
//
// Ownership: holds copies. Thread: one owner, which reports each attempt that becomes a possible
// victim, changes or is none any more. Cost: O(log attempts).
class VictimIndex {
 public:
  // Ascending: the youngest first.
  struct Age {
    base::Instant started_at;  // of those that borrow: when they have run for long enough
    model::AttemptId attempt;
    friend bool operator==(const Age&, const Age&) = default;
    friend std::strong_ordering operator<=>(const Age& a, const Age& b) {
      if (const auto by_time = b.started_at <=> a.started_at; by_time != 0) return by_time;
      return a.attempt <=> b.attempt;
    }
  };

  // Adds the victim or replaces its record.
  void put(Victim victim);
  void erase(model::AttemptId attempt);

  const Victim& find(model::AttemptId attempt) const { return victims_.find(attempt)->second; }
  std::size_t size() const { return victims_.size(); }
  // Returns the smallest part of a GPU that one of them has; a whole one if none has a part.
  base::GpuShare least_share() const {
    return part_shares_.empty() ? base::kWholeGpu : part_shares_.begin()->first;
  }
  // Returns the victims with a part on the node, in the order of ids; null if there are none.
  const std::set<model::AttemptId>* on(model::NodeId node) const;
  bool has_borrowed() const {
    return std::ranges::any_of(borrowed_, [](const auto& rows) { return !rows.empty(); });
  }
  // The pools in which a beneficiary may have borrowers stopped; not empty.
  using PoolNames = std::vector<std::string>;

  // Classes are counted from the highest on.
  static constexpr std::size_t kClasses = 4;
  static constexpr std::size_t from(model::PriorityClass highest) {
    return static_cast<std::size_t>(highest);
  }
  static constexpr std::size_t below(model::PriorityClass above) { return from(above) + 1; }

  // When the first of those that are too young at `now` will have run for its minimum, of classes
  // from `first` on; nothing where none is too young.
  std::optional<base::Instant> next_of_age(base::Instant now, std::size_t first) const;
  // The same for attempts that borrow in one of the pools.
  std::optional<base::Instant> next_to_reclaim(base::Instant now, const PoolNames& pools) const;

  // Those of classes from `first` on that have run for their minimum at `now`, the youngest first,
  // until visit(const Victim&) returns false. The index must not change meanwhile.
  template <class Visit>
  void for_each_of_age_while(base::Instant now, std::size_t first, const Visit& visit) const {
    walk(
        first, [&](base::Duration least, const Ages& row) { return of_age(row, now, least); },
        visit);
  }
  // The same, with those that are too young.
  template <class Visit>
  void for_each_while(std::size_t first, const Visit& visit) const {
    walk(first, [](base::Duration, const Ages& row) { return row.begin(); }, visit);
  }

  // Those that borrow in one of the pools and have run for as long as they may, of any class: those
  // that were never stopped first, and among these the youngest. `visit` is also told how long all
  // that come later, and were stopped no more often, have run at least.
  template <class Visit>
  void for_each_borrowed_while(base::Instant now, const PoolNames& pools,
                               const Visit& visit) const {
    for (const auto& rows : borrowed_) {
      std::vector<Part> parts;
      for (const std::string& pool : pools) {
        const auto row = rows.find(pool);
        if (row == rows.end()) continue;
        parts.push_back({of_age(row->second, now, {}), row->second.end()});
      }
      const bool goes_on = merge(std::move(parts), [&](const Age& age) {
        return visit(find(age.attempt), now - age.started_at);
      });
      if (!goes_on) return;
    }
  }
  // Attempts that were stopped more often than this are told apart no more.
  static constexpr std::uint32_t kMaxStopRows = 3;

  friend bool operator==(const VictimIndex&, const VictimIndex&) = default;

 private:
  using Ages = std::set<Age>;

  struct Part {
    Ages::const_iterator at;
    Ages::const_iterator end;
  };
  // All of the parts in their order, until visit(const Age&) returns false; so does this then.
  template <class Visit>
  static bool merge(std::vector<Part> parts, const Visit& visit) {
    while (true) {
      Part* next = nullptr;
      for (Part& part : parts) {
        if (part.at == part.end) continue;
        if (next == nullptr || *part.at < *next->at) next = &part;
      }
      if (next == nullptr) return true;
      if (!visit(*(next->at++))) return false;
    }
  }
  // Of each row of the classes from `first` on, what lies from begin(minimum, row) on; merged.
  template <class Begin, class Visit>
  void walk(std::size_t first, const Begin& begin, const Visit& visit) const {
    std::vector<Part> parts;
    for (std::size_t i = first; i < kClasses; ++i) {
      for (const auto& [least, row] : by_class_[i]) parts.push_back({begin(least, row), row.end()});
    }
    merge(std::move(parts), [&](const Age& age) { return visit(find(age.attempt)); });
  }
  static Age borrowing_age(const Victim& victim) {
    return {victim.started_at + victim.reclaim_min_runtime, victim.attempt};
  }
  // The first of the row that has run for `least`.
  static Ages::const_iterator of_age(const Ages& row, base::Instant now, base::Duration least) {
    return row.lower_bound({now + (base::Duration() - least), model::AttemptId()});
  }

  std::map<model::AttemptId, Victim> victims_;
  // The rows are by class and minimum; none is empty. Sites have few minimums.
  std::array<std::map<base::Duration, Ages>, kClasses> by_class_;
  // By how often they were stopped, and by pool; no row is empty.
  std::array<std::map<std::string, Ages>, kMaxStopRows + 1> borrowed_;
  std::map<model::NodeId, std::set<model::AttemptId>> on_;
  std::map<base::GpuShare, std::size_t> part_shares_;  // how many have such a part; none is zero
};

}  // namespace gpu_platform::scheduling
