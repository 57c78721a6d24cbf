#include "execution/process/attempts.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "node/host_shutdown.h"
#include "node/syscalls.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

constexpr std::int64_t kMillisecond = 1'000'000;
constexpr std::int64_t kFirstDelay = 5 * kMillisecond;
constexpr std::int64_t kLongestDelay = 1000 * kMillisecond;
constexpr std::int64_t kStopRepeat = 1000 * kMillisecond;
// After its time a supervisor that has not even confirmed the order is bypassed.
constexpr std::int64_t kStopTimeout = 5000 * kMillisecond;
// Supervisors that died before they began, until the fault is the host's.
constexpr std::uint32_t kMaxFruitlessLaunches = 10;

constexpr const char* kStoppedBeforeStart = "stopped before it was started";

std::string no_mps_server(std::string_view why) {
  return fmt::format("no MPS server for its part of a GPU: {}; --share time-slice needs none", why);
}

std::uint64_t milliseconds(base::Duration d) {
  return d.value() <= 0 ? 0 : static_cast<std::uint64_t>(base::whole_milliseconds(d));
}

// The order's reason travels as a number that the node part only gives back.
std::uint8_t to_code(model::EndReason reason) {
  return static_cast<std::uint8_t>(reason);
}

model::EndReason reason_of(const node::EndRecord& end) {
  const bool says_why =
      end.cause == node::EndCause::kPrologFailed || end.cause == node::EndCause::kOutOfMemory;
  if (end.kind == node::EndKind::kNotStarted && !says_why) return model::EndReason::kLaunchFailed;
  switch (end.cause) {
    case node::EndCause::kItself:
      return model::EndReason::kNone;
    case node::EndCause::kTimeLimit:
      return model::EndReason::kTimeLimit;
    case node::EndCause::kOutOfMemory:
      return model::EndReason::kOutOfMemory;
    case node::EndCause::kPrologFailed:
      return model::EndReason::kPrologFailed;
    case node::EndCause::kIdleTimeout:
      return model::EndReason::kIdleTimeout;
    case node::EndCause::kStopped:
      break;
  }
  const bool known = end.stop_code < model::kEndReasons;
  return known ? static_cast<model::EndReason>(end.stop_code) : model::EndReason::kCancelledBy;
}

Ended to_ended(model::AttemptId id, const node::EndRecord& end) {
  Ended ended;
  ended.attempt = id;
  ended.at = end.at;
  ended.reason = reason_of(end);
  ended.detail = end.detail;
  ended.usage = {end.cpu_time, end.peak_memory};
  if (end.cause == node::EndCause::kTimeLimit) ended.time_limit = end.time_limit;
  switch (end.kind) {
    case node::EndKind::kExited:
      ended.exit.code = end.value;
      break;
    case node::EndKind::kSignalled:
      ended.exit.signal = end.value;
      break;
    case node::EndKind::kNotStarted:
      if (end.value != 0) ended.exit.code = end.value;
      break;
  }
  return ended;
}

}  // namespace

// ---- orders

void Attempts::start(const StartOrder& order) {
  const auto [entry, is_new] = attempts_.try_emplace(order.attempt);
  Attempt& a = entry->second;
  if (!is_new) return;  // under way or over: a repeated order changes nothing
  a.order = order;
  if (order.boot_id != boot_id_) {
    lose(order.attempt, a, true);
    finish(order.attempt, a);
    return;
  }
  launches_.push_back(order.attempt);
}

void Attempts::stop(const StopOrder& order, std::int64_t now) {
  Attempt* a = find(order.attempt);
  if (a == nullptr) {
    // Never started by us, and no trace of a start was there when the daemon began.
    a = &attempts_[order.attempt];
    end_unstarted(order.attempt, *a, std::nullopt, kStoppedBeforeStart);
    return;
  }
  if (a->phase == Phase::kOver) {
    tell(*a, Cleaned{order.attempt, a->epilog_failure});
    return;
  }
  // The time ends when the first order ends it, or a sharper one does: repeating one buys no time.
  const std::int64_t give_up_at =
      now + kStopTimeout + (order.without_grace ? 0 : order.grace.value());
  a->give_up_stop_at = a->stop ? std::min(a->give_up_stop_at, give_up_at) : give_up_at;
  a->stop = order;
  a->stop_taken = false;
  turns_.leave(order.attempt);
  if (a->phase == Phase::kWaiting || a->phase == Phase::kServing) {
    end_unstarted(order.attempt, *a, std::nullopt, kStoppedBeforeStart);
  } else if (a->phase == Phase::kRunning) {
    send_stop(order.attempt, *a, now);
  }
}

