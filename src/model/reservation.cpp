#include "model/reservation.h"

#include <algorithm>
#include <bit>
#include <string_view>

namespace gpu_platform::model {

std::uint32_t Reservation::gpu_count() const {
  std::uint32_t count = 0;
  for (const ReservationPart& part : parts)
    count += static_cast<std::uint32_t>(std::popcount(part.gpus));
  return count;
}

bool overlap(const ReservationPart& a, const ReservationPart& b) {
  return a.node == b.node && (a.whole_node || b.whole_node || (a.gpus & b.gpus) != 0);
}

bool overlap(const Reservation& a, const Reservation& b) {
  if (a.begin >= b.end || b.begin >= a.end) return false;
  return std::ranges::any_of(a.parts, [&](const ReservationPart& part) {
    const auto same = std::ranges::lower_bound(b.parts, part.node, {}, &ReservationPart::node);
    return same != b.parts.end() && overlap(part, *same);
  });
}

bool is_reservation_name(const std::string& name) {
  constexpr std::string_view kFirst =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr std::string_view kOthers = "-_.";
  constexpr std::size_t kLongest = 64;
  if (name.empty() || name.size() > kLongest || kFirst.find(name[0]) == kFirst.npos) return false;
  return std::ranges::all_of(name, [&](char c) {
    return kFirst.find(c) != kFirst.npos || kOthers.find(c) != kOthers.npos;
  });
}

}  // namespace gpu_platform::model
