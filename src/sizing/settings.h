#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sizing/llm_server.h"

namespace gpu_platform::sizing {

// What a setting can mean, whatever it is called.
enum class Meaning : std::uint8_t {
  kTensor,
  kPipeline,
  kData,
  kContext,
  kDecodeContext,
  kModel,
  kParameters,
  kPrecision,
  kQuantization,
  kCachePrecision,
  kTokens,
  kSequences,
  kLayers,
  kKeyValueHeads,
  kHeadSize,
};
inline constexpr std::size_t kMeanings = 15;

// Nothing for a name that says nothing about the need.
std::optional<Meaning> meaning_of(std::string_view name);

// "1", "16": the bits of one weight or cached value; nothing for a name that leaves it open
// ("auto") or that is not known.
std::optional<std::uint32_t> bits_of_precision(std::string_view name);

// "70B", "8x7b", "350M", "7000000000".
std::optional<std::uint64_t> parameter_count(std::string_view text);
// The largest such count among the words of a model's name: "Qwen3-30B-A3B" has 30 billion.
std::optional<std::uint64_t> parameter_count_in(std::string_view model);

// The settings by what they mean.
class KnownSettings {
 public:
  // Refuses two spellings of one meaning that differ in what they say.
  static base::Result<KnownSettings> read(const std::vector<Setting>& settings);

  // The largest value, from 1 to `most`; nothing where it is not set.
  base::Result<std::optional<std::uint64_t>> count(Meaning meaning, std::uint64_t most) const;
  // The only or first value as it was written; empty where it is not set.
  std::string text(Meaning meaning) const;
  const std::vector<std::string>& unused() const { return unused_; }

 private:
  std::array<std::optional<Setting>, kMeanings> known_;
  std::vector<std::string> unused_;
};

}  // namespace gpu_platform::sizing
