#include "controller/judge/reservation_text.h"

#include <cstddef>
#include <cstdint>

#include <fmt/ranges.h>

namespace gpu_platform::controller {

std::unexpected<base::Error> reservation_refused(std::string_view field, const std::string& why) {
  return base::fail(base::ErrorCode::kFailedPrecondition, fmt::format("{}: {}", field, why),
                    std::string(field));
}

// "1:30:00"
std::string hours_text(base::Duration duration) {
  const std::int64_t seconds = duration.value() / base::seconds(1).value();
  return fmt::format("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

// Returns the first few names and the number of the others.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMaxNamed = 8;
  std::vector<std::string> first;
  for (const auto& name : names) {
    if (first.size() == kMaxNamed) break;
    first.push_back(name);
  }
  const std::string more =
      names.size() > first.size() ? fmt::format(" and {} more", names.size() - first.size()) : "";
  return fmt::format("{}{}", fmt::join(first, ", "), more);
}

std::string names_text(const scheduling::Reservations& reservations) {
  if (reservations.empty()) return "there is none";
  std::vector<std::string> names;
  for (const auto& [name, reservation] : reservations.all()) names.push_back(name);
  return "there are " + some_of(names);
}

std::string admitted_text(const model::Reservation& reservation) {
  if (reservation.maintenance) return "it is for maintenance and admits no jobs";
  std::string text = "it is for";
  if (!reservation.teams.empty()) text += fmt::format(" team {}", some_of(reservation.teams));
  if (!reservation.users.empty()) {
    text += fmt::format("{} user {}", reservation.teams.empty() ? "" : " and",
                        some_of(reservation.users));
  }
  return text;
}

}  // namespace gpu_platform::controller
