#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "sizing/models.h"
#include "sizing/precision.h"

namespace gpu_platform::sizing {

// The number of parts into which the work is divided, in each way.
struct Parallelism {
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t data = 1;
  std::uint32_t context = 1;
  std::uint32_t decode_context = 1;

  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

// Returns tensor × pipeline × max(data, decode_context, context): the processes, each with a GPU of
// its own.
std::uint64_t world_size(const Parallelism& parallelism);

// The memory of one GPU.
//   weights  = bytes of all parameters / (tensor × pipeline)
//   cache    = ⌈layers / pipeline⌉ × values of a layer × bytes of a value
//              × tokens / max(context, decode_context), for one sequence of full length
//   overhead = activations, buffers and the CUDA context, by the engine (engine.h)
struct MemoryParts {
  base::Bytes weights;
  std::optional<base::Bytes> cache;  // absent if a figure that it depends on is not known
  base::Bytes overhead;

  friend bool operator==(const MemoryParts&, const MemoryParts&) = default;
};

// Returns the bytes of all weights. If the precision is below 16 bits, the embeddings and the
// vision tower keep 16; in a model of kMxfp4Experts all but the experts do.
std::uint64_t weight_bytes(const KnownModel& model, Precision precision);

// The values that one token leaves in the cache.
struct CacheShape {
  std::uint64_t layers = 0;
  std::uint64_t key_value_heads = 0;
  std::uint64_t head_size = 0;
  std::uint64_t latent_values =
      0;                   // of multi-head latent attention; 0: keys and values of all heads
  WindowedLayers windows;  // of these layers, those that look back over a window alone
};
CacheShape cache_shape(const KnownModel& model);

struct ContextLoad {
  std::uint64_t tokens = 0;        // of the sequence
  std::uint64_t batch_tokens = 0;  // computed at once; a windowed layer holds them too
  Precision precision;
};
// Returns the cache of one sequence on each GPU. Key-value heads are divided among the
// tensor-parallel GPUs; if there are fewer heads, several GPUs hold the same. All of these GPUs
// hold the values of latent attention. A windowed layer holds its window and one batch, as in vLLM.
base::Bytes cache_of_one_context(const CacheShape& shape, const ContextLoad& load,
                                 const Parallelism& parallelism);

// A kind of GPU, and the most of it that a node has.
struct GpuKind {
  std::string name;
  base::Bytes memory;
  std::uint32_t on_a_node = 1;

  friend bool operator==(const GpuKind&, const GpuKind&) = default;
};

// Returns the smallest number of nodes that hold `gpus` with equally many on each.
std::uint32_t fewest_nodes(std::uint32_t gpus, std::uint32_t on_a_node);

}  // namespace gpu_platform::sizing
