#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

namespace gpu_platform::sizing {

// A setting as its author spelled it: {"tp-size", {"1", "2", "4"}}, {"--dtype", {"bfloat16"}}.
// Dashes in front, '_' for '-' and upper case do not matter; of several values the largest counts.
struct Setting {
  std::string name;
  std::vector<std::string> values;

  friend bool operator==(const Setting&, const Setting&) = default;
};

// The meanings of settings, independent of their names.
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
  kBatchTokens,
  kLayers,
  kKeyValueHeads,
  kHeadSize,
  kMemoryShare,
  kGpuMemory,
  kGpusPerNode,
  kEngine,
};
inline constexpr std::size_t kMeanings = 20;

// Returns nothing for a name that says nothing about the need.
std::optional<Meaning> meaning_of(std::string_view name);

// The settings by their meaning.
class KnownSettings {
 public:
  // Refuses two spellings of one meaning with different values.
  static base::Result<KnownSettings> read(const std::vector<Setting>& settings);

  // Returns the largest value, from 1 to `most`; nothing if it is not set. "32k" is 32,000 and
  // "32K" is 32,768, as in vLLM.
  base::Result<std::optional<std::uint64_t>> count(Meaning meaning, std::uint64_t most) const;
  // Returns the first value, above 0 and up to 1, in thousandths; nothing if it is not set.
  base::Result<std::optional<std::uint32_t>> permille(Meaning meaning) const;
  base::Result<std::optional<base::Bytes>> size(Meaning meaning) const;
  // Refuses values that are none of those.
  base::Status check_word(Meaning meaning, bool (*is_allowed)(const std::string&),
                          std::string_view allowed) const;
  // Returns the only or first value as it was written; empty if it is not set.
  std::string text(Meaning meaning) const;
  // Returns the spelling in which it was given, without its dashes; empty if it is not set.
  std::string spelling(Meaning meaning) const;
  const std::vector<std::string>& unused() const { return unused_; }

 private:
  const Setting* find(Meaning meaning) const;

  std::array<std::optional<Setting>, kMeanings> known_;
  std::vector<std::string> unused_;
};

}  // namespace gpu_platform::sizing
