#include "execution/virtual_engine.h"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

using model::AttemptId;
using model::AttemptState;
using model::EndReason;
using model::Exit;
using model::Lost;

constexpr std::uint8_t kSigKill = 9;
constexpr std::uint8_t kSigTerm = 15;

constexpr std::string_view kNeverStarted = "stopped before it was started";

Exit by_signal(std::uint8_t signal) {
  return {.code = {}, .signal = signal, .lost = Lost::kNo};
}

Exit lost_exit(Lost lost) {
  return {.code = {}, .signal = {}, .lost = lost};
}

bool is_to_be_checked(const StartOrder& order) {
  return order.spec->preflight != model::Preflight::kNone &&
         std::ranges::any_of(order.nodes,
                             [](const LaunchNode& part) { return !part.gpus.empty(); });
}

// As the process engine says it.
std::string note_of(const VirtualCheck& check, model::Preflight preflight) {
  const std::string_view depth = preflight == model::Preflight::kDeep ? "deep" : "quick";
  if (!check.refusal.empty()) return fmt::format("{}: not done: {}", depth, check.refusal);
  const double seconds =
      static_cast<double>(check.duration.value()) / static_cast<double>(base::seconds(1).value());
  return fmt::format("{}: passed in {:.1f} s", depth, seconds);
}

}  // namespace

// ---- orders

void VirtualEngine::start(const StartOrder& order) {
  if (const Record* known = find(order.attempt)) {
    tell_all(order.attempt, *known);
    return;
  }
  if (!can_reach(order)) return;
  Record& record = remember(order);
  if (is_booted_anew(order)) {
    never_start(order.attempt, record, lost_exit(Lost::kNodeLost), EndReason::kNodeLost, {});
    return;
  }
  record.run = script_.run_of(order);
  record.time_limit = order.time_limit;
  record.stop_grace = order.stop_grace;
  record.starts_at = now_ + record.run.start_delay;
  if (is_to_be_checked(order)) begin_check(order, record);
  if (witness_ != nullptr) record.order = std::make_unique<StartOrder>(order);
  schedule(order.attempt, record);
}

void VirtualEngine::begin_check(const StartOrder& order, Record& record) {
  record.phase = Phase::kChecking;
  record.check = script_.check_of(order);
  record.checked_at = now_ + record.check.duration;
  record.preflight = note_of(record.check, order.spec->preflight);
}

void VirtualEngine::stop(const StopOrder& order) {
  Record* record = find(order.attempt);
  if (record == nullptr) {
    // The start may still be on its way here: it must find that it comes too late.
    never_start(order.attempt, records_[order.attempt], {}, EndReason::kLaunchFailed,
                std::string(kNeverStarted));
    return;
  }
  if (!can_tell(*record)) return;
  if (record->phase == Phase::kChecking || record->phase == Phase::kStarting) {
    never_start(order.attempt, *record, {}, EndReason::kLaunchFailed, std::string(kNeverStarted));
  } else if (record->phase == Phase::kRunning) {
    terminate(*record, order.reason, order.without_grace ? base::Duration() : order.grace);
    schedule(order.attempt, *record);
  } else {
    // Its start is no answer to a stop: the two would call each other for as long as it cleans up.
    tell_end(order.attempt, *record);
  }
}

void VirtualEngine::set_limit(const LimitOrder& order) {
  Record* record = find(order.attempt);
  if (record == nullptr || !can_tell(*record)) return;
  const bool is_to_end = record->phase < Phase::kEnded;
  if (!is_to_end || record->time_limit == order.time_limit) return;
  record->time_limit = order.time_limit;
  schedule(order.attempt, *record);
}

void VirtualEngine::forget(const ForgetOrder& order) {
  const Record* record = find(order.attempt);
  if (record != nullptr && record->phase == Phase::kGone) records_.erase(order.attempt);
}

void VirtualEngine::reset(const ResetOrder& order) {
  if (!is_reachable(order.node_name)) return;
  const auto is_under_way = [&](const std::string& uuid) {
    return std::ranges::any_of(resets_, [&](const auto& each) {
      return each.second.gpu_uuid == uuid && each.second.without_reset == order.without_reset;
    });
  };
  if (!order.gpu_uuids.empty() && is_under_way(order.gpu_uuids.front())) return;
  if (witness_ != nullptr) witness_->reset_began(order, now_);
  for (const std::string& uuid : order.gpu_uuids) {
    VirtualReset how = script_.reset_of(order, uuid);
    resets_.emplace(now_ + how.duration, Reset{order.node_name, uuid, std::move(how.failure),
                                               order.without_reset, how.refused});
  }
}

