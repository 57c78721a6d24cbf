#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include <gtest/gtest.h>

#include "controller/invariants.h"
#include "controller/virtual_site_fixture.h"
#include "model/job_spec.h"
#include "scheduling/trial.h"

// No starvation: the bound of docs/starvation.md, and the rules that its proof builds on, under
// load that does what it can to break it.

namespace gpu_platform::controller {
namespace {

using testing::kGrace;

constexpr base::Duration kLongest = base::hours(4);

// A site that checks what docs/starvation.md builds its proof on. Its rules are named as there.
class StarvationSite : public testing::VirtualSite {
 public:
  StarvationSite(std::uint64_t seed, const model::Policy& policy) : VirtualSite(seed, 3) {
    begin(policy);
  }

  // Of the queue's first job, if it is overdue, and of the attempts that run.
  void check() {
    const model::Job* first = first_if_overdue();
    if (first != nullptr) {
      const std::pair key{first->id, first->overdue_since};
      const base::Instant since = first_since_.try_emplace(key, now()).first->second;
      const scheduling::PlannedStart* planned = planned_for(first->id);
      // With depth 0 no place is kept.
      ASSERT_EQ(planned != nullptr, state().policy->backfill_depth > 0) << first->id.value;
      // Of the highest class that there is: a later job of a higher one would go before it.
      const bool stays_first =
          first->spec->priority.priority_class == model::PriorityClass::kMedium;
      if (planned != nullptr && stays_first) {
        ASSERT_LE(planned->slot.start, since + kLongest + kGrace * 2)
            << "lemma, " << first->id.value;
      }
    }
    for (const model::AttemptId id : state().held_attempts) {
      const model::Job& job = *state().jobs.find(id.job.value);
      ASSERT_LE(now(), job.attempts.back().started_at + job.spec->time_limit + kGrace) << "R2";
    }
  }

  std::uint64_t in_the_way = 0;  // starts on the place of an overdue job, before it

 protected:
  void on_event(const model::Event& event) override {
    const auto* start = std::get_if<model::StartRequested>(&event);
    const model::Job* first = first_if_overdue();
    const auto* planned = first == nullptr ? nullptr : planned_for(first->id);
    if (start == nullptr || planned == nullptr) return;
    EXPECT_FALSE(start->yields_at.is_set()) << "R5, job " << start->attempt.job.value;
    if (!overlap(start->allocation, planned->slot.allocation)) return;
    ++in_the_way;
    const model::Job& job = *state().jobs.find(start->attempt.job.value);
    EXPECT_LE(now() + job.spec->time_limit + kGrace, planned->slot.start)
        << "R4, job " << job.id.value;
  }

 private:
  const model::Job* first_if_overdue() const {
    const model::Job* first = nullptr;
    state().books->queue.for_each_while([&](const scheduling::WaitingJob& waiting) {
      first = state().jobs.find(waiting.id.value);
      return false;
    });
    return first != nullptr && first->overdue_since.is_set() ? first : nullptr;
  }
  const scheduling::PlannedStart* planned_for(model::JobId job) {
    snapshot_ = snapshot();
    if (snapshot_->planned_starts == nullptr) return nullptr;
    const auto& all = *snapshot_->planned_starts;
    const auto found = std::ranges::find(all, job, &scheduling::PlannedStart::job);
    return found == all.end() ? nullptr : &*found;
  }
  static bool overlap(const model::Allocation& a, const model::Allocation& b) {
    for (const model::NodeAllocation& one : a.nodes) {
      for (const model::NodeAllocation& other : b.nodes) {
        if (one.node != other.node) continue;
        if ((scheduling::gpus_of(one) & scheduling::gpus_of(other)) != 0) return true;
      }
    }
    return false;
  }

  std::shared_ptr<const Snapshot> snapshot_;  // that the last answer points into
  // By job and the time at which it became overdue: it may be so again, once it was stopped.
  std::map<std::pair<model::JobId, base::Instant>, base::Instant> first_since_;
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
void harass(StarvationSite& site, std::uint64_t teams, base::Duration longest = kLongest) {
  base::Prng& random = site.random();
  for (std::uint64_t i = 0, n = 1 + random.below(6); i < n; ++i) {
    const auto limit = base::minutes(
        static_cast<std::int64_t>(1 + random.below(longest.value() / 60'000'000'000)));
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
// there are overdue jobs before it, each as long as the longest job with twice the grace.
TEST_P(Starvation, EndsWithinTheBound) {
  std::uint64_t in_the_way = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    model::Policy policy;
    policy.order = GetParam();
    policy.max_time_limit = kLongest;
    policy.stop_grace = kGrace;
    policy.max_queue_size = 100'000;
    policy.backfill_depth = static_cast<std::uint32_t>(seed % 4);
    StarvationSite site(seed, policy);
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
    std::int64_t last_rank = 0;
    const auto look = [&] {
      ASSERT_NO_FATAL_FAILURE(site.check()) << "seed " << seed;
      if (!waits() || !site.state().jobs.find(job.value)->overdue_since.is_set()) return;
      std::int64_t rank = 1;
      site.state().books->queue.for_each_while([&](const scheduling::WaitingJob& ahead) {
        if (ahead.id == job) return false;
        ++rank;
        return true;
      });
      if (bound) {
        EXPECT_LE(rank, last_rank) << "R1, seed " << seed;
      }
      last_rank = rank;
      if (bound) return;
      EXPECT_LE(rank, static_cast<std::int64_t>(teams) + 1) << "seed " << seed;
      bound = site.now() + (kLongest + kGrace * 2) * rank;
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
    in_the_way += site.in_the_way;
    ASSERT_EQ(check_invariants(site.state()), std::vector<std::string>()) << "seed " << seed;
  }
  EXPECT_GT(in_the_way, 10U) << "jobs are let in before an overdue one";
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
  StarvationSite site(1, policy);
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
