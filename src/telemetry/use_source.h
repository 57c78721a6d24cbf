#pragma once

#include <optional>

#include "model/ids.h"
#include "telemetry/use_summary.h"

namespace gpu_platform::telemetry {

// What attempts did on their GPUs, for those who ask. Safe from any thread.
class UseSource {
 public:
  virtual ~UseSource() = default;

  // Returns the summary of an attempt that runs or has ended. Nothing: it has no GPU, nothing was
  // recorded while it ran, or it is forgotten.
  virtual std::optional<UseSummary> get(model::AttemptId attempt) const = 0;
  // The same in short: lists ask of many.
  virtual std::optional<UseBrief> brief(model::AttemptId attempt) const = 0;
};

}  // namespace gpu_platform::telemetry
