#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "model/ids.h"
#include "model/states.h"

// Conditions of a job on the starts and ends of other jobs.

namespace gpu_platform::model {

enum class DependencyKind : std::uint8_t {
  kAfterOk,     // they end COMPLETED
  kAfterAny,    // they end, however
  kAfterNotOk,  // they end, at least one of them not COMPLETED
  kAfter,       // they start, or end without that
  kAfterCorr,   // as kAfterOk; a member of an array waits for the member of its index alone
  kSingleton,   // no earlier job of the same user and name is left; it has no target
};
inline constexpr std::size_t kDependencyKinds = 6;
inline constexpr DependencyKind kAllDependencyKinds[kDependencyKinds] = {
    DependencyKind::kAfterOk, DependencyKind::kAfterAny,  DependencyKind::kAfterNotOk,
    DependencyKind::kAfter,   DependencyKind::kAfterCorr, DependencyKind::kSingleton};
std::string_view to_string(DependencyKind kind);  // "afterok"

// One job, or all members of the array of that id.
struct DependencyTarget {
  JobId job;
  bool whole_array = false;

  friend auto operator<=>(const DependencyTarget&, const DependencyTarget&) = default;
};

struct Dependency {
  DependencyKind kind = DependencyKind::kAfterOk;
  DependencyTarget on;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};
std::string to_string(const Dependency& dependency);  // "afterok:12"

inline constexpr std::size_t kMaxDependencies = 256;  // of one job

// The result of a target so far. Only final ends count: a job that is queued again is open.
struct TargetOutcome {
  std::uint64_t open = 0;                     // jobs of it that have not ended
  JobId failed;                               // the first that ended otherwise than COMPLETED
  JobState failed_as = JobState::kCompleted;  // how that one ended
  std::uint64_t unstarted = 0;                // of the open ones, those that never started

  friend bool operator==(const TargetOutcome&, const TargetOutcome&) = default;
};

// The end of a target that the core no longer knows, as the archive has it.
struct EndedTarget {
  DependencyTarget target;
  TargetOutcome outcome;  // open is 0
};

enum class DependencyVerdict : std::uint8_t { kWaits, kMet, kNever };
// Judges a dependency that has a target. kNever is final, and so is kMet.
DependencyVerdict judge(DependencyKind kind, const TargetOutcome& outcome);

// "afterok:12 can never be met: job 12 ended FAILED", of a dependency that is judged kNever.
std::string describe_failure(const Dependency& dependency, const TargetOutcome& outcome);

}  // namespace gpu_platform::model
