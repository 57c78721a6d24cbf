#pragma once

#include <vector>

#include "base/persistent_map.h"
#include "model/job.h"
#include "model/job_place.h"
#include "model/node.h"

namespace gpu_platform::scheduling {

// Returns the places that the job accepts on each node that it may use, whether they are free or
// not: one for each type of GPU there. Cost: the GPUs of all nodes.
std::vector<model::JobPlace> places_of(const base::PersistentMap<model::Node>& nodes,
                                       const model::JobSpec& spec);

}  // namespace gpu_platform::scheduling
