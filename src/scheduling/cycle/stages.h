#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "scheduling/cycle/ground.h"
#include "scheduling/cycle/limits.h"
#include "scheduling/cycle/preemptor.h"

// The stages that walk through the queue. Each has its own state and refers to what it works on.

namespace gpu_platform::scheduling {

// The queue as it is walked through once, by classes of equal jobs; kOrder puts it in order.
struct Line {
  explicit Line(const WaitingQueue& queue) : walk(queue.classes()) {}

  void run() { is_ordered = true; }

  WaitingClasses::Walk walk;
  bool is_ordered = false;
  const WaitingJob* blocked = nullptr;  // the first job that does not fit
};

// What is to be done with the jobs behind one that was considered.
enum class Next : std::uint8_t { kGoOn, kSkipClass, kStop };

// The stage kLend: those who would borrow, in order, but behind all others: what these leave, and
// touching no place that is kept.
class Borrowers {
 public:
  Borrowers(Ground& ground, Limits& limits) : ground_(ground), limits_(limits) {}

  // Whether the job's turn comes only here.
  bool take(const WaitingJob& job);
  bool empty() const { return !has_any_; }
  void run();

 private:
  Ground& ground_;
  Limits& limits_;
  bool has_any_ = false;
};

// The stage kPlace: whoever is promised something gets it before anybody else is looked at; then
// jobs start in order, up to the first that does not fit.
class Placing {
 public:
  Placing(Ground& ground, Limits& limits, Line& line, Borrowers& borrowers)
      : ground_(ground), limits_(limits), line_(line), borrowers_(borrowers) {}

  void run();
  bool has_started_by_hold(const WaitingJob& job) const;

  // For questions, instead of run(): keeps all that is held, and these places.
  void keep(std::span<const PlannedStart> planned_starts);

 private:
  void start_or_keep_holds();
  void keep(const model::PreemptionHold& hold);
  Next consider(const WaitingJob& job);
  Next pass_or_block(const WaitingJob& job);

  Ground& ground_;
  Limits& limits_;
  Line& line_;
  Borrowers& borrowers_;
  std::set<model::JobId> started_by_hold_;
  // Requests found to fit no node that is up, each once: a queue may be full of equal ones.
  std::vector<const model::ResourceRequest*> unplaceable_;
};

// The stage kBackfill: goes on where placing has stopped, at the blocked head. Keeps places for the
// first that do not fit, and starts whom these do not mind.
class Backfilling {
 public:
  Backfilling(Ground& ground, Limits& limits, Preemptor& preemptor, Line& line,
              Borrowers& borrowers, const Placing& placing)
      : ground_(ground),
        limits_(limits),
        preemptor_(preemptor),
        line_(line),
        borrowers_(borrowers),
        placing_(placing) {}

  void run();

  // Where nothing is free for all of its time: by what is expected of it.
  struct TrustedStart {
    model::Allocation allocation;
    base::Instant yields_at;
  };
  std::optional<TrustedStart> trusted_start_of(const WaitingJob& job);

 private:
  Next consider(const WaitingJob& job);
  Next reserve_for(const WaitingJob& job);
  bool may_be_trusted(const WaitingJob& job) const;

  Ground& ground_;
  Limits& limits_;
  Preemptor& preemptor_;
  Line& line_;
  Borrowers& borrowers_;
  const Placing& placing_;
};

}  // namespace gpu_platform::scheduling
