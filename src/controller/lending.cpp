#include "controller/lending.h"

#include <map>

#include <fmt/format.h>

#include "base/check.h"
#include "model/job_spec.h"

namespace gpu_platform::controller {

namespace {

// By the admission rule (scheduling/pools/balance.h), counted by hand, of what can never be stopped
// in one pool. What began before guarantees, or the cluster, changed last is not blamed.
void check_admission(const State& state, const std::string& pool,
                     const scheduling::PoolBalance& balance, std::vector<std::string>& found) {
  std::map<scheduling::QuotaSubject, base::GpuShare> firm;
  std::map<scheduling::QuotaSubject, model::JobId> newest;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job& job = *state.jobs.find(id.job.value);
    const model::Attempt& attempt = job.attempts.at(id.attempt - 1);
    const auto* own_pool = state.books->lending.of_type(attempt.gpu_type);
    if (own_pool == nullptr || own_pool->first != pool) continue;
    const auto ask = scheduling::pool_ask(balance.guarantees(), *state.policy, *job.spec);
    if (ask.may_borrow || ask.is_spared || ask.gpus == base::GpuShare()) continue;
    firm[ask.holder] += ask.gpus;
    if (attempt.requested_at > state.limits_set_at) newest[ask.holder] = id.job;
  }
  base::GpuShare above;
  model::JobId to_blame;
  for (const auto& [holder, gpus] : firm) {
    const base::GpuShare own = balance.guarantee_of(holder);
    if (gpus <= own) continue;
    above += gpus - own;
    if (newest.contains(holder)) to_blame = newest[holder];
  }
  if (above <= balance.shared() || !to_blame.valid()) return;
  found.push_back(fmt::format(
      "guarantees: {} / 7000 GPUs{} are held above guarantees by work that is not preemptible, of "
      "which {} have no guarantee, since job {} was started",
      above.value(), pool.empty() ? "" : " of type " + pool, balance.shared().value(),
      to_blame.value));
}

}  // namespace

std::vector<std::string> passed_guarantees(const State& state) {
  std::vector<std::string> found;
  if (!state.books->lending.is_active()) return found;
  for (const auto& [name, lending] : state.books->lending.all()) {
    check_admission(state, name, lending.balance(), found);
  }
  std::uint64_t borrowed = 0;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job& job = *state.jobs.find(id.job.value);
    const model::Attempt& attempt = job.attempts.at(id.attempt - 1);
    if (!attempt.is_borrowed) continue;
    ++borrowed;
    if (state.books->lending.of_type(attempt.gpu_type) == nullptr) {
      found.push_back(fmt::format(
          "guarantees: job {} borrows GPUs that are guaranteed to no holder", id.job.value));
    }
    if (attempt.stops_above) {
      found.push_back(
          fmt::format("guarantees: job {} borrows, and others were stopped for it", id.job.value));
    }
    if (!model::may_borrow(*job.spec, *state.policy)) {
      found.push_back(fmt::format("guarantees: job {} borrows, and cannot be stopped for others",
                                  id.job.value));
    }
  }
  if (borrowed != state.books->lending.borrowed()) {
    found.push_back(fmt::format("guarantees: {} attempts say that they borrow, {} do", borrowed,
                                state.books->lending.borrowed()));
  }
  return found;
}

}  // namespace gpu_platform::controller
