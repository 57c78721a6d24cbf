#pragma once

#include <cstdint>
#include <optional>

#include "sizing/engine.h"
#include "sizing/memory.h"

// The memory of a server under any division of its work, and the smallest division that fits.

namespace gpu_platform::sizing {

// A server whose size is known.
struct SizedServer {
  std::uint64_t weight_bytes = 0;
  std::optional<CacheShape> cache;  // absent: not known, and not counted
  ContextLoad context;              // of the one sequence that must fit
  std::uint32_t heads = 0;          // that tensor parallelism must divide; 0: not known
  EngineLoad load;                  // `shards` is set for each division
};

// The parts of one GPU's memory. The overhead is that on a GPU of `gpu_memory`; without one, on the
// least that holds the rest.
MemoryParts parts_of(const SizedServer& server, const Parallelism& parallelism,
                     std::optional<base::Bytes> gpu_memory = std::nullopt);
// The least memory of each GPU.
base::Bytes memory_of(const SizedServer& server, const Parallelism& parallelism);
// The cache that a GPU of that memory can have.
base::Bytes room_of(const SizedServer& server, const Parallelism& parallelism,
                    base::Bytes gpu_memory);

// Returns the tensor and pipeline parallelism with the fewest GPUs of the kind whose memory is
// enough; the other ways stay as in `said`. Tensor parallelism is a power of two within a node that
// divides the heads; beyond one node each has a stage of the pipeline, as servers are used.
// Nothing, if 64 stages are not enough.
std::optional<Parallelism> smallest_set(const SizedServer& server, const GpuKind& kind,
                                        const Parallelism& said);

}  // namespace gpu_platform::sizing
