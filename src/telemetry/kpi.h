#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "model/ids.h"
#include "telemetry/history.h"
#include "telemetry/kpi_runs.h"
#include "telemetry/points.h"

// The key figures of a site over a window of time. What is not known is absent, never 0.

namespace gpu_platform::telemetry {

inline constexpr std::size_t kKpiKinds = 4;  // of model::JobKind

struct KpiQuestion {
  base::Instant from;               // included
  base::Instant to;                 // not included; no later than now
  std::optional<std::string> team;  // unset: all
  // An attempt is idle if it held its GPUs for at least so long in the window, used them less than
  // this, and at least half of its readings are there.
  std::uint32_t idle_below_percent = 5;
  base::Duration idle_after = base::minutes(30);
  std::size_t max_idle = 100;  // of them that are named, those with the most GPU-time
};

// How long something took.
class KpiTimes {
 public:
  void add(base::Duration time);

  std::uint64_t count() const { return count_; }
  // Exact. Only with a count.
  double mean_seconds() const { return sum_ / static_cast<double>(count_); }
  // At most 1/16 away, and never beyond the values. Only with a count.
  double percentile_seconds(double share) const;

 private:
  std::uint64_t count_ = 0;
  double sum_ = 0;
  std::int64_t min_ = 0;  // milliseconds
  std::int64_t max_ = 0;
  Distribution spread_;  // of milliseconds
};

// Time in which jobs held GPUs, and what they made of it. Parts of GPUs count as parts.
struct KpiGpuTime {
  __int128 held = 0;  // base::GpuShare × nanoseconds
  // In the same units: of it, what has readings; that, times the utilization of each; the same two
  // of memory.
  double measured = 0;
  double busy = 0;
  double memory_measured = 0;
  double memory = 0;

  double hours() const;
  // Absent: nothing was held.
  std::optional<double> measured_percent() const;
  // Of what has readings. Absent: nothing has.
  std::optional<double> utilization_percent() const;
  std::optional<double> memory_percent() const;
  void add(const KpiGpuTime& other);
};

// The site, or a team.
struct KpiGroup {
  std::uint64_t ended = 0;  // jobs that ended in the window
  std::uint64_t completed = 0;
  std::uint64_t cancelled = 0;
  KpiGpuTime gpus;

  std::uint64_t failed() const { return ended - completed - cancelled; }
};

// An attempt that held GPUs and did not use them.
struct KpiIdle {
  model::JobId job;
  std::string user;
  std::string team;
  base::Instant since;  // when it got the GPUs
  base::GpuShare gpus;
  KpiGpuTime time;  // in the window
  bool is_running = false;
};

struct KpiFigures {
  KpiTimes completion;  // submission to end, of jobs that completed in the window
  KpiTimes wait;        // of jobs whose first attempt was asked for in the window
  KpiTimes allocation;  // from that request to the start, of attempts that started in the window
  KpiGroup all;         // of the question's team, if it has one
  std::map<std::string, KpiGroup> teams;
  std::array<KpiGpuTime, kKpiKinds> kinds;           // by model::JobKind
  std::array<std::uint64_t, kKpiCauses> jobs{};      // ended in the window, by cause
  std::array<std::uint64_t, kKpiCauses> attempts{};  // the same
  std::uint64_t interrupted = 0;  // jobs that ended and had been interrupted; not the cancelled
  std::uint64_t recovered = 0;    // of these, those that completed
  std::vector<KpiIdle> idle;      // the most GPU-time first, then by job
  std::uint64_t idle_count = 0;
  KpiGpuTime idle_time;  // of all of them
  // Of all teams, whatever the question's.
  KpiGpuTime site;
};

// Adds runs up in one pass, and keeps none of them.
class KpiSums {
 public:
  explicit KpiSums(KpiQuestion question) : question_(std::move(question)) {}

  // `skip`: jobs that are added otherwise.
  void add(const KpiRuns& runs, const std::set<model::JobId>& skip = {});
  KpiFigures figures() const;

 private:
  // The time within the window in which it held its GPUs.
  base::Duration held_within(const KpiRun& run) const;
  void add_job(const KpiRun& run, KpiGroup& team);
  void add_attempt(const KpiRun& run);
  void add_gpus(const KpiRun& run, KpiGroup& team, const std::vector<std::string>& names);
  void add_idle(KpiIdle idle);
  bool is_within(base::Instant at) const {
    return at.is_set() && at >= question_.from && at < question_.to;
  }

  const KpiQuestion question_;
  KpiFigures figures_;
};

// Returns the GPU-hours for which the GPU was there: the spans of the series that have a reading,
// as far as they lie in the window.
double present_hours(const Series& gpu, base::Instant from, base::Instant to);

// The runs of jobs that have left the core. Safe from any thread.
class KpiSource {
 public:
  virtual ~KpiSource() = default;

  // Adds them, and returns since when they are complete (unset: since the first). A job is there
  // within seconds of leaving the core. kUnavailable: they are still being read, after a start.
  virtual base::Result<base::Instant> add_ended(KpiSums& sums,
                                                const std::set<model::JobId>& skip) const = 0;
};

}  // namespace gpu_platform::telemetry
