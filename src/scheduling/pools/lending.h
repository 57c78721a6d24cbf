#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "scheduling/pools/balance.h"

namespace gpu_platform::scheduling {

// The GPUs of one pool that attempts hold, and the attempts that borrow. The oldest preemptible
// work of a holder counts as its own, as far as its guarantee goes beside the work that is not
// preemptible; all later work is borrowed. So a holder within its guarantee never borrows, and the
// set of borrowers changes as attempts come and go.
//
// Ownership: values. Thread: one owner, which reports what happens. Cost of add and remove:
// O(log attempts of the holder), and once more for each that begins or ceases to borrow.
class Lending {
 public:
  struct Held {
    model::AttemptId attempt;
    base::Instant requested_at;
    PoolAsk what;
    std::string pool = {};  // whose lending it belongs to; its name in Pools
  };
  struct Change {
    model::AttemptId attempt;
    bool is_borrowed = false;

    friend bool operator==(const Change&, const Change&) = default;
  };
  using Changes = std::vector<Change>;  // only of attempts that hold something afterwards

  Lending() = default;
  explicit Lending(Guarantees guarantees);

  bool is_active() const { return balance_.is_active(); }
  const PoolBalance& balance() const { return balance_; }
  std::uint64_t borrowed() const { return borrowed_; }  // attempts

  // Adds an attempt. It is named in the result only if it borrows. Only GPUs count: an attempt
  // without GPUs is left out.
  Changes add(const Held& held);
  Changes remove(const Held& held);

  friend bool operator==(const Lending&, const Lending&) = default;

 private:
  struct Age {
    base::Instant requested_at;
    model::AttemptId attempt;
    friend bool operator==(const Age&, const Age&) = default;
    friend std::strong_ordering operator<=>(const Age& a, const Age& b) {
      if (const auto by_time = a.requested_at <=> b.requested_at; by_time != 0) return by_time;
      return a.attempt <=> b.attempt;
    }
  };
  using Row = std::map<Age, base::GpuShare>;
  struct Preemptible {
    Row row;
    Row::iterator first_borrowed = row.end();
    base::GpuShare own;  // of the attempts before it
    Preemptible() = default;
    // The iterator points into the row, so it is found again in a copy.
    Preemptible(const Preemptible& other) : row(other.row), own(other.own) {
      first_borrowed = other.first_borrowed == other.row.end()
                           ? row.end()
                           : row.find(other.first_borrowed->first);
    }
    Preemptible& operator=(const Preemptible&) = delete;
    // These values determine the border between the holder's own work and borrowed work.
    friend bool operator==(const Preemptible& a, const Preemptible& b) {
      return a.row == b.row && a.own == b.own;
    }
  };

  using Rows = std::map<QuotaSubject, Preemptible>;
  void settle(Rows::iterator entry, Changes& changes);

  PoolBalance balance_;
  Rows rows_;  // none empty
  std::uint64_t borrowed_ = 0;
};

}  // namespace gpu_platform::scheduling
