#include <optional>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"

// No starvation: the bound of docs/scheduling.md under load that does what it can to break it.

namespace gpu_platform::controller {
namespace {

constexpr base::Duration kLongest = base::hours(4);
constexpr base::Duration kGrace = base::seconds(30);

class Site : public testing::VirtualSite {
 public:
  Site(std::uint64_t seed, const model::Policy& policy) : VirtualSite(seed, 3) { begin(policy); }
};

model::JobSpec spec_of(std::string team, std::uint32_t gpus, base::Duration limit,
                       model::PriorityClass priority) {
  model::JobSpec spec = testing::spec(gpus);
  spec.team = std::move(team);
  spec.user = "ann";
  spec.time_limit = limit;
  spec.priority = model::priority_of_class(priority);
  return spec;
}

// Small jobs of other teams, of the same class and below, always more than fit. Some say that they
// will be gone soon, and are not.
void harass(Site& site, std::uint64_t teams) {
  base::Prng& random = site.random();
  for (std::uint64_t i = 0, n = 1 + random.below(6); i < n; ++i) {
    const auto limit = base::minutes(
        static_cast<std::int64_t>(1 + random.below(kLongest.value() / 60'000'000'000)));
    const auto priority =
        random.chance(1, 3) ? model::PriorityClass::kLow : model::PriorityClass::kMedium;
    model::JobSpec spec = spec_of("other" + std::to_string(random.below(teams)),
                                  static_cast<std::uint32_t>(1 + random.below(8)), limit, priority);
    if (random.chance(1, 3)) spec.expected_time = base::minutes(1);
    if (random.chance(1, 3)) spec.preemptible = true;
    site.submit(spec);
  }
}

class Starvation : public ::testing::TestWithParam<model::QueueOrder> {};

// A job that needs a whole node waits at most until it is overdue, and then for as many starts as
// there are overdue jobs before it, each as long as the longest job with its grace.
TEST_P(Starvation, EndsWithinTheBound) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    model::Policy policy;
    policy.order = GetParam();
    policy.max_time_limit = kLongest;
    policy.stop_grace = kGrace;
    policy.max_queue_size = 100'000;
    policy.backfill_depth = static_cast<std::uint32_t>(seed % 4);
    Site site(seed, policy);
    const std::uint64_t teams = 1 + site.random().below(4);
    const auto nothing = [] {};
    for (int i = 0; i < 10; ++i) harass(site, teams);
    site.pass(base::minutes(static_cast<std::int64_t>(site.random().below(300))), nothing);
    const model::JobId job =
        site.submit(spec_of("quiet", 8, kLongest, model::PriorityClass::kMedium));
    const base::Instant submitted_at = site.now();
    std::optional<base::Instant> bound;
    const auto waits = [&] {
      const model::Job* found = site.state().jobs.find(job.value);
      return found != nullptr && found->state == model::JobState::kQueued;
    };
    const auto look = [&] {
      if (!waits() || bound || !site.state().jobs.find(job.value)->overdue_since.is_set()) return;
      std::int64_t rank = 1;
      site.state().books->queue.for_each_while([&](const scheduling::WaitingJob& ahead) {
        if (ahead.id == job) return false;
        ++rank;
        return true;
      });
      EXPECT_LE(rank, static_cast<std::int64_t>(teams) + 1) << "seed " << seed;
      bound = site.now() + (kLongest + kGrace) * rank;
    };
    look();
    for (int i = 0; waits() && i < 2'000; ++i) {
      harass(site, teams);
      site.pass(base::minutes(static_cast<std::int64_t>(1 + site.random().below(20))), look);
      if (waits()) {
        ASSERT_LE(site.now(),
                  bound.value_or(submitted_at + policy.overdue_after + base::minutes(1)))
            << "seed " << seed;
      }
    }
    ASSERT_FALSE(waits()) << "seed " << seed;
    ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, Starvation,
                         ::testing::Values(model::QueueOrder::kPriority, model::QueueOrder::kFcfs,
                                           model::QueueOrder::kFairShare,
                                           model::QueueOrder::kWeighted));

// The same load without the starvation queue keeps the job waiting for longer than the bound: so
// the test can fail, and the starvation queue is what helps.
TEST(WithoutStarvationQueue, LastsForEver) {
  model::Policy policy;
  policy.order = model::QueueOrder::kFairShare;
  policy.max_time_limit = kLongest;
  policy.stop_grace = kGrace;
  policy.max_queue_size = 100'000;
  policy.overdue_after = {};
  policy.backfill_depth = 1;
  Site site(1, policy);
  const auto nothing = [] {};
  // Users who have never used anything go first: a new one comes with every job.
  std::uint64_t users = 0;
  const auto newcomer = [&] {
    model::JobSpec spec = spec_of("", 8, kLongest, model::PriorityClass::kMedium);
    spec.user = "user" + std::to_string(++users);
    return spec;
  };
  for (int i = 0; i < 3; ++i)
    site.submit(spec_of("quiet", 8, kLongest, model::PriorityClass::kMedium));
  site.pass(base::hours(1), nothing);
  const model::JobId job =
      site.submit(spec_of("quiet", 8, kLongest, model::PriorityClass::kMedium));
  for (int i = 0; i < 100; ++i) {
    for (int j = 0; j < 4; ++j) site.submit(newcomer());
    site.pass(base::hours(1), nothing);
  }
  const model::Job* found = site.state().jobs.find(job.value);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->state, model::JobState::kQueued);
}

}  // namespace
}  // namespace gpu_platform::controller
