#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "sizing/engine.h"
#include "sizing/memory.h"
#include "sizing/settings.h"

// Computes the GPUs and memory that a server of a large language model needs from its settings.

namespace gpu_platform::sizing {

struct ServerDescription {
  std::string model;  // name or path: "llama-3-70b"; empty: not known
  std::vector<Setting> settings;

  friend bool operator==(const ServerDescription&, const ServerDescription&) = default;
};

// Reads the command line of a server, as "vllm serve MODEL --tensor-parallel-size 4". A server that
// is given no type takes the model's own: the description says dtype=auto then. It says the engine
// that the command names.
ServerDescription description_of(std::span<const std::string> command);

enum class MemoryRule : std::uint8_t {
  kByName,    // 20,000 MB for models of 65 to 70 billion parameters, 12,000 for 7 to 13, else 8,000
  kComputed,  // weights, key-value cache and overhead, as the engine divides a GPU (engine.h)
  kUnknown,   // nothing tells the size of the model
};
std::string_view to_string(MemoryRule rule);  // "by_name"

// What the memory of GPUs of one kind holds beside the weights and the overhead.
struct Holding {
  GpuKind kind;
  // As for the server; if its settings say none, the smallest that fits on GPUs of the kind.
  Parallelism parallelism;
  std::uint32_t gpus = 1;
  std::uint32_t nodes = 1;  // the fewest nodes with equally many of the GPUs on each
  bool fits = false;        // a GPU has the memory to ask for
  // For each replica, if it fits and the cache is known: the tokens, and the number of sequences of
  // full length that they make.
  std::optional<std::uint64_t> tokens;
  std::optional<std::uint64_t> contexts;

  friend bool operator==(const Holding&, const Holding&) = default;
};

struct ServerNeeds {
  Parallelism parallelism;
  std::uint32_t gpus = 1;   // the world size
  std::uint32_t nodes = 1;  // the nodes that hold them, by the given kinds of GPU
  MemoryRule rule = MemoryRule::kByName;
  Engine engine = Engine::kVllm;
  // Absent with kUnknown, as is memory_to_ask_for.
  std::optional<base::Bytes> memory_per_gpu;
  // Not less than memory_per_gpu, nor than the parts.
  std::optional<base::Bytes> memory_to_ask_for;
  std::string known_as;  // the model's name in the table; empty if it is not there
  std::optional<std::uint64_t> parameters;
  std::optional<std::uint64_t> active_parameters;  // that one token passes, of a mixture of experts
  std::optional<Precision> precision;              // of the weights in `parts`
  std::optional<MemoryParts> parts;                // where the parameters are known
  std::optional<std::uint64_t> context;            // tokens of the one sequence in `parts`
  std::optional<std::uint64_t> sequences;          // that the server is to take at once
  std::vector<Holding> holdings;                   // in the order of the kinds
  std::vector<std::string> notes;                  // what the figures leave out or rest upon
  // The settings that say nothing about the need, as spelled.
  std::vector<std::string> unused;
};

// Takes the memory by the model's name if no setting and no name says a precision; else computes
// it. The memory is the least that serves one sequence of full length.
// If the settings say neither tensor nor pipeline parallelism, the answer has the smallest set of
// GPUs of one of the `kinds` that fits, or of known_gpus() if none of them does or none is given.
// A model whose size nothing tells has no memory; it is refused if nothing tells its parallelism
// either. An error names the setting as it was spelled, and its allowed values.
base::Result<ServerNeeds> needs_of(const ServerDescription& server,
                                   std::span<const GpuKind> kinds = {});

}  // namespace gpu_platform::sizing