void VirtualEngine::end_resets(base::Instant now) {
  while (!resets_.empty() && resets_.begin()->first <= now) {
    const Reset reset = std::move(resets_.begin()->second);
    resets_.erase(resets_.begin());
    if (is_reachable(reset.node))
      sink_.observe(ResetEnded{
          reset.node, reset.gpu_uuid, reset.failure, {}, reset.without_reset, reset.refused});
  }
}

void VirtualEngine::adopt(const std::vector<KnownAttempt>& known) {
  for (const KnownAttempt& attempt : known) {
    if (const Record* record = find(attempt.order.attempt)) {
      tell_all(attempt.order.attempt, *record);
    } else if (can_reach(attempt.order)) {
      answer_unknown(attempt);
    }
  }
}

void VirtualEngine::answer_unknown(const KnownAttempt& known) {
  const AttemptId id = known.order.attempt;
  if (is_booted_anew(known.order)) {
    never_start(id, remember(known.order), lost_exit(Lost::kNodeLost), EndReason::kNodeLost, {});
  } else if (known.state == AttemptState::kRunning || known.state == AttemptState::kCleaning) {
    never_start(id, remember(known.order), lost_exit(Lost::kUnknown), EndReason::kSupervisorLost,
                "it is not known here");
  }
  // Otherwise its start or its stop is repeated and will be answered.
}

// ---- time

void VirtualEngine::advance(base::Instant now) {
  while (!due_.empty() && due_.front().at <= now) {
    std::ranges::pop_heap(due_, std::greater<>());
    const Due due = due_.back();
    due_.pop_back();
    Record* record = find(due.attempt);
    if (record == nullptr || record->token != due.token) continue;
    now_ = std::max(now_, due.at);
    step(due.attempt, *record);
  }
  now_ = std::max(now_, now);
  end_resets(now);
}

// Entries of attempts that have taken another turn meanwhile may make this too early, never too
// late.
std::optional<base::Instant> VirtualEngine::next_event() const {
  std::optional<base::Instant> next;
  if (!due_.empty()) next = due_.front().at;
  if (!resets_.empty())
    next = std::min(next.value_or(resets_.begin()->first), resets_.begin()->first);
  return next;
}

base::Instant VirtualEngine::next_step(const Record& record) {
  if (record.phase == Phase::kChecking) return record.checked_at;
  if (record.phase == Phase::kStarting) return record.starts_at;
  if (record.phase == Phase::kEnded) return record.ended_at + record.run.cleaning_delay;
  base::Instant next = record.ends_at;
  if (record.term_at.is_set()) next = std::min(next, record.term_at);
  if (record.kill_at.is_set()) next = std::min(next, record.kill_at);
  if (!record.is_terminating) next = std::min(next, record.started_at + record.time_limit);
  return next;
}

void VirtualEngine::schedule(AttemptId id, Record& record) {
  if (record.phase == Phase::kGone) return;
  record.token = ++last_token_;
  due_.push_back({next_step(record), record.token, id});
  std::ranges::push_heap(due_, std::greater<>());
}

void VirtualEngine::step(AttemptId id, Record& record) {
  if (record.phase == Phase::kChecking) {
    step_checking(id, record);
  } else if (record.phase == Phase::kStarting) {
    step_starting(id, record);
  } else if (record.phase == Phase::kRunning) {
    step_running(id, record);
  } else {
    vanish(id, record);
  }
  schedule(id, record);
}

void VirtualEngine::step_checking(AttemptId id, Record& record) {
  if (record.check.unfit_gpus.empty()) {
    record.phase = Phase::kStarting;
    record.starts_at = now_ + record.run.start_delay;
    return;
  }
  record.unfit_gpus = std::move(record.check.unfit_gpus);
  never_start(id, record, {}, EndReason::kLaunchFailed, {});
}

