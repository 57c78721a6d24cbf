#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "controller/snapshot.h"
#include "model/job.h"
#include "model/wait_reason.h"
#include "scheduling/order/rank.h"
#include "scheduling/quota/quota_ledger.h"
#include "views/kept_places.h"
#include "views/request_fits.h"
#include "views/snapshot_books.h"

namespace gpu_platform::views {

// Explains waiting jobs of one snapshot. It computes the queue's order once and each class of equal
// requests once, so questions about all of 10,000 waiting jobs cost little more than one question.
//
// Ownership: shares the snapshot; see SnapshotBooks for the view. Thread: one at a time.
class WaitExplainer {
 public:
  explicit WaitExplainer(std::shared_ptr<const controller::Snapshot> snapshot)
      : books_(std::make_unique<SnapshotBooks>(std::move(snapshot))) {}
  // Explains with the view's books, which are there, jobs of the snapshot that the view has now.
  explicit WaitExplainer(PlanningView& view) : books_(std::make_unique<SnapshotBooks>(view)) {}

  // The job must be of the snapshot and waiting (HELD, PENDING or QUEUED).
  model::WaitReason explain(const model::Job& job);
  // The same without looking at the queue: the job is, or would be, behind this number of jobs, and
  // `first` is the first of them.
  model::WaitReason explain_behind(const model::Job& job, std::uint64_t jobs_ahead,
                                   model::JobId first);
  model::WaitReason explain_behind(const model::JobSpec& spec, std::uint64_t jobs_ahead,
                                   model::JobId first);
  // QUEUED jobs in the order in which they will be considered.
  const std::vector<model::JobId>& order();

 private:
  const controller::Snapshot& snapshot() const { return books_->snapshot(); }
  // `rank`: null for a job that would be submitted now.
  model::WaitReason explain_behind(const model::JobSpec& spec, const scheduling::Rank* rank,
                                   std::uint64_t jobs_ahead, model::JobId first);
  void explain_place(const model::JobSpec& spec, const scheduling::Rank* rank,
                     model::WaitReason& reason);
  void explain_types(const model::JobSpec& spec, const scheduling::Rank* rank,
                     model::WaitReason& reason);
  void explain_free(const model::JobSpec& spec, const scheduling::Rank* rank,
                    model::WaitReason& reason);
  static void explain_reservation(const RequestFit& fit, model::WaitReason& reason);
  // Returns what the jobs of that rank and above will hold once others have been stopped for them:
  // it counts against limits as if they had started.
  scheduling::QuotaLedger awaited_before(const scheduling::Rank* rank) const;
  // Returns why the job comes after all others in each pool that may give it GPUs; nothing if there
  // is one where it does not. A job that would be submitted now is not among the waiting ones yet.
  std::optional<model::SurplusExcess> surplus_excess_of(const model::JobSpec& spec,
                                                        const scheduling::Rank* rank);

  std::unique_ptr<SnapshotBooks> books_;  // never null; stays where it is if this is moved
  RequestFits fits_{*books_};
  KeptPlaces kept_places_{*books_};
  bool ordered_ = false;
  std::vector<model::JobId> order_;
  std::map<std::uint64_t, std::uint64_t> position_;
};

}  // namespace gpu_platform::views
