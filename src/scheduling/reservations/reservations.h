#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "model/allocation.h"
#include "model/job.h"
#include "model/node.h"
#include "model/reservation.h"
#include "scheduling/trial.h"

// GPUs reserved for a time, as placement sees them: to jobs of others the GPUs are gone from
// the reservation's begin to its end, to its own jobs all others are. A job is known to be of a
// reservation by its request; whether it may be was judged when it was submitted.

namespace gpu_platform::scheduling {

// From `begin` until before `end`; the end is that of a hard limit, the grace included.
struct Span {
  base::Instant begin;
  base::Instant end;
};

// Ownership: holds copies. Thread: one owner. Reservations never overlap. Cost of a question: the
// reservations that lie in the span, and their nodes.
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

  // The first begin or end that is still to come.
  std::optional<base::Instant> next_change(base::Instant now) const;
  bool is_any_between(base::Instant begin, base::Instant end) const;

  // For a job of that request that would run so long: takes what reservations keep from it out of
  // the trial. `request` is as request_inside() made it where it is of a reservation.
  void withhold_from(Trial& trial, const model::ResourceRequest& request, const Span& span) const;
  // False where its own reservation is not there or ends before.
  bool is_over_before(const model::ResourceRequest& request, base::Instant end) const;
  // Whether it may hold this for so long.
  bool allow(const model::ResourceRequest& request, const model::Allocation& allocation,
             const Span& span) const;
  // The reservation that keeps some of it from such a job; null: none.
  const model::Reservation* find_in_the_way(const model::ResourceRequest& request,
                                            const model::Allocation& allocation,
                                            const Span& span) const;
  // The node with what is not to be had there out of service. Nothing where no reservation concerns
  // it.
  struct Left {
    model::Node node;
    const model::Reservation* by =
        nullptr;  // of others' reservations there the first; null: its own alone
  };
  std::optional<Left> as_left_to(const model::ResourceRequest& request, const model::Node& node,
                                 const Span& span) const;

  friend bool operator==(const Reservations&, const Reservations&) = default;

 private:
  Map reservations_;
};

// What the allocation has in common with the reservation's GPUs, or with a whole node of it.
bool touches(const model::Reservation& reservation, const model::Allocation& allocation);
// No more than the reservation's.
bool lies_in(const model::Reservation& reservation, const model::Allocation& allocation);
// The request, but for the reservation's nodes alone; nothing where it could have none of them.
std::optional<model::ResourceRequest> request_inside(const model::Reservation& reservation,
                                                     const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
