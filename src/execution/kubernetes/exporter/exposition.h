#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// Prometheus' text format, as far as readings need it. The text comes from another program: any
// bytes are read without harm, and what is too long or too much is left out. Pure.

namespace gpu_platform::execution {

// One number of a page. `name` is a view into the page.
struct Sample {
  std::string_view name;
  std::vector<std::pair<std::string_view, std::string>> labels;  // as they stand there
  double value = 0;                                              // may be NaN or infinite

  // Returns the value of the first label of that name; empty if there is none.
  std::string_view label(std::string_view label_name) const;
};

inline constexpr std::size_t kMaxSampleLine = 16'384;
inline constexpr std::size_t kMaxSampleLabels = 64;
inline constexpr std::size_t kMaxSamples = 200'000;

// Calls visit(sample) with each sample, in the order of the page. Comments are passed over, and so
// are lines that are not of the format, have more than kMaxSampleLine bytes or more than
// kMaxSampleLabels labels. Nothing is read after kMaxSamples samples. Returns the number of
// samples.
std::size_t read_exposition(std::string_view page,
                            const std::function<void(const Sample& sample)>& visit);

}  // namespace gpu_platform::execution
