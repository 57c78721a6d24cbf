#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/persistent_map.h"
#include "model/engine_kind.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"

// Finds nodes by their names, GPUs by their UUIDs, and the engine of an attempt. What is returned
// refers to the nodes.

namespace gpu_platform::model {

// The nodes ascending by their names, which are unique: an index of one set of nodes.
using NodesByName = std::vector<NodeId>;
NodesByName nodes_by_name(const base::PersistentMap<Node>& nodes);

// Returns null if there is none of that name. `by_name`: of these nodes, or of some of them. Cost:
// the logarithm of their number.
const Node* node_named(const base::PersistentMap<Node>& nodes, const NodesByName& by_name,
                       std::string_view name);

// Returns the index of the GPU on its node, nothing if the node has none of that UUID. Cost: the
// GPUs of the node.
std::optional<std::uint32_t> index_of_gpu(const Node& node, std::string_view uuid);

// Returns all places that a GPU of that UUID has or had: it may have moved to another node. Cost:
// the GPUs of all nodes.
std::vector<GpuRef> places_of_gpu(const base::PersistentMap<Node>& nodes, std::string_view uuid);

// Returns the engine that the attempt's nodes belong to; nothing if the job has no such attempt, or
// its node is not known.
std::optional<EngineKind> engine_of(const base::PersistentMap<Node>& nodes, const Job& job,
                                    std::uint32_t attempt);

}  // namespace gpu_platform::model
