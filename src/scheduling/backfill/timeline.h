#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/units.h"
#include "model/allocation.h"
#include "model/ids.h"
#include "model/job.h"
#include "scheduling/backfill/running_ends.h"
#include "scheduling/reservations/reservations.h"
#include "scheduling/trial.h"

// The resources that will be free at each time, by hard limits: a running attempt is gone at the
// end of its time limit and the grace, and gives back what it holds on GPUs in service. Bookings
// are places kept for jobs that cannot start yet, on certain GPUs from a certain time on.
//
// The method is backfill with planned starts (EASY if one job has a planned start, conservative if
// all have), with places instead of counts: the very GPUs that a gang will get are kept free, not a
// number of them. Reservations are kept in the same way. Feitelson and Weil, Utilization and
// Predictability in Scheduling the IBM SP2 with Backfilling, 1998.
//
// It moves in the caller's trial and leaves it as it was, apart from start(). Thread: one owner.

namespace gpu_platform::scheduling {

// What will end at any moment is not free yet; the next moment is the earliest that it can be.
inline constexpr base::Duration kNextInstant = base::nanoseconds(1);

struct Slot {
  base::Instant start;
  model::Allocation allocation;

  friend bool operator==(const Slot&, const Slot&) = default;
};

class Timeline {
 public:
  struct Options {
    base::Instant now;     // the trial's present
    base::Duration grace;  // after each time limit
    // Once so many nodes have been changed in searches, earliest() finds nothing more.
    std::uint64_t max_changes = 0;
  };
  // `running` and `reservations` must not change while the timeline is used.
  Timeline(Trial& trial, const RunningEnds& running, const Reservations& reservations,
           const Options& options);

  // Where the request could start at once and run for so long without touching a booking. Time
  // limits are those at full speed: see model::limit_at_speed.
  std::optional<model::Allocation> place_now(const model::ResourceRequest& request,
                                             base::Duration time_limit) {
    return place_now(request, time_limit, time_limit);
  }
  // The same for one that is gone after `untouched`, should it touch a booking after that.
  std::optional<model::Allocation> place_now(const model::ResourceRequest& request,
                                             base::Duration time_limit, base::Duration untouched);
  // Returns the start of the first booking that an attempt with this allocation, held from now on,
  // would touch.
  std::optional<base::Instant> first_touched(const model::Allocation& allocation,
                                             base::Duration time_limit);
  // Returns the earliest time after the present at which the request fits, if there is one: there
  // is none if no running attempt will free what is missing. Cost: O(log n) attempts to place it
  // and about 2n nodes changed, for the n ends before that time; once more for each booking.
  std::optional<Slot> earliest(const model::ResourceRequest& request, base::Duration time_limit);

  // The job starts now: takes its place in the trial, for good. `gone_by`: earlier than by its
  // time limit.
  void start(const model::Allocation& allocation, base::Duration time_limit,
             std::optional<base::Instant> gone_by = {});
  void book(const Slot& slot, base::Duration time_limit);
  std::size_t bookings() const { return bookings_; }
  // The times until which running attempts stay at least, whatever their ends.
  using Staying = std::map<model::AttemptId, base::Instant>;
  // Whether what is booked there and then could be had although they stay. Cost: by the ends before
  // that moment.
  bool is_there_despite(const Staying& staying, const Slot& booked);
  // Whether a job of that request may hold this from then on, as far as reservations go.
  bool reservations_allow(const model::ResourceRequest& request, const Slot& slot,
                          base::Duration time_limit) const;

 private:
  // A moment at which something becomes free: what a job gives back, the end of a booking, or the
  // begin or end of a reservation.
  struct Gain {
    base::Instant at;
    const model::Allocation* given_back = nullptr;  // null: nothing is given back
  };
  // A booking's part on one node.
  struct Kept {
    base::Instant start;
    base::Instant end;
    GpuMask gpus = 0;
    std::uint32_t cpus = 0;
    base::Bytes memory;
  };
  class Search;

  base::Instant end_of(base::Instant start, base::Duration time_limit) const;
  void note_reservations();
  bool meets_reservations(base::Instant at, const model::ResourceRequest& request,
                          base::Duration time_limit) const;
  // How long it holds its place, and how much of that it must touch no booking.
  struct Times {
    base::Duration limit;
    base::Duration untouched;
  };
  std::optional<model::Allocation> place_between(base::Instant at,
                                                 const model::ResourceRequest& request,
                                                 const Times& times);
  std::optional<model::Allocation> place_at(base::Instant at, const model::ResourceRequest& request,
                                            const Times& times);
  void withhold(base::Instant from, base::Instant until);
  FreeState booked_at(model::NodeId node, base::Instant at) const;
  base::Instant gain_at(base::Instant end) const;
  const Gain* running_gain(std::size_t index);

  Trial& trial_;
  const RunningEnds& running_ends_;
  const Reservations& reservations_;
  const base::Instant now_;
  const base::Duration grace_;
  std::uint64_t changes_left_;
  RunningEnds::Ends::const_iterator next_running_;
  RunningEnds::Ends::const_iterator last_running_;
  std::vector<Gain> running_;               // as far as it was needed so far, ascending
  std::multimap<base::Instant, Gain> own_;  // of what was started and booked here, and reservations
  std::deque<model::Allocation> started_;   // that own_ points to
  std::map<model::NodeId, std::vector<Kept>> kept_;
  // Of bookings, and both ends of reservations: behind these less can be had. Ascending.
  std::vector<base::Instant> booked_starts_;
  std::size_t bookings_ = 0;
};

}  // namespace gpu_platform::scheduling
