#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

// How a node is paid for, and so how long it may last.

namespace gpu_platform::model {

enum class CapacityClass : std::uint8_t {
  kOnDemand,  // stays until its owner gives it back; also a node of which nothing is said
  kSpot,      // its provider may take it away at any time
  kReserved,  // paid for in advance for a time
};
inline constexpr std::size_t kCapacityClasses = 3;
std::string_view to_string(CapacityClass capacity);  // "on-demand"
// Reads a class; case does not count, and '_' is '-'. Nothing if the text is none.
std::optional<CapacityClass> parse_capacity_class(std::string_view text);

// The nodes that a job accepts by their class.
enum class CapacityRequest : std::uint8_t {
  kAny,
  kSpot,
  kOnDemand,  // nodes that stay: on-demand and reserved ones
};
inline constexpr std::size_t kCapacityRequests = 3;
std::string_view to_string(CapacityRequest request);  // "on-demand"

constexpr bool accepts(CapacityRequest request, CapacityClass capacity) {
  const bool is_spot = capacity == CapacityClass::kSpot;
  return request == CapacityRequest::kAny || is_spot == (request == CapacityRequest::kSpot);
}

}  // namespace gpu_platform::model
