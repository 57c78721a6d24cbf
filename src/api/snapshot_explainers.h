#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "controller/snapshot.h"
#include "model/job.h"
#include "model/wait_reason.h"
#include "views/wait_explainer.h"

namespace gpu_platform::api {

// Explains waiting jobs of one snapshot, with one set of books for all answers about it.
//
// Ownership: shares the snapshot. Thread: any; one question at a time, so an answer of many jobs
// holds others up for single questions. Cost: views/wait_explainer.h.
class SnapshotExplainer {
 public:
  explicit SnapshotExplainer(std::shared_ptr<const controller::Snapshot> snapshot)
      : snapshot_(std::move(snapshot)), explainer_(snapshot_) {}

  const controller::Snapshot& snapshot() const { return *snapshot_; }
  // The job must be waiting: QUEUED in the snapshot, or HELD or PENDING.
  model::WaitReason explain(const model::Job& job);
  // QUEUED jobs in the order in which they will be considered. What is returned does not change and
  // lives as long as this.
  const std::vector<model::JobId>& order();

 private:
  const std::shared_ptr<const controller::Snapshot> snapshot_;
  std::mutex mutex_;
  views::WaitExplainer explainer_;  // guarded by mutex_
};

// Gives all who ask about one snapshot the same explainer.
//
// Ownership: keeps the explainer of the newest snapshot that was asked about, and so that snapshot
// and the books made of it, until a newer one is asked about or forget_idle() lets go of it.
// Thread: any. Cost of a new snapshot: that of the questions about it.
class SnapshotExplainers {
 public:
  // Never null.
  std::shared_ptr<SnapshotExplainer> of(
      const std::shared_ptr<const controller::Snapshot>& snapshot);
  // Called from time to time. Keeps nothing any more if no one has asked since the last call.
  void forget_idle();

 private:
  std::mutex mutex_;
  std::shared_ptr<SnapshotExplainer> newest_;  // guarded by mutex_, as the next
  bool was_asked_ = false;
};

}  // namespace gpu_platform::api
