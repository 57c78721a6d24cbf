#include "simulation/faults/link.h"

#include <string>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::simulation {

using execution::Cleaned;
using execution::Ended;
using execution::ForgetOrder;
using execution::Observation;
using execution::Started;
using execution::StartOrder;
using execution::StopOrder;
using model::AttemptId;

namespace {

template <class Order>
AttemptId attempt_of(const Order& order) {
  return std::visit([](const auto& o) { return o.attempt; }, order);
}

AttemptId* attempt_in(Observation& observation) {
  if (auto* started = std::get_if<Started>(&observation)) return &started->attempt;
  if (auto* ended = std::get_if<Ended>(&observation)) return &ended->attempt;
  if (auto* cleaned = std::get_if<Cleaned>(&observation)) return &cleaned->attempt;
  return nullptr;
}

}  // namespace

// ---- orders

void Link::start(const StartOrder& order) {
  pass(order);
}

void Link::stop(const StopOrder& order) {
  const bool is_forgotten = plant_ == Plant::kForgottenCancel && !order.without_grace;
  if (!is_forgotten) pass(order);
}

void Link::set_limit(const execution::LimitOrder& order) {
  pass(order);
}

// Given or lost, but never repeated and never late.
void Link::signal(const execution::SignalOrder& order) {
  if (!may_give_order() || is_lost(order_faults_, FaultKind::kOrderLost)) return;
  engine_of(order.attempt).signal(order);
}

void Link::forget(const ForgetOrder& order) {
  if (!may_give_order()) return;
  check(order);
  if (of_cluster_.erase(order.attempt) > 0) return cluster_->forget(order);
  if (is_lost(order_faults_, FaultKind::kOrderLost)) return;
  std::erase_if(orders_,
                [&](const auto& entry) { return attempt_of(entry.second) == order.attempt; });
  engine_->forget(order);
}

void Link::reset(const execution::ResetOrder& order) {
  if (!may_give_order()) return;
  for (const std::string& uuid : order.gpu_uuids) {
    if (ledger_.has_reset(order.node, uuid)) continue;
    findings_.violated("effect-before-sync",
                       fmt::format("the order to reset {} was given before it was durable", uuid));
  }
  if (is_lost(order_faults_, FaultKind::kOrderLost)) return;
  engine_->reset(order);
}

void Link::adopt(const std::vector<execution::KnownAttempt>& known) {
  if (!may_give_order()) return;
  std::vector<execution::KnownAttempt> of_cluster;
  std::vector<execution::KnownAttempt> others;
  for (const execution::KnownAttempt& each : known) {
    const bool is_there = is_on_cluster(each.order);
    if (is_there) of_cluster_.insert(each.order.attempt);
    (is_there ? of_cluster : others).push_back(each);
  }
  engine_->adopt(others);
  if (cluster_ != nullptr) cluster_->adopt(of_cluster);
}

bool Link::is_on_cluster(const StartOrder& order) const {
  return cluster_ != nullptr && !model::traits_of(order.nodes.front().engine).is_on_this_machine;
}

execution::Engine& Link::engine_of(AttemptId attempt) {
  return of_cluster_.contains(attempt) ? *cluster_ : static_cast<execution::Engine&>(*engine_);
}

bool Link::may_give_order() {
  if (!orders_left_) return true;
  if (*orders_left_ == 0) return false;
  --*orders_left_;
  return true;
}

void Link::check(const Order& order) {
  const AttemptId id = attempt_of(order);
  std::string_view what;
  if (std::holds_alternative<StartOrder>(order)) {
    if (!ledger_.has_start(id)) what = "start";
  } else if (std::holds_alternative<StopOrder>(order)) {
    if (!ledger_.has_stop(id) && !ledger_.has_end(id)) what = "stop";
  } else if (const auto* limit = std::get_if<execution::LimitOrder>(&order)) {
    if (!ledger_.has_limit(id.job, limit->time_limit)) what = "limit";
  } else if (!ledger_.is_released(id)) {
    what = "forget";
  }
  if (what.empty()) return;
  findings_.violated("effect-before-sync",
                     fmt::format("the order to {} attempt {} of job {} was given before its cause "
                                 "was durable",
                                 what, id.attempt, id.job.value));
}

bool Link::is_lost(const MessageFaults& faults, FaultKind kind) {
  if (!random_.chance(faults.lost, 1000)) return false;
  findings_.count(kind);
  return true;
}

base::Instant Link::some_time_later() {
  const std::uint64_t max_ms = random_.chance(1, 2) ? 2'000 : 90'000;
  return clock_.boot() + base::milliseconds(static_cast<std::int64_t>(1 + random_.below(max_ms)));
}

void Link::pass(const Order& order) {
  if (!may_give_order()) return;
  check(order);
  const auto* start = std::get_if<StartOrder>(&order);
  if (start != nullptr && is_on_cluster(*start)) of_cluster_.insert(start->attempt);
  if (of_cluster_.contains(attempt_of(order))) return hand_over(order);
  if (is_lost(order_faults_, FaultKind::kOrderLost)) return;
  if (random_.chance(order_faults_.repeated, 1000)) {
    findings_.count(FaultKind::kOrderRepeated);
    orders_.emplace(std::pair{some_time_later(), ++last_number_}, order);
  }
  if (random_.chance(order_faults_.late, 1000)) {
    findings_.count(FaultKind::kOrderLate);
    orders_.emplace(std::pair{some_time_later(), ++last_number_}, order);
  } else {
    hand_over(order);
  }
}

