#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "controller/judge/endings.h"
#include "controller/judge/events.h"
#include "controller/judge/pacer_of_evidence.h"
#include "controller/state.h"
#include "execution/engine.h"
#include "health/rules.h"
#include "health/verdict.h"
#include "model/evidence.h"
#include "model/policy.h"

// What is seen of the health of GPUs, and what follows: which GPUs are kept from work, and which
// failed jobs are innocent. The verdicts are health/'s, and functions of what is kept, so nothing
// here is in snapshots.

namespace gpu_platform::controller {

// Ownership: values; owned by the core. Thread: one. Cost: a judgement is that of health/, and one
// that takes a GPU out of service counts all GPUs.
class GpuHealth {
 public:
  // Returns the pieces to be recorded now. A piece that tells nothing new of a GPU that had many
  // may be put off (PacerOfEvidence).
  std::vector<model::EvidenceRecorded> take(const State& state,
                                            const execution::EvidenceObserved& seen,
                                            base::Instant now);
  // The same of what a job's end tells of one of its GPUs.
  std::vector<model::EvidenceRecorded> take(const State& state, model::GpuRef gpu,
                                            const model::Evidence& piece, base::Instant now);
  // Returns the next piece that was put off and is due.
  std::optional<model::EvidenceRecorded> next_put_off(const State& state, base::Instant now);

  // Returns the GPUs, ascending, whose verdict a recorded piece may change.
  static std::set<model::GpuRef> touched_by(const State& state,
                                            const model::EvidenceRecorded& recorded);
  // Judges the GPU: sets, changes or lifts what health says of it, stops what a lost one runs, and
  // asks for its reset where the policy says so.
  Events judge(const State& state, model::GpuRef gpu, base::Instant now);
  // Returns the GPUs that time alone may have changed, and after a start or a change of the policy
  // all that have evidence. They count as looked at.
  std::set<model::GpuRef> take_due(const State& state, base::Instant now);
  // Returns the GPUs that the breaker may let go now.
  static const std::set<model::GpuRef>& withheld(const State& state) {
    return state.health.withheld();
  }
  void look_at_all_again() { has_looked_at_all_ = false; }

  // Returns why the failed attempt is innocent; nothing if it is not, or that is not known.
  std::optional<HardwareBlame> blame(const State& state, const execution::Ended& seen,
                                     base::Instant now);

  // Returns when there is something to do although nothing happens.
  std::optional<base::Instant> next(const State& state) const;

 private:
  const health::Rules& rules_of(const State& state);
  void look_again(model::GpuRef gpu, base::Instant at);

  PacerOfEvidence pacer_;
  std::shared_ptr<const model::Policy> policy_;  // that rules_ is of
  std::optional<health::Rules> rules_;
  std::map<model::GpuRef, base::Instant> again_at_;
  std::set<std::pair<base::Instant, model::GpuRef>> again_;  // the same by time
  bool has_looked_at_all_ = false;
};

// Returns the events that lift all that health has said, because it is switched off.
Events lift_all_of_health(const State& state);

}  // namespace gpu_platform::controller
