#include "controller/use.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

namespace {

bool is_idle(const State& state) {
  return state.held_attempts.empty() && !state.use.has_uncounted();
}

base::Shared<scheduling::FairShareRanking> ranking_of(const State& state) {
  return scheduling::FairShareRanking(*state.policy->organisation, state.use,
                                      *state.books->queue.basis().ranking);
}

void charge_one(State& state, const model::Job& job, const model::Attempt& attempt,
                base::Instant at) {
  const model::Policy& policy = *state.policy;
  scheduling::HeldAmounts held;
  base::GpuShare gpus;
  for (const model::NodeAllocation& part : attempt.allocation.nodes) {
    for (const model::GpuGrant& grant : part.grants) gpus += grant.share;
    const model::Node* node = state.nodes.find(part.node.value);
    CHECK(node != nullptr);
    held.add(part, *node, policy.fair_share.gpu_weights);
  }
  state.use.charge(
      scheduling::account_of(*policy.organisation, *job.spec),
      scheduling::dominant_part(held, state.books->cluster.totals(), policy.fair_share.gpu_weights),
      gpus, std::max(attempt.requested_at, state.use.counted_to()), at,
      policy.fair_share.half_life);
}

}  // namespace

void note_account(State& state, const model::JobSpec& spec) {
  if (!scheduling::needs_use(*state.policy)) return;
  const bool is_new = state.use.add(scheduling::account_of(*state.policy->organisation, spec));
  if (is_new) state.books.welcome(ranking_of(state));
}

void begin_to_hold(State& state, base::Instant at) {
  if (is_idle(state)) state.use.begin_interval(at);
}

void charge(State& state, const model::Job& job, const model::Attempt& attempt, base::Instant at) {
  if (!scheduling::needs_use(*state.policy)) return;
  // Halving what is counted may change the order: then all is counted.
  if (state.use.is_past(at, state.policy->fair_share.half_life)) return count_use(state, at);
  charge_one(state, job, attempt, at);
}

void count_use(State& state, base::Instant at) {
  state.use.move_epoch(at, state.policy->fair_share.half_life);
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job* job = state.jobs.find(id.job.value);
    CHECK(job != nullptr);
    charge_one(state, *job, job->attempts.at(id.attempt - 1), at);
  }
  state.use.count(at, state.policy->fair_share.half_life);
  follow_use(state);
}

void change_policy(State& state, const model::Policy& policy, base::Instant at) {
  const std::shared_ptr<const model::Policy> former = state.policy;
  if (scheduling::needs_use(*former)) count_use(state, at);
  state.use.change_half_life(at, former->fair_share.half_life, policy.fair_share.half_life);
  state.use.follow(*policy.organisation);
  state.use.begin_interval(at);
  state.policy = std::make_shared<model::Policy>(policy);
  if (scheduling::needs_use(policy)) {
    state.use.move_epoch(at, policy.fair_share.half_life);
    state.jobs.for_each([&](std::uint64_t, const model::Job& job) {
      state.use.add(scheduling::account_of(*policy.organisation, *job.spec));
    });
  }
  state.books.follow(state.policy);
  state.books.follow_sharing(state.nodes);
  follow_use(state);
}

void follow_use(State& state) {
  state.books.reorder(ranking_of(state));
}

std::optional<base::Instant> next_count(const State& state) {
  if (!scheduling::needs_use(*state.policy) || is_idle(state)) return std::nullopt;
  return state.use.counted_to() + state.policy->fair_share.interval;
}

}  // namespace gpu_platform::controller
