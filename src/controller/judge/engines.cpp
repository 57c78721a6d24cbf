#include "controller/judge/engines.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/container.h"
#include "model/job_selection.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::EngineKind;
using model::Unsupported;

namespace {

Unsupported unnamed_annotation(const model::Policy& policy, const model::JobSpec& spec) {
  for (const model::Label& annotation : spec.annotations) {
    const auto names = [&](const std::string& pattern) {
      return model::matches_pattern(pattern, annotation.key);
    };
    if (std::ranges::any_of(policy.pod_annotations, names)) continue;
    return {"annotations",
            fmt::format("annotations: '{}' is not an annotation that this site passes to pods "
                        "(engines.kubernetes.annotations)",
                        annotation.key)};
  }
  return {};
}

Unsupported unsupported_at(const model::Policy& policy, EngineKind kind, const model::JobSpec& spec,
                           EngineWishes wishes) {
  const model::EngineTraits& traits = model::traits_of(kind);
  if (!spec.workload.empty() && !traits.admits_workloads) {
    return {"workload", "workload: its pods are in a cluster"};
  }
  const bool needs_containers = traits.needs_container_engine && !spec.image.empty();
  if (needs_containers && !policy.has_containers) {
    return {"image", "image: this daemon has no container engine (execution.containers)"};
  }
  Unsupported unsupported = model::unsupported_by(kind, spec);
  if (unsupported.field.empty() && traits.needs_named_annotations) {
    unsupported = unnamed_annotation(policy, spec);
  }
  if (unsupported.field.empty() && wishes.refuses_network && traits.gives_network) {
    return {"container_network",
            "container_network: a pod has the cluster's network, so 'none' is not possible: leave "
            "it out, and restrict the network with a NetworkPolicy"};
  }
  return unsupported;
}

}  // namespace

base::Result<model::EngineSet> engines_for(const model::Policy& policy, const model::JobSpec& spec,
                                           EngineWishes wishes) {
  model::EngineSet engines;
  std::vector<std::pair<EngineKind, Unsupported>> refused;
  for (const EngineKind kind : model::kAllEngineKinds) {
    if (!policy.has_engine(kind)) continue;
    Unsupported unsupported = unsupported_at(policy, kind, spec, wishes);
    if (unsupported.field.empty()) {
      engines.add(kind);
    } else {
      refused.emplace_back(kind, std::move(unsupported));
    }
  }
  if (!engines.empty()) return engines;
  if (refused.empty()) {
    return base::fail(base::ErrorCode::kFailedPrecondition, "this site has no engine to run jobs");
  }
  const std::string field = refused.front().second.field;
  if (refused.size() == 1) {
    return base::fail(base::ErrorCode::kFailedPrecondition, refused.front().second.why, field);
  }
  std::vector<std::string> reasons;
  for (const auto& [kind, unsupported] : refused) {
    reasons.push_back(fmt::format("{}, {}", model::traits_of(kind).place, unsupported.why));
  }
  return base::fail(
      base::ErrorCode::kFailedPrecondition,
      fmt::format("{}: no engine can run the job: {}", field, fmt::join(reasons, "; ")), field);
}

base::Status check_engines(const model::JobSpec& spec) {
  for (const EngineKind kind : model::kinds_in(spec.request.engines)) {
    const Unsupported unsupported = model::unsupported_by(kind, spec);
    if (unsupported.field.empty()) continue;
    return base::fail(base::ErrorCode::kFailedPrecondition, unsupported.why, unsupported.field);
  }
  return {};
}

}  // namespace gpu_platform::controller
