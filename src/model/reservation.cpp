#include "model/reservation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

namespace gpu_platform::model {

namespace {

constexpr base::Duration kOneDay = base::hours(24);
constexpr base::Duration kOneWeek = base::hours(24 * 7);
constexpr std::array<std::string_view, kRepeats> kRepeatNames = {"never",    "hourly",   "daily",
                                                                 "weekdays", "weekends", "weekly"};

std::int64_t floor_ratio(base::Duration a, base::Duration b) {
  const std::int64_t ratio = a.value() / b.value();
  return a.value() % b.value() < 0 ? ratio - 1 : ratio;
}

bool is_weekend(base::Instant at, base::Duration utc_offset) {
  // 1970-01-01 was a Thursday.
  const std::int64_t days = floor_ratio(at - base::Instant() + utc_offset, kOneDay);
  const std::int64_t since_monday = ((days + 3) % 7 + 7) % 7;
  return since_monday >= 5;
}

bool has_days(Repeat repeat) {
  return repeat == Repeat::kWeekdays || repeat == Repeat::kWeekends;
}

base::Instant next_begin(const Reservation& reservation, base::Instant begin) {
  do {
    begin = begin + least_period(reservation.repeat);
  } while (!is_day_of(reservation, begin));
  return begin;
}

// Returns the last begin that is not after `at`, which is not before the present one.
base::Instant begin_by(const Reservation& reservation, base::Instant at) {
  const base::Duration gone = at - reservation.begin;
  const base::Duration step =
      has_days(reservation.repeat) ? kOneWeek : least_period(reservation.repeat);
  base::Instant begin = reservation.begin + step * floor_ratio(gone, step);
  if (!has_days(reservation.repeat)) return begin;
  for (base::Instant next = begin; next <= at; next = next_begin(reservation, begin)) begin = next;
  return begin;
}

bool is_past_last(const Reservation& reservation, base::Instant begin) {
  return reservation.last_begin.is_set() && begin > reservation.last_begin;
}

}  // namespace

std::string_view to_string(Repeat repeat) {
  return kRepeatNames[static_cast<std::size_t>(repeat)];
}

std::optional<Repeat> parse_repeat(std::string_view text) {
  const auto found = std::ranges::find(kRepeatNames, text);
  if (found == kRepeatNames.end()) return std::nullopt;
  return static_cast<Repeat>(found - kRepeatNames.begin());
}

base::Duration least_period(Repeat repeat) {
  switch (repeat) {
    case Repeat::kHourly:
      return base::hours(1);
    case Repeat::kDaily:
    case Repeat::kWeekdays:
    case Repeat::kWeekends:
      return kOneDay;
    case Repeat::kNever:
    case Repeat::kWeekly:
      return kOneWeek;
  }
  return kOneWeek;
}

bool is_day_of(const Reservation& reservation, base::Instant begin) {
  if (!has_days(reservation.repeat)) return true;
  return is_weekend(begin, reservation.utc_offset) == (reservation.repeat == Repeat::kWeekends);
}

std::optional<Occurrence> occurrence_after(const Reservation& reservation, base::Instant at) {
  if (reservation.end > at) return Occurrence{reservation.begin, reservation.end};
  if (reservation.repeat == Repeat::kNever) return std::nullopt;
  const base::Duration length = reservation.length();
  // The last one that has begun so long before `at` has ended by then.
  const base::Instant ended = begin_by(reservation, at + (base::Duration() - length));
  const base::Instant begin = next_begin(reservation, ended);
  if (is_past_last(reservation, begin)) return std::nullopt;
  return Occurrence{begin, begin + length};
}

std::optional<Occurrence> occurrence_at(const Reservation& reservation, base::Instant at) {
  const auto found = occurrence_after(reservation, at);
  return found && found->begin <= at ? found : std::nullopt;
}

std::optional<Occurrence> occurrence_between(const Reservation& reservation, base::Instant begin,
                                             base::Instant end) {
  const auto found = occurrence_after(reservation, begin);
  return found && found->begin < end ? found : std::nullopt;
}

std::optional<Occurrence> occurrence_with_room(const Reservation& reservation,
                                               base::Instant earliest, base::Duration needed) {
  const auto first = occurrence_after(reservation, earliest);
  if (!first || std::max(earliest, first->begin) + needed <= first->end) return first;
  if (needed > reservation.length()) return std::nullopt;
  return occurrence_after(reservation, first->end);
}

std::optional<Occurrence> last_occurrence(const Reservation& reservation) {
  if (reservation.repeat == Repeat::kNever) return Occurrence{reservation.begin, reservation.end};
  if (!reservation.last_begin.is_set()) return std::nullopt;
  const base::Instant begin =
      begin_by(reservation, std::max(reservation.begin, reservation.last_begin));
  return Occurrence{begin, begin + reservation.length()};
}

base::Instant begin_of_occurrence(const Reservation& reservation, std::uint32_t count) {
  base::Instant begin = reservation.begin;
  for (; count > 1; --count) begin = next_begin(reservation, begin);
  return begin;
}

// Two patterns that meet at all do so again every week before that, back to their begins. The
// second week leaves room for what began before both were there.
std::optional<Occurrence> first_common(const Reservation& a, const Reservation& b) {
  if (a.repeat == Repeat::kNever) {
    if (!occurrence_between(b, a.begin, a.end)) return std::nullopt;
    return Occurrence{a.begin, a.end};
  }
  if (b.repeat == Repeat::kNever) return occurrence_between(a, b.begin, b.end);
  const base::Instant from = std::max(a.begin, b.begin);
  const base::Instant until = from + kOneWeek * 2;
  auto each = occurrence_between(a, from, until);
  while (each && each->begin < until) {
    if (occurrence_between(b, each->begin, each->end)) return each;
    each = occurrence_after(a, each->end);
  }
  return std::nullopt;
}

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
  const bool share_a_part = std::ranges::any_of(a.parts, [&](const ReservationPart& part) {
    const auto same = std::ranges::lower_bound(b.parts, part.node, {}, &ReservationPart::node);
    return same != b.parts.end() && overlap(part, *same);
  });
  return share_a_part && first_common(a, b).has_value();
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
