#include "controller/picture.h"

#include <utility>

#include "base/check.h"
#include "controller/lending.h"
#include "controller/quota_use.h"
#include "controller/state.h"

namespace gpu_platform::controller {

void Picture::follow(std::shared_ptr<const Snapshot> snapshot) {
  if (snapshot == snapshot_) return;
  const auto before = std::exchange(snapshot_, std::move(snapshot));
  const base::PersistentMap<model::Job> no_jobs;
  const base::PersistentMap<model::Node> no_nodes;
  queue_.reorder(snapshot_->order);
  base::PersistentMap<model::Node>::for_each_difference(
      before == nullptr ? no_nodes : before->nodes, snapshot_->nodes,
      [&](std::uint64_t id, const model::Node*, const model::Node* node) {
        if (node == nullptr) {
          cluster_.remove(model::NodeId(id));
        } else {
          cluster_.update(*node);
        }
      });
  base::PersistentMap<model::Job>::for_each_difference(
      before == nullptr ? no_jobs : before->jobs, snapshot_->jobs,
      [&](std::uint64_t, const model::Job* was, const model::Job* is) { follow_job(was, is); });
  quotas_ = quotas_of(snapshot_->jobs, *snapshot_->policy->organisation, *snapshot_->period_use);
  lending_ = lending_of(snapshot_->jobs, *snapshot_->policy, snapshot_->order.cluster_gpus);
}

void Picture::follow_job(const model::Job* before, const model::Job* after) {
  if (before != nullptr) {
    for (const model::Attempt& attempt : before->attempts) {
      if (model::holds_resources(attempt.state)) running_.erase({before->id, attempt.number});
    }
  }
  if (after == nullptr || after->state != model::JobState::kQueued) {
    queue_.erase(before != nullptr ? before->id : after->id);
  }
  if (after == nullptr) return;
  if (after->state == model::JobState::kQueued) {
    queue_.put(waiting_job(*after), *snapshot_->policy);
  }
  for (const model::Attempt& attempt : after->attempts) {
    if (!model::holds_resources(attempt.state)) continue;
    running_.put({after->id, attempt.number}, latest_end(*after, attempt), attempt.allocation,
                 yields(*after, attempt));
  }
}

scheduling::CycleOptions Picture::options(base::Instant now) const {
  scheduling::CycleOptions options;
  options.now = now;
  options.running = &running_;
  options.claims = snapshot_->claims.get();
  options.quotas = &quotas_;
  options.windows = snapshot_->windows.get();
  options.lending = &lending_;
  options.history = &snapshot_->runs;
  return options;
}

scheduling::VictimIndex Picture::victims() const {
  const scheduling::Claims none;
  const scheduling::Claims& claims = snapshot_->claims == nullptr ? none : *snapshot_->claims;
  scheduling::VictimIndex victims;
  if (!snapshot_->policy->allow_preemption) return victims;
  for (const auto& [key, allocation] : running_.ends()) {
    const model::Job* job = snapshot_->jobs.find(key.attempt.job.value);
    CHECK(job != nullptr);
    const model::Attempt& attempt = job->attempts.at(key.attempt.attempt - 1);
    if (auto victim = victim_of(*snapshot_->policy, claims, *job, attempt)) {
      victims.put(*std::move(victim));
    }
  }
  return victims;
}

}  // namespace gpu_platform::controller
