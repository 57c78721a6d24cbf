#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/units.h"
#include "telemetry/block.h"
#include "telemetry/frame.h"

namespace gpu_platform::telemetry {

// The samples of one subject in one span.
struct Piece {
  Subject subject;
  base::Instant span;  // its begin
  Block block;         // raw, with the metrics' names
};

struct Pieces {
  std::vector<Piece> pieces;  // by subject, then in the order in which the spans began to come
  std::uint64_t clamped = 0;  // frames whose time was beyond `latest`, which they have now
};

// Sorts frames into pieces. Times beyond `latest` become it.
Pieces pieces_of(std::span<const Frames> frames, base::Instant latest);

// The blocks as one: the times of all, one behind the other. They have one tier.
Block joined(std::span<const Block> blocks);

}  // namespace gpu_platform::telemetry
