#include "sizing/smallest_set.h"

#include <algorithm>

#include "sizing/arithmetic.h"

namespace gpu_platform::sizing {

namespace {

constexpr std::uint32_t kMaxStages = 64;

EngineLoad load_of(const SizedServer& server, const Parallelism& parallelism) {
  EngineLoad load = server.load;
  load.shards = std::uint64_t{parallelism.tensor} * parallelism.pipeline;
  return load;
}

base::Bytes weights_of(const SizedServer& server, const Parallelism& parallelism) {
  return in_bytes(rounded_up(server.weight_bytes, load_of(server, parallelism).shards));
}

std::optional<base::Bytes> cache_of(const SizedServer& server, const Parallelism& parallelism) {
  if (!server.cache) return std::nullopt;
  return cache_of_one_context(*server.cache, server.context, parallelism);
}

}  // namespace

base::Bytes memory_of(const SizedServer& server, const Parallelism& parallelism) {
  return memory_that_holds(weights_of(server, parallelism),
                           cache_of(server, parallelism).value_or(base::Bytes()),
                           load_of(server, parallelism));
}

MemoryParts parts_of(const SizedServer& server, const Parallelism& parallelism,
                     std::optional<base::Bytes> gpu_memory) {
  const base::Bytes on = gpu_memory ? *gpu_memory : memory_of(server, parallelism);
  return {weights_of(server, parallelism), cache_of(server, parallelism),
          overhead_on(on, load_of(server, parallelism))};
}

base::Bytes room_of(const SizedServer& server, const Parallelism& parallelism,
                    base::Bytes gpu_memory) {
  return room_for_cache(gpu_memory, weights_of(server, parallelism), load_of(server, parallelism));
}

std::optional<Parallelism> smallest_set(const SizedServer& server, const GpuKind& kind,
                                        const Parallelism& said) {
  Parallelism tried = said;
  tried.tensor = tried.pipeline = 1;
  const auto fits = [&] { return memory_of(server, tried) <= kind.memory; };
  for (std::uint32_t tensor = 1; tensor <= kind.on_a_node; tensor *= 2) {
    if (server.heads % tensor != 0) break;
    tried.tensor = tensor;
    if (fits()) return tried;
  }
  const std::uint64_t layers = server.cache ? server.cache->layers : kMaxStages;
  const auto most = static_cast<std::uint32_t>(std::min<std::uint64_t>(layers, kMaxStages));
  for (tried.pipeline = 2; tried.pipeline <= most; ++tried.pipeline) {
    if (fits()) return tried;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::sizing
