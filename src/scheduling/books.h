#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/persistent_map.h"
#include "base/shared.h"
#include "base/units.h"
#include "model/budget.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/preemption_hold.h"
#include "model/reservation.h"
#include "scheduling/backfill/running_ends.h"
#include "scheduling/cluster.h"
#include "scheduling/order/starvation_queue.h"
#include "scheduling/pools/pools.h"
#include "scheduling/predict/run_history.h"
#include "scheduling/preemption/preemption_holds.h"
#include "scheduling/preemption/victim_index.h"
#include "scheduling/quota/period_use.h"
#include "scheduling/quota/quota_ledger.h"
#include "scheduling/reservations/reservations.h"
#include "scheduling/waiting_queue.h"

namespace gpu_platform::scheduling {

// All data that planning needs, as one value. The owner reports what comes, changes and goes. Books
// kept up to date in this way equal the books that of() computes afresh. Read them through ->.
//
// A new index is a member of Parts and a line in the put and erase of what it is about. Equality
// has it then, and differences() does not compile until it has a name.
//
// Ownership: holds copies and shares the policy. Thread: one owner. Cost: that of the indices; none
// of them is ever rebuilt, except where a comment says so.
class Books {
 public:
  struct Parts {
    // Kept as reported.
    PreemptionHolds holds;      // for QUEUED jobs, while others are stopped for them
    Reservations reservations;  // reserved, until their end
    RunHistory history;         // of attempts that came to their end
    base::Shared<PeriodUse> period_use;
    base::Shared<model::BudgetStates> budgets;  // all that are in force
    // Computed from nodes and jobs.
    Cluster cluster;
    WaitingQueue queue;                // QUEUED jobs; its basis has the rankings
    StarvationQueue starvation_queue;  // the same, by team
    RunningEnds running;  // attempts that hold something, by their latest ends without the grace
    VictimIndex victims;  // attempts that may be stopped for others
    QuotaLedger quotas;
    Pools lending;  // the GPUs that holders have, and the attempts that borrow

    friend bool operator==(const Parts&, const Parts&) = default;
  };

  // The parts that are not computed from nodes and jobs.
  struct Given {
    std::shared_ptr<const model::Policy> policy;  // never null
    base::Shared<FairShareRanking> ranking;
    PreemptionHolds holds;
    Reservations reservations;
    RunHistory history;
    base::Shared<PeriodUse> period_use;
    base::Shared<model::BudgetStates> budgets = {};
  };

  Books() : policy_(std::make_shared<const model::Policy>()) {}
  // Makes the books of worlds without jobs, for tests and benchmarks.
  explicit Books(Parts parts) : Books() { parts_ = std::move(parts); }

  // Computes the books afresh. Visits everything.
  static Books of(const base::PersistentMap<model::Job>& jobs,
                  const base::PersistentMap<model::Node>& nodes, Given given);

  const Parts* operator->() const { return &parts_; }
  const model::Policy& policy() const { return *policy_; }
  // The version changes with everything that a plan could see.
  std::uint64_t version() const { return version_; }
  // Returns the names of the parts that differ.
  static std::vector<std::string_view> differences(const Books& a, const Books& b);
  friend bool operator==(const Books& a, const Books& b) { return a.parts_ == b.parts_; }

  // Trials change it and leave it as it was.
  Cluster& cluster_for_trial() { return parts_.cluster; }

  // ---- nodes: a new node, or a node as it is now
  void put(const model::Node& node);
  void erase(model::NodeId node);

  // ---- jobs: as they are now, and as they were put before they change. A call for a whole job
  // also puts all jobs that begin or cease to borrow with it.
  void put(const model::Job& job);
  void erase(const model::Job& job);
  // The part of the job that waits, alone.
  void put_waiting(const model::Job& job);
  void erase_waiting(const model::Job& job);
  // A queued job asks for something else; its owner stays.
  void update_waiting(const model::Job& job);
  // An attempt that holds something. The result names the attempts that begin or cease to borrow
  // with it; the caller records this and updates them.
  Lending::Changes put_held(const model::Job& job, const model::Attempt& attempt);
  Lending::Changes erase_held(const model::Job& job, const model::Attempt& attempt);
  // The attempt's end or state has changed, or whether it may be stopped.
  void update_held(const model::Job& job, const model::Attempt& attempt);
  // Only its counts against limits: called before the job's specification changes, and after it.
  Lending::Changes count(const model::Job& job, const model::Attempt& attempt);
  Lending::Changes discount(const model::Job& job, const model::Attempt& attempt);

  // ---- preemption holds and reservations. The caller updates the victims of a preemption hold
  // that is erased.
  void put(model::PreemptionHold hold);
  void erase_hold(model::JobId beneficiary);
  void put(model::Reservation reservation);
  void erase_reservation(std::string_view name);

  // ---- what was used
  void add_run(const model::JobSpec& spec, base::Duration run);  // at full speed
  // The use of an attempt that gives back what it held, in the present period.
  void add_used(const model::JobSpec& spec, const std::string& gpu_type, std::uint64_t gpu_time);
  // Budgets were set, or what they have spent was counted.
  void put(base::Shared<model::BudgetStates> budgets);
  void reorder(base::Shared<FairShareRanking> ranking);
  // Does what WaitingQueue::welcome does.
  void welcome(base::Shared<FairShareRanking> ranking);

  // Takes over these values, by the same policy, for jobs that have been put. For callers that
  // follow snapshots.
  void follow(Given given, const base::PersistentMap<model::Job>& jobs);

  // ---- the policy and what follows from it. Each of the last three rebuilds one index.
  void follow(std::shared_ptr<const model::Policy> policy);
  // Takes over which GPUs may be shared, where that has changed. Cost: all nodes then.
  void follow_sharing(const base::PersistentMap<model::Node>& nodes);
  void follow_limits(const base::PersistentMap<model::Job>& jobs,
                     base::Shared<PeriodUse> period_use);
  void follow_guarantees(Pools lending);

  // Returns the history for a copy that shares it.
  RunHistory freeze_history() { return parts_.history.freeze(); }

  // Writes parts by themselves: for worlds without jobs.
  template <class Write>
  void rewrite(Write&& write) {
    write(parts_);
    ++version_;
  }

 private:
  void note(bool is_change) { version_ += is_change ? 1 : 0; }
  const model::Organisation& organisation() const { return *policy_->organisation; }

  Parts parts_;
  std::shared_ptr<const model::Policy> policy_;
  std::uint64_t version_ = 1;
};

}  // namespace gpu_platform::scheduling