// If the order gets lost because the supervisor is not there yet, the core repeats it.
void Attempts::set_limit(const LimitOrder& order) {
  Attempt* a = find(order.attempt);
  if (a == nullptr || a->phase == Phase::kOver) return;
  if (a->order) a->order->time_limit = order.time_limit;
  const bool is_asked_for =
      a->phase != Phase::kWaiting && a->phase != Phase::kChecking && a->phase != Phase::kServing;
  if (!is_asked_for) return;
  // Rounded up, as at the start: what the supervisor says was over is never less than was given.
  const std::uint64_t limit_ms = milliseconds(order.time_limit + base::nanoseconds(999'999));
  messages_.emplace_back(node::SetLimit{order.attempt, std::max<std::uint64_t>(limit_ms, 1)});
}

void Attempts::signal(const SignalOrder& order) {
  const Attempt* a = find(order.attempt);
  const bool may_run = a != nullptr && (a->phase == Phase::kRunning || a->phase == Phase::kSent);
  if (!may_run) return;
  messages_.emplace_back(node::SendSignal{order.attempt, order.signal});
}

void Attempts::forget(const ForgetOrder& order) {
  const auto entry = attempts_.find(order.attempt);
  if (entry != attempts_.end()) {
    if (entry->second.phase != Phase::kOver) return;  // never what still may have processes
    attempts_.erase(entry);
  }
  auto* last = messages_.empty() ? nullptr : std::get_if<node::Forget>(&messages_.back());
  if (last == nullptr || last->attempts.size() >= node::kMaxForgets) {
    messages_.emplace_back(node::Forget{});
    last = std::get_if<node::Forget>(&messages_.back());
  }
  last->attempts.push_back(order.attempt);
}

void Attempts::adopt(const std::vector<KnownAttempt>& known, std::int64_t now) {
  has_adopted_ = true;
  for (const KnownAttempt& one : known) adopt_one(one, now);
  for (const model::AttemptId id : list_attempts(folder_)) {
    if (find(id) != nullptr) continue;
    const bool is_known =
        std::ranges::any_of(known, [&](const KnownAttempt& k) { return k.order.attempt == id; });
    if (!is_known) discard_unknown(id, now);
  }
}

void Attempts::adopt_one(const KnownAttempt& known, std::int64_t now) {
  const model::AttemptId id = known.order.attempt;
  if (known.state == model::AttemptState::kReleased) return;
  const auto [entry, is_new] = attempts_.try_emplace(id);
  Attempt& a = entry->second;
  if (!is_new) {
    if (a.phase == Phase::kOver) tell(a, Cleaned{id, a.epilog_failure});
    return;
  }
  a.order = known.order;
  a.phase = Phase::kSent;
  a.told_ended = known.state == model::AttemptState::kCleaning;
  a.told_started = a.told_ended;
  const AttemptFiles files = read_attempt(folder_, id);
  if (known.order.boot_id != boot_id_) {
    // All that ran is gone with its boot; an end that reached the disk is still the truth.
    tell_record(id, a, files.record);
    if (!a.told_ended) lose(id, a, true);
    finish(id, a);
  } else if (!files.exists) {
    adopt_without_files(id, a, known.state);
  } else {
    look(id, Asked::kAdopt, now);
  }
  join_mps_again(id);
}

// Of what a daemon does not ask for anew, the launcher ends the server.
void Attempts::join_mps_again(model::AttemptId id) {
  const Attempt* const a = find(id);  // null: nothing of it had begun
  if (a != nullptr && a->phase != Phase::kOver && a->order) mps_.join(*a->order);
}

void Attempts::adopt_without_files(model::AttemptId id, Attempt& a, model::AttemptState state) {
  switch (state) {
    case model::AttemptState::kRequested:
    case model::AttemptState::kStopping:
      attempts_.erase(id);  // no start was begun: the core repeats its order
      return;
    case model::AttemptState::kRunning:
      lose(id, a, false);
      break;
    case model::AttemptState::kCleaning:
    case model::AttemptState::kReleased:
      break;
  }
  finish(id, a);
}

// The attempt is left over from a crash after the core was done with it, or from a core that lost
// later events. Its use is not accounted for, so it must not run on.
void Attempts::discard_unknown(model::AttemptId id, std::int64_t now) {
  Attempt& a = attempts_[id];
  a.discard = true;
  a.phase = Phase::kSent;
  a.stop = StopOrder{id, true, {}, model::EndReason::kKilledBy};
  a.give_up_stop_at = now + kStopTimeout;
  look(id, Asked::kAdopt, now);
}

// ---- what the supervisors and the launcher say

void Attempts::notice(const node::Notice& notice) {
  Attempt* a = find(notice.attempt);
  if (a == nullptr || a->phase == Phase::kOver) return;
  if (notice.kind == node::Notice::Kind::kStarted) tell_started(notice.attempt, *a, notice.started);
  if (notice.kind == node::Notice::Kind::kStopping) a->stop_taken = true;
  if (notice.kind == node::Notice::Kind::kEnded || notice.ended_too) {
    const bool needs_record = notice.has_detail || !a->told_started;
    if (needs_record) tell_record(notice.attempt, *a, read_attempt(folder_, notice.attempt).record);
    tell_ended(notice.attempt, *a, notice.end);
  }
  if (notice.kind != node::Notice::Kind::kCleaned) return;
  std::string epilog_failure;
  if (!a->told_ended || notice.epilog_failed) {
    const node::Record record = read_attempt(folder_, notice.attempt).record;
    tell_record(notice.attempt, *a, record);
    if (record.cleaned) epilog_failure = record.cleaned->epilog_failure;
  }
  finish(notice.attempt, *a, std::move(epilog_failure));
}

void Attempts::answer(const node::Message& message, os::Descriptor pidfd, std::int64_t now) {
  if (const auto* m = std::get_if<node::Launched>(&message)) {
    launched(m->attempt, std::move(pidfd), now);
  } else if (const auto* existing = std::get_if<node::Exists>(&message)) {
    Attempt* a = find(existing->attempt);
    if (a != nullptr && a->phase == Phase::kSent) look(existing->attempt, Asked::kOther, now);
  } else if (const auto* failed = std::get_if<node::LaunchFailed>(&message)) {
    Attempt* a = find(failed->attempt);
    if (a != nullptr && a->phase == Phase::kSent) {
      end_unstarted(failed->attempt, *a, std::nullopt, failed->why);
    }
  } else if (const auto* stopped = std::get_if<node::StopSent>(&message)) {
    Attempt* a = find(stopped->attempt);
    if (a != nullptr && a->phase == Phase::kRunning && !stopped->delivered) {
      look(stopped->attempt, Asked::kOther, now);
    }
  } else if (const auto* tree = std::get_if<node::TreeState>(&message)) {
    Attempt* a = find(tree->attempt);
    if (a != nullptr && a->phase == Phase::kKilling && tree->empty) {
      const node::Record record = read_attempt(folder_, tree->attempt).record;
      finish(tree->attempt, *a, record.cleaned ? record.cleaned->epilog_failure : std::string());
    }
  } else if (const auto* state = std::get_if<node::MpsState>(&message)) {
    take_mps_state(*state);
  } else if (const auto* refused = std::get_if<node::ForgetRefused>(&message)) {
    if (find(refused->attempt) == nullptr) discard_unknown(refused->attempt, now);
  }
}

void Attempts::launched(model::AttemptId id, os::Descriptor pidfd, std::int64_t now) {
  Attempt* a = find(id);
  if (a == nullptr || a->phase != Phase::kSent) return;  // its end was quicker than this answer
  if (!pidfd.is_open()) {  // we have no room for it; by its pid it can be found later
    look(id, Asked::kOther, now);
    return;
  }
  a->phase = Phase::kRunning;
  keep_handle(id, *a, std::move(pidfd));
  if (a->stop && !a->stop_taken) send_stop(id, *a, now);
}

// Those that run on are its clients again when a server that was lost is back.
void Attempts::take_mps_state(const node::MpsState& state) {
  if (state.is_lost && tell_mps_loss_) tell_mps_loss_(state.gpu, state.uid);
  for (const model::AttemptId id : mps_.take(state)) {
    Attempt& a = attempts_.at(id);
    if (a.phase != Phase::kServing) continue;
    clear_due(id, a);
    if (state.is_ready) {
      a.phase = Phase::kWaiting;
      launches_.push_back(id);
    } else {
      end_unstarted(id, a, std::nullopt, no_mps_server(state.why));
    }
  }
}

void Attempts::launcher_is_new(std::int64_t now) {
  std::vector<model::AttemptId> asked;
  for (const auto& [id, a] : attempts_) {
    if (a.phase == Phase::kSent) asked.push_back(id);
  }
  for (const model::AttemptId id : asked) look(id, Asked::kNewLauncher, now);
  std::erase_if(messages_, [](const node::Message& message) {
    return std::holds_alternative<node::TimeSlices>(message) ||
           std::holds_alternative<node::MpsServer>(message);  // what is so now follows
  });
  turns_.tell_all_again();
  mps_.tell_all_again();
  if (has_adopted_) forget_again();
}

// A Forget has no answer, so some may have been lost with the launcher that they were sent to. What
// is on the disk and not with us is over: before adopt() we could not know that.
void Attempts::forget_again() {
  for (const model::AttemptId id : list_attempts(folder_)) {
    if (find(id) == nullptr) forget({id});
  }
}

void Attempts::supervisor_ended(int pidfd, std::int64_t now) {
  const auto entry = by_handle_.find(pidfd);
  if (entry == by_handle_.end()) return;
  const model::AttemptId id = entry->second;
  Attempt& a = attempts_.at(id);
  drop_handle(a);
  a.delay = kFirstDelay;
  look(id, Asked::kOther, now);
}

// ---- judging the disk

void Attempts::look(model::AttemptId id, Asked asked, std::int64_t now) {
  Attempt& a = attempts_.at(id);
  clear_due(id, a);
  const AttemptFiles files = read_attempt(folder_, id);
  tell_record(id, a, files.record);
  if (files.record.cleaned) {
    finish(id, a, files.record.cleaned->epilog_failure);
  } else if (files.supervised || (files.exists && !files.readable)) {
    const bool watched =
        files.record.beginning && watch(id, a, files.record.beginning->supervisor_pid);
    if (watched) {
      if (a.stop) send_stop(id, a, now);
      return;
    }
    // Just being made, or just dying with its job's first process holding the lock a moment longer,
    // or we cannot read now.
    a.phase = Phase::kSent;
    a.delay = std::clamp(a.delay * 2, kFirstDelay, kLongestDelay);
    set_due(id, a, now + a.delay, Due::kLook);
  } else if (!files.begun) {
    // Without a record the order was lost with the launcher it was sent to: no start has failed.
    if (files.exists || asked != Asked::kNewLauncher) ++a.fruitless_launches;
    look_at_unbegun(id, a, asked);
  } else if (files.record.beginning && files.record.beginning->boot_id != boot_id_) {
    if (!a.told_ended) lose(id, a, true);
    finish(id, a);
  } else if (node::host_is_shutting_down()) {
    // Ended with the host, as we are about to; our successor sees another boot.
    a.phase = Phase::kRunning;
  } else {
    if (!a.told_ended) lose(id, a, false);
    begin_kill(id, a, now);
  }
}

// Its supervisor died before it wrote that it begins, so the program was never executed: the one
// case in which the same attempt may be started once more.
void Attempts::look_at_unbegun(model::AttemptId id, Attempt& a, Asked asked) {
  const bool discard = a.discard;
  const bool told_ended = a.told_ended;
  if (asked == Asked::kAdopt || discard) {
    if (told_ended) {
      finish(id, a);
      return;
    }
    attempts_.erase(id);  // the core repeats its order
    messages_.emplace_back(node::Forget{{id}});
    return;
  }
  messages_.emplace_back(node::Forget{{id}});
  if (a.stop) {
    end_unstarted(id, a, std::nullopt, kStoppedBeforeStart);
  } else if (a.fruitless_launches > kMaxFruitlessLaunches) {
    end_unstarted(id, a, std::nullopt, "its supervisor died before it could begin, repeatedly");
  } else {
    a.phase = Phase::kWaiting;
    launches_.push_back(id);
  }
}

// False when the process could not be proved to be the supervisor.
bool Attempts::watch(model::AttemptId id, Attempt& a, std::uint32_t pid) {
  if (a.supervisor.is_open()) return true;
  os::Descriptor pidfd(node::open_pidfd(static_cast<int>(pid)));
  // The lock is held still: the pid was its holder's when the handle was opened.
  if (!pidfd.is_open() || !read_attempt(folder_, id).supervised) return false;
  a.phase = Phase::kRunning;
  keep_handle(id, a, std::move(pidfd));
  return true;
}

void Attempts::keep_handle(model::AttemptId id, Attempt& a, os::Descriptor pidfd) {
  drop_handle(a);
  if (!pidfd.is_open()) return;
  by_handle_[pidfd.get()] = id;
  new_handles_.push_back(pidfd.get());
  a.supervisor = std::move(pidfd);
}

void Attempts::drop_handle(Attempt& a) {
  if (!a.supervisor.is_open()) return;
  std::erase(new_handles_, a.supervisor.get());
  by_handle_.erase(a.supervisor.get());
  a.supervisor.reset();
}

// ---- stopping and killing

void Attempts::send_stop(model::AttemptId id, Attempt& a, std::int64_t now) {
  const StopOrder& stop = *a.stop;
  messages_.emplace_back(
      node::Stop{id, stop.without_grace, milliseconds(stop.grace), to_code(stop.reason)});
  set_due(id, a, now + kStopRepeat, Due::kStop);
}

void Attempts::begin_kill(model::AttemptId id, Attempt& a, std::int64_t now) {
  drop_handle(a);
  a.phase = Phase::kKilling;
  a.delay = kFirstDelay;
  messages_.emplace_back(node::KillTree{id});
  set_due(id, a, now + a.delay, Due::kKill);
}

std::optional<std::int64_t> Attempts::do_due(std::int64_t now) {
  while (!due_.empty() && due_.begin()->first <= now) {
    const model::AttemptId id = due_.begin()->second;
    Attempt& a = attempts_.at(id);
    const Due due = a.due->second;
    clear_due(id, a);
    do_one(id, due, now);
  }
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

void Attempts::do_one(model::AttemptId id, Due due, std::int64_t now) {
  Attempt& a = attempts_.at(id);
  if (due == Due::kLook) {
    look(id, Asked::kOther, now);
  } else if (due == Due::kKill) {
    messages_.emplace_back(node::KillTree{id});
    a.delay = std::min(a.delay * 2, kLongestDelay);
    set_due(id, a, now + a.delay, Due::kKill);
  } else if (due == Due::kServe) {
    end_unstarted(id, a, std::nullopt,
                  no_mps_server(fmt::format("it did not become ready within {} ms",
                                            milliseconds(mps_timeout_))));
  } else if (a.stop && !a.stop_taken && a.phase == Phase::kRunning) {
    // A supervisor that cannot act (its job hangs on the way to its first instruction) acts as soon
    // as its job is dead.
    if (now >= a.give_up_stop_at) messages_.emplace_back(node::KillTree{id});
    send_stop(id, a, now);
  }
}

void Attempts::set_due(model::AttemptId id, Attempt& a, std::int64_t at, Due due) {
  clear_due(id, a);
  a.due = {at, due};
  due_.emplace(at, id);
}

void Attempts::clear_due(model::AttemptId id, Attempt& a) {
  if (a.due) due_.erase({a.due->first, id});
  a.due.reset();
}

// ---- launching

std::deque<node::Message>& Attempts::messages() {
  for (node::TimeSlices& change : turns_.take_changes()) messages_.emplace_back(std::move(change));
  for (node::MpsServer& change : mps_.take_changes()) messages_.emplace_back(std::move(change));
  return messages_;
}

const StartOrder* Attempts::order_to_launch(model::AttemptId id) const {
  const auto entry = attempts_.find(id);
  if (entry == attempts_.end() || entry->second.phase != Phase::kWaiting) return nullptr;
  return entry->second.order ? &*entry->second.order : nullptr;
}

const StartOrder* Attempts::order_of(model::AttemptId id) const {
  const auto entry = attempts_.find(id);
  return entry != attempts_.end() && entry->second.order ? &*entry->second.order : nullptr;
}

const StartOrder* Attempts::order_of_running(model::AttemptId id) const {
  const auto entry = attempts_.find(id);
  const bool is_running = entry != attempts_.end() && entry->second.phase == Phase::kRunning;
  return is_running && entry->second.order ? &*entry->second.order : nullptr;
}

const StartOrder* Attempts::begin_check(model::AttemptId id) {
  const StartOrder* const order = order_to_launch(id);
  if (order == nullptr || !Preflights::is_asked_for(*order)) return nullptr;
  Attempt& a = attempts_.at(id);
  if (!a.preflight.empty()) return nullptr;
  a.phase = Phase::kChecking;
  return order;
}

void Attempts::check_ended(const PreflightOutcome& outcome) {
  Attempt* a = find(outcome.attempt);
  if (a == nullptr || a->phase != Phase::kChecking) return;
  if (a->stop) {
    end_unstarted(outcome.attempt, *a, std::nullopt, kStoppedBeforeStart);
  } else if (!outcome.unfit_gpus.empty()) {
    end_unfit(outcome.attempt, *a, outcome.unfit_gpus);
  } else {
    a->preflight = outcome.note;
    a->phase = Phase::kWaiting;
    launches_.push_back(outcome.attempt);
  }
}

bool Attempts::begin_mps(model::AttemptId id, std::int64_t now) {
  const StartOrder* const order = order_to_launch(id);
  if (order == nullptr || !is_mps_client(*order) || mps_.is_ready(id)) return false;
  Attempt& a = attempts_.at(id);
  if (!mps_.can_serve()) {
    end_unstarted(id, a, std::nullopt,
                  no_mps_server("this host has no nvidia-cuda-mps-control (sharing.mps_control)"));
    return true;
  }
  mps_.join(*order);
  a.phase = Phase::kServing;
  set_due(id, a, now + mps_timeout_.value(), Due::kServe);
  return true;
}

void Attempts::launch_sent(model::AttemptId id) {
  attempts_.at(id).phase = Phase::kSent;
}

void Attempts::launch_impossible(model::AttemptId id, std::optional<std::uint8_t> code,
                                 std::string why, model::EndReason reason) {
  end_unstarted(id, attempts_.at(id), code, std::move(why), reason);
}

// ---- telling the core

void Attempts::tell(const Attempt& a, Observation observation) {
  if (!a.discard) sink_.observe(std::move(observation));
}

void Attempts::tell_started(model::AttemptId id, Attempt& a, const node::StartedRecord& started) {
  if (std::exchange(a.told_started, true)) return;
  if (a.order && !a.stop && !a.told_ended) turns_.join(*a.order);
  tell(a, Started{id, started.pid, started.at, a.preflight});
}

void Attempts::tell_ended(model::AttemptId id, Attempt& a, const node::EndRecord& end) {
  turns_.leave(id);
  if (std::exchange(a.told_ended, true)) return;
  tell(a, to_ended(id, end));
}

void Attempts::tell_record(model::AttemptId id, Attempt& a, const node::Record& record) {
  if (record.started) tell_started(id, a, *record.started);
  if (record.end) tell_ended(id, a, *record.end);
}

void Attempts::lose(model::AttemptId id, Attempt& a, bool node_lost) {
  a.told_ended = true;
  turns_.leave(id);
  Ended ended;
  ended.attempt = id;
  ended.at = os::wall_now();
  ended.exit.lost = node_lost ? model::Lost::kNodeLost : model::Lost::kUnknown;
  ended.reason = node_lost ? model::EndReason::kNodeLost : model::EndReason::kSupervisorLost;
  ended.detail = node_lost ? "the node was started anew" : "its supervisor ended without a record";
  tell(a, std::move(ended));
}

void Attempts::end_unstarted(model::AttemptId id, Attempt& a, std::optional<std::uint8_t> code,
                             std::string why, model::EndReason reason) {
  if (!std::exchange(a.told_ended, true)) {
    Ended ended;
    ended.attempt = id;
    ended.at = os::wall_now();
    ended.exit.code = code;
    ended.reason = reason;
    ended.detail = std::move(why);
    tell(a, std::move(ended));
  }
  finish(id, a);
}

void Attempts::end_unfit(model::AttemptId id, Attempt& a, std::vector<UnfitGpu> gpus) {
  Ended ended;
  ended.attempt = id;
  ended.at = os::wall_now();
  ended.reason = model::EndReason::kLaunchFailed;
  ended.unfit_gpus = std::move(gpus);
  a.told_ended = true;
  tell(a, std::move(ended));
  finish(id, a);
}

void Attempts::finish(model::AttemptId id, Attempt& a, std::string epilog_failure) {
  // The core frees nothing of an attempt before it knows its end.
  if (!a.told_ended) lose(id, a, false);
  drop_handle(a);
  clear_due(id, a);
  turns_.leave(id);
  mps_.leave(id);
  a.phase = Phase::kOver;
  a.order.reset();
  a.stop.reset();
  a.epilog_failure = std::move(epilog_failure);
  tell(a, Cleaned{id, a.epilog_failure});
  if (a.discard) forget({id});
}

Attempts::Attempt* Attempts::find(model::AttemptId id) {
  const auto entry = attempts_.find(id);
  return entry == attempts_.end() ? nullptr : &entry->second;
}

}  // namespace gpu_platform::execution
