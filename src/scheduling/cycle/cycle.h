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
      : cycle(books, policy, options) {}
  Cycle(Books& books, const Supposition& supposed, const model::Policy& policy,
        const CycleOptions& options)
      : cycle(books, supposed, policy, options) {}
  // The stages refer to each other.
  Cycle(const Cycle&) = delete;
  Cycle& operator=(const Cycle&) = delete;

  // Called once.
  Plan run();

  CycleState cycle;
  Limits limits{cycle};
  Preemptor fit{cycle, limits};
  Line line{cycle.queue};
  Borrowers borrowers{cycle, limits};
  Placing placing{cycle, limits, line, borrowers};
  Backfilling backfilling{cycle, limits, fit, line, borrowers, placing};
  Yielding yielding{cycle, limits};

 private:
  struct Row {
    Stage stage;
    bool (*has_work)(const Cycle&);  // by what the stages before it have left, and the mode
    void (*run)(Cycle&);
  };
  static const Row kRows[];
};

}  // namespace gpu_platform::scheduling