void VirtualEngine::step_starting(AttemptId id, Record& record) {
  if (!record.run.prolog_failure.empty()) {
    never_start(id, record, {}, EndReason::kPrologFailed, record.run.prolog_failure);
    return;
  }
  if (!record.run.launch_error.empty()) {
    never_start(id, record, record.run.exit, EndReason::kLaunchFailed, record.run.launch_error);
    return;
  }
  record.phase = Phase::kRunning;
  record.pid = ++last_pid_;
  record.started_at = now_;
  record.ends_at = now_ + record.run.duration;
  if (witness_ != nullptr) witness_->process_started(*record.order, now_);
  tell_started(id, record);
}

// An attempt that ends by itself at the very moment of a signal has ended by itself.
void VirtualEngine::step_running(AttemptId id, Record& record) {
  if (record.ends_at <= now_) {
    end(id, record, record.run.exit, record.is_terminating ? record.reason : record.run.reason);
  } else if (record.term_at.is_set() && record.term_at <= now_) {
    end(id, record, by_signal(kSigTerm), record.reason);
  } else if (record.kill_at.is_set() && record.kill_at <= now_) {
    end(id, record, by_signal(kSigKill), record.reason);
  } else {
    record.limit_met = record.time_limit;
    terminate(record, EndReason::kTimeLimit, record.stop_grace);
  }
}

void VirtualEngine::terminate(Record& record, EndReason reason, base::Duration grace) {
  if (!record.is_terminating) {
    record.is_terminating = true;
    record.reason = reason;
    if (!record.run.ignores_term) record.term_at = now_ + record.run.term_delay;
  }
  const base::Instant kill_at = now_ + grace;
  record.kill_at = record.kill_at.is_set() ? std::min(record.kill_at, kill_at) : kill_at;
  // Killed at once, it has no time to follow the SIGTERM.
  if (record.term_at.is_set() && record.kill_at <= record.term_at) record.term_at = {};
}

void VirtualEngine::end(AttemptId id, Record& record, const Exit& exit, EndReason reason) {
  record.phase = Phase::kEnded;
  record.ended_at = now_;
  record.exit = exit;
  record.reason = reason;
  if (witness_ != nullptr) witness_->process_ended(id, exit, now_);
  tell_ended(id, record);
  if (record.run.cleaning_delay == base::Duration()) vanish(id, record);
}

void VirtualEngine::vanish(AttemptId id, Record& record) {
  record.phase = Phase::kGone;
  if (witness_ != nullptr) {
    if (record.started_at.is_set()) witness_->processes_gone(id, now_);
    record.order.reset();
  }
  tell_gone(id, record);
}

// Ends an attempt of which no process ever ran or is left, and makes sure that none ever will.
void VirtualEngine::never_start(AttemptId id, Record& record, const Exit& exit, EndReason reason,
                                std::string detail) {
  record.phase = Phase::kGone;
  record.token = 0;
  record.ended_at = now_;
  record.exit = exit;
  record.reason = reason;
  record.detail = std::move(detail);
  record.order.reset();
  tell_ended(id, record);
  tell_gone(id, record);
}

// ---- nodes

void VirtualEngine::put_node(const model::NodeInfo& info) {
  nodes_[info.name].info = info;
  if (is_reachable(info.name)) sink_.observe(NodeObserved{info});
}

void VirtualEngine::announce_nodes() {
  for (const auto& [name, node] : nodes_) {
    if (node.is_reachable) sink_.observe(NodeObserved{node.info});
  }
}

void VirtualEngine::disconnect(std::string_view node, std::string_view cause) {
  const auto found = nodes_.find(node);
  CHECK(found != nodes_.end());
  found->second.is_reachable = false;
  if (!cause.empty()) sink_.observe(NodeUnreachable{found->first, std::string(cause)});
}

void VirtualEngine::reconnect(std::string_view node) {
  const auto found = nodes_.find(node);
  CHECK(found != nodes_.end());
  found->second.is_reachable = true;
  sink_.observe(NodeObserved{found->second.info});
  for (const auto& [id, record] : records_) {
    const bool is_there = std::ranges::find(record.nodes, &found->second) != record.nodes.end();
    if (is_there) tell_all(id, record);
  }
}

void VirtualEngine::reboot(const model::NodeInfo& info) {
  const auto found = nodes_.find(info.name);
  CHECK(found != nodes_.end());
  Node& node = found->second;
  CHECK(node.info.boot_id != info.boot_id);
  node.is_reachable = false;  // it says nothing while it goes down
  for (auto& [id, record] : records_) {
    if (std::ranges::find(record.nodes, &node) == record.nodes.end()) continue;
    lose(id, record, Lost::kNodeLost, EndReason::kNodeLost);
  }
  std::erase_if(resets_, [&](const auto& each) { return each.second.node == info.name; });
  node.info = info;
  reconnect(info.name);
}

