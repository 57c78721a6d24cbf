#pragma once

#include <string>
#include <vector>

#include "base/persistent_map.h"
#include "controller/state.h"
#include "model/job.h"
#include "model/policy.h"
#include "scheduling/pools/lending.h"

// Who borrows from whom, worked out anew from the jobs.

namespace gpu_platform::controller {

// What the attempt counts for while it holds something.
scheduling::Lending::Held held_of(const scheduling::Lending& lending, const model::Policy& policy,
                                  const model::Job& job, const model::Attempt& attempt);

// Cost: the jobs', where anything is guaranteed; else none.
scheduling::Lending lending_of(const base::PersistentMap<model::Job>& jobs,
                               const model::Policy& policy, std::uint64_t cluster_gpus);

// Work that cannot be stopped on what is guaranteed to others, and attempts that say of themselves
// that they borrow, or do not, where it is otherwise: there should be none.
std::vector<std::string> passed_guarantees(const State& state);

}  // namespace gpu_platform::controller
