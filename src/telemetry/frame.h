#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "telemetry/metric.h"

// What was read of one subject at one moment: the unit in which readings travel from the probes to
// the history, to summaries, streams and alerts.

namespace gpu_platform::telemetry {

// A GPU, a host, or the use that one attempt makes of a GPU that it shares.
struct Subject {
  Of of = Of::kGpu;
  std::string node;
  std::string uuid;          // of the GPU; empty: a host
  model::AttemptId attempt;  // of a use alone

  friend auto operator<=>(const Subject&, const Subject&) = default;
};

struct Value {
  MetricId metric = 0;
  std::int64_t value = 0;

  friend bool operator==(const Value&, const Value&) = default;
};

struct Frame {
  Subject subject;
  base::Instant at;  // the wall clock when it was read; may run backwards when the clock is set
  // Ascending by metric, each once. A metric that was not available is not there: it is never 0.
  std::vector<Value> values;
  // Of a GPU: energy_mj was read at this time. Else the value is some seconds old, as others that
  // cost the driver time.
  bool is_energy_new = false;

  friend bool operator==(const Frame&, const Frame&) = default;
};

// The frames of one reading of a node: its GPUs, its host, its uses.
using Frames = std::shared_ptr<const std::vector<Frame>>;

// Takes frames as they come. Called by the probes' thread: returns at once, waits for no disk and
// no lock that is held for long. What cannot be taken is dropped and counted.
class FrameListener {
 public:
  virtual ~FrameListener() = default;
  virtual void take(const Frames& frames) = 0;
};

}  // namespace gpu_platform::telemetry
