#pragma once

#include <cstddef>
#include <optional>

#include "model/allocation.h"
#include "model/job.h"
#include "scheduling/cluster.h"
#include "scheduling/trial.h"

// Returns the nodes and GPUs that a request gets now, complete or not at all; nothing if it does
// not fit. Requests for a part of a GPU take another path (place_part.h).

namespace gpu_platform::scheduling {

// Tries the request's types in its order of preference and takes the first that has room.
std::optional<model::Allocation> place(Trial& trial, const model::ResourceRequest& request);
// The same for a request that excludes no node, names no GPU and takes healthy ones alone.
std::optional<model::Allocation> place(const Cluster& cluster,
                                       const model::ResourceRequest& request);

// The steps of place(), for callers that try each type under conditions of its own. Excluded nodes
// are shut, and GPUs that the request may not have are withheld, for as long as the caller's trial
// lasts.
void withhold_excluded(Trial& trial, const model::ResourceRequest& request);
// Returns whether there is a second try, with degraded GPUs: it gets none if healthy ones suffice.
bool may_try_degraded(const Cluster& cluster, const model::ResourceRequest& request);
std::size_t gpu_choices(const model::ResourceRequest& request);  // at least 1
std::uint32_t speed_of_choice(const model::ResourceRequest& request, std::size_t choice);
std::optional<model::Allocation> place_choice(const Cluster& cluster,
                                              const model::ResourceRequest& request,
                                              std::size_t choice);

// Returns false only if the nodes that are up could not hold the request even if nothing else ran
// on them.
bool some_node_up_could_hold(const Cluster& cluster, const model::ResourceRequest& request);

}  // namespace gpu_platform::scheduling
