#include "model/team.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

const Organisation kOrganisation{
    .teams = {{"research", {}, 1, {{"ann", 1}}, {}},
              {"vision", "research", 1, {{"ann", 1}, {"bob", 1}}, {}}}};

TEST(Team, OfAJobIsTheFirstOfItsUserUnlessItNamesAnother) {
  EXPECT_EQ(team_for(kOrganisation, "ann", "", false), "research");
  EXPECT_EQ(team_for(kOrganisation, "ann", "vision", false), "vision");
  EXPECT_EQ(team_for(kOrganisation, "bob", "", false), "vision");
  EXPECT_EQ(team_for(kOrganisation, "cyd", "", false), "");
  Organisation named = kOrganisation;
  named.teams.push_back({.name = "audio", .members = {{"cyd", 1, true}, {"bob", 1, true}}});
  EXPECT_EQ(team_for(named, "cyd", "", false), "");
  EXPECT_EQ(team_for(named, "cyd", "audio", false), "audio");
  EXPECT_EQ(team_for(named, "bob", "", false), "vision");
}

TEST(Team, OfOthersIsRefusedWithThoseThatAreAllowed) {
  const auto other = team_for(kOrganisation, "bob", "research", false);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, base::ErrorCode::kPermissionDenied);
  EXPECT_EQ(other.error().field, "team");
  EXPECT_EQ(other.error().message,
            "team: user bob is not a member of team 'research'; user bob may name vision");
  EXPECT_EQ(team_for(kOrganisation, "bob", "research", true), "research");
  const auto unknown = team_for(kOrganisation, "cyd", "speech", true);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message,
            "team: there is no team 'speech'; user cyd is in no team: leave it out");
}

TEST(Team, IsALabelWhereNoneAreConfigured) {
  EXPECT_EQ(team_for({}, "ann", "anything", false), "anything");
  EXPECT_EQ(team_for({}, "ann", "", false), "");
}

TEST(QuotaPeriod, BeginsAtMidnightOnMondaysAndEveryThirtyDays) {
  const base::Instant sunday(1'700'000'000'000'000'000 - 2 * base::hours(24).value());
  const std::int64_t day = base::hours(24).value();
  EXPECT_EQ(begin_of(QuotaPeriod::kDay, sunday).unix_ns() % day, 0);
  // 2023-11-06T00:00:00Z, a Monday; 2023-11-12 was a Sunday.
  EXPECT_EQ(begin_of(QuotaPeriod::kWeek, sunday).unix_ns(), 1'699'228'800'000'000'000);
  EXPECT_EQ(begin_of(QuotaPeriod::kWeek, base::Instant(1)).unix_ns(), -3 * day);
  EXPECT_EQ(begin_of(QuotaPeriod::kThirtyDays, sunday).unix_ns() % (30 * day), 0);
  for (const QuotaPeriod period :
       {QuotaPeriod::kDay, QuotaPeriod::kWeek, QuotaPeriod::kThirtyDays}) {
    const base::Instant begin = begin_of(period, sunday);
    EXPECT_LE(begin, sunday);
    EXPECT_GT(begin + length_of(period), sunday);
    EXPECT_EQ(begin_of(period, begin), begin);
  }
}

}  // namespace
}  // namespace gpu_platform::model
