#include "model/dependency.h"

#include <utility>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::model {

std::string_view to_string(DependencyKind kind) {
  switch (kind) {
    case DependencyKind::kAfterOk:
      return "afterok";
    case DependencyKind::kAfterAny:
      return "afterany";
    case DependencyKind::kAfterNotOk:
      return "afternotok";
    case DependencyKind::kAfter:
      return "after";
    case DependencyKind::kAfterCorr:
      return "aftercorr";
    case DependencyKind::kSingleton:
      return "singleton";
  }
  CHECK(false);
  std::unreachable();
}

std::string to_string(const Dependency& dependency) {
  if (dependency.kind == DependencyKind::kSingleton) return "singleton";
  return fmt::format("{}:{}", to_string(dependency.kind), dependency.on.job.value);
}

DependencyVerdict judge(DependencyKind kind, const TargetOutcome& outcome) {
  const bool has_failed = outcome.failed.valid();
  const bool needs_success = kind == DependencyKind::kAfterOk || kind == DependencyKind::kAfterCorr;
  if (kind == DependencyKind::kAfter) {
    return outcome.unstarted > 0 ? DependencyVerdict::kWaits : DependencyVerdict::kMet;
  }
  if (needs_success && has_failed) return DependencyVerdict::kNever;
  if (outcome.open > 0) return DependencyVerdict::kWaits;
  if (kind == DependencyKind::kAfterNotOk && !has_failed) return DependencyVerdict::kNever;
  return DependencyVerdict::kMet;
}

std::string describe_failure(const Dependency& dependency, const TargetOutcome& outcome) {
  if (outcome.failed.valid()) {
    return fmt::format("{} can never be met: job {} ended {}", to_string(dependency),
                       outcome.failed.value, to_string(outcome.failed_as));
  }
  return fmt::format("{} can never be met: {} {} ended COMPLETED", to_string(dependency),
                     dependency.on.whole_array ? "all of array" : "job", dependency.on.job.value);
}

}  // namespace gpu_platform::model
