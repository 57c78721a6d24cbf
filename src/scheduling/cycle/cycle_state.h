#pragma once

#include <cstddef>
#include <optional>
#include <set>

#include "scheduling/books.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {

// The data that the stages of one cycle share: the trial, which follows their decisions, the
// timeline of free resources, and the plan as far as it has come.
//
// The books, the policy and the supposition must outlive it; nothing else may write to the books
// meanwhile. Thread: the owner's.
class CycleState {
 public:
  CycleState(Books& books_in, const model::Policy& policy_in, const CycleOptions& options_in);
  CycleState(Books& books_in, const Supposition& supposed, const model::Policy& policy_in,
             const CycleOptions& options_in);

  const Books& books;
  const WaitingQueue& queue;
  const RunningEnds& running;
  const PredictedTimes& predicted;
  const model::Policy& policy;
  const CycleOptions options;
  const std::size_t depth;  // places kept
  Trial trial;
  Timeline timeline;
  Plan plan;
  // Those with a planned start that counts on stops which are not decided yet.
  std::set<model::JobId> count_on_stops;
  bool keeps_place_of_overdue = false;  // of the planned starts one is an overdue job's

  // True if places are kept for jobs that do not fit.
  bool keeps_places() const { return depth > 0 && options.stages.has(Stage::kBackfill); }
  // False once no more jobs may start in this cycle; the plan says so.
  bool may_start_more();

  // Returns where the job could start at once: away from the nodes and the GPUs that it is to
  // avoid, or there if there is no room elsewhere.
  std::optional<model::Allocation> start_of(const WaitingJob& job);
  // The same for a job that is gone after `untouched` if it touches a booking after that.
  std::optional<model::Allocation> start_of(const WaitingJob& job, base::Duration untouched);
  // Returns where the job could start once those are gone that are told to stop now: it has the
  // place from the present on, and for the grace longer than its limit.
  std::optional<model::Allocation> start_after_grace(const WaitingJob& job);
  // Returns where and when the job starts, by hard limits; nothing if no end of other jobs makes
  // room.
  std::optional<Slot> slot_of(const WaitingJob& job);
  // Returns how long the job holds a place from its start on, without the grace.
  base::Duration held_for(const WaitingJob& job) const;

  // Notes the planned start of a job whose place is kept from that time on.
  void plan_start(const WaitingJob& job, Slot slot, base::Instant kept_from);
  // Reserves the place from the present on, although the job gets it only later; of a part, the
  // whole GPU.
  void keep_from_now(const Slot& slot, base::Duration time_limit);

  // Returns the preemption hold that is kept for the job in this cycle; null if there is none.
  const model::PreemptionHold* hold_of(const WaitingJob& job) const;
  // Returns when the beneficiary gets it: its victims are gone by then. A time that has passed
  // means "at any moment".
  Slot kept_slot(const model::PreemptionHold& hold) const;

  void look_again_at(std::optional<base::Instant> at);

 private:
  CycleState(Books& books_in, const WaitingQueue& queue_in, const RunningEnds& running_in,
             const PredictedTimes& expected_in, const model::Policy& policy_in,
             const CycleOptions& options_in);
  template <class Place>
  std::optional<model::Allocation> place_for(const WaitingJob& job, const Place& place_it);
};

}  // namespace gpu_platform::scheduling
