#pragma once

#include <memory>

#include "controller/snapshot.h"
#include "model/ids.h"
#include "scheduling/backfill/running_ends.h"
#include "scheduling/cluster.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/waiting_queue.h"

namespace gpu_platform::controller {

// What a scheduling cycle looks at, made from published snapshots for those who ask what would be.
//
// Ownership: its own indices; shares the snapshot. Thread: one at a time. Cost of follow(): what
// was written between the two snapshots, whichever is newer; the first time everything.
class Picture {
 public:
  Picture() = default;
  explicit Picture(std::shared_ptr<const Snapshot> snapshot) { follow(std::move(snapshot)); }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  void follow(std::shared_ptr<const Snapshot> snapshot);

  const Snapshot& snapshot() const { return *snapshot_; }  // after the first follow()
  const scheduling::WaitingQueue& queue() const { return queue_; }
  const scheduling::RunningEnds& running() const { return running_; }
  // Questions move in it and leave it as it was.
  scheduling::Cluster& cluster() { return cluster_; }
  scheduling::CycleOptions options(base::Instant now) const;
  // Those that may be stopped for others, worked out anew. Cost: by those who run.
  scheduling::VictimIndex victims() const;

 private:
  void follow_job(const model::Job* before, const model::Job* after);

  std::shared_ptr<const Snapshot> snapshot_;
  scheduling::Cluster cluster_;
  scheduling::WaitingQueue queue_;
  scheduling::RunningEnds running_;
  // Worked out anew each time, where anything is limited.
  scheduling::QuotaLedger quotas_;
  scheduling::Lending lending_;
};

}  // namespace gpu_platform::controller
