#include "node/time_slices/wheel/turn_wheel.h"

#include <algorithm>

namespace gpu_platform::node {

namespace {

// What a member owes beyond this is let off: the keeper itself was stopped for so long.
constexpr std::int64_t kMaxDebt = 20;  // its parts of a round

}  // namespace

std::optional<TurnAction> TurnWheel::take_action() {
  if (actions_.empty()) return std::nullopt;
  const TurnAction action = actions_.front();
  actions_.pop_front();
  return action;
}

// ---- facts

void TurnWheel::set_members(const std::vector<TurnMember>& members, std::int64_t slice,
                            std::int64_t now) {
  slice_ = slice;
  Members kept;
  for (const TurnMember& member : members) {
    const auto known = members_.find(member.attempt);
    Member& one = kept[member.attempt];
    if (known != members_.end()) one = known->second;
    one.weight = member.weight;
  }
  for (const auto& [attempt, member] : members_) {
    if (kept.contains(attempt)) continue;
    actions_.push_back({TurnAction::Kind::kThaw, attempt});
    if (is_current(attempt)) leave_turn();
  }
  members_ = std::move(kept);
  go_on(now);
}

void TurnWheel::stands_still(model::AttemptId attempt, std::int64_t now) {
  Member* const member = find(attempt);
  if (member == nullptr || member->body == Body::kAwake) return;
  end_charge(*member, now);
  member->body = Body::kStill;
  go_on(now);
}

void TurnWheel::was_thawed(model::AttemptId attempt, std::int64_t now) {
  Member* const member = find(attempt);
  if (member == nullptr || is_current(attempt)) return;
  member->body = Body::kAwake;
  const std::int64_t allowed_debt = std::max(quantum_of(*member), kShortestAskedTurn);
  if (member->can_run() && member->credit >= -allowed_debt) {
    if (current_) {
      Member& other = members_.at(*current_);
      charge(other, now);
      if (other.credit >= kShortestTurn) resumed_ = current_;
    } else if (next_) {
      resumed_ = next_;
    }
    next_.reset();
    give_turn(attempt, now);
    if (until_ != 0) until_ = std::max(until_, now + allowed_debt);
  }
  go_on(now);
}

void TurnWheel::is_held(model::AttemptId attempt, bool is_so, std::int64_t now) {
  Member* const member = find(attempt);
  if (member == nullptr || member->is_held == is_so) return;
  end_charge(*member, now);
  member->is_held = is_so;
  if (!is_so) return was_thawed(attempt, now);
  go_on(now);
}

void TurnWheel::is_empty(model::AttemptId attempt, bool is_so, std::int64_t now) {
  Member* const member = find(attempt);
  if (member == nullptr || member->is_empty == is_so) return;
  member->is_empty = is_so;
  if (is_so) {
    end_charge(*member, now);
    member->credit = std::min<std::int64_t>(member->credit, 0);
  }
  go_on(now);
}

void TurnWheel::is_gone(model::AttemptId attempt, std::int64_t now) {
  if (members_.erase(attempt) == 0) return;
  if (is_current(attempt)) leave_turn();
  go_on(now);
}

void TurnWheel::gpu_is_idle(std::int64_t now) {
  if (!current_ || until_ == 0 || now - began_ < kShortestIdleTurn) return;
  Member& member = members_.at(*current_);
  charge(member, now);
  member.credit = std::min<std::int64_t>(member.credit, 0);
  until_ = now;
  go_on(now);
}

void TurnWheel::time_passed(std::int64_t now) {
  go_on(now);
}

// ---- what is so

bool TurnWheel::is_to_stand_still(model::AttemptId attempt) const {
  const auto found = members_.find(attempt);
  return found != members_.end() && found->second.body != Body::kAwake;
}

std::int64_t TurnWheel::wake_at() const {
  std::int64_t at = current_ ? until_ : 0;
  for (const auto& [attempt, member] : members_) {
    if (member.body != Body::kFreezing) continue;
    at = at == 0 ? member.freeze_by : std::min(at, member.freeze_by);
  }
  return at;
}

TurnWheel::Member* TurnWheel::find(model::AttemptId attempt) {
  const auto found = members_.find(attempt);
  return found == members_.end() ? nullptr : &found->second;
}

std::size_t TurnWheel::count_runnable() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(members_, [](const auto& each) { return each.second.can_run(); }));
}

// ---- credit

