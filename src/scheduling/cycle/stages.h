#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "scheduling/cycle/cycle_state.h"
#include "scheduling/cycle/limits.h"
#include "scheduling/cycle/preemptor.h"

// The stages that walk through the queue, and the one that judges the attempts that yield. Each has
// its own state and refers to the cycle that it works on.

namespace gpu_platform::scheduling {

// The walk through the queue, once, by classes of equal jobs; kOrder puts it in order.
struct Line {
  explicit Line(const WaitingQueue& queue) : walk(queue.classes()) {}

  void run() { is_ordered = true; }
  // The next job to consider; null: there is none.
  const Rank* next() {
    const Rank* rank = walk.next();
    if (rank != nullptr) ++considered;
    return rank;
  }

  WaitingClasses::Walk walk;
  std::size_t considered = 0;
  bool is_ordered = false;
  const WaitingJob* blocked = nullptr;  // the first job that does not fit
};

// Says what the stage does with the jobs behind the one that was considered.
enum class Next : std::uint8_t { kGoOn, kSkipClass, kStop };

// The stage kLend: jobs that would borrow, in order and after all others, and then those whose
// holder has its share of the GPUs beyond guarantees. They get what the others leave and touch no
// place that is kept.
class Borrowers {
 public:
  Borrowers(CycleState& cycle, Limits& limits) : cycle_(cycle), limits_(limits) {}

  // Notes the job if this stage could start it. Returns it as it is in its turn, before this stage;
  // null if it has none.
  const WaitingJob* in_turn(const WaitingJob& job);
  bool empty() const { return !has_any_; }
  void run();

 private:
  // The stages run in this order.
  static constexpr Purpose kAfterAll[] = {Purpose::kLoan, Purpose::kLast};

  void start_those(Purpose purpose);

  CycleState& cycle_;
  Limits& limits_;
  std::set<model::JobId> served_;
  bool has_any_ = false;
};

// The stage kPlace: jobs with a preemption hold or a reservation get their place first. Then jobs
// start in order, up to the first that does not fit.
class Placing {
 public:
  Placing(CycleState& cycle, Limits& limits, Line& line, Borrowers& borrowers)
      : cycle_(cycle), limits_(limits), line_(line), borrowers_(borrowers) {}

  void run();
  bool has_started_by_hold(const WaitingJob& job) const;

  // Questions call it instead of run(): it keeps everything that is on hold, and these places.
  void keep(std::span<const PlannedStart> planned_starts);

 private:
  void start_or_keep_holds();
  void keep(const model::PreemptionHold& hold);
  Next consider(const WaitingJob& job);
  Next pass_or_block(const WaitingJob& job);

  CycleState& cycle_;
  Limits& limits_;
  Line& line_;
  Borrowers& borrowers_;
  std::set<model::JobId> started_by_hold_;
  // Requests that fit no node that is up, each once: a full queue may hold many equal ones.
  std::vector<const model::ResourceRequest*> unplaceable_;
};

// The stage kBackfill: goes on where placing has stopped, at the blocked head. It keeps places for
// the first jobs that do not fit, and starts jobs that do not delay these.
class Backfilling {
 public:
  Backfilling(CycleState& cycle, Limits& limits, Preemptor& preemptor, Line& line,
              Borrowers& borrowers, const Placing& placing)
      : cycle_(cycle),
        limits_(limits),
        preemptor_(preemptor),
        line_(line),
        borrowers_(borrowers),
        placing_(placing) {}

  void run();

  // If nothing is free for all of the job's time limit: tries its predicted run time.
  struct TrustedStart {
    model::Allocation allocation;
    base::Instant yields_at;
  };
  std::optional<TrustedStart> trusted_start_of(const WaitingJob& job);

 private:
  Next consider(const WaitingJob& waiting);
  Next reserve_for(const WaitingJob& job);
  bool may_be_trusted(const WaitingJob& job) const;

  CycleState& cycle_;
  Limits& limits_;
  Preemptor& preemptor_;
  Line& line_;
  Borrowers& borrowers_;
  const Placing& placing_;
};

// The stage kYield: decides about the attempts that were to yield by now, given the places that
// this very cycle keeps. An attempt is stopped if one of these places would be free without it, and
// the first such place is due within the grace. If that cannot be told yet, because others are
// still to be stopped for a place, it is left for a later cycle. The order is that of their ends.
// An attempt never yields to a job that could be reclaimed in turn. Leaves the trial as it was.
//
// Cost: for each attempt and each place the ends before that.
class Yielding {
 public:
  Yielding(CycleState& cycle, const Limits& limits) : cycle_(cycle), limits_(limits) {}

  void run();

 private:
  std::vector<PlannedStart> places_to_yield_to() const;
  void judge(const std::vector<PlannedStart>& kept);

  CycleState& cycle_;
  const Limits& limits_;
};

}  // namespace gpu_platform::scheduling
