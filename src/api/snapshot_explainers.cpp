#include "api/snapshot_explainers.h"

namespace gpu_platform::api {

model::WaitReason SnapshotExplainer::explain(const model::Job& job) {
  const std::lock_guard lock(mutex_);
  return explainer_.explain(job);
}

const std::vector<model::JobId>& SnapshotExplainer::order() {
  const std::lock_guard lock(mutex_);
  return explainer_.order();
}

std::shared_ptr<SnapshotExplainer> SnapshotExplainers::of(
    const std::shared_ptr<const controller::Snapshot>& snapshot) {
  // Destroyed behind the lock: books of many nodes, and perhaps the last that held the snapshot.
  std::shared_ptr<SnapshotExplainer> outdated;
  const std::lock_guard lock(mutex_);
  was_asked_ = true;
  if (newest_ != nullptr && &newest_->snapshot() == snapshot.get()) return newest_;
  auto made = std::make_shared<SnapshotExplainer>(snapshot);
  // An answer that took its snapshot before another one did comes late: it has its own.
  if (newest_ != nullptr && snapshot->seq < newest_->snapshot().seq) return made;
  outdated = std::exchange(newest_, made);
  return made;
}

void SnapshotExplainers::forget_idle() {
  std::shared_ptr<SnapshotExplainer> idle;
  const std::lock_guard lock(mutex_);
  if (!std::exchange(was_asked_, false)) idle = std::exchange(newest_, nullptr);
}

}  // namespace gpu_platform::api
