#include "accounting/attempt_lines.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "model/job_spec.h"

namespace gpu_platform::accounting {
namespace {

using model::CapacityClass;
using model::EndReason;
using model::NotBilled;

base::Instant at_ms(std::int64_t ms) {
  return base::Instant(ms * 1'000'000);
}

// Requested at 1000 ms, started at 2000, ended at 9000, released at 10,000.
model::Attempt ended_attempt() {
  model::Attempt attempt;
  attempt.requested_at = at_ms(1000);
  attempt.started_at = at_ms(2000);
  attempt.ended_at = at_ms(9000);
  attempt.released_at = at_ms(10'000);
  return attempt;
}

model::Job job_of(bool complete_on_exit_zero = false) {
  model::JobSpec spec;
  spec.complete_on_exit_zero = complete_on_exit_zero;
  model::Job job;
  job.spec = std::make_shared<const model::JobSpec>(std::move(spec));
  return job;
}

TEST(Segments, AreOneFromTheRequestToTheRelease) {
  const std::vector<Segment> expected = {{1000, 2000, 9000, 10'000}};
  EXPECT_EQ(segments_of(ended_attempt(), at_ms(99'000)), expected);
}

TEST(Segments, OfAnAttemptThatGoesOnLastUntilNow) {
  model::Attempt attempt = ended_attempt();
  attempt.released_at = {};
  EXPECT_EQ(segments_of(attempt, at_ms(12'000)).at(0), (Segment{1000, 2000, 9000, 12'000}));
  attempt.ended_at = {};
  EXPECT_EQ(segments_of(attempt, at_ms(12'000)).at(0), (Segment{1000, 2000, 12'000, 12'000}));
  attempt.started_at = {};
  EXPECT_EQ(segments_of(attempt, at_ms(12'000)).at(0), (Segment{1000, 12'000, 12'000, 12'000}));
}

TEST(Segments, KeepTheirOrderWhateverAnEngineTells) {
  model::Attempt attempt = ended_attempt();
  attempt.started_at = at_ms(500);
  attempt.ended_at = at_ms(20'000);
  EXPECT_EQ(segments_of(attempt, at_ms(0)).at(0), (Segment{1000, 1000, 10'000, 10'000}));
  attempt.started_at = at_ms(8000);
  attempt.ended_at = at_ms(3000);
  EXPECT_EQ(segments_of(attempt, at_ms(0)).at(0), (Segment{1000, 8000, 8000, 10'000}));
  attempt.released_at = at_ms(400);
  EXPECT_EQ(segments_of(attempt, at_ms(0)).at(0), (Segment{1000, 1000, 1000, 1000}));
}

NotBilled why(const model::Attempt& attempt, CapacityClass capacity = CapacityClass::kOnDemand) {
  return not_billed_of(job_of(), attempt, capacity, {});
}

TEST(NotBilled, IsWhatItsOwnerCouldNotHelp) {
  const model::Attempt done = ended_attempt();
  EXPECT_EQ(why(done), NotBilled::kBilled);

  model::Attempt lost = done;
  lost.exit.lost = model::Lost::kNodeLost;
  EXPECT_EQ(why(lost), NotBilled::kHardware);
  EXPECT_EQ(why(lost, CapacityClass::kSpot), NotBilled::kHardware)
      << "nothing proves that it was taken back";

  model::Attempt faulty = done;
  faulty.reason = EndReason::kGpuFault;
  EXPECT_EQ(why(faulty), NotBilled::kHardware);

  model::Attempt unknown = done;
  unknown.exit.lost = model::Lost::kUnknown;
  EXPECT_EQ(why(unknown), NotBilled::kPlatform);

  model::Attempt sent_away = done;
  sent_away.stop_reason = EndReason::kGpuOffline;
  EXPECT_EQ(why(sent_away), NotBilled::kPlatform);

  model::Attempt evicted = done;
  evicted.reason = EndReason::kPreempted;
  EXPECT_EQ(why(evicted), NotBilled::kPlatform);
  EXPECT_EQ(why(evicted, CapacityClass::kSpot), NotBilled::kBilled);
}

TEST(NotBilled, OfRunsThatNeverWereTellsTheProgramsFaultFromThePlatforms) {
  model::Attempt attempt = ended_attempt();
  attempt.started_at = {};
  EXPECT_EQ(why(attempt), NotBilled::kNeverRan);
  attempt.reason = EndReason::kLaunchFailed;
  EXPECT_EQ(why(attempt), NotBilled::kPlatform);
  attempt.exit.code = std::uint8_t{127};
  EXPECT_EQ(why(attempt), NotBilled::kNeverRan);
}

TEST(NotBilled, OfPreemptedRunsIsTheSitesChoice) {
  model::Attempt attempt = ended_attempt();
  attempt.reason = attempt.stop_reason = EndReason::kPreempted;
  model::Billing billing;
  const auto of = [&](const model::Job& job) {
    return not_billed_of(job, attempt, CapacityClass::kOnDemand, billing);
  };
  EXPECT_EQ(of(job_of()), NotBilled::kBilled);
  billing.preempted_is_free = true;
  EXPECT_EQ(of(job_of()), NotBilled::kPreempted);
  billing.preempted_is_free = false;
  attempt.is_reclaimed = true;
  EXPECT_EQ(of(job_of()), NotBilled::kBilled) << "it ran on what it had borrowed";
  billing.preempted_is_free = true;
  EXPECT_EQ(of(job_of()), NotBilled::kReclaimed);
  attempt.exit.code = std::uint8_t{0};
  EXPECT_EQ(of(job_of(true)), NotBilled::kBilled) << "it is complete";
}

TEST(NotBilled, OfSpotCapacityThatIsTakenBackIsTheSitesChoiceToo) {
  model::Attempt evicted = ended_attempt();
  evicted.reason = EndReason::kPreempted;
  model::Billing billing;
  billing.preempted_is_free = true;
  const auto on = [&](CapacityClass capacity) {
    return not_billed_of(job_of(), evicted, capacity, billing);
  };
  EXPECT_EQ(on(CapacityClass::kSpot), NotBilled::kReclaimed);
  EXPECT_EQ(on(CapacityClass::kOnDemand), NotBilled::kPlatform);
  EXPECT_EQ(on(CapacityClass::kReserved), NotBilled::kPlatform);
  evicted.started_at = {};
  EXPECT_EQ(on(CapacityClass::kSpot), NotBilled::kNeverRan);
}

TEST(NotBilled, IsNothingOfAnAttemptThatGoesOn) {
  model::Attempt attempt = ended_attempt();
  attempt.ended_at = attempt.released_at = {};
  attempt.stop_reason = EndReason::kGpuFault;
  EXPECT_EQ(why(attempt), NotBilled::kBilled);
}

TEST(DiscountOfATeam, IsThatOfTheNearestTeamUpwards) {
  model::Organisation organisation;
  organisation.teams = {{"science", ""}, {"physics", "science"}, {"optics", "physics"}};
  model::Billing billing;
  billing.discounts = {{"science", 1000}, {"physics", 2500}};
  model::Policy policy;
  policy.organisation = std::move(organisation);
  policy.billing = std::move(billing);
  EXPECT_EQ(discount_of(policy, "science"), 1000U);
  EXPECT_EQ(discount_of(policy, "optics"), 2500U);
  EXPECT_EQ(discount_of(policy, "elsewhere"), 0U);
  EXPECT_EQ(discount_of(policy, ""), 0U);
}

}  // namespace
}  // namespace gpu_platform::accounting
