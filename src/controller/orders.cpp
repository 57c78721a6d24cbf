#include "controller/orders.h"

#include <string_view>
#include <utility>

#include "base/check.h"
#include "controller/job_budget.h"
#include "controller/judge/gpu_resets.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

using model::Attempt;
using model::AttemptState;
using model::Job;

namespace {

// Returns how many GPUs the driver lists before this one, which it does by their PCI addresses.
std::uint32_t driver_index(const model::Node& node, std::uint32_t index) {
  const auto place = [&](std::uint32_t each) {
    return std::pair(std::string_view(node.gpus.at(each).info.pci_address), each);
  };
  std::uint32_t before = 0;
  for (std::uint32_t each = 0; each < node.gpus.size(); ++each) {
    before += node.gpus[each].is_reported && place(each) < place(index) ? 1 : 0;
  }
  return before;
}

execution::StartOrder start_order(const State& state, const Job& job, const Attempt& attempt) {
  execution::StartOrder order;
  order.attempt = {job.id, attempt.number};
  order.spec = job.spec;
  order.boot_id = attempt.boot_id;
  order.time_limit = time_limit_of(job, attempt);
  order.array_id = job.array_id;
  order.array_index = job.array_index;
  order.stop_grace = state.policy->stop_grace;
  for (const auto& part : attempt.allocation.nodes) {
    const model::Node* node = state.nodes.find(part.node.value);
    CHECK(node != nullptr);
    execution::LaunchNode launch{part.node,   node->name, node->emulated, {}, part.cpus,
                                 part.memory, {},         node->engine};
    std::vector<std::uint32_t> indices;
    for (const auto& grant : part.grants) {
      launch.gpus.push_back(
          {node->gpus.at(grant.gpu_index).info, grant, driver_index(*node, grant.gpu_index)});
      indices.push_back(grant.gpu_index);
    }
    launch.near = model::numa_nodes_near(*node, indices);
    order.nodes.push_back(std::move(launch));
  }
  return order;
}

}  // namespace

std::optional<Effect> order_of(const State& state, const model::Event& event) {
  if (const auto* start = std::get_if<model::StartRequested>(&event)) {
    const Job* job = find_job(state, start->attempt.job);
    return start_order(state, *job, job->attempts.back());
  }
  if (const auto* stop = std::get_if<model::StopRequested>(&event)) {
    return execution::StopOrder{stop->attempt, stop->without_grace, state.policy->stop_grace,
                                stop->reason};
  }
  if (const auto* change = std::get_if<model::JobChanged>(&event)) {
    const Job* job = find_job(state, change->job);
    if (!changes_limit(*change) || !model::is_active(job->state)) return std::nullopt;
    const Attempt& attempt = job->attempts.back();
    return execution::LimitOrder{{job->id, attempt.number}, time_limit_of(*job, attempt)};
  }
  if (const auto* signal = std::get_if<model::SignalRequested>(&event)) {
    return execution::SignalOrder{signal->attempt, signal->signal};
  }
  if (const auto* released = std::get_if<model::AttemptReleased>(&event)) {
    return execution::ForgetOrder{released->attempt};
  }
  // With the last of those that are reset together.
  if (const auto* taint = std::get_if<model::TaintChanged>(&event)) {
    const bool begins = taint->gpu && !taint->is_lifted &&
                        taint->taint.source == model::TaintSource::kReset &&
                        taint->taint.effect == model::TaintEffect::kOut;
    if (!begins) return std::nullopt;
    if (auto order = reset_order_of(state, {taint->node, *taint->gpu})) return *std::move(order);
  }
  return std::nullopt;
}

std::vector<Effect> limit_orders(const State& state, const model::Event& event) {
  const bool changes_prices = std::holds_alternative<model::PriceSet>(event) ||
                              std::holds_alternative<model::PriceWithdrawn>(event) ||
                              std::holds_alternative<model::PolicyApplied>(event) ||
                              std::holds_alternative<model::TeamSet>(event) ||
                              std::holds_alternative<model::TeamRemoved>(event);
  std::vector<Effect> orders;
  if (!changes_prices) return orders;
  for (const model::AttemptId id : state.relimited) {
    const Job* job = find_job(state, id.job);
    const Attempt& attempt = job->attempts.at(id.attempt - 1);
    if (!attempt.limit_by_budget) continue;
    orders.push_back(execution::LimitOrder{id, time_limit_of(*job, attempt)});
  }
  return orders;
}

Effect stop_at_once(const State& state, model::AttemptId id) {
  return execution::StopOrder{id, true, {}, find_attempt(state, id)->reason};
}

std::vector<execution::KnownAttempt> known_attempts(const State& state) {
  std::vector<execution::KnownAttempt> known;
  for (const model::AttemptId id : state.held_attempts) {
    const Job* job = find_job(state, id.job);
    const Attempt& attempt = job->attempts.at(id.attempt - 1);
    known.push_back({start_order(state, *job, attempt), attempt.state});
  }
  return known;
}

std::vector<Effect> pending_effects(const State& state) {
  std::vector<Effect> effects;
  for (const model::AttemptId id : state.held_attempts) {
    const Job* job = find_job(state, id.job);
    const Attempt& attempt = job->attempts.at(id.attempt - 1);
    if (attempt.state == AttemptState::kRequested)
      effects.push_back(start_order(state, *job, attempt));
    const bool runs = attempt.state == AttemptState::kRunning;
    if (runs && state.relimited.contains(id)) {
      effects.push_back(execution::LimitOrder{id, time_limit_of(*job, attempt)});
    }
    if (attempt.state == AttemptState::kStopping) {
      effects.push_back(execution::StopOrder{id, attempt.kill_requested, state.policy->stop_grace,
                                             attempt.stop_reason});
    }
    // Given up as lost, but perhaps alive behind a broken connection: it must not come back.
    if (attempt.state == AttemptState::kCleaning && attempt.exit.lost != model::Lost::kNo) {
      effects.push_back(stop_at_once(state, id));
    }
  }
  for (execution::ResetOrder& order : reset_orders(state)) effects.emplace_back(std::move(order));
  return effects;
}

}  // namespace gpu_platform::controller
