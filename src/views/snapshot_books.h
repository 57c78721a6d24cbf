#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "controller/snapshot.h"
#include "scheduling/backfill/running_ends.h"
#include "scheduling/cluster.h"
#include "scheduling/pools/pools.h"
#include "scheduling/pools/surplus.h"
#include "scheduling/quota/quota_ledger.h"
#include "views/planning_view.h"

namespace gpu_platform::views {

// What explanations look at besides a snapshot: those parts of its books that they need. They are
// the books of a planning view or, without one, made when they are first asked for: most answers
// need none of them.
//
// Ownership: shares the snapshot. Refers to the view, which must outlive it and must be at this
// snapshot whenever a part is asked for. Thread: one at a time.
class SnapshotBooks {
 public:
  explicit SnapshotBooks(std::shared_ptr<const controller::Snapshot> snapshot)
      : snapshot_(std::move(snapshot)) {}
  explicit SnapshotBooks(PlanningView& view) : snapshot_(view.shared_snapshot()), view_(&view) {}

  const controller::Snapshot& snapshot() const { return *snapshot_; }

  // Trials change it and leave it as it was. Cost of the first call: all nodes.
  scheduling::Cluster& cluster();
  // Cost of the first call: all jobs if anything is limited.
  const scheduling::QuotaLedger& quotas();
  // Not active if no GPUs are guaranteed. Cost of the first call: all jobs and nodes otherwise.
  const scheduling::Pools& pools();
  // Cost of the first call: all jobs.
  const scheduling::RunningEnds& running();
  // See surplus_parts_of(). Cost of the first call: all jobs.
  const scheduling::ByPool<scheduling::SurplusParts>& surplus_parts();

 private:
  std::shared_ptr<const controller::Snapshot> snapshot_;
  PlanningView* view_ = nullptr;
  std::optional<scheduling::Cluster> cluster_;
  std::optional<scheduling::QuotaLedger> quotas_;
  std::optional<scheduling::Pools> pools_;
  std::optional<scheduling::RunningEnds> running_;
  std::optional<scheduling::ByPool<scheduling::SurplusParts>> surplus_parts_;
};

}  // namespace gpu_platform::views
