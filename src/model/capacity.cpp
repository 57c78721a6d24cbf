#include "model/capacity.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/letters.h"

namespace gpu_platform::model {

namespace {

constexpr std::array<std::string_view, kCapacityClasses> kClassNames = {"on-demand", "spot",
                                                                        "reserved"};
constexpr std::array<std::string_view, kCapacityRequests> kRequestNames = {"any", "spot",
                                                                           "on-demand"};

}  // namespace

std::string_view to_string(CapacityClass capacity) {
  return kClassNames.at(static_cast<std::size_t>(capacity));
}

std::optional<CapacityClass> parse_capacity_class(std::string_view text) {
  std::string word = base::to_lower(text);
  std::ranges::replace(word, '_', '-');
  const auto* found = std::ranges::find(kClassNames, word);
  if (found == kClassNames.end()) return std::nullopt;
  return static_cast<CapacityClass>(found - kClassNames.begin());
}

std::string_view to_string(CapacityRequest request) {
  return kRequestNames.at(static_cast<std::size_t>(request));
}

}  // namespace gpu_platform::model
