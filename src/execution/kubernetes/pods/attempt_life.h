#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/units.h"
#include "execution/engine.h"
#include "execution/kubernetes/pods/attempt_table.h"
#include "execution/kubernetes/pods/call_times.h"
#include "execution/kubernetes/pods/start_timeout.h"
#include "model/ids.h"

// What the lives of attempts in a cluster have in common, whether the platform makes their pods
// (PodAttempts) or others do (WorkloadAttempts): orders, limits, and what the core is told. Pure.

namespace gpu_platform::execution {

// The part of an attempt that is the same. An `Attempt` of AttemptLives has it as its base.
struct AttemptLife {
  model::AttemptId id;
  StartOrder order;
  bool has_order = false;  // its order is known: from a start or an adoption
  bool may_begin = false;  // a start was asked for, and what it needs may be made or admitted

  std::optional<StopOrder> stop;
  std::uint32_t stop_grace = 0;            // seconds
  std::optional<base::Duration> at_limit;  // it was stopped at this time limit
  std::string failed_start;                // why its start is given up; empty: it is not
  base::Instant asked_at;                  // when its start began
  StartWait start_wait;
  base::Instant started_at;
  std::optional<Ended> ended;
  bool is_cleaned = false;
  bool is_forgotten = false;
  bool is_orphan = false;  // in the cluster, and the core does not know it
  std::string step;
  base::Instant timer;

  // Nothing but an order that came before its start is known of it. An Attempt may hide it.
  bool is_nothing() const { return false; }
  // A later order shortens the grace and never lengthens it; the first reason stays.
  void begin_stop(const StopOrder& what) {
    const std::uint32_t grace = what.without_grace ? 1 : grace_in_seconds(what.grace);
    if (!stop) {
      stop = what;
      stop_grace = grace;
    }
    stop_grace = std::min(stop_grace, grace);
  }
};

// Says of a node what StartOrder::boot_id must be; empty: there is no such node.
using NodeBootId = std::function<std::string(std::string_view node)>;

// The places of the pods of a start that hold what its job asks for.
struct StartPlaces {
  bool all_bound = false;    // each has a node
  bool is_in_queue = false;  // the others wait in kube-scheduler's queue
};

// The attempts of one kind with what happens to all of them. Nothing is decided before listed(),
// and nothing that the core does not know is removed before the first adopt().
//
// Ownership: values. Thread: one owner.
template <class Attempt>
class AttemptLives : public AttemptTable<Attempt> {
 public:
  AttemptLives(base::Duration start_timeout, NodeBootId boot_id)
      : start_timeout_(start_timeout), boot_id_(std::move(boot_id)) {}

  using AttemptTable<Attempt>::entry;
  using AttemptTable<Attempt>::find;
  using AttemptTable<Attempt>::set_step;
  using AttemptTable<Attempt>::touch;
  using AttemptTable<Attempt>::wake_at;

  // ---- orders

  // Begins a start whose order the attempt has. False: it began before, and was told of again.
  bool begin_start(Attempt& attempt, base::Instant now) {
    if (attempt.ended || attempt.may_begin) {
      repeat(attempt);
      return false;
    }
    touch(attempt.id);
    attempt.is_orphan = false;
    attempt.may_begin = true;
    attempt.asked_at = now;
    return true;
  }
  // The core knows the attempt, and asks for what it was told of it.
  void repeat(Attempt& attempt) {
    touch(attempt.id);
    attempt.is_orphan = false;
    if (attempt.started_at.is_set()) {
      observations_.push_back(Started{attempt.id, 0, attempt.started_at});
    }
    if (attempt.ended) observations_.push_back(*attempt.ended);
    if (attempt.is_cleaned) observations_.push_back(Cleaned{attempt.id, {}});
  }
  void stop(Attempt& attempt, const StopOrder& order) {
    touch(attempt.id);
    if (!attempt.ended) attempt.begin_stop(order);
  }
  void set_limit(const LimitOrder& order) {
    Attempt* attempt = find(order.attempt);
    if (attempt == nullptr || attempt->ended) return;
    attempt->order.time_limit = order.time_limit;
    touch(attempt->id);
  }
  void forget(const ForgetOrder& order) {
    Attempt* attempt = find(order.attempt);
    if (attempt == nullptr) return;
    if (!attempt->is_cleaned && !attempt->is_nothing()) return;
    attempt->is_forgotten = true;
    touch(attempt->id);
  }
  // `take`(attempt, order) gives the attempt its order, unless it has one. `resume`(attempt, state)
  // follows for those that had none.
  template <class Take, class Resume>
  void adopt(const std::vector<KnownAttempt>& known, base::Instant now, Take take, Resume resume) {
    for (const KnownAttempt& each : known) {
      Attempt& attempt = entry(each.order.attempt);
      const bool was_told_of = attempt.has_order;
      take(attempt, each.order);
      if (was_told_of) {
        repeat(attempt);
        continue;
      }
      touch(attempt.id);
      attempt.is_orphan = false;
      attempt.asked_at = now;
      resume(attempt, each.state);
    }
    is_adopted_ = true;
    sweep();
  }

