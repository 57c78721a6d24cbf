#include "execution/engine_router.h"

#include <utility>

#include "base/check.h"

namespace gpu_platform::execution {

namespace {

model::EngineKind kind_of(const StartOrder& order) {
  CHECK(!order.nodes.empty());
  return order.nodes.front().engine;
}

}  // namespace

EngineRouter::EngineRouter(std::map<model::EngineKind, Engine*> engines)
    : engines_(std::move(engines)) {
  CHECK(!engines_.empty());
}

template <class Send>
void EngineRouter::route(model::AttemptId attempt, const Send& send) {
  const auto known = kind_of_.find(attempt);
  for (const auto& [kind, engine] : engines_) {
    if (known == kind_of_.end() || known->second == kind) send(*engine);
  }
}

void EngineRouter::start(const StartOrder& order) {
  kind_of_[order.attempt] = kind_of(order);
  route(order.attempt, [&](Engine& engine) { engine.start(order); });
}

void EngineRouter::stop(const StopOrder& order) {
  route(order.attempt, [&](Engine& engine) { engine.stop(order); });
}

void EngineRouter::set_limit(const LimitOrder& order) {
  route(order.attempt, [&](Engine& engine) { engine.set_limit(order); });
}

void EngineRouter::signal(const SignalOrder& order) {
  route(order.attempt, [&](Engine& engine) { engine.signal(order); });
}

void EngineRouter::forget(const ForgetOrder& order) {
  route(order.attempt, [&](Engine& engine) { engine.forget(order); });
  kind_of_.erase(order.attempt);
}

void EngineRouter::reset(const ResetOrder& order) {
  const auto engine = engines_.find(order.engine);
  if (engine != engines_.end()) engine->second->reset(order);
}

void EngineRouter::adopt(const std::vector<KnownAttempt>& known) {
  std::map<model::EngineKind, std::vector<KnownAttempt>> parts;
  for (const KnownAttempt& attempt : known) {
    const model::EngineKind kind = kind_of(attempt.order);
    kind_of_[attempt.order.attempt] = kind;
    parts[kind].push_back(attempt);
  }
  for (const auto& [kind, engine] : engines_) engine->adopt(parts[kind]);
}

void EngineRouter::adopt_conditions(const std::vector<EvidenceObserved>& lasting) {
  for (const auto& [kind, engine] : engines_) engine->adopt_conditions(lasting);
}

}  // namespace gpu_platform::execution
