#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

// How the servers in use divide the memory of a GPU, by figures that were published:
//   vLLM          takes a share of the GPU (gpu-memory-utilization, 0.9). In it, 1.79 GiB lie
//   outside
//                 PyTorch, and 1.26 GiB are the peak of the activations of 8,192 batched tokens:
//                 its log for Llama-3-8B on an H100,
//                 https://github.com/vllm-project/vllm/pull/10511. For gpt-oss-120b on one H100 of
//                 80 GB, GitLab's manual says 2 GB for both.
//   SGLang        leaves 9.5 GiB and half a GiB for each GPU of the server beside weights and cache
//                 on a GPU of 80 GB, less on smaller ones and more on larger ones: server_args.py
//                 of release 0.5. A mem-fraction-static that is given bounds weights and cache
//                 instead.
//   TensorRT-LLM  gives the cache a share (0.9) of what the weights and 2,266 MiB of its execution
//                 context leave: https://github.com/NVIDIA/TensorRT-LLM/issues/2683, for
//                 DeepSeek-V3 on eight GPUs.

namespace gpu_platform::sizing {

enum class Engine : std::uint8_t { kVllm, kSglang, kTensorrtLlm };

std::string_view to_string(Engine engine);  // "vllm"
// Reads "vllm", "sglang", "tensorrt-llm" and "trtllm", also within a word of a command
// ("sglang.launch_server").
std::optional<Engine> engine_in(std::string_view word);

// What the division depends on, beside the weights and the cache of one GPU.
struct EngineLoad {
  Engine engine = Engine::kVllm;
  std::optional<std::uint32_t> permille;  // the share of a GPU, if a setting says it
  std::uint64_t batch_tokens = 0;         // computed at once
  std::uint64_t shards = 1;               // tensor × pipeline
};

// Returns what is neither weights nor cache on a GPU of that memory.
base::Bytes overhead_on(base::Bytes gpu_memory, const EngineLoad& load);
// Returns the least memory of a GPU that holds the weights and the cache.
base::Bytes memory_that_holds(base::Bytes weights, base::Bytes cache, const EngineLoad& load);
// Returns what a GPU of that memory has for the cache; zero if there is no room.
base::Bytes room_for_cache(base::Bytes gpu_memory, base::Bytes weights, const EngineLoad& load);

}  // namespace gpu_platform::sizing
