#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "gpu_platform/v1/telemetry.pb.h"
#include "model/caller.h"
#include "model/ids.h"
#include "telemetry/frame.h"

// What a question about the history means: which things, in which part of the window, in which
// metrics and steps.

namespace gpu_platform::api {

struct CallContext;

// The largest number of points in one answer, and of those that a team's are made of.
inline constexpr double kMaxHistoryPoints = 200'000;
inline constexpr double kMaxTeamPoints = 2'000'000;
// The largest number of GPUs of a team's attempts: each costs a look-up.
inline constexpr std::size_t kMaxTeamGpus = 20'000;

inline constexpr std::string_view kGpusAllocated = "gpus_allocated";

// A GPU, a host, or a GPU while an attempt had it.
struct AskedThing {
  telemetry::Subject subject;  // of a GPU: without a node, so that it is found wherever it was
  base::Instant from;
  base::Instant to;
  // How the answer calls it. `node` is empty where it is not known.
  std::string node;
  std::optional<std::uint32_t> index;
  std::string job;  // "40_3"; empty: it is asked for without a job
  model::AttemptId attempt;
  base::GpuShare share;  // that the attempt had of the GPU

  // Where the attempt had a part of the GPU, its own use counts, and not the GPU's.
  bool is_part() const { return attempt.job.valid() && share < base::kWholeGpu; }
};

struct HistoryQuestion {
  base::Instant from;
  base::Instant to;
  base::Duration step;  // 0: as fine as it is kept
  std::vector<AskedThing> things;
  std::string team;  // its things are shown as one; empty: each alone
  std::vector<telemetry::MetricId> gpu_metrics;
  std::vector<telemetry::MetricId> host_metrics;
  bool wants_allocated = false;  // gpus_allocated, of a team
  std::vector<double> percentiles;
};

// Errors name the field. kNotFound also for a job that the caller may not see.
base::Result<HistoryQuestion> to_question(const v1::QueryHistoryRequest& request,
                                          const CallContext& context, const model::Caller& caller,
                                          base::Instant now);

// Returns the uses' metric that says the same of a part as this one of a GPU, if there is one.
std::optional<telemetry::MetricId> metric_of_use(telemetry::MetricId gpu_metric);

}  // namespace gpu_platform::api
