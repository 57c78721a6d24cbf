#pragma once

#include <cstdint>
#include <string_view>

namespace gpu_platform::model {

enum class PriorityClass : std::uint8_t { kCritical, kHigh, kMedium, kLow };
std::string_view to_string(PriorityClass priority);  // "CRITICAL"
constexpr bool is_below(PriorityClass a, PriorityClass b) {
  return a > b;
}
constexpr PriorityClass higher(PriorityClass a, PriorityClass b) {
  return is_below(a, b) ? b : a;
}

// Numbers 0–1 are CRITICAL, 2–3 HIGH, 4–6 MEDIUM, 7–9 LOW; the number decides inside a class.
struct Priority {
  PriorityClass priority_class = PriorityClass::kMedium;
  std::uint8_t number = 5;

  friend bool operator==(const Priority&, const Priority&) = default;
};
Priority priority_of_number(std::uint8_t number);    // 0..9
Priority priority_of_class(PriorityClass priority);  // the class's default number: 1, 3, 5, 8

}  // namespace gpu_platform::model
