#pragma once

#include <cstddef>
#include <optional>

#include "scheduling/cycle/ground.h"
#include "scheduling/cycle/limits.h"
#include "scheduling/preemption/find_victims.h"

namespace gpu_platform::scheduling {

// The stage kPreempt: room for a job that does not fit, made by stopping others. Where places are
// kept it is asked while a job's place is sought, else run for the first that does not fit.
class Preemptor {
 public:
  Preemptor(Ground& ground, Limits& limits);

  // False: nobody is stopped for others in this cycle, whoever asks.
  bool may_stop_somebody() const;

  // Plans the stops; `slot`: when the job starts anyhow. A fit within the grace of others is not
  // worth stopping them.
  std::optional<Slot> make_for(const WaitingJob& job, const std::optional<Slot>& slot);
  // For one behind those with places: what is guaranteed to it waits for nobody's turn. Of
  // kMaxReclaims in one cycle.
  std::optional<Slot> reclaim_for(const WaitingJob& job);
  bool may_reclaim(const WaitingJob& job) const;

 private:
  std::optional<Fit> find(const WaitingJob& job, bool reclaims);

  Ground& ground_;
  Limits& limits_;
  VictimSearch search_;
  std::size_t reclaims_left_ = kMaxReclaims;
};

}  // namespace gpu_platform::scheduling
