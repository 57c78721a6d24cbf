#include "sizing/engine.h"

#include <algorithm>
#include <iterator>

#include "base/letters.h"
#include "sizing/arithmetic.h"

namespace gpu_platform::sizing {

namespace {

constexpr std::uint64_t kMib = 1 << 20;
constexpr std::uint32_t kUsualPermille = 900;

// vLLM.
constexpr std::uint64_t kOutsideTorch = 1833 * kMib;  // 1.79 GiB
constexpr std::uint64_t kActivations = 1290 * kMib;   // 1.26 GiB
constexpr std::uint64_t kTokensOfThem = 8'192;
// TensorRT-LLM.
constexpr std::uint64_t kExecutionContext = 2'266 * kMib;

// SGLang: what it leaves on a GPU of less memory than that.
struct Reserve {
  std::uint64_t below_gib;
  std::uint64_t mib;
  std::uint64_t mib_of_shard;
};
constexpr Reserve kReserves[] = {
    {35, 2'867, 102},   // L4, A10: 2.8 GiB
    {90, 9'728, 512},   // A100, H100: 9.5 GiB
    {160, 12'288, 512}  // H200: 12 GiB
};
constexpr Reserve kLargestReserve{0, 32'768, 0};  // B200

base::Bytes reserve_of(const Reserve& reserve, std::uint64_t shards) {
  return in_bytes(product({reserve.mib + product({reserve.mib_of_shard, shards}), kMib}));
}

base::Bytes reserve_on(base::Bytes gpu_memory, std::uint64_t shards) {
  const auto* row = std::ranges::find_if(kReserves, [&](const Reserve& each) {
    return bytes_in(gpu_memory) < each.below_gib * 1024 * kMib;
  });
  return reserve_of(row == std::end(kReserves) ? kLargestReserve : *row, shards);
}

// Returns the memory of which `permille` are `bytes`.
base::Bytes whole_of(base::Bytes bytes, std::uint32_t permille) {
  return in_bytes(product({bytes_in(bytes) / permille, 1000}) +
                  rounded_up(bytes_in(bytes) % permille * 1000, permille));
}

base::Bytes share_of(base::Bytes bytes, std::uint32_t permille) {
  return in_bytes(product({bytes_in(bytes) / 1000, permille}) +
                  bytes_in(bytes) % 1000 * permille / 1000);
}

// The first kind of GPU that has room beside what is left free on it.
base::Bytes memory_beside_reserve(base::Bytes held, std::uint64_t shards) {
  for (const Reserve& reserve : kReserves) {
    const base::Bytes whole = held + reserve_of(reserve, shards);
    if (bytes_in(whole) < reserve.below_gib * 1024 * kMib) return whole;
  }
  return held + reserve_of(kLargestReserve, shards);
}

}  // namespace

std::string_view to_string(Engine engine) {
  switch (engine) {
    case Engine::kSglang:
      return "sglang";
    case Engine::kTensorrtLlm:
      return "tensorrt-llm";
    case Engine::kVllm:
      break;
  }
  return "vllm";
}

std::optional<Engine> engine_in(std::string_view word) {
  const std::string lowered = base::to_lower(word);
  if (lowered.contains("vllm")) return Engine::kVllm;
  if (lowered.contains("sglang")) return Engine::kSglang;
  for (const char* name : {"trtllm", "trt-llm", "tensorrt-llm", "tensorrt_llm"}) {
    if (lowered.contains(name)) return Engine::kTensorrtLlm;
  }
  return std::nullopt;
}

base::Bytes overhead_on(base::Bytes gpu_memory, const EngineLoad& load) {
  if (load.engine == Engine::kSglang) return reserve_on(gpu_memory, load.shards);
  if (load.engine == Engine::kTensorrtLlm) return in_bytes(kExecutionContext);
  const std::uint64_t activations = product({load.batch_tokens, kActivations / kTokensOfThem});
  return in_bytes(kOutsideTorch + activations);
}

base::Bytes memory_that_holds(base::Bytes weights, base::Bytes cache, const EngineLoad& load) {
  const std::uint32_t permille = load.permille.value_or(kUsualPermille);
  const base::Bytes held = weights + cache;
  switch (load.engine) {
    case Engine::kSglang: {
      const base::Bytes least = memory_beside_reserve(held, load.shards);
      return load.permille ? std::max(least, whole_of(held, permille)) : least;
    }
    case Engine::kTensorrtLlm:
      return weights + overhead_on({}, load) + whole_of(cache, permille);
    case Engine::kVllm:
      break;
  }
  return whole_of(held + overhead_on({}, load), permille);
}

base::Bytes room_for_cache(base::Bytes gpu_memory, base::Bytes weights, const EngineLoad& load) {
  const std::uint32_t permille = load.permille.value_or(kUsualPermille);
  const base::Bytes overhead = overhead_on(gpu_memory, load);
  base::Bytes room;
  switch (load.engine) {
    case Engine::kSglang:
      room = gpu_memory - overhead - weights;
      if (load.permille) room = std::min(room, share_of(gpu_memory, permille) - weights);
      break;
    case Engine::kTensorrtLlm: {
      const base::Bytes rest = gpu_memory - overhead - weights;
      room = rest > base::Bytes() ? share_of(rest, permille) : base::Bytes();
      break;
    }
    case Engine::kVllm:
      room = share_of(gpu_memory, permille) - overhead - weights;
      break;
  }
  return std::max(room, base::Bytes());
}

}  // namespace gpu_platform::sizing
