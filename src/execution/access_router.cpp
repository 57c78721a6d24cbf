#include "execution/access_router.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace gpu_platform::execution {

AccessRouter::AccessRouter(std::map<model::EngineKind, AttemptAccess*> engines,
                           EngineOfNode engine_of_node)
    : engines_(std::move(engines)), engine_of_node_(std::move(engine_of_node)) {
  CHECK(!engines_.empty());
}

AttemptAccess& AccessRouter::of(const model::Job& job, std::uint32_t attempt) const {
  if (attempt == 0 || attempt > job.attempts.size()) return of_unknown();
  const model::Allocation& allocation = job.attempts[attempt - 1].allocation;
  if (allocation.nodes.empty()) return of_unknown();
  const auto kind = engine_of_node_(allocation.nodes.front().node);
  const auto found = kind ? engines_.find(*kind) : engines_.end();
  return found == engines_.end() ? of_unknown() : *found->second;
}

bool AccessRouter::has_output(model::JobId job) const {
  return std::ranges::any_of(engines_,
                             [job](const auto& each) { return each.second->has_output(job); });
}

void AccessRouter::remove_output(const std::vector<model::JobId>& jobs) const {
  for (const auto& [kind, engine] : engines_) engine->remove_output(jobs);
}

}  // namespace gpu_platform::execution