bool VirtualEngine::finish(AttemptId attempt, const Exit& exit, EndReason reason,
                           std::string neighbour_fault) {
  Record* record = find(attempt);
  if (record == nullptr || record->phase != Phase::kRunning) return false;
  record->ends_at = now_;
  record->run.exit = exit;
  record->run.reason = reason;
  if (!record->is_terminating) record->neighbour_fault = std::move(neighbour_fault);
  step(attempt, *record);
  return true;
}

void VirtualEngine::lose_supervisor(AttemptId attempt) {
  Record* record = find(attempt);
  CHECK(record != nullptr);
  lose(attempt, *record, Lost::kUnknown, EndReason::kSupervisorLost);
}

void VirtualEngine::drop_checks() {
  std::erase_if(records_, [](const auto& entry) { return entry.second.phase == Phase::kChecking; });
}

void VirtualEngine::lose(AttemptId id, Record& record, Lost lost, EndReason reason) {
  if (record.phase == Phase::kChecking || record.phase == Phase::kStarting) {
    never_start(id, record, lost_exit(lost), reason, {});
  } else if (record.phase != Phase::kGone) {
    if (record.phase == Phase::kRunning) end(id, record, lost_exit(lost), reason);
    if (record.phase != Phase::kGone) vanish(id, record);
    record.token = 0;
  }
}

bool VirtualEngine::is_reachable(std::string_view node) const {
  const auto found = nodes_.find(node);
  return found != nodes_.end() && found->second.is_reachable;
}

bool VirtualEngine::is_checking(AttemptId attempt) const {
  const auto found = records_.find(attempt);
  return found != records_.end() && found->second.phase == Phase::kChecking;
}

std::vector<AttemptId> VirtualEngine::live_attempts() const {
  std::vector<AttemptId> live;
  for (const auto& [id, record] : records_) {
    if (record.phase != Phase::kGone) live.push_back(id);
  }
  return live;
}

// ---- records and what is told of them

VirtualEngine::Record* VirtualEngine::find(AttemptId attempt) {
  const auto found = records_.find(attempt);
  return found == records_.end() ? nullptr : &found->second;
}

VirtualEngine::Record& VirtualEngine::remember(const StartOrder& order) {
  Record& record = records_[order.attempt];
  for (const LaunchNode& part : order.nodes) {
    const auto node = nodes_.find(part.node_name);
    CHECK(node != nodes_.end());
    record.nodes.push_back(&node->second);
  }
  return record;
}

bool VirtualEngine::can_tell(const Record& record) const {
  return std::ranges::all_of(record.nodes, [](const Node* node) { return node->is_reachable; });
}

bool VirtualEngine::can_reach(const StartOrder& order) const {
  return std::ranges::all_of(order.nodes,
                             [&](const auto& part) { return is_reachable(part.node_name); });
}

bool VirtualEngine::is_booted_anew(const StartOrder& order) const {
  if (order.nodes.empty()) return false;
  const auto node = nodes_.find(order.nodes.front().node_name);
  return node == nodes_.end() || node->second.info.boot_id != order.boot_id;
}

void VirtualEngine::tell_started(AttemptId id, const Record& record) {
  if (can_tell(record)) {
    sink_.observe(Started{id, record.pid, record.started_at, record.preflight});
  }
}

void VirtualEngine::tell_ended(AttemptId id, const Record& record) {
  if (!can_tell(record)) return;
  sink_.observe(Ended{id, record.ended_at, record.exit, record.reason, record.detail,
                      record.run.usage, record.limit_met, record.unfit_gpus,
                      record.neighbour_fault});
}

void VirtualEngine::tell_gone(AttemptId id, const Record& record) {
  if (can_tell(record)) sink_.observe(Cleaned{id, record.run.epilog_failure});
}

void VirtualEngine::tell_all(AttemptId id, const Record& record) {
  if (record.started_at.is_set()) tell_started(id, record);
  tell_end(id, record);
}

void VirtualEngine::tell_end(AttemptId id, const Record& record) {
  if (record.phase == Phase::kEnded || record.phase == Phase::kGone) tell_ended(id, record);
  if (record.phase == Phase::kGone) tell_gone(id, record);
}

}  // namespace gpu_platform::execution
