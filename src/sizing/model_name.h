#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sizing/precision.h"

// Reads the name of a model, known or not.

namespace gpu_platform::sizing {

// Returns the words of the last part of a path in lower case: "org/Phi-3-mini-4k" has phi, 3, mini
// and 4k.
std::vector<std::string> words_of_name(std::string_view model);

// Returns the tokens of a context: "4k", "128k", "1m". More than ten millions are parameters
// ("350m").
std::optional<std::uint64_t> context_of_word(std::string_view word);

// True for words that say how a model was trained or stored, and not which it is: "instruct",
// "awq".
bool is_dressing(std::string_view word);
// True for "2407", "20240806" and "v0.1".
bool is_date_or_version(std::string_view word);

struct NameFacts {
  std::optional<std::uint64_t> parameters;
  // "8x7B", "17B-16E": the experts share layers, so that there are fewer parameters than that.
  bool is_upper_bound = false;
  std::optional<std::uint64_t> context;
  std::optional<Precision> precision;  // "AWQ", "GPTQ-Int8", "FP8"

  friend bool operator==(const NameFacts&, const NameFacts&) = default;
};

// Never reads context suffixes or active parameters ("A3B") as parameters.
NameFacts facts_of_name(std::string_view model);

// Reads "70B", "8x7b", "350M" and "7000000000".
std::optional<std::uint64_t> parameter_count(std::string_view text);

}  // namespace gpu_platform::sizing