// Its part of a round of all members that can run.
std::int64_t TurnWheel::quantum_of(const Member& member) const {
  std::int64_t members = 0;
  std::int64_t weights = 0;
  for (const auto& [attempt, each] : members_) {
    if (!each.can_run() && &each != &member) continue;
    ++members;
    weights += each.weight;
  }
  return slice_ * members * member.weight / weights;
}

void TurnWheel::charge(Member& member, std::int64_t now) const {
  if (!member.is_charged) return;
  member.credit -= now - member.charged_until;
  member.credit = std::max(member.credit, -kMaxDebt * std::max(quantum_of(member), kShortestTurn));
  member.charged_until = now;
}

void TurnWheel::end_charge(Member& member, std::int64_t now) const {
  charge(member, now);
  member.is_charged = false;
}

// ---- turns

// It has been picked, or was thawed by another.
void TurnWheel::give_turn(model::AttemptId attempt, std::int64_t now) {
  Member& member = members_.at(attempt);
  if (member.body != Body::kAwake) thaw(attempt, member);
  current_ = attempt;
  began_ = now;
  end_charge(member, now);  // of a turn whose end it has not reached
  member.is_charged = true;
  member.charged_until = now;
  until_ = count_runnable() > 1 ? now + std::max(member.credit, kShortestTurn) : 0;
}

void TurnWheel::thaw(model::AttemptId attempt, Member& member) {
  actions_.push_back({TurnAction::Kind::kThaw, attempt});
  member.body = Body::kAwake;
}

std::optional<model::AttemptId> TurnWheel::take_owed(std::optional<model::AttemptId>& owed) {
  const std::optional<model::AttemptId> attempt = owed;
  owed.reset();
  if (!attempt) return std::nullopt;
  const auto found = members_.find(*attempt);
  return found != members_.end() && found->second.can_run() ? attempt : std::nullopt;
}

// Nothing: none can run. All that can run get their parts of a round until one has saved up enough
// for a turn: the parts of a round are a slice and more in all, and debts have an end, so this
// ends.
std::optional<model::AttemptId> TurnWheel::pick() {
  if (const auto resumed = take_owed(resumed_)) return resumed;
  const std::size_t runnable = count_runnable();
  if (runnable == 0) return std::nullopt;
  auto at = members_.upper_bound(last_);
  while (true) {
    if (at == members_.end()) at = members_.begin();
    Member& member = at->second;
    if (member.can_run()) {
      member.credit += std::max<std::int64_t>(quantum_of(member), 1);
      if (runnable == 1 || member.credit >= kShortestTurn) {
        last_ = at->first;
        return last_;
      }
    }
    ++at;
  }
}

// ---- going on

void TurnWheel::go_on(std::int64_t now) {
  look_at_turn(now);
  look_at_bodies(now);
  if (!current_) begin_next_turn(now);
}

void TurnWheel::look_at_turn(std::int64_t now) {
  if (!current_) return;
  Member& member = members_.at(*current_);
  if (!member.can_run()) return leave_turn();
  if (count_runnable() == 1) {
    until_ = 0;
    return;
  }
  if (until_ == 0) {  // it was alone, which is free
    member.charged_until = now;
    member.credit = quantum_of(member);
    until_ = now + std::max(member.credit, kShortestTurn);
    return;
  }
  if (now < until_) return;
  charge(member, now);
  next_ = pick();
  if (next_ != current_) return leave_turn();
  next_.reset();
  until_ = now + std::max(member.credit, kShortestTurn);
}

void TurnWheel::look_at_bodies(std::int64_t now) {
  for (auto& [attempt, member] : members_) {
    if (member.is_held) {
      if (member.body != Body::kAwake) thaw(attempt, member);
    } else if (member.body == Body::kAwake && !is_current(attempt)) {
      actions_.push_back({TurnAction::Kind::kFreeze, attempt});
      member.body = Body::kFreezing;
      member.freeze_by = now + kFreezeLimit;
    } else if (member.body == Body::kFreezing && now >= member.freeze_by) {
      end_charge(member, now);
      member.body = Body::kWakeful;
      if (!member.was_told_of) actions_.push_back({TurnAction::Kind::kTellWakeful, attempt});
      member.was_told_of = true;
    }
  }
}

void TurnWheel::begin_next_turn(std::int64_t now) {
  const bool is_any_freezing = std::ranges::any_of(
      members_, [](const auto& each) { return each.second.body == Body::kFreezing; });
  if (is_any_freezing) return;
  auto next = take_owed(next_);
  if (!next) next = pick();
  if (next) give_turn(*next, now);
}

}  // namespace gpu_platform::node
