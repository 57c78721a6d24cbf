#include "controller/judge/hung.h"

#include <algorithm>

#include "model/job_spec.h"
#include "model/node_lookup.h"

namespace gpu_platform::controller {

namespace {

// Late evidence may be about an attempt before this one, on other GPUs.
bool holds_gpu(const State& state, model::AttemptId id, const execution::EvidenceObserved& seen) {
  const auto known = state.node_ids.find(seen.node_name);
  if (known == state.node_ids.end()) return false;
  const model::Node& node = *state.nodes.find(known->second.value);
  const auto index = model::index_of_gpu(node, seen.gpu_uuid);
  if (!index) return false;
  const auto& holders = node.gpus.at(*index).holders;
  return std::ranges::find(holders, id, &model::GpuHolder::attempt) != holders.end();
}

}  // namespace

std::optional<model::Event> judge_hung(const State& state,
                                       const execution::EvidenceObserved& seen) {
  if (seen.evidence.kind != model::EvidenceKind::kJobHung) return std::nullopt;
  const model::Job* const job = state.jobs.find(seen.evidence.job.value);
  if (job == nullptr || job->attempts.empty()) return std::nullopt;
  if (job->spec->hang_timeout == base::Duration()) return std::nullopt;
  const model::Attempt& attempt = job->attempts.back();
  // It was quiet for all of that time, so it ran for as long.
  const bool has_run = seen.evidence.at - attempt.started_at >= job->spec->hang_timeout;
  if (attempt.state != model::AttemptState::kRunning || !has_run) return std::nullopt;
  const model::AttemptId id{job->id, attempt.number};
  if (!holds_gpu(state, id, seen)) return std::nullopt;
  return model::StopRequested{id, model::EndReason::kHung, false, {}};
}

}  // namespace gpu_platform::controller
