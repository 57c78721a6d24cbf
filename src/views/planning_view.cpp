#include "views/planning_view.h"

#include <utility>

namespace gpu_platform::views {

namespace {

template <class T>
T value_of(const std::shared_ptr<const T>& shared) {
  return shared == nullptr ? T() : *shared;
}

scheduling::Books::Given given_by(const controller::Snapshot& snapshot) {
  return {.policy = snapshot.policy,
          .ranking = snapshot.order->ranking,
          .holds = value_of(snapshot.holds),
          .reservations = value_of(snapshot.reservations),
          .history = *snapshot.runs,
          .period_use = snapshot.period_use,
          .budgets = snapshot.budgets};
}

bool is_same_basis(const controller::Snapshot& a, const controller::Snapshot& b) {
  return a.policy == b.policy && a.order->cluster_gpus == b.order->cluster_gpus &&
         a.period_use->begin == b.period_use->begin;
}

}  // namespace

void PlanningView::follow(std::shared_ptr<const controller::Snapshot> snapshot) {
  if (snapshot == snapshot_) return;
  const auto before = std::exchange(snapshot_, std::move(snapshot));
  if (before == nullptr || !is_same_basis(*before, *snapshot_)) {
    books_ = scheduling::Books::of(snapshot_->jobs, snapshot_->nodes, given_by(*snapshot_));
    return;
  }
  base::PersistentMap<model::Node>::for_each_difference(
      before->nodes, snapshot_->nodes,
      [&](std::uint64_t id, const model::Node*, const model::Node* node) {
        if (node == nullptr) {
          books_.erase(model::NodeId(id));
        } else {
          books_.put(*node);
        }
      });
  // A node may have other GPUs than before, and as many.
  if (books_->lending.is_by_type() &&
      books_->lending.guarantees() !=
          scheduling::guarantees_of(*snapshot_->policy->organisation,
                                    books_->cluster.totals().gpus_by_type())) {
    books_ = scheduling::Books::of(snapshot_->jobs, snapshot_->nodes, given_by(*snapshot_));
    return;
  }
  follow_jobs(before->jobs);
  books_.follow(given_by(*snapshot_), snapshot_->jobs);
}

// All that has changed leaves before any of it comes: what one gives back another may hold.
void PlanningView::follow_jobs(const base::PersistentMap<model::Job>& before) {
  using Jobs = base::PersistentMap<model::Job>;
  Jobs::for_each_difference(before, snapshot_->jobs,
                            [&](std::uint64_t, const model::Job* was, const model::Job*) {
                              if (was != nullptr) books_.erase(*was);
                            });
  Jobs::for_each_difference(before, snapshot_->jobs,
                            [&](std::uint64_t, const model::Job*, const model::Job* is) {
                              if (is != nullptr) books_.put(*is);
                            });
}

scheduling::CycleOptions PlanningView::options(base::Instant now) {
  return {.now = now, .stages = scheduling::Stages().without(scheduling::Stage::kPreempt)};
}

}  // namespace gpu_platform::views