  // ---- what is seen

  void listed() {
    is_listed_ = true;
    sweep();
  }
  bool is_settled() const { return is_listed_ && is_adopted_; }
  // Something of the attempt is in the cluster. If the core does not know it, it goes: it was
  // forgotten or given up, and a crash came before it was removed; or the core has another journal.
  void sweep_one(Attempt& attempt) {
    if (!is_settled() || attempt.has_order || attempt.is_nothing()) return;
    attempt.is_orphan = true;
    if (!attempt.stop) {
      attempt.begin_stop({attempt.id, true, {}, model::EndReason::kKilledBy});
    }
  }
  // A pod was given a node.
  void note_bound() { start_timeout_.note_bound(); }

  // ---- time

  // Calls `step`(attempt) for each attempt with something to do.
  template <class Step>
  void advance(base::Instant now, Step step) {
    start_timeout_.advance(now);
    this->ring(now);
    if (!is_listed_) return;
    for (const model::AttemptId id : this->take_touched()) {
      if (Attempt* attempt = find(id)) step(*attempt);
    }
  }
  base::Instant next_due() const {
    return is_listed_ ? AttemptTable<Attempt>::next_due() : base::Instant();
  }

  // ---- judgements

  void started(Attempt& attempt, base::Instant at) {
    attempt.started_at = at;
    set_step(attempt, {});
    if (!attempt.is_orphan) observations_.push_back(Started{attempt.id, 0, at});
  }
  // Gives a start up that has waited too long for nodes.
  void judge_start_time(Attempt& attempt, StartPlaces places, base::Instant now) {
    if (places.all_bound || !attempt.asked_at.is_set() || start_timeout_.is_endless()) return;
    const base::Instant latest =
        start_timeout_.end_of(attempt.start_wait, attempt.asked_at, places.is_in_queue);
    if (now < latest) return wake_at(attempt, latest);
    attempt.failed_start = start_timeout_.error(attempt.step);
  }
  // Stops an attempt that has run as long as it may.
  void judge_time_limit(Attempt& attempt, base::Instant now) {
    if (attempt.stop || attempt.order.time_limit == base::Duration()) return;
    const base::Instant end = attempt.started_at + attempt.order.time_limit;
    if (now < end) return wake_at(attempt, end);
    attempt.at_limit = attempt.order.time_limit;
    attempt.begin_stop({attempt.id, false, attempt.order.stop_grace, model::EndReason::kTimeLimit});
  }
  // Another boot, or another node of the same name: what was decided for the former is void.
  bool is_for_another_boot(const Attempt& attempt) const {
    return attempt.has_order && !attempt.order.nodes.empty() &&
           boot_id_(attempt.order.nodes.front().node_name) != attempt.order.boot_id;
  }
  void end_with(Attempt& attempt, Ended ended, base::Instant now) {
    if (!ended.at.is_set()) ended.at = now;
    ended.at = std::max(ended.at, attempt.started_at);
    give_up(attempt, std::move(ended));
  }
  // The node was lost before anything was made on it.
  void end_without_node(Attempt& attempt, base::Instant now) {
    Ended lost;
    lost.at = now;
    lost.exit.lost = model::Lost::kNodeLost;
    lost.reason = model::EndReason::kNodeLost;
    give_up(attempt, std::move(lost));
  }
  // Its devices are free.
  void clean(Attempt& attempt) {
    attempt.is_cleaned = true;
    if (attempt.is_orphan) {
      attempt.is_forgotten = true;
    } else {
      observations_.push_back(Cleaned{attempt.id, {}});
    }
  }

  // ---- what comes of it

  std::uint64_t next_call_id() { return ++last_call_; }
  std::vector<Observation> take_observations() { return std::exchange(observations_, {}); }

 private:
  void sweep() {
    if (!is_settled()) return;
    for (auto& [id, attempt] : *this) {
      if (!attempt->ended) sweep_one(*attempt);
      touch(id);
    }
  }
  void give_up(Attempt& attempt, Ended ended) {
    ended.attempt = attempt.id;
    attempt.ended = std::move(ended);
    set_step(attempt, {});
    if (!attempt.is_orphan) observations_.push_back(*attempt.ended);
  }

  StartTimeout start_timeout_;
  NodeBootId boot_id_;
  bool is_listed_ = false;
  bool is_adopted_ = false;
  std::uint64_t last_call_ = 0;
  std::vector<Observation> observations_;
};

}  // namespace gpu_platform::execution
