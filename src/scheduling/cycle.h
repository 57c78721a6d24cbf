#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "scheduling/placement/place.h"
#include "scheduling/plan_cycle.h"
#include "scheduling/pools/balance.h"
#include "scheduling/preemption/claimed_amounts.h"
#include "scheduling/preemption/find_victims.h"
#include "scheduling/trial.h"

// The steps of one scheduling cycle, for plan_cycle, which runs them, and what_if, which asks what
// they would do. Thread: the owner's.

namespace gpu_platform::scheduling {

class Cycle {
 public:
  // All of it must outlive the cycle; nobody else may write to the books meanwhile.
  Cycle(Books& books, const model::Policy& policy, const CycleOptions& options);
  Cycle(Books& books, const Supposition& supposed, const model::Policy& policy,
        const CycleOptions& options);

  // Once.
  Plan run();

  // For questions, instead of run(): keeps the places of those that rank before.
  void keep_places(std::span<const Reservation> reservations, const Rank& before);
  void keep_all_places(std::span<const Reservation> reservations);
  std::optional<model::Allocation> start_of(const WaitingJob& job);
  // Where nothing is free for all of its time: by what is expected of it.
  struct TrustedStart {
    model::Allocation allocation;
    base::Instant yields_at;
  };
  std::optional<TrustedStart> trusted_start_of(const WaitingJob& job);
  std::optional<Slot> slot_of(const WaitingJob& job);
  // Once: what it plans for one job counts for the next.
  std::optional<Preemption> preemption_for(const WaitingJob& job);
  bool may_reclaim(const WaitingJob& job) const;
  bool is_over_quota(const WaitingJob& job) const;
  bool would_borrow(const WaitingJob& job) const;
  void quota();

 private:
  Cycle(Books& books, const WaitingQueue& queue, const RunningEnds& running,
        const ExpectedTimes& expected, const model::Policy& policy, const CycleOptions& options);

  struct Row {
    Stage stage;
    void (Cycle::*run)();
  };
  static const Row kRows[];

  // What is to be done with the jobs behind one that was considered.
  enum class Next { kGoOn, kSkipClass, kStop };

  void order() { is_ordered_ = true; }
  void place_in_order();
  void backfill();
  void preempt();
  void lend();
  Next consider(const WaitingJob& job);
  Next pass_or_block(const WaitingJob& job);
  Next backfill_one(const WaitingJob& job);
  Next reserve_for(const WaitingJob& job);
  Next reclaim_for(const WaitingJob& job);
  void start_or_keep_claims();
  bool is_free_beside(const ClaimedAmounts& claimed, const model::Allocation& allocation);
  bool is_started_by_claim(const WaitingJob& job) const;
  PoolAsk pool_ask_of(const WaitingJob& job) const;
  bool is_kept_back_by_pools(const WaitingJob& job, bool has_claim) const;
  bool is_over_limits(const WaitingJob& job) const;
  bool comes_last(const WaitingJob& job);
  void keep_place(const Reservation& reservation);
  bool may_be_trusted(const WaitingJob& job) const;
  void judge_those_who_yield();
  std::optional<Room> find_room(const WaitingJob& job, bool reclaims);
  std::optional<Slot> make_room_for(const WaitingJob& job, const std::optional<Slot>& slot);
  void look_again_at(std::optional<base::Instant> at);
  bool is_void(const model::Claim& claim, const WaitingJob& job) const;
  const model::Claim* claim_of(const WaitingJob& job) const;
  void keep(const model::Claim& claim);
  void keep_from_now(const Slot& slot, base::Duration time_limit);
  Slot kept_slot(const model::Claim& claim) const;
  base::Duration held_for(const WaitingJob& job) const;
  bool has_room_for_starts();
  void count_start(const WaitingJob& job);
  void start(const WaitingJob& job, model::Allocation allocation, model::StartWhy why,
             base::Instant yields_at = {});
  template <class Place>
  std::optional<model::Allocation> place_for(const WaitingJob& job, const Place& place_it);
  bool is_known_unplaceable(const model::ResourceRequest& request) const;

  const Books& books_;
  const WaitingQueue& queue_;
  const RunningEnds& running_;
  const ExpectedTimes& expected_;
  Trial trial_;
  Timeline timeline_;
  const model::Policy& policy_;
  const std::size_t depth_;
  const CycleOptions& options_;
  VictimSearch victim_search_;
  WaitingClasses::Walk walk_;
  Plan plan_;
  bool is_ordered_ = false;
  bool keeps_limits_ = false;
  base::Shared<model::Organisation> organisation_;
  QuotaLedger added_;             // what the starts of this cycle add
  PoolBalance pools_;             // with the starts of this cycle
  bool someone_borrows_ = false;  // who comes after all others
  std::size_t reclaims_left_ = kMostReclaimed;
  const WaitingJob* blocked_ = nullptr;  // the first job that does not fit
  std::set<model::JobId> started_by_claim_;
  std::set<model::JobId> started_;  // where somebody may borrow, who comes later
  // Requests found to fit no node that is up, each once: a queue may be full of equal ones.
  std::vector<const model::ResourceRequest*> unplaceable_;
};

}  // namespace gpu_platform::scheduling
