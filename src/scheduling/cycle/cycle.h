#pragma once

#include <span>

#include "scheduling/cycle/stages.h"

// One scheduling cycle. plan_cycle runs it; what_if asks its stages what they would do. Thread: the
// owner's.

namespace gpu_platform::scheduling {

class Cycle {
 public:
  // All of it must outlive the cycle; nothing else may write to the books meanwhile.
  Cycle(Books& books, const model::Policy& policy, const CycleOptions& options)
      : ground(books, policy, options) {}
  Cycle(Books& books, const Supposition& supposed, const model::Policy& policy,
        const CycleOptions& options)
      : ground(books, supposed, policy, options) {}
  // The stages refer to each other.
  Cycle(const Cycle&) = delete;
  Cycle& operator=(const Cycle&) = delete;

  // Called once.
  Plan run();

  Ground ground;
  Limits limits{ground};
  Preemptor fit{ground, limits};
  Line line{ground.queue};
  Borrowers borrowers{ground, limits};
  Placing placing{ground, limits, line, borrowers};
  Backfilling backfilling{ground, limits, fit, line, borrowers, placing};
  Yielding yielding{ground, limits};

 private:
  struct Row {
    Stage stage;
    bool (*has_work)(const Cycle&);  // by what the stages before it have left, and the mode
    void (*run)(Cycle&);
  };
  static const Row kRows[];
};

}  // namespace gpu_platform::scheduling
