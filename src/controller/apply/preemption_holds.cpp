#include "controller/apply/preemption_holds.h"

#include <algorithm>

#include "controller/apply/gpu_clocks.h"
#include "scheduling/part_rules.h"
#include "scheduling/trial.h"

namespace gpu_platform::controller {

namespace {

// An attempt that has given everything back is no possible victim any more.
void update_held(State& state, model::AttemptId id) {
  const model::Job* j = state.jobs.find(id.job.value);
  if (j == nullptr) return;
  const model::Attempt& attempt = j->attempts.at(id.attempt - 1);
  if (model::holds_resources(attempt.state)) state.books.update_held(*j, attempt);
}

// Returns whether the node still gives the part what keeps it to its amounts.
bool gives_wall(const scheduling::PartTerms& terms, const model::GpuGrant& grant,
                const model::Tenant& tenant) {
  const model::Wall* const wall = terms.wall(grant.mode, tenant);
  return (terms.gpus_in(grant.mode) >> grant.gpu_index & 1) != 0 && wall != nullptr &&
         *wall == grant.wall;
}

}  // namespace

void drop_hold(Application& a, model::JobId beneficiary) {
  const model::PreemptionHold* hold = a.state.books->holds.find(beneficiary);
  if (hold == nullptr) return;
  const std::vector<model::AttemptId> victims = hold->victims;
  const model::Allocation held = hold->allocation;
  a.state.books.erase_hold(beneficiary);
  follow_clocks(a, held);
  for (const model::AttemptId id : victims) update_held(a.state, id);
}

void drop_holds_that(Application& a,
                     const std::function<bool(const model::PreemptionHold&)>& is_over) {
  std::vector<model::JobId> over;
  for (const auto& [job, hold] : a.state.books->holds.all()) {
    if (is_over(hold)) over.push_back(job);
  }
  for (const model::JobId job : over) drop_hold(a, job);
}

void drop_holds_that_cannot_be_met(Application& a, const model::Node& n) {
  const bool is_up = scheduling::free_state_of(n).is_up;
  const scheduling::GpuMask in_service = scheduling::gpus_in_service(n);
  drop_holds_that(a, [&](const model::PreemptionHold& hold) {
    return std::ranges::any_of(hold.allocation.nodes, [&](const model::NodeAllocation& part) {
      if (part.node != n.id) return false;
      const scheduling::GpuMask gpus = scheduling::gpus_of(part);
      if (!is_up || (gpus & in_service) != gpus) return true;
      return model::is_part(hold.allocation) &&
             !gives_wall(scheduling::part_terms_of(a.state.policy->sharing, n), part.grants.front(),
                         hold.allocation.tenant);
    });
  });
}

void drop_holds_of_parts(Application& a) {
  drop_holds_that(
      a, [](const model::PreemptionHold& hold) { return model::is_part(hold.allocation); });
}

void drop_holds_that_outrank_nobody(Application& a) {
  drop_holds_that(a,
                  [&](const model::PreemptionHold& hold) { return !is_outranking(a.state, hold); });
}

std::vector<model::JobId> jobs_stopped_for(const State& state, model::JobId beneficiary) {
  std::vector<model::JobId> jobs;
  const model::PreemptionHold* hold = state.books->holds.find(beneficiary);
  if (hold == nullptr) return jobs;
  for (const model::AttemptId id : hold->victims) jobs.push_back(id.job);
  return jobs;
}

void update_held_attempts(Application& a) {
  for (const model::AttemptId id : a.state.held_attempts) update_held(a.state, id);
}

}  // namespace gpu_platform::controller
