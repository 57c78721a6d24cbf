#include "monitoring/mps_fault_observer.h"

#include <algorithm>

#include <fmt/format.h>

#include "model/job_spec.h"
#include "monitoring/attempt_gate.h"

namespace gpu_platform::monitoring {

namespace {

// Nothing: the attempt is no client of an MPS server.
std::optional<MpsFaults::Client> client_of(const controller::Snapshot& snapshot,
                                           model::AttemptId id) {
  const model::Job* const job = snapshot.jobs.find(id.job.value);
  if (job == nullptr || !job->spec || id.attempt == 0 || id.attempt > job->attempts.size()) {
    return std::nullopt;
  }
  const model::Attempt& attempt = job->attempts[id.attempt - 1];
  for (const model::NodeAllocation& on_node : attempt.allocation.nodes) {
    const auto grant =
        std::ranges::find(on_node.grants, model::ShareMode::kMps, &model::GpuGrant::mode);
    const model::Node* const node = snapshot.nodes.find(on_node.node.value);
    if (grant == on_node.grants.end() || node == nullptr) continue;
    // That it has started may not be published yet.
    return MpsFaults::Client{
        id,
        {node->gpus.at(grant->gpu_index).info.uuid, job->spec->uid},
        attempt.started_at.is_set() ? attempt.started_at : attempt.requested_at};
  }
  return std::nullopt;
}

std::string in_words(const MpsFaults::Cause& cause) {
  if (cause.is_server_lost) return "the MPS server of the GPU was lost";
  if (cause.culprit) {
    return fmt::format(
        "job {} on the same GPU had a fault, which ends all programs of its MPS server",
        cause.culprit->job.value);
  }
  return "a job on the same GPU had a fault, which ends all programs of its MPS server; the driver "
         "does not say which";
}

}  // namespace

void MpsFaultObserver::take_kernel_line(const std::string& uuid, const hardware::KernelLine& line) {
  if (line.kind != hardware::KernelLineKind::kXid || line.pid == 0) return;
  if (!is_of_programs_(line.code)) return;
  const auto owner = owner_of_(uuid, line.pid);
  if (!owner) return;
  const auto client = client_of(*snapshot_(), *owner);
  if (!client || client->server.gpu != uuid) return;
  const std::lock_guard lock(mutex_);
  faults_.take_xid(*client, clock_());
}

void MpsFaultObserver::take_server_loss(const std::string& gpu, std::uint32_t uid) {
  const std::lock_guard lock(mutex_);
  faults_.take_loss({gpu, uid}, clock_());
}

void MpsFaultObserver::take_failure(const execution::Ended& ended) {
  const auto client = client_of(*snapshot_(), ended.attempt);
  if (!client) return;
  const std::lock_guard lock(mutex_);
  faults_.take_failure(*client, ended.at.is_set() ? ended.at : clock_());
}

// The cause of an end at the limit of host memory is in the job.
void MpsFaultObserver::complete(execution::Ended& ended) {
  if (!has_failed_of_itself(ended) || ended.reason == model::EndReason::kOutOfMemory) return;
  if (!ended.neighbour_fault.empty()) return;
  const std::lock_guard lock(mutex_);
  const auto cause = faults_.cause_of_failure(ended.attempt);
  if (cause) ended.neighbour_fault = in_words(*cause);
}

}  // namespace gpu_platform::monitoring
