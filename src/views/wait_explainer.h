#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/units.h"
#include "controller/snapshot.h"
#include "model/job.h"
#include "model/wait_reason.h"
#include "scheduling/explain/shortages.h"
#include "scheduling/order/rank.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/pools/surplus.h"
#include "scheduling/quota/quota_ledger.h"

namespace gpu_platform::views {

// Explains waiting jobs of one snapshot. It computes the queue's order once and each class of equal
// requests once, so questions about all of 10,000 waiting jobs cost little more than one question.
class WaitExplainer {
 public:
  explicit WaitExplainer(std::shared_ptr<const controller::Snapshot> snapshot);
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
  struct ClassAnswer {
    model::ResourceRequest request;
    base::Duration runs_for;  // at most, the grace included; zero where nothing is reserved
    std::vector<model::WaitCount> counts;
    std::uint32_t parts = 1;  // of a gang, on a node each
    std::uint32_t gpus = 0;   // of a part
    bool fits = false;
    bool could_hold = false;
    // Without it, and with all others that begin before it, the request would fit.
    std::optional<scheduling::Reserved> in_the_way;
  };
  // Resources that are free and kept for the planned start of another job.
  struct Kept {
    model::JobId job;
    base::Instant until;  // unset: at any moment
  };
  struct KeptAnswer {
    model::ResourceRequest request;
    base::Duration time_limit;
    std::size_t planned_ahead = 0;
    std::optional<Kept> kept;
  };
  // `rank`: null for a job that would be submitted now.
  model::WaitReason explain_behind(const model::JobSpec& spec, const scheduling::Rank* rank,
                                   std::uint64_t jobs_ahead, model::JobId first);
  // Explains a PENDING job.
  model::WaitReason explain_pending(const model::Job& job) const;
  void explain_dependency(const model::Dependency& dependency, model::WaitReason& reason) const;
  model::WaitReason explain(const model::PreemptionHold& hold) const;
  void explain_place(const model::JobSpec& spec, const scheduling::Rank* rank,
                     model::WaitReason& reason);
  void explain_types(const model::JobSpec& spec, const scheduling::Rank* rank,
                     model::WaitReason& reason);
  void explain_free(const model::JobSpec& spec, const scheduling::Rank* rank,
                    model::WaitReason& reason);
  static void explain_reservation(const ClassAnswer& answer, model::WaitReason& reason);
  // `comes_last`: behind all planned starts, whatever its rank.
  std::optional<Kept> kept_from(const model::JobSpec& spec, const scheduling::Rank* rank,
                                bool comes_last);
  std::optional<Kept> kept_anew(const model::JobSpec& spec, std::size_t planned_ahead);
  std::size_t planned_before(const scheduling::Rank* rank) const;
  void explain_own_reservation(const model::JobSpec& spec, model::WaitReason& reason) const;
  bool explain_next_occurrence(const model::JobSpec& spec, model::WaitReason& reason) const;
  const scheduling::QuotaLedger& quotas();
  // Returns what the jobs of that rank and above will hold once others have been stopped for them:
  // it counts against limits as if they had started.
  scheduling::QuotaLedger awaited_before(const scheduling::Rank* rank) const;
  const scheduling::Pools& pools();
  // Returns why the job comes after all others in each pool that may give it GPUs; nothing if there
  // is one where it does not. A job that would be submitted now is not among the waiting ones yet.
  std::optional<model::SurplusExcess> surplus_excess_of(const model::JobSpec& spec,
                                                        const scheduling::Rank* rank);
  const ClassAnswer& answer_for(const model::JobSpec& spec);
  ClassAnswer answer_anew(const model::ResourceRequest& request, base::Duration runs_for);
  using Others = scheduling::Reservations::Others;
  void visit(const model::Node& node, Others others, scheduling::ShortageCounter& counter,
             ClassAnswer& answer) const;
  void place_gang(Others others, ClassAnswer& answer);
  bool gang_fits(const model::ResourceRequest& request, Others others);
  scheduling::Cluster& cluster();
  const scheduling::RunningEnds& running();

  std::shared_ptr<const controller::Snapshot> snapshot_;
  std::optional<scheduling::QuotaLedger> quotas_;
  std::optional<scheduling::Pools> pools_;
  std::optional<scheduling::ByPool<scheduling::SurplusParts>> parts_;
  bool ordered_ = false;
  std::vector<model::JobId> order_;
  std::map<std::uint64_t, std::uint64_t> position_;
  std::deque<ClassAnswer> classes_;
  std::deque<KeptAnswer> kept_;
  // The indices of the snapshot's nodes and attempts, for trials.
  std::optional<scheduling::Cluster> cluster_;
  std::optional<scheduling::RunningEnds> running_;
};

}  // namespace gpu_platform::views
