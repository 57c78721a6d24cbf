#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "model/allocation.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/policy.h"
#include "model/preemption_hold.h"
#include "scheduling/backfill/timeline.h"
#include "scheduling/books.h"

// One scheduling cycle decides which waiting jobs start now, and where. Pure: the same books and
// policy give the same plan, in any order in which nodes and jobs came to be known.

namespace gpu_platform::scheduling {

// The stages of a cycle, in their order; the table in cycle/cycle.cpp says when each has nothing to
// do.
enum class Stage : std::uint8_t {
  kOrder,     // in which order jobs are considered; off: by id, and then no job passes another
  kQuota,     // passes jobs that a limit keeps back; off: limits do not apply
  kPlace,     // nodes and GPUs for each, all of a gang or nothing; off: nothing starts
  kBackfill,  // plans starts of the first jobs that do not fit, and starts jobs that delay none
  kPreempt,   // stops jobs for others; off: no job is stopped for another
  kLend,      // lends idle GPUs of others' guarantees to jobs that can be stopped for them
  kYield,     // stops jobs that are to yield by now
};
inline constexpr std::array kStages = {Stage::kOrder,    Stage::kQuota,   Stage::kPlace,
                                       Stage::kBackfill, Stage::kPreempt, Stage::kLend,
                                       Stage::kYield};
std::string_view to_string(Stage stage);  // "order"

// A set of stages; all of them unless taken out.
class Stages {
 public:
  constexpr bool has(Stage stage) const { return (off_ & bit(stage)) == 0; }
  constexpr Stages without(Stage stage) const {
    Stages copy = *this;
    copy.off_ |= bit(stage);
    return copy;
  }
  friend bool operator==(const Stages&, const Stages&) = default;

 private:
  static constexpr std::uint32_t bit(Stage stage) { return 1U << static_cast<unsigned>(stage); }
  std::uint32_t off_ = 0;
};

// The cycle calls it on entry to a stage and on return, and once at its end. The core has no clock,
// so the shell measures here.
class StageObserver {
 public:
  virtual ~StageObserver() = default;
  virtual void begin(Stage stage) = 0;
  virtual void end(Stage stage) = 0;
  // `considered`: the waiting jobs that the cycle looked at one by one.
  virtual void end_cycle(std::size_t considered) = 0;
};

struct Start {
  model::JobId job;
  model::Allocation allocation;
  model::StartWhy why = model::StartWhy::kImmediate;
  model::JobId passed;  // of a backfill: the first that has a planned start before it
  // The time at which a job that starts by its prediction must stop for the planned starts that it
  // may delay. Unset: it ends before them by its time limit, or delays none.
  base::Instant yields_at;

  friend bool operator==(const Start&, const Start&) = default;
};

// A place kept for a job that does not fit now: by hard limits it starts then and there, if nothing
// of higher rank comes, or starts earlier in its place. No later start of the same plan delays it.
struct PlannedStart {
  model::JobId job;
  Slot slot;
  // The place is kept from this time on: a grace before the start where others are to be stopped.
  base::Instant kept_from;

  friend bool operator==(const PlannedStart&, const PlannedStart&) = default;
};

// Other jobs are to be stopped for a job that does not fit; its future place is to be held for it.
struct Preemption {
  model::JobId job;
  model::Allocation held;
  std::vector<model::AttemptId> victims;  // ascending
  model::PreemptionRule rule = model::PreemptionRule::kClass;

  friend bool operator==(const Preemption&, const Preemption&) = default;
};

// An attempt that was let in by its predicted run time and has not ended by then.
struct Yield {
  model::AttemptId attempt;
  model::JobId to;          // the job that needs its place: it is to stop now; invalid: it may stay
  base::Instant yields_at;  // if it may stay: when it is looked at again; unset: never

  friend bool operator==(const Yield&, const Yield&) = default;
};

struct Plan {
  std::vector<Start> starts;  // in the order in which they were decided
  // The first job that does not fit. Behind it only backfill starts any.
  std::optional<model::JobId> blocked_head;
  // The starts are in the order of rank, at most policy.backfill_depth; for a beneficiary it is the
  // time at which the grace of its victims is over.
  std::vector<PlannedStart> planned_starts;
  std::vector<Preemption> preemptions;
  std::vector<Yield> yields;  // by the time at which they were to yield
  // These beneficiaries can no longer start on their preemption hold before a reservation begins
  // there. In ascending order; the hold was not kept for them in this cycle.
  std::vector<model::JobId> void_holds;
  // The next time at which others will have run long enough to be stopped, or at which a
  // reservation begins or ends, although no event happens.
  std::optional<base::Instant> look_again_at;
  bool complete = true;    // false: max_starts was reached, call again after applying these
  bool unchanged = false;  // answered from the cache

