#include "controller/lending.h"

#include <map>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::controller {

namespace {

// By the admission rule (scheduling/pools/balance.h), counted by hand. What began before
// guarantees, or the cluster, changed last is not blamed.
void check_admission(const State& state, std::vector<std::string>& found) {
  const scheduling::PoolBalance& balance = state.books->lending.balance();
  std::map<scheduling::QuotaSubject, base::GpuShare> firm;
  std::map<scheduling::QuotaSubject, model::JobId> newest;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job& job = *state.jobs.find(id.job.value);
    const auto ask = scheduling::pool_ask(balance.guarantees(), *state.policy, *job.spec);
    if (ask.may_borrow || ask.gpus == base::GpuShare()) continue;
    firm[ask.holder] += ask.gpus;
    const bool is_new = job.attempts.at(id.attempt - 1).requested_at > state.limits_set_at;
    if (is_new) newest[ask.holder] = id.job;
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
      "guarantees: {} / 7000 GPUs are held above guarantees by work that is not preemptible, of "
      "which {} are nobody's, since job {} was started",
      above.value(), balance.shared().value(), to_blame.value));
}

}  // namespace

std::vector<std::string> passed_guarantees(const State& state) {
  std::vector<std::string> found;
  if (!state.books->lending.is_active()) return found;
  check_admission(state, found);
  std::uint64_t borrowed = 0;
  for (const model::AttemptId id : state.held_attempts) {
    const model::Job& job = *state.jobs.find(id.job.value);
    if (!job.attempts.at(id.attempt - 1).is_borrowed) continue;
    ++borrowed;
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
