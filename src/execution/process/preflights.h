#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "execution/engine.h"
#include "execution/process/gpu_resets.h"

namespace gpu_platform::execution {

// How the check of an attempt's GPUs before its start (model::Preflight) ended.
struct PreflightOutcome {
  model::AttemptId attempt;
  std::vector<UnfitGpu> unfit_gpus;  // not empty: it must not start
  std::string note;                  // what was done, or why not: "quick: passed in 0.4 s"
};

// The checks of GPUs before starts. Each node of an attempt checks its own. A check that cannot be
// made keeps no job from its start. Nothing of it is kept: after a restart of the daemon the start
// is ordered again, and begins with its check. One thread; waits for nothing.
class Preflights {
 public:
  // The checks must outlive it.
  explicit Preflights(GpuResets& checks) : checks_(checks) {}

  // Returns whether the order asks for a check.
  static bool is_asked_for(const StartOrder& order);
  // It is none that is under way.
  void begin(const StartOrder& order, std::int64_t now_ns);
  // Ends the checks of an attempt that is to be stopped. Its outcome follows. None may be under
  // way.
  void give_up(model::AttemptId attempt, std::int64_t now_ns);
  // Returns those that have ended since the last call.
  std::vector<PreflightOutcome> take_ended(std::int64_t now_ns);

 private:
  struct Check {
    bool is_deep = false;
    bool has_nodes = false;  // more than one
    std::int64_t began_ns = 0;
    std::size_t open = 0;  // answers that are awaited
    std::vector<UnfitGpu> unfit_gpus;
    std::string refusal;  // the first
    std::string detail;   // the first
  };

  static void take(const CheckedBeforeStart& checked, Check& check);
  static std::string note_of(const Check& check, std::int64_t now_ns);

  GpuResets& checks_;
  std::map<model::AttemptId, Check> under_way_;
};

}  // namespace gpu_platform::execution