  friend bool operator==(const Plan&, const Plan&) = default;
};

// The time that jobs will hold their places, at full speed and without the grace.
using PredictedTimes = std::map<model::JobId, base::Duration>;

struct CycleOptions {
  base::Instant now;
  Stages stages;
  StageObserver* observer = nullptr;  // not owned; null: nothing is measured
  // Bounds the length of a cycle with many planned starts on a large cluster: the number of nodes
  // that their searches change. Jobs beyond the bound get no planned start.
  std::uint64_t max_changes = 1'000'000;
  // Bounds the length of one cycle on a large free cluster.
  std::size_t max_starts = std::numeric_limits<std::size_t>::max();
  // Lets others pass a job that no node which is up could hold even if nothing else ran: they
  // cannot delay it, since nothing that they leave or take brings it a node. Off: the order is
  // strict without exception.
  bool pass_unplaceable = false;
};

// The values that a prediction uses instead of the books' own.
struct Supposition {
  WaitingQueue queue;
  RunningEnds running;
  // The time after which a job leaves its place; a job that is not named leaves after its limit.
  PredictedTimes predicted;
};

inline constexpr std::size_t kMaxReclaims = 64;

// Leaves the books as they were (the trial is rolled back): the caller turns the starts into
// events, and applying those updates them. The queue must be ordered by the policy, which need not
// be the books' own.
//
// Jobs start in order up to the first that does not fit. Then the first policy.backfill_depth jobs
// that do not fit get planned starts, and others start if they touch none of these (timeline.h).
// With depth 0 the order is strict and the cycle ends there. A job that fits at no end of running
// jobs (because its GPUs are out of service, say) gets no planned start and is passed. So is a job
// that a limit keeps back.
//
// A job that may be stopped for others, and never was, also starts where its limit would touch a
// planned start, if it is predicted to be gone before (predict/predicted_run.h, p90). It gets a
// time at which it yields: the grace before the first planned start that it would touch. From then
// on it counts as gone. If it is still there at that time and delays a planned start of that very
// cycle, it is stopped; else it may stay.
//
// By hard limits no job holds GPUs of a reservation of others (reservations/reservations.h): it
// does not start there, gets no planned start there, and no job is preempted for it there. A job of
// a reservation gets its GPUs alone, within its time.
//
// Only the beneficiary gets what a preemption hold has. It starts there as soon as all of it is
// free, or elsewhere if it fits there sooner. For a job that gets a planned start (with depth 0:
// the first that does not fit) and could not start within the grace, others are preempted if
// victims of lower classes suffice (preemption/find_victims.h). For an overdue job these may also
// be of its own class and of other teams, if they did not begin as overdue jobs themselves.
//
// No job is stopped for one that could be stopped in turn. One that would be preemptible above its
// holder's guarantee stops no job. A job that others were stopped for is not reclaimed, yields to
// no overdue job, and to a class only if that is above its own and those of its victims.
//
// If GPUs are guaranteed (pools/balance.h), a job that would use what is guaranteed to others comes
// after all others. It touches no planned start, gets none, and no job is stopped for it. For a job
// within its holder's guarantee, jobs that borrow are stopped, of any class and also beyond the
// backfill depth: kMaxReclaims of these in one cycle. model::team_rules says how soon and how
// often.
//
// Cost: by starts, by planned starts, by preemption holds, and one decision for each class of equal
// waiting jobs.
Plan plan_cycle(Books& books, const model::Policy& policy, const CycleOptions& options = {});

// The same with other waiting and running jobs than the books have.
Plan plan_supposed(Books& books, const Supposition& supposed, const model::Policy& policy,
                   const CycleOptions& options = {});

// The plan of the last cycle, if that found nothing to start. The caller owns it, one for each
// books. A cycle that would see the same again is not run before look_again_at: as time passes, the
// gaps before the planned starts only get shorter.
class CycleCache {
 public:
  Plan plan(Books& books, const model::Policy& policy, const CycleOptions& options = {});

 private:
  struct Seen {
    std::uint64_t version = 0;  // the books'
    model::Policy policy;
    Stages stages;
    bool pass_unplaceable = false;

    friend bool operator==(const Seen&, const Seen&) = default;
  };

  std::optional<Seen> seen_;
  Plan plan_;
};

}  // namespace gpu_platform::scheduling
