#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

namespace gpu_platform::execution {

// The attempts that one kind of life looks after: which of them have something to do, when, and
// what each waits for in words. `Attempt` is a value with members `id`, `timer` (the table's alone)
// and `step`; it may be incomplete until its owner's source.
//
// Ownership: values. Thread: one owner. Cost: logarithmic.
template <class Attempt>
class AttemptTable {
 public:
  // Null: there is none.
  Attempt* find(model::AttemptId id) {
    const auto it = attempts_.find(id);
    return it == attempts_.end() ? nullptr : it->second.get();
  }
  const Attempt* find(model::AttemptId id) const {
    const auto it = attempts_.find(id);
    return it == attempts_.end() ? nullptr : it->second.get();
  }
  // Makes it if there is none. It stays where it is until erase().
  Attempt& entry(model::AttemptId id) {
    std::unique_ptr<Attempt>& slot = attempts_[id];
    if (slot == nullptr) {
      slot = std::make_unique<Attempt>();
      slot->id = id;
    }
    return *slot;
  }
  void erase(const Attempt& attempt) {
    if (attempt.timer.is_set()) timers_.erase({attempt.timer, attempt.id});
    changed_steps_.insert(attempt.id);
    attempts_.erase(attempt.id);
  }
  std::size_t size() const { return attempts_.size(); }
  auto begin() const { return attempts_.begin(); }
  auto end() const { return attempts_.end(); }

  // It has something to do.
  void touch(model::AttemptId id) { touched_.insert(id); }
  // At that time it will have; of several times, the first counts.
  void wake_at(Attempt& attempt, base::Instant at) {
    if (attempt.timer.is_set() && attempt.timer <= at) return;
    if (attempt.timer.is_set()) timers_.erase({attempt.timer, attempt.id});
    attempt.timer = at;
    timers_.insert({at, attempt.id});
  }
  // Touches those whose time has come.
  void ring(base::Instant now) {
    while (!timers_.empty() && timers_.begin()->first <= now) {
      const model::AttemptId id = timers_.begin()->second;
      timers_.erase(timers_.begin());
      if (Attempt* attempt = find(id)) attempt->timer = {};
      touch(id);
    }
  }
  // Those that were touched since the last call. Some may have been erased.
  std::set<model::AttemptId> take_touched() { return std::exchange(touched_, {}); }
  // Unset: never.
  base::Instant next_due() const {
    if (!touched_.empty()) return base::Instant(1);
    return timers_.empty() ? base::Instant() : timers_.begin()->first;
  }

  void set_step(Attempt& attempt, std::string text) {
    if (attempt.step == text) return;
    attempt.step = std::move(text);
    changed_steps_.insert(attempt.id);
  }
  // Empty: it waits for nothing, or there is none.
  std::string step_of(model::AttemptId id) const {
    const Attempt* attempt = find(id);
    return attempt == nullptr ? std::string() : attempt->step;
  }
  // Those whose step changed since the last call, and those that were erased.
  std::vector<model::AttemptId> take_changed_steps() {
    const auto changed = std::exchange(changed_steps_, {});
    return {changed.begin(), changed.end()};
  }

 private:
  std::map<model::AttemptId, std::unique_ptr<Attempt>> attempts_;
  std::set<model::AttemptId> touched_;
  std::set<std::pair<base::Instant, model::AttemptId>> timers_;
  std::set<model::AttemptId> changed_steps_;
};

}  // namespace gpu_platform::execution
