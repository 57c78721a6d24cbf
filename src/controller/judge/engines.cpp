#include "controller/judge/engines.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "model/container.h"

namespace gpu_platform::controller {

using model::EngineKind;
using model::Objection;

namespace {

bool has_engine(const model::Policy& policy, EngineKind kind) {
  return kind == EngineKind::kProcess ? policy.has_processes : policy.has_kubernetes;
}

Objection objection_to(EngineKind kind, const model::JobSpec& spec) {
  if (kind == EngineKind::kKubernetes) return model::objection_to_kubernetes(spec);
  return spec.image.empty() ? Objection() : model::objection_to_host_container(spec);
}

Objection objection_at(const model::Policy& policy, EngineKind kind, const model::JobSpec& spec) {
  if (!spec.workload.empty() && kind != EngineKind::kKubernetes) {
    return {"workload", "workload: its pods are in a cluster"};
  }
  const bool needs_containers = kind == EngineKind::kProcess && !spec.image.empty();
  if (needs_containers && !policy.has_containers) {
    return {"image", "image: this daemon has no container engine (execution.containers)"};
  }
  return objection_to(kind, spec);
}

std::string_view place_of(EngineKind kind) {
  return kind == EngineKind::kKubernetes ? "in Kubernetes" : "on this host";
}

}  // namespace

base::Result<model::EngineSet> engines_for(const model::Policy& policy,
                                           const model::JobSpec& spec) {
  model::EngineSet engines;
  std::vector<std::pair<EngineKind, Objection>> refused;
  for (const EngineKind kind : model::kAllEngineKinds) {
    if (!has_engine(policy, kind)) continue;
    Objection objection = objection_at(policy, kind, spec);
    if (objection.field.empty()) {
      engines.add(kind);
    } else {
      refused.emplace_back(kind, std::move(objection));
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
  for (const auto& [kind, objection] : refused) {
    reasons.push_back(fmt::format("{}, {}", place_of(kind), objection.why));
  }
  return base::fail(
      base::ErrorCode::kFailedPrecondition,
      fmt::format("{}: no engine can run the job: {}", field, fmt::join(reasons, "; ")), field);
}

base::Status check_engines(const model::JobSpec& spec) {
  for (const EngineKind kind : model::kinds_in(spec.request.engines)) {
    const Objection objection = objection_to(kind, spec);
    if (objection.field.empty()) continue;
    return base::fail(base::ErrorCode::kFailedPrecondition, objection.why, objection.field);
  }
  return {};
}

}  // namespace gpu_platform::controller
