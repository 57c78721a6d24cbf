#include "views/snapshot_books.h"

#include "scheduling/book_entries.h"
#include "scheduling/quota/subjects.h"
#include "views/surplus_parts.h"

namespace gpu_platform::views {

scheduling::Cluster& SnapshotBooks::cluster() {
  if (view_ != nullptr) return view_->books().cluster_for_trial();
  if (!cluster_) {
    cluster_.emplace();
    snapshot_->nodes.for_each(
        [&](std::uint64_t, const model::Node& node) { cluster_->update(node); });
  }
  return *cluster_;
}

const scheduling::QuotaLedger& SnapshotBooks::quotas() {
  if (view_ != nullptr) return view_->books()->quotas;
  if (!quotas_) {
    quotas_ = scheduling::quotas_of(snapshot_->jobs, *snapshot_->policy->organisation,
                                    *snapshot_->period_use);
  }
  return *quotas_;
}

const scheduling::Pools& SnapshotBooks::pools() {
  if (view_ != nullptr) return view_->books()->lending;
  if (!pools_) {
    pools_ = scheduling::guarantees_anything(*snapshot_->policy->organisation)
                 ? scheduling::lending_of(snapshot_->jobs, *snapshot_->policy,
                                          cluster().totals().gpus_by_type())
                 : scheduling::Pools();
  }
  return *pools_;
}

const scheduling::RunningEnds& SnapshotBooks::running() {
  if (view_ != nullptr) return view_->books()->running;
  if (running_) return *running_;
  running_.emplace();
  snapshot_->jobs.for_each([&](std::uint64_t, const model::Job& job) {
    for (const model::Attempt& attempt : job.attempts) {
      if (!model::holds_resources(attempt.state)) continue;
      running_->put({job.id, attempt.number}, scheduling::latest_end(job, attempt),
                    attempt.allocation);
    }
  });
  return *running_;
}

const scheduling::ByPool<scheduling::SurplusParts>& SnapshotBooks::surplus_parts() {
  if (!surplus_parts_) {
    surplus_parts_ = surplus_parts_of(*snapshot_, pools(), cluster().totals().gpus_by_type());
  }
  return *surplus_parts_;
}

}  // namespace gpu_platform::views
