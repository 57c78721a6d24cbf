#pragma once

#include <memory>

#include "controller/snapshot.h"
#include "model/ids.h"
#include "scheduling/books.h"
#include "scheduling/plan_cycle.h"

namespace gpu_platform::views {

// The data that a scheduling cycle looks at, made from published snapshots to answer questions.
//
// Ownership: its own books; shares the snapshot. Thread: one at a time. Cost of follow(): what was
// written between the two snapshots, whichever is newer; the first time, and where policy or
// guarantees are others, everything.
class PlanningView {
 public:
  PlanningView() = default;
  explicit PlanningView(std::shared_ptr<const controller::Snapshot> snapshot) {
    follow(std::move(snapshot));
  }
  PlanningView(const PlanningView&) = delete;
  PlanningView& operator=(const PlanningView&) = delete;

  void follow(std::shared_ptr<const controller::Snapshot> snapshot);

  // After the first follow().
  const controller::Snapshot& snapshot() const { return *snapshot_; }
  const std::shared_ptr<const controller::Snapshot>& shared_snapshot() const { return snapshot_; }
  // Questions move in them and leave them as they were.
  scheduling::Books& books() { return books_; }
  const scheduling::Books& books() const { return books_; }
  const scheduling::WaitingQueue& queue() const { return books_->queue; }
  // The options of a cycle by hard limits, in which no job is stopped for others.
  static scheduling::CycleOptions options(base::Instant now);

 private:
  void follow_jobs(const base::PersistentMap<model::Job>& before);

  std::shared_ptr<const controller::Snapshot> snapshot_;
  scheduling::Books books_;
};

}  // namespace gpu_platform::views
