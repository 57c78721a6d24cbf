#include "views/job_budget.h"

#include "accounting/job_budget.h"
#include "model/job_spec.h"
#include "scheduling/explain/job_places.h"

namespace gpu_platform::views {

std::string budget_note(const controller::Snapshot& snapshot, const model::JobSpec& spec) {
  if (!spec.budget) return {};
  const accounting::MeterTerms terms{snapshot.nodes, *snapshot.prices, *snapshot.policy};
  const accounting::Cover cover =
      accounting::cover_of(terms, spec, scheduling::places_of(snapshot.nodes, spec),
                           accounting::ExactCost(*spec.budget), snapshot.at);
  if (!cover.has_price || !cover.time) return {};
  return accounting::describe(cover, *spec.budget);
}

}  // namespace gpu_platform::views
