#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "model/ids.h"

// The turns of jobs on one GPU, as a machine without a clock: facts come in, actions go out.

namespace gpu_platform::node {

struct TurnMember {
  model::AttemptId attempt;
  std::uint32_t weight = 1;  // at least 1

  friend bool operator==(const TurnMember&, const TurnMember&) = default;
};

struct TurnAction {
  enum class Kind : std::uint8_t {
    kFreeze,       // answer: stands_still
    kThaw,         // no answer
    kTellWakeful,  // people are told that it cannot be frozen; once for each member
  };
  Kind kind = Kind::kFreeze;
  model::AttemptId attempt;

  friend bool operator==(const TurnAction&, const TurnAction&) = default;
};

// Decides which member is awake. The wheel gives each member a turn, and thaws it only when all
// others stand still. A turn lasts as long as the member's credit: each round of n members is worth
// n slices, which the weights divide, so a turn takes a slice in the mean. A member is charged from
// its thaw until it stands still. What it ran too long, or too short, is settled in its next turn,
// so the shares follow the weights exactly over time. A part that is worth less than kShortestTurn
// is saved up.
//
// A member that cannot run (its cgroup is empty) gives its turn on and saves nothing. One that can
// run alone is awake all the time. One that another process has thawed gets a turn at once, ahead
// of its time, and pays for it later; with too much debt already it is frozen again. A member that
// is held stays awake beside the turns of others, because it is being entered or ended. If the GPU
// is idle in a turn of kShortestIdleTurn or longer, the turn is given on, and its rest is not owed.
//
// A member that does not stand still within kFreezeLimit is told of, once, and the others go on.
//
// Times are nanoseconds on one clock that does not run backwards. After each fact, all actions are
// to be carried out in their order. A fact of an unknown member changes nothing. Thread: one.
class TurnWheel {
 public:
  static constexpr std::int64_t kShortestTurn = 20'000'000;
  static constexpr std::int64_t kShortestAskedTurn = 100'000'000;
  static constexpr std::int64_t kFreezeLimit = 1'000'000'000;
  // That a GPU is idle is measured over a second: in a shorter turn it may be of the one before.
  static constexpr std::int64_t kShortestIdleTurn = 1'000'000'000;

  std::optional<TurnAction> take_action();

  // ---- facts

  // The members from now on. Those that are there already keep what they are owed; a new one counts
  // as awake. One that is not a member any more is thawed. `slice` is at least 1.
  void set_members(const std::vector<TurnMember>& members, std::int64_t slice, std::int64_t now);
  // None of its processes runs any more.
  void stands_still(model::AttemptId attempt, std::int64_t now);
  // Another process has thawed it.
  void was_thawed(model::AttemptId attempt, std::int64_t now);
  // Another process keeps it awake, or does no longer, which counts as was_thawed.
  void is_held(model::AttemptId attempt, bool is_so, std::int64_t now);
  void is_empty(model::AttemptId attempt, bool is_so, std::int64_t now);
  // It can be neither frozen nor thawed: it is no member until it is set again.
  void is_gone(model::AttemptId attempt, std::int64_t now);
  // The GPU has done nothing for a while.
  void gpu_is_idle(std::int64_t now);
  void time_passed(std::int64_t now);

  // ---- what is so

  // The member whose turn it is; nothing between turns, and when none can run.
  std::optional<model::AttemptId> current() const { return current_; }
  // Returns whether it was told to stand still.
  bool is_to_stand_still(model::AttemptId attempt) const;
  std::int64_t wake_at() const;  // 0: never

 private:
  enum class Body : std::uint8_t {
    kAwake,
    kFreezing,  // told to stand still
    kWakeful,   // told so, and does not
    kStill,
  };
  struct Member {
    std::uint32_t weight = 1;
    std::int64_t credit = 0;
    Body body = Body::kAwake;
    bool is_charged = false;
    std::int64_t charged_until = 0;
    std::int64_t freeze_by = 0;  // while kFreezing
    bool is_held = false;
    bool is_empty = false;
    bool was_told_of = false;

    bool can_run() const { return !is_held && !is_empty; }
  };
  using Members = std::map<model::AttemptId, Member>;

  Member* find(model::AttemptId attempt);
  bool is_current(model::AttemptId attempt) const { return current_ == attempt; }
  std::size_t count_runnable() const;
  std::int64_t quantum_of(const Member& member) const;
  void charge(Member& member, std::int64_t now) const;
  void end_charge(Member& member, std::int64_t now) const;

  void give_turn(model::AttemptId attempt, std::int64_t now);
  void leave_turn() { current_.reset(); }
  std::optional<model::AttemptId> pick();
  std::optional<model::AttemptId> take_owed(std::optional<model::AttemptId>& owed);

  void go_on(std::int64_t now);
  void look_at_turn(std::int64_t now);
  void look_at_bodies(std::int64_t now);
  void begin_next_turn(std::int64_t now);
  void thaw(model::AttemptId attempt, Member& member);

  Members members_;
  std::int64_t slice_ = 1;
  std::optional<model::AttemptId> current_;
  std::int64_t began_ = 0;                   // the current turn, or the first of its in a row
  std::int64_t until_ = 0;                   // of the current turn; 0: no other member can run
  std::optional<model::AttemptId> next_;     // picked, while the others are being frozen
  std::optional<model::AttemptId> resumed_;  // another came between, and it has credit left
  model::AttemptId last_;                    // that was picked in its order
  std::deque<TurnAction> actions_;
};

}  // namespace gpu_platform::node
