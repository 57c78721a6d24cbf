#pragma once

#include <functional>
#include <optional>

#include "model/allocation.h"
#include "model/resource_request.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {

// Calls place_now() with the least loaded GPUs alone, then with those of the next level too, and so
// on, until one call returns an allocation: the job gets the GPUs whose most loaded one is least
// loaded, and among those of one level the usual order decides. GPUs of which others have taken
// memory that the request needs, and for a part of a GPU all that others load, are out of reach.
// The trial is then what it was.
//
// Cost: one call where no GPU is loaded, else at most one for each level that there is.
std::optional<model::Allocation> place_by_load(
    Trial& trial, const model::ResourceRequest& request,
    const std::function<std::optional<model::Allocation>()>& place_now);

}  // namespace gpu_platform::scheduling
