#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

// What a server of a large language model needs, from the settings it is started with.

namespace gpu_platform::sizing {

// A setting as its author spelled it: {"tp-size", {"1", "2", "4"}}, {"--dtype", {"bfloat16"}}.
// Dashes in front, '_' for '-' and upper case do not matter; of several values the largest counts.
struct Setting {
  std::string name;
  std::vector<std::string> values;

  friend bool operator==(const Setting&, const Setting&) = default;
};

struct ServerDescription {
  std::string model;  // name or path: "llama-3-70b"; empty: not known
  std::vector<Setting> settings;

  friend bool operator==(const ServerDescription&, const ServerDescription&) = default;
};

// Reads the command line of a server, as "vllm serve MODEL --tensor-parallel-size 4".
ServerDescription description_of(std::span<const std::string> command);

// In how many parts the work is divided.
struct Parallelism {
  std::uint32_t tensor = 1;
  std::uint32_t pipeline = 1;
  std::uint32_t data = 1;
  std::uint32_t context = 1;
  std::uint32_t decode_context = 1;

  friend bool operator==(const Parallelism&, const Parallelism&) = default;
};

// tensor × pipeline × max(data, decode_context, context): processes, each with a GPU of its own.
std::uint64_t world_size(const Parallelism& parallelism);

enum class MemoryRule : std::uint8_t {
  kByName,    // 20,000 MB for models of 65 to 70 billion parameters, 12,000 for 7 to 13, else 8,000
  kComputed,  // weights + key-value cache + overhead, see MemoryParts
};
std::string_view to_string(MemoryRule rule);  // "by_name"

// Of one GPU.
//   weights  = parameters × bits / 8 / (tensor × pipeline)
//   cache    = 2 × ⌈layers / pipeline⌉ × ⌈key-value heads / tensor⌉ × head size × bytes of a value
//              × tokens × sequences / max(context, decode_context)
//   overhead = 20 % of the weights: activations, buffers, the CUDA context. Source of the share:
//              EleutherAI, Transformer Math 101, 2023.
struct MemoryParts {
  base::Bytes weights;
  std::optional<base::Bytes> cache;  // absent where a setting that it depends on is not known
  base::Bytes overhead;

  friend bool operator==(const MemoryParts&, const MemoryParts&) = default;
};

struct ServerNeeds {
  Parallelism parallelism;
  std::uint32_t gpus = 1;      // the world size
  base::Bytes memory_per_gpu;  // least that each GPU must have
  MemoryRule rule = MemoryRule::kByName;
  std::optional<std::uint64_t> parameters;  // of the model, where known
  std::optional<MemoryParts> parts;         // of kComputed
  std::vector<std::string> notes;           // what the figures leave out or rest upon
  std::vector<std::string>
      unused;  // settings that say nothing about the need, as spelled, ascending
};

// The memory is computed where the number of parameters (a setting, or "70b" in the model's name)
// and the precision are known, else taken by the model's name. An error names the setting as it was
// spelled and what it may be.
base::Result<ServerNeeds> needs_of(const ServerDescription& server);

}  // namespace gpu_platform::sizing
