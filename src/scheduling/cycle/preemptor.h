#pragma once

#include <cstddef>
#include <optional>

#include "scheduling/cycle/cycle_state.h"
#include "scheduling/cycle/limits.h"
#include "scheduling/preemption/find_victims.h"

namespace gpu_platform::scheduling {

// The stage kPreempt: makes room for a job that does not fit by stopping others. If places are
// kept, it is asked while a job's place is sought; else it runs for the first job that does not
// fit.
class Preemptor {
 public:
  Preemptor(CycleState& cycle, Limits& limits);

  // False: no job is stopped for another one in this cycle.
  bool may_stop_jobs() const;

  // Returns the stops that make_for() would plan; it changes nothing.
  std::optional<Preemption> stops_for(const WaitingJob& job, const std::optional<Slot>& slot);
  // Plans the stops. `slot`: when the job would start anyway. If that is within the grace, stopping
  // others is not worth it.
  std::optional<Slot> make_for(const WaitingJob& job, const std::optional<Slot>& slot);
  // Makes room for a job behind those with places: its guarantee does not wait for its turn. At
  // most kMaxReclaims of these in one cycle.
  std::optional<Slot> reclaim_for(const WaitingJob& job);
  bool may_reclaim(const WaitingJob& job) const;
  // For an overdue job for which no room can be made yet: where and from when on all that it waits
  // for is gone or can be stopped for it. It starts the grace after that at the latest.
  std::optional<Slot> slot_with_stops(const WaitingJob& job);

 private:
  std::optional<Fit> find(const WaitingJob& job, model::PreemptionRule rule,
                          const VictimIndex::PoolNames& pools = {});
  void look_again_for(const WaitingJob& job, const std::optional<Slot>& slot);

  CycleState& cycle_;
  Limits& limits_;
  VictimSearch search_;
  std::size_t reclaims_left_ = kMaxReclaims;
};

}  // namespace gpu_platform::scheduling
