#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/job.h"
#include "model/node.h"
#include "model/reservation.h"
#include "scheduling/trial.h"

// Reservations as placement sees them. For jobs of others the reserved GPUs are gone from the
// reservation's begin to its end; for its own jobs all other GPUs are. A job's request names its
// reservation; the submission has checked that the job may use it.

namespace gpu_platform::scheduling {

// It lasts from `begin` until before `end`; the end is by hard limits and includes the grace.
struct Span {
  base::Instant begin;
  base::Instant end;
};

// One that keeps something, with the first of its occurrences that does.
struct Reserved {
  const model::Reservation* reservation = nullptr;
  model::Occurrence when;
};

// Every question is about all occurrences of each reservation, however far ahead.
//
// Ownership: holds copies. Thread: one owner. Reservations never overlap. Cost of a question: the
// reservations in the span, and their nodes.
class Reservations {
 public:
  using Map = std::map<std::string, model::Reservation, std::less<>>;  // by name

  void put(model::Reservation reservation) {
    std::string name = reservation.name;
    reservations_.insert_or_assign(std::move(name), std::move(reservation));
  }
  bool erase(std::string_view name) {
    const auto found = reservations_.find(name);
    if (found == reservations_.end()) return false;
    reservations_.erase(found);
    return true;
  }

  const model::Reservation* find(std::string_view name) const {
    const auto found = reservations_.find(name);
    return found == reservations_.end() ? nullptr : &found->second;
  }
  const Map& all() const { return reservations_; }
  bool empty() const { return reservations_.empty(); }

  // Returns the first begin or end that is still to come.
  std::optional<base::Instant> next_change(base::Instant now) const;
  bool is_any_between(base::Instant begin, base::Instant end) const;

  // Returns those of others that lie in the span, by begin and name; valid until something changes.
  using Others = std::span<const Reserved>;
  std::vector<Reserved> of_others(const model::ResourceRequest& request, const Span& span) const;
  // Returns those of another name that at any time last together with it.
  std::vector<Reserved> beside(const model::Reservation& reservation) const;

  // Takes out of the trial what reservations keep from a job with that request that would run so
  // long. `request` is as request_inside() made it if it names a reservation.
  void withhold_from(Trial& trial, const model::ResourceRequest& request, const Span& span) const {
    withhold_from(trial, request, of_others(request, span));
  }
  // The same if only these reservations of others exist.
  void withhold_from(Trial& trial, const model::ResourceRequest& request, Others others) const;
  // Returns whether an occurrence of the job's own reservation, if it names one, lasts as long.
  bool has_own_during(const model::ResourceRequest& request, const Span& span) const;
  // Returns whether the job may hold this for so long.
  bool allow(const model::ResourceRequest& request, const model::Allocation& allocation,
             const Span& span) const;
  // Returns the reservation that keeps part of it from such a job.
  std::optional<Reserved> find_in_the_way(const model::ResourceRequest& request,
                                          const model::Allocation& allocation,
                                          const Span& span) const;
  // Returns what these, and the request's own reservation, withhold of the node from it. Nothing if
  // none concerns it.
  struct OfNode {
    Withheld withheld;
    bool is_by_others = false;  // else only by its own
  };
  std::optional<OfNode> withheld_on(const model::ResourceRequest& request, model::NodeId node,
                                    Others others) const;

  friend bool operator==(const Reservations&, const Reservations&) = default;

 private:
  Map reservations_;
};

// Returns what the allocation has in common with the reservation's GPUs, or with a whole node of
// it.
bool touches(const model::Reservation& reservation, const model::Allocation& allocation);
// Returns the part of it that the reservation has.
bool lies_in(const model::Reservation& reservation, const model::Allocation& allocation);
// Returns the request, limited to the reservation's nodes; nothing if it could have none of them.
std::optional<model::ResourceRequest> request_inside(const model::Reservation& reservation,
                                                     const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
