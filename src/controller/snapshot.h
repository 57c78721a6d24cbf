#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/persistent_map.h"
#include "base/shared.h"
#include "base/units.h"
#include "model/event.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/wait_reason.h"
#include "scheduling/explain/shortages.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/predict/prediction_scores.h"
#include "scheduling/predict/run_history.h"
#include "scheduling/quota/period_use.h"
#include "scheduling/quota/quota_ledger.h"

// What readers see: an immutable copy of the state after some event. Taking one costs O(1), and
// it is published before the commands that led to it are acknowledged, so a client reads its own
// writes.

namespace gpu_platform::controller {

struct Counts {
  std::uint64_t pending = 0;
  std::uint64_t queued = 0;
  std::uint64_t held = 0;
  std::uint64_t suspended = 0;
  std::uint64_t active = 0;  // STARTING, RUNNING, STOPPING

  friend bool operator==(const Counts&, const Counts&) = default;
};

struct Snapshot {
  model::EventSeq seq;
  base::Instant at;
  base::PersistentMap<model::Job> jobs;    // by JobId: every job that has not left the core
  base::PersistentMap<model::Node> nodes;  // by NodeId
  std::shared_ptr<const model::Policy> policy;
  Counts counts;
  // Of the scheduler's last cycle; null before the first.
  std::shared_ptr<const std::vector<scheduling::PlannedStart>> planned_starts;
  scheduling::OrderBasis order;                              // that the queue is ordered by
  std::shared_ptr<const scheduling::PreemptionHolds> holds;  // null: none
  base::PersistentMap<model::JobArray> arrays;               // by the array's id
  base::Shared<scheduling::PeriodUse> period_use;
  std::shared_ptr<const scheduling::Reservations> reservations;  // null: none
  scheduling::RunHistory runs;
  base::Shared<scheduling::PredictionScores> scores;
};

// Told on the loop thread after each durable batch; must return quickly.
class PublicationListener {
 public:
  virtual ~PublicationListener() = default;
  // `events` are those of the batch; `ended` the jobs that left the core with it.
  virtual void published(const std::shared_ptr<const Snapshot>& snapshot,
                         std::span<const model::EventRecord> events,
                         std::span<const model::Job> ended) = 0;
};

// Explains waiting jobs of one snapshot. Works out the queue's order once and each class of equal
// requests once, so asking about all of 10,000 waiting jobs costs little more than asking about
// one.
class WaitExplainer {
 public:
  explicit WaitExplainer(std::shared_ptr<const Snapshot> snapshot);
  // The job must be of the snapshot and waiting (HELD, PENDING or QUEUED).
  model::WaitReason explain(const model::Job& job);
  // The same without looking at the queue: the job stands, or would stand, behind so many, the
  // first of whom is `first`.
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
    const model::Reservation* in_the_way =
        nullptr;  // of those that keep nodes back the first to begin
  };
  // Of a PENDING job.
  model::WaitReason explain_pending(const model::Job& job) const;
  void explain_dependency(const model::Dependency& dependency, model::WaitReason& reason) const;
  model::WaitReason explain(const model::PreemptionHold& hold) const;
  void explain_place(const model::JobSpec& spec, model::WaitReason& reason);
  static void explain_reservation(const ClassAnswer& answer, model::WaitReason& reason);
  void explain_own_reservation(const model::JobSpec& spec, model::WaitReason& reason) const;
  const scheduling::QuotaLedger& quotas();
  const scheduling::PoolBalance& pools();
  const ClassAnswer& answer_for(const model::JobSpec& spec);
  ClassAnswer answer_anew(const model::ResourceRequest& request, base::Duration runs_for);
  void visit(const model::Node& node, scheduling::ShortageCounter& counter, ClassAnswer& answer);
  scheduling::Span span_of(const ClassAnswer& answer) const;
  bool gang_fits(const ClassAnswer& answer);

  std::shared_ptr<const Snapshot> snapshot_;
  std::optional<scheduling::QuotaLedger> quotas_;
  std::optional<scheduling::PoolBalance> pools_;
  bool ordered_ = false;
  std::vector<model::JobId> order_;
  std::map<std::uint64_t, std::uint64_t> position_;
  std::deque<ClassAnswer> classes_;
  std::optional<scheduling::Cluster> cluster_;  // of the snapshot's nodes, for gangs
};

}  // namespace gpu_platform::controller