void Link::hand_over(const Order& order) {
  execution::Engine& engine = engine_of(attempt_of(order));
  if (const auto* start = std::get_if<StartOrder>(&order)) {
    newest_[start->attempt.job] = start->attempt.attempt;
    engine.start(*start);
  } else if (const auto* limit = std::get_if<execution::LimitOrder>(&order)) {
    engine.set_limit(*limit);
  } else {
    const StopOrder& stop = std::get<StopOrder>(order);
    if (engine_->is_checking(stop.attempt)) findings_.count(FaultKind::kStoppedInCheck);
    engine.stop(stop);
  }
}

void Link::crash() {
  news_.clear();
  inbox_.clear();
  orders_left_.reset();
  of_cluster_.clear();
  std::erase_if(orders_, [&](const auto&) { return random_.chance(1, 2); });
}

// ---- news

void Link::observe(Observation observation) {
  rewrite(observation);
  ledger_.heard(observation);
  if (plant_ == Plant::kUnsaidUnfit) {
    if (auto* ended = std::get_if<Ended>(&observation)) ended->unfit_gpus.clear();
  }
  if (is_swallowed(observation)) return;
  const bool is_node_news = attempt_in(observation) == nullptr;
  if (is_node_news) {
    // Kept in order, and heard of again whenever something about the node changes.
    if (std::holds_alternative<execution::NodeUnreachable>(observation) &&
        is_lost(news_faults_, FaultKind::kNewsLost)) {
      return;
    }
    inbox_.push_back(std::move(observation));
    return;
  }
  pass_news(std::move(observation));
}

void Link::observe_cluster(Observation observation) {
  const auto* ended = std::get_if<Ended>(&observation);
  const bool is_unknown = ended != nullptr && ended->exit.lost == model::Lost::kUnknown;
  if (is_unknown && !ledger_.has_end(ended->attempt)) {
    findings_.violated("end-known", fmt::format("how attempt {} of job {} ended is lost",
                                                ended->attempt.attempt, ended->attempt.job.value));
  }
  set_wall_time(observation);
  ledger_.heard(observation);
  inbox_.push_back(std::move(observation));
}

void Link::pass_news(Observation observation) {
  if (is_lost(news_faults_, FaultKind::kNewsLost)) return;
  if (random_.chance(news_faults_.repeated, 1000)) {
    findings_.count(FaultKind::kNewsRepeated);
    news_.emplace(std::pair{some_time_later(), ++last_number_}, observation);
  }
  if (random_.chance(news_faults_.late, 1000)) {
    findings_.count(FaultKind::kNewsLate);
    news_.emplace(std::pair{some_time_later(), ++last_number_}, std::move(observation));
  } else {
    inbox_.push_back(std::move(observation));
  }
}

// Supervisors read the wall clock.
void Link::set_wall_time(Observation& observation) const {
  if (auto* started = std::get_if<Started>(&observation)) {
    started->at = started->at + clock_.offset();
  } else if (auto* ended = std::get_if<Ended>(&observation)) {
    ended->at = ended->at + clock_.offset();
  }
}

// Some planted defects change what is said.
void Link::rewrite(Observation& observation) {
  set_wall_time(observation);
  AttemptId* attempt = attempt_in(observation);
  if (attempt == nullptr) return;
  if (plant_ == Plant::kUnsaidLimit) {
    if (auto* ended = std::get_if<Ended>(&observation)) ended->time_limit.reset();
  }
  if (plant_ == Plant::kLateNews) {
    const auto newest = newest_.find(attempt->job);
    if (newest != newest_.end()) attempt->attempt = newest->second;
  }
  if (plant_ == Plant::kEarlyFree && std::holds_alternative<Ended>(observation)) {
    inbox_.push_back(observation);
    const Cleaned early{*attempt};
    ledger_.heard(early);
    inbox_.emplace_back(early);
  }
}

bool Link::is_swallowed(const Observation& observation) {
  if (plant_ == Plant::kDoubleStart) {
    if (const auto* gone = std::get_if<Cleaned>(&observation)) gone_.push_back(gone->attempt);
  }
  if (plant_ != Plant::kLeakedGpu) return false;
  const auto* cleaned = std::get_if<Cleaned>(&observation);
  if (cleaned == nullptr) return false;
  const model::Job* job = ledger_.state().jobs.find(cleaned->attempt.job.value);
  if (job == nullptr || cleaned->attempt.attempt > job->attempts.size()) return false;
  const model::Attempt& attempt = job->attempts[cleaned->attempt.attempt - 1];
  return !attempt.started_at.is_set();
}

void Link::deliver() {
  for (const AttemptId id : std::exchange(gone_, {})) engine_->forget({id});
  while (!orders_.empty() && orders_.begin()->first.first <= clock_.boot()) {
    const Order order = std::move(orders_.begin()->second);
    orders_.erase(orders_.begin());
    hand_over(order);
  }
  while (!news_.empty() && news_.begin()->first.first <= clock_.boot()) {
    inbox_.push_back(std::move(news_.begin()->second));
    news_.erase(news_.begin());
  }
}

std::optional<base::Instant> Link::next_delivery() const {
  std::optional<base::Instant> next;
  if (!orders_.empty()) next = orders_.begin()->first.first;
  if (!news_.empty()) {
    const base::Instant at = news_.begin()->first.first;
    next = next ? std::min(*next, at) : at;
  }
  return next;
}

}  // namespace gpu_platform::simulation
