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
#include "model/resource_request.h"
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

// An attempt that may end at any moment has not freed anything yet; its resources count as free
// from the next moment on.
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

  // Returns where the request could start at once and run for its time without touching a booking.
  // The time limits are those at full speed: see model::limit_at_speed.
  std::optional<model::Allocation> place_now(const model::ResourceRequest& request,
                                             base::Duration time_limit) {
    return place_now(request, time_limit, time_limit);
  }
  // The same for a job that is gone after `untouched` if it touches a booking after that.
  std::optional<model::Allocation> place_now(const model::ResourceRequest& request,
                                             base::Duration time_limit, base::Duration untouched);
  // Returns the start of the first booking that an attempt with this allocation, held from now on,
  // would touch.
  std::optional<base::Instant> first_touched(const model::Allocation& allocation,
                                             base::Duration time_limit);
  // Returns the earliest time after the present at which the request fits, if there is one: there
  // is none if no running attempt will free what is missing. Cost: O(log n) attempts to place it
  // and about 2n nodes changed, for the n ends before that time; once more for each booking.
  std::optional<Slot> earliest(const model::ResourceRequest& request, base::Duration time_limit) {
    return earliest(request, time_limit, {});
  }
  // The same if these running attempts, which must be among `running`, are gone when they say.
  struct Gone {
    base::Instant at;
    const model::Allocation* allocation = nullptr;  // not null; outlives the search
  };
  using Sooner = std::map<model::AttemptId, Gone>;
  std::optional<Slot> earliest(const model::ResourceRequest& request, base::Duration time_limit,
                               const Sooner& sooner);

  // Starts the job now: it takes its place in the trial for good. `gone_by`: the job leaves earlier
  // than its time limit says.
  void start(const model::Allocation& allocation, base::Duration time_limit,
             std::optional<base::Instant> gone_by = {});
  // A booking of a part of a GPU keeps that alone, or the whole GPU: then no other part comes
  // there, and what others give back is left to it.
  enum class Keeps : std::uint8_t { kPart, kGpu };
  // Cost: the ends before the slot, for each of its nodes.
  void book(const Slot& slot, base::Duration time_limit, Keeps keeps = Keeps::kPart);
  std::size_t bookings() const { return bookings_; }
  // The times until which running attempts stay at least, also if their ends are earlier.
  using Staying = std::map<model::AttemptId, base::Instant>;
  // Returns whether the resources booked then are available although these attempts stay. Cost: by
  // the ends before that moment.
  bool is_there_despite(const Staying& staying, const Slot& booked);
  // Returns whether reservations allow a job with that request to hold this from then on.
  bool reservations_allow(const model::ResourceRequest& request, const Slot& slot,
                          base::Duration time_limit) const;

 private:
  // A moment at which something becomes free: what a job gives back, the end of a booking, or the
  // begin or end of a reservation.
  struct Gain {
    base::Instant at;
    const model::Allocation* given_back = nullptr;  // null: nothing is given back
    model::AttemptId attempt = {};                  // of one that ran when the cycle began
  };
  // CPUs, memory and parts of GPUs that running attempts give back on one node.
  struct Freed {
    base::Instant at;
    std::uint32_t cpus = 0;
    base::Bytes memory;
    const model::GpuGrant* part = nullptr;  // of a running attempt; null: it has whole GPUs or none
  };
  // A part of a GPU.
  struct KeptPart {
    model::GpuGrant grant;
    model::Tenant tenant;
  };
  // A booking's part on one node.
  struct Kept {
    base::Instant start;
    base::Instant end;
    GpuMask gpus = 0;
    std::uint32_t cpus = 0;
    base::Bytes memory;
    std::optional<KeptPart> part;  // `gpus` is zero if others may have parts beside it
    std::vector<Freed> freed;      // by its start, ascending
  };
  class Search;

  base::Instant end_of(base::Instant start, base::Duration time_limit) const;
  // Planned starts are sought at the ends of so many occurrences of a reservation, and of its last.
  static constexpr std::size_t kOccurrencesAhead = 8;
  void note_reservations();
  bool meets_reservations(base::Instant at, const model::ResourceRequest& request,
                          base::Duration time_limit) const;
  // The time that a job holds its place, and the part of it that must touch no booking.
  struct Times {
    base::Duration limit;
    base::Duration untouched;
  };
  std::optional<model::Allocation> place_between(base::Instant at,
                                                 const model::ResourceRequest& request,
                                                 const Times& times);
  std::optional<model::Allocation> place_choices_between(base::Instant at,
                                                         const model::ResourceRequest& request,
                                                         const Times& times);
  std::optional<model::Allocation> place_at(base::Instant at, const model::ResourceRequest& request,
                                            const Times& times);
  void withhold(base::Instant from, base::Instant until);
  std::vector<Freed> freed_on(model::NodeId node, base::Instant by);
  bool is_booked_part_there(model::NodeId node, base::Instant at, const KeptPart& part) const;
  static model::GpuGrant needed_beside(const std::vector<Kept>& parts, const Kept& kept,
                                       base::Instant from);
  void withhold_parts(model::NodeId node, base::Instant from, base::Instant until);
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
  // The ends of bookings, and both ends of reservations: after each of them less is available.
  // Ascending.
  std::vector<base::Instant> booked_starts_;
  std::size_t bookings_ = 0;
};

}  // namespace gpu_platform::scheduling
