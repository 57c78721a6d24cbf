#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/codec.h"
#include "base/units.h"
#include "model/gpu_load.h"
#include "model/node.h"
#include "model/resource_request.h"

// How much others load the GPUs of a node, for placement: lower levels are taken first.

namespace gpu_platform::scheduling {

// Of a GPU. The level counts begun steps of 50 thousandths below full availability, from 32 on
// where the node is not idle.
struct LoadLevel {
  std::uint8_t level = 0;
  std::optional<base::Bytes> memory_free;  // none: no process of others is on it

  friend bool operator==(const LoadLevel&, const LoadLevel&) = default;
};

// By index; empty where no GPU of the node is loaded.
using LoadLevels = std::vector<LoadLevel>;

// Returns whether a GPU that others load so can serve the request: what is free of its memory
// suffices, and it is asked for whole.
bool is_of_use(const std::optional<base::Bytes>& memory_free,
               const model::ResourceRequest& request);

LoadLevels load_levels_of(const model::Node& node, const model::LoadRules& rules);
void encode(base::Encoder& out, const LoadLevels& loads);

}  // namespace gpu_platform::scheduling
