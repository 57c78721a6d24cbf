#pragma once

#include <cstddef>
#include <optional>

#include "scheduling/books.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {

// What the stages of one cycle work on: the trial that moves with their decisions, what will be
// free when, and the plan as far as it has come.
//
// Books, policy and supposition must outlive it; nobody else may write to the books meanwhile.
// Thread: the owner's.
class Ground {
 public:
  Ground(Books& books_in, const model::Policy& policy_in, const CycleOptions& options_in);
  Ground(Books& books_in, const Supposition& supposed, const model::Policy& policy_in,
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

  // Places are kept for those that do not fit.
  bool keeps_places() const { return depth > 0 && options.stages.has(Stage::kBackfill); }
  // False from the moment on at which no more may start in this cycle: the plan says so.
  bool may_start_more();

  // Where the job could start at once: away from the nodes that it is to avoid, or there where no
  // other has room.
  std::optional<model::Allocation> start_of(const WaitingJob& job);
  // The same for one that is gone after `untouched`, should it touch a booking after that.
  std::optional<model::Allocation> start_of(const WaitingJob& job, base::Duration untouched);
  // Where and when, by hard limits; nothing where no end of others makes room.
  std::optional<Slot> slot_of(const WaitingJob& job);
  // How long it holds a place from its start on, the grace left out.
  base::Duration held_for(const WaitingJob& job) const;

  // Nobody else may have it from the present on, although the job comes to it only then.
  void keep_from_now(const Slot& slot, base::Duration time_limit);

  // The preemption hold that is kept for the job in this cycle; null: none.
  const model::PreemptionHold* hold_of(const WaitingJob& job) const;
  // When its beneficiary has it: its victims are gone, or at any moment where that has passed.
  Slot kept_slot(const model::PreemptionHold& hold) const;

  void look_again_at(std::optional<base::Instant> at);

 private:
  Ground(Books& books_in, const WaitingQueue& queue_in, const RunningEnds& running_in,
         const PredictedTimes& expected_in, const model::Policy& policy_in,
         const CycleOptions& options_in);
  template <class Place>
  std::optional<model::Allocation> place_for(const WaitingJob& job, const Place& place_it);
};

}  // namespace gpu_platform::scheduling
