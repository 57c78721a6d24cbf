#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/job_spec.h"
#include "telemetry/use_summary.h"

// What the key figures need of each job, in a few bytes: a report looks at a million of them.

namespace gpu_platform::telemetry {

// Why an attempt or a job ended. Its order is that of the pages.
enum class KpiCause : std::uint8_t {
  kNone,         // it completed, or has not ended
  kApplication,  // its own failure, out of memory and hung included
  kHardware,     // a GPU failed under it
  kTimeout,      // a time limit, its deadline, or too long a wait
  kCancelled,    // by a person or a rule of the site
  kPreempted,
  kNodeLoss,  // the node was lost, or it or its GPU was taken out of service
  kPlatform,  // the platform or a hook of the site could not start it
};
inline constexpr std::size_t kKpiCauses = 8;
std::string_view to_string(KpiCause cause);  // "NODE_LOSS"

KpiCause cause_of(const model::Attempt& attempt);
KpiCause cause_of(const model::Job& job);

// The part of its readings without which an attempt is not called idle.
inline constexpr float kLeastMeasured = 0.5F;

// What an attempt made of its GPUs, each of which counts alike: in percent of its part of them.
struct RunUse {
  double utilization = 0;  // says nothing if nothing is measured
  double memory = 0;       // the same
  double measured = 0;     // the share of its GPU-time that has readings of utilization, 0 to 1
  double memory_measured = 0;
};
// `part`: that it has of each GPU, above 0 and at most 1.
RunUse run_use_of(const UseSummary& use, double part);

// One attempt of a job; of a job that never had one, the job alone.
struct KpiRun {
  model::JobId job;
  base::Instant submitted;
  base::Instant queued;     // since when it waited for its first attempt
  base::Instant requested;  // from here on it holds its GPUs; unset: there is no attempt
  base::Instant started;    // unset: it did not start
  base::Instant ended;      // unset: it has not
  base::Instant released;   // the GPUs; unset: it holds them
  base::Instant job_ended;  // unset: it has not, or this is not its last attempt
  base::GpuShare gpus;      // of all its GPUs together
  std::uint32_t team = 0;   // in KpiRuns::names(), as the next
  std::uint32_t user = 0;
  // Of its part of its GPUs, in percent; only where `measured` is above 0.
  float utilization = 0;
  float memory = 0;
  float measured = 0;         // the share of its GPU-time that has readings of utilization
  float memory_measured = 0;  // the same of memory
  model::JobKind kind = model::JobKind::kBatch;
  KpiCause cause = KpiCause::kNone;
  // Of the job; only with job_ended.
  KpiCause job_cause = KpiCause::kNone;
  bool is_first = false;
  bool was_interrupted = false;  // the job, by another job, its hardware or its node
};

// The runs of many jobs. A value.
class KpiRuns {
 public:
  using UseOf = std::function<std::optional<UseSummary>(model::AttemptId)>;

  // Adds a job that is not there yet. `use_of` is asked once for each attempt with GPUs; it may be
  // empty.
  void add(const model::Job& job, const UseOf& use_of);
  // All that `later` has.
  void add(const KpiRuns& later);
  // Removes these jobs. One pass.
  void forget(std::span<const model::JobId> jobs);
  // Removes the jobs with the lowest ids until there are at most `max` runs. One pass.
  void keep_newest(std::size_t max);
  // The latest end of a job that keep_newest() has removed: what ended up to then is not complete.
  base::Instant complete_since() const { return complete_since_; }

  const std::vector<KpiRun>& runs() const { return runs_; }
  // Of teams and users, each once.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::uint32_t place_of(const std::string& name);

  std::vector<KpiRun> runs_;
  std::vector<std::string> names_;
  std::map<std::string, std::uint32_t, std::less<>> places_;
  base::Instant complete_since_;
};

}  // namespace gpu_platform::telemetry
