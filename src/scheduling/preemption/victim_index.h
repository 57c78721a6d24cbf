#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"
#include "model/job.h"

namespace gpu_platform::scheduling {

// A running attempt that may be stopped to make room for another job.
struct Victim {
  model::AttemptId attempt;
  model::PriorityClass priority_class = model::PriorityClass::kLow;
  base::Instant started_at;
  model::Allocation allocation;
  bool yields_to_class = true;  // to jobs of a higher class
  bool is_borrowed = false;     // a holder within its guarantee may reclaim it

  friend bool operator==(const Victim&, const Victim&) = default;
};

// All possible victims, by node and by age, so that a search looks only where there are some. The
// search itself checks whether a victim has run long enough.
//
// Ownership: holds copies. Thread: one owner, which reports each attempt that becomes a possible
// victim, changes or is none any more. Cost: O(log attempts).
class VictimIndex {
 public:
  // Ascending: the youngest first.
  struct Age {
    base::Instant started_at;
    model::AttemptId attempt;
    friend bool operator==(const Age&, const Age&) = default;
    friend std::strong_ordering operator<=>(const Age& a, const Age& b) {
      if (const auto by_time = b.started_at <=> a.started_at; by_time != 0) return by_time;
      return a.attempt <=> b.attempt;
    }
  };

  // Adds it or replaces what is known of it.
  void put(Victim victim);
  void erase(model::AttemptId attempt);

  const Victim& find(model::AttemptId attempt) const { return victims_.find(attempt)->second; }
  std::size_t size() const { return victims_.size(); }
  // Those with a part on the node, in the order of ids; null: none.
  const std::set<model::AttemptId>* on(model::NodeId node) const;
  bool has_borrowed() const { return !by_age_[kBorrowed].empty(); }
  // When the first of those that are too young at `now` will have run for `least`, of classes below
  // `above`; nothing where none is too young.
  std::optional<base::Instant> next_of_age(base::Instant now, base::Duration least,
                                           model::PriorityClass above) const;

  // Those of classes below `above` that have run for `least` at `now`, the youngest first, until
  // visit(const Victim&) returns false. The index must not change meanwhile.
  template <class Visit>
  void for_each_while(base::Instant now, base::Duration least, model::PriorityClass above,
                      Visit&& visit) const {
    std::array<Ages::const_iterator, kClasses> at;
    for (std::size_t i = 0; i < kClasses; ++i) at[i] = first_of_age(i, now, least);
    while (true) {
      std::size_t next = kClasses;
      for (auto i = static_cast<std::size_t>(above) + 1; i < kClasses; ++i) {
        if (at[i] == by_age_[i].end()) continue;
        if (next == kClasses || *at[i] < *at[next]) next = i;
      }
      if (next == kClasses || !visit(find((at[next]++)->attempt))) return;
    }
  }

  // The same for attempts that borrow, of any class and age.
  template <class Visit>
  void for_each_borrowed_while(Visit&& visit) const {
    for (const Age& age : by_age_[kBorrowed]) {
      if (!visit(find(age.attempt))) return;
    }
  }

  friend bool operator==(const VictimIndex&, const VictimIndex&) = default;

 private:
  static constexpr std::size_t kClasses = 4;
  using Ages = std::set<Age>;

  // The rows that it stands in.
  template <class Visit>
  static void for_each_row(const Victim& victim, const Visit& visit) {
    if (victim.yields_to_class) visit(static_cast<std::size_t>(victim.priority_class));
    if (victim.is_borrowed) visit(kBorrowed);
  }
  Ages::const_iterator first_of_age(std::size_t row, base::Instant now, base::Duration least) const;

  std::map<model::AttemptId, Victim> victims_;
  static constexpr std::size_t kBorrowed = kClasses;
  std::array<Ages, kClasses + 1> by_age_;  // by class, then those who borrow
  std::map<model::NodeId, std::set<model::AttemptId>> on_;
};

}  // namespace gpu_platform::scheduling
