#include "model/reservation.h"

#include <gtest/gtest.h>

#include "base/prng.h"

namespace gpu_platform::model {
namespace {

// A Monday, 2024-01-01T00:00:00Z.
constexpr base::Instant kMonday(1'704'067'200'000'000'000);

Reservation of(Repeat repeat, base::Duration after, base::Duration length) {
  Reservation reservation;
  reservation.name = "w";
  reservation.begin = kMonday + after;
  reservation.end = reservation.begin + length;
  reservation.parts = {{NodeId(1), 1, false}};
  reservation.repeat = repeat;
  return reservation;
}

// Hour by hour, without the arithmetic of the room.
bool begins_at(const Reservation& reservation, base::Instant at) {
  if (at < reservation.begin) return false;
  if (reservation.last_begin.is_set() && at > reservation.last_begin) return false;
  const std::int64_t hours = (at - reservation.begin).value() / base::hours(1).value();
  const std::int64_t weekday =
      ((at - kMonday + reservation.utc_offset).value() + base::hours(7 * 24).value()) /
      base::hours(24).value() % 7;
  switch (reservation.repeat) {
    case Repeat::kNever:
      return hours == 0;
    case Repeat::kHourly:
      return true;
    case Repeat::kDaily:
      return hours % 24 == 0;
    case Repeat::kWeekdays:
      return hours % 24 == 0 && weekday < 5;
    case Repeat::kWeekends:
      return hours % 24 == 0 && weekday >= 5;
    case Repeat::kWeekly:
      return hours % (7 * 24) == 0;
  }
  return false;
}

std::vector<Occurrence> naive(const Reservation& reservation, int hours) {
  std::vector<Occurrence> all;
  for (int hour = 0; hour < hours; ++hour) {
    const base::Instant at = reservation.begin + base::hours(hour);
    if (begins_at(reservation, at)) all.push_back({at, at + reservation.length()});
  }
  return all;
}

Reservation some(base::Prng& random) {
  while (true) {
    const auto repeat = static_cast<Repeat>(random.below(kRepeats));
    const auto most =
        static_cast<std::uint64_t>(least_period(repeat).value() / base::minutes(10).value());
    const auto length =
        base::minutes(10) *
        static_cast<std::int64_t>(
            random.chance(1, 8) ? most : 1 + random.below(std::min<std::uint64_t>(most, 40)));
    Reservation made =
        of(repeat, base::hours(static_cast<std::int64_t>(random.below(400))), length);
    made.utc_offset = base::hours(static_cast<std::int64_t>(random.below(25)) - 12);
    if (random.chance(1, 2)) {
      made.last_begin = made.begin + base::hours(static_cast<std::int64_t>(random.below(300)));
    }
    if (is_day_of(made, made.begin)) return made;
  }
}

TEST(Occurrences, AreThoseOfTheCalendar) {
  base::Prng random(1);
  for (int round = 0; round < 2'000; ++round) {
    const Reservation made = some(random);
    const std::vector<Occurrence> all = naive(made, 700);
    const base::Instant at =
        made.begin + base::minutes(static_cast<std::int64_t>(random.below(30'000)) - 600);
    std::optional<Occurrence> expected;
    for (const Occurrence& each : all) {
      if (each.end > at && !expected) expected = each;
    }
    const auto found = occurrence_after(made, at);
    ASSERT_EQ(found, expected) << to_string(made.repeat) << " round " << round;
    const auto now = occurrence_at(made, at);
    ASSERT_EQ(now.has_value(), expected && expected->begin <= at);
    if (made.last_begin.is_set()) {
      ASSERT_EQ(last_occurrence(made), all.back());
    }
  }
}

TEST(Occurrences, OfTwoSeriesMeetWhereAnyOfThemDo) {
  base::Prng random(2);
  int met = 0;
  for (int round = 0; round < 3'000; ++round) {
    const Reservation a = some(random);
    const Reservation b = some(random);
    bool meets = false;
    const std::vector<Occurrence> of_b = naive(b, 1'200);
    for (const Occurrence& x : naive(a, 1'200)) {
      for (const Occurrence& y : of_b) meets = meets || (x.begin < y.end && y.begin < x.end);
    }
    ASSERT_EQ(first_common(a, b).has_value(), meets) << "round " << round;
    ASSERT_EQ(overlap(a, b), meets);
    ASSERT_EQ(overlap(b, a), meets);
    met += meets ? 1 : 0;
  }
  EXPECT_GT(met, 300);
  EXPECT_LT(met, 2'700);
}

TEST(Occurrences, WithRoomAreTheFirstThatAreLongEnough) {
  const Reservation daily = of(Repeat::kDaily, base::hours(9), base::hours(2));
  const auto first = Occurrence{daily.begin, daily.end};
  const auto next = Occurrence{daily.begin + base::hours(24), daily.end + base::hours(24)};
  EXPECT_EQ(occurrence_with_room(daily, kMonday, base::hours(2)), first);
  EXPECT_EQ(occurrence_with_room(daily, daily.begin + base::hours(1), base::hours(1)), first);
  EXPECT_EQ(occurrence_with_room(daily, daily.begin + base::minutes(61), base::hours(1)), next);
  EXPECT_EQ(occurrence_with_room(daily, kMonday, base::hours(3)), std::nullopt);
}

TEST(Occurrences, CountFromThePresentOneOn) {
  const Reservation days = of(Repeat::kWeekdays, base::hours(3 * 24), base::hours(1));  // Thursday
  EXPECT_EQ(begin_of_occurrence(days, 1), days.begin);
  EXPECT_EQ(begin_of_occurrence(days, 2), days.begin + base::hours(24));
  EXPECT_EQ(begin_of_occurrence(days, 3), days.begin + base::hours(4 * 24)) << "Monday";
}

TEST(Occurrences, TheDaysAreThoseOfTheOffset) {
  Reservation made = of(Repeat::kWeekdays, base::hours(4 * 24 + 23), base::hours(1));
  EXPECT_TRUE(is_day_of(made, made.begin)) << "Friday, 23:00";
  made.utc_offset = base::hours(2);
  EXPECT_FALSE(is_day_of(made, made.begin)) << "Saturday, 1:00 there";
}

TEST(Repeat, HasItsNames) {
  for (std::size_t i = 0; i < kRepeats; ++i) {
    const auto repeat = static_cast<Repeat>(i);
    EXPECT_EQ(parse_repeat(to_string(repeat)), repeat);
  }
  EXPECT_EQ(parse_repeat("monthly"), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::model
