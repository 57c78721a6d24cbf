#pragma once

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/policy.h"
#include "scheduling/order/rank.h"
#include "scheduling/order/waiting_classes.h"
#include "scheduling/preemption/stop_record.h"

namespace gpu_platform::scheduling {

struct WaitingJob {
  model::JobId id;
  std::shared_ptr<const model::JobSpec> spec;  // never null
  base::Instant submitted_at;
  std::vector<model::NodeId> avoid;     // nodes that it gets only if no other has enough free now
  std::vector<std::string> avoid_gpus;  // UUIDs of GPUs, the same: suspects of a failure
  base::Instant overdue_since;          // unset: it is not
  std::uint32_t preemptions = 0;        // how often it was stopped for others
  bool had_others_stopped = false;      // since it last started
  std::optional<model::Turn> turn;      // absent: its own

  StopRecord record() const { return {preemptions, had_others_stopped}; }

  friend bool operator==(const WaitingJob& a, const WaitingJob& b);
};

Rank rank_of(const WaitingJob& job, const OrderBasis& basis);

// The jobs that wait for resources (QUEUED), always in order.
// Ownership: shares the specs. Thread: one owner. Cost: put and erase O(log n); when an input of
// the order changes, one look at each job and O(log n) for each that moves.
class WaitingQueue {
 public:
  WaitingQueue() = default;
  explicit WaitingQueue(OrderBasis basis) : basis_(std::move(basis)) { classify(); }
  // The classes refer to their own jobs.
  WaitingQueue(const WaitingQueue&) = delete;
  WaitingQueue& operator=(const WaitingQueue&) = delete;
  WaitingQueue(WaitingQueue&& other) noexcept { swap(other); }
  WaitingQueue& operator=(WaitingQueue&& other) noexcept {
    swap(other);
    return *this;
  }
  void swap(WaitingQueue& other) noexcept;

  // Adds the job or replaces its record.
  void put(WaitingJob job, const model::Policy& policy);
  bool erase(model::JobId job);
  // Moves the jobs that get another rank by a new policy, a new ranking or another number of GPUs;
  // returns true if there are any. Ranking and GPUs stay as they are until they are set.
  bool reorder(const model::Policy& policy);
  bool reorder(base::Shared<FairShareRanking> ranking);
  bool reorder(const OrderBasis& basis);
  bool resize_cluster(std::uint64_t gpus);
  // Says whether there are budgets, which tell owners apart. Cost: all jobs if that changes.
  void keep_budgets(bool has_some);
  // Takes a ranking with new accounts that have no job here yet. Looks at jobs only if the rank of
  // another account has changed.
  bool welcome(base::Shared<FairShareRanking> ranking);

  bool is_ordered_by(const model::Policy& policy) const { return basis_.is_of(policy); }
  const OrderBasis& basis() const { return basis_; }

  std::size_t size() const { return by_rank_.size(); }
  bool empty() const { return by_rank_.empty(); }
  bool contains(model::JobId job) const { return ranks_.contains(job); }
  // Returns null if the job does not wait.
  const WaitingJob* find(model::JobId job) const;
  const Rank* find_rank(model::JobId job) const;

  // Returns true for the same jobs in the same order and in the same classes, by rankings that look
  // the same to people: the numbers of places mean nothing else. Cost: all jobs.
  friend bool operator==(const WaitingQueue& a, const WaitingQueue& b);

  // The classes of equal jobs, to be walked through in order; find() returns the job of a rank.
  const WaitingClasses& classes() const { return classes_; }
  const WaitingJob& find(const Rank& rank) const { return by_rank_.find(rank)->second; }

  // Calls visit(const WaitingJob&) from the first job on until it returns false.
  template <class Visit>
  void for_each_while(Visit&& visit) const {
    for (const auto& [rank, job] : by_rank_) {
      if (!visit(job)) return;
    }
  }
  // Returns how many jobs rank before it, in O(log n).
  std::uint64_t count_before(const Rank& rank) const { return by_rank_.order_of_key(rank); }
  // The same in the order of ids, which is that of submission.
  template <class Visit>
  void for_each_by_id_while(Visit&& visit) const {
    for (const auto& [id, rank] : ranks_) {
      if (!visit(by_rank_.find(rank)->second)) return;
    }
  }

 private:
  // A map that also knows how many keys stand before one.
  using ByRank = __gnu_pbds::tree<Rank, WaitingJob, std::less<Rank>, __gnu_pbds::rb_tree_tag,
                                  __gnu_pbds::tree_order_statistics_node_update>;

  bool move_whose_rank_changed();
  void classify();

  ByRank by_rank_;
  std::map<model::JobId, Rank> ranks_;
  WaitingClasses classes_;
  OrderBasis basis_;  // by_rank_ is ordered by it
  bool splits_by_owner_ = false;
};

}  // namespace gpu_platform::scheduling
