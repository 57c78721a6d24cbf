#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/persistent_map.h"
#include "base/shared.h"
#include "base/units.h"
#include "model/job.h"
#include "model/node.h"
#include "model/policy.h"
#include "model/preemption_hold.h"
#include "model/reservation.h"
#include "scheduling/backfill/running_ends.h"
#include "scheduling/cluster.h"
#include "scheduling/order/starvation_queue.h"
#include "scheduling/pools/lending.h"
#include "scheduling/predict/run_history.h"
#include "scheduling/preemption/preemption_holds.h"
#include "scheduling/preemption/victim_index.h"
#include "scheduling/quota/period_use.h"
#include "scheduling/quota/quota_ledger.h"
#include "scheduling/reservations/reservations.h"
#include "scheduling/waiting_queue.h"

namespace gpu_platform::scheduling {

// Everything that planning goes by, as one value. The owner tells it what comes, changes and goes;
// books that came about so equal those that of() works out afresh. Read through ->.
//
// A new index is a member of Parts and a line in the put and erase of what it is about. Equality
// has it then, and differences() does not compile until it has a name.
//
// Ownership: holds copies and shares the policy. Thread: one owner. Cost: that of the indices; none
// is ever rebuilt but where a comment says so.
class Books {
 public:
  struct Parts {
    // Kept as told.
    PreemptionHolds holds;      // for QUEUED jobs, while others are stopped for them
    Reservations reservations;  // reserved, until their end
    RunHistory history;         // of attempts that came to their end
    base::Shared<PeriodUse> period_use;
    // Worked out from nodes and jobs.
    Cluster cluster;
    WaitingQueue queue;                // QUEUED jobs; its basis has the rankings
    StarvationQueue starvation_queue;  // the same, by team
    RunningEnds running;  // attempts that hold something, by their latest ends without the grace
    VictimIndex victims;  // attempts that may be stopped for others
    QuotaLedger quotas;
    Lending lending;  // the GPUs that holders have, and the attempts that borrow

    friend bool operator==(const Parts&, const Parts&) = default;
  };

  // What is not worked out from nodes and jobs.
  struct Given {
    std::shared_ptr<const model::Policy> policy;  // never null
    base::Shared<FairShareRanking> ranking;
    PreemptionHolds holds;
    Reservations reservations;
    RunHistory history;
    base::Shared<PeriodUse> period_use;
  };

  Books() : policy_(std::make_shared<const model::Policy>()) {}
  // For worlds without jobs: tests and benchmarks.
  explicit Books(Parts parts) : Books() { parts_ = std::move(parts); }

  // Afresh. Visits everything.
  static Books of(const base::PersistentMap<model::Job>& jobs,
                  const base::PersistentMap<model::Node>& nodes, Given given);

  const Parts* operator->() const { return &parts_; }
  const model::Policy& policy() const { return *policy_; }
  // Changes with everything that a plan could see.
  std::uint64_t version() const { return version_; }
  // The names of the parts that differ.
  static std::vector<std::string_view> differences(const Books& a, const Books& b);
  friend bool operator==(const Books& a, const Books& b) { return a.parts_ == b.parts_; }

  // Trials move in it and leave it as it was.
  Cluster& cluster_for_trial() { return parts_.cluster; }

  // ---- nodes: a new one, or as it is now
  void put(const model::Node& node);
  void erase(model::NodeId node);

  // ---- jobs: as they are now, and as they were put before they change. Of a whole job, where all
  // jobs that begin or cease to borrow with it are put too.
  void put(const model::Job& job);
  void erase(const model::Job& job);
  // What waits of it alone.
  void put_waiting(const model::Job& job);
  void erase_waiting(const model::Job& job);
  // One in the queue asks for something else; whose it is stays.
  void update_waiting(const model::Job& job);
  // An attempt that holds something. Attempts that begin or cease to borrow with it are named: they
  // are to be told so, and updated.
  Lending::Changes put_held(const model::Job& job, const model::Attempt& attempt);
  Lending::Changes erase_held(const model::Job& job, const model::Attempt& attempt);
  // Its end or its state is another, or whether it may be stopped.
  void update_held(const model::Job& job, const model::Attempt& attempt);
  // Only what it counts for: before the job's specification changes, and after it has.
  Lending::Changes count(const model::Job& job, const model::Attempt& attempt);
  Lending::Changes discount(const model::Job& job, const model::Attempt& attempt);

  // ---- preemption holds and reservations. Victims of a preemption hold that is erased are to be
  // updated.
  void put(model::PreemptionHold hold);
  void erase_hold(model::JobId beneficiary);
  void put(model::Reservation reservation);
  void erase_reservation(std::string_view name);

  // ---- what was used
  void add_run(const model::JobSpec& spec, base::Duration run);  // at full speed
  // By one that gives back what it held, in the present period.
  void add_used(const model::JobSpec& spec, std::uint64_t gpu_time);
  void reorder(base::Shared<FairShareRanking> ranking);
  // As WaitingQueue::welcome.
  void welcome(base::Shared<FairShareRanking> ranking);

  // Takes over what is given now, by the same policy, for jobs that have been put. For callers that
  // follow snapshots.
  void follow(Given given, const base::PersistentMap<model::Job>& jobs);

  // ---- the policy and what follows from it. Each of the last two works one index out anew.
  void follow(std::shared_ptr<const model::Policy> policy);
  void follow_limits(const base::PersistentMap<model::Job>& jobs,
                     base::Shared<PeriodUse> period_use);
  void follow_guarantees(Lending lending);

  // For a copy that shares it.
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
