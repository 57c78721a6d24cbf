#include "views/explanation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/prng.h"
#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/test_support.h"
#include "model/budget.h"
#include "model/job_spec.h"

namespace gpu_platform::views {
namespace {

namespace testing = controller::testing;

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kNoon;

// One node of four GPUs; time limits of an hour unless said otherwise, no grace.
class ExplanationTest : public ::testing::Test {
 protected:
  ExplanationTest() {
    policy_.stop_grace = {};
    core_.apply_policy(policy_, "test", kNoon);
    core_.observe(execution::NodeObserved{testing::node_info("n1", 4)}, kNoon);
  }

  static model::JobSpec spec(std::uint32_t gpus, base::Duration limit = base::hours(1)) {
    model::JobSpec spec = testing::spec(gpus);
    spec.time_limit = limit;
    return spec;
  }
  void submit(std::uint32_t gpus, base::Duration limit = base::hours(1)) {
    ASSERT_TRUE(
        core_.command(testing::submission(spec(gpus, limit)), kNoon, store::Headroom::kAmple));
    core_.advance(kNoon);
  }
  Explanation of(std::uint64_t job, Effort effort = Effort::kQuick) {
    PlanningView view(core_.snapshot());
    return explain_waiting(view, model::JobId(job), kNoon, effort);
  }
  Explanation of_new(const model::JobSpec& spec, Effort effort = Effort::kQuick) {
    PlanningView view(core_.snapshot());
    return explain_new(view, std::make_shared<const model::JobSpec>(spec), kNoon, effort);
  }
  static std::vector<std::string> options(const Explanation& explanation) {
    std::vector<std::string> texts;
    for (const auto& each : explanation.counterfactuals) texts.push_back(option_of(each));
    return texts;
  }

  model::Policy policy_;
  controller::Core core_;
};

TEST_F(ExplanationTest, TellsWhenWhereAndAfterWhom) {
  submit(2);                  // 1 runs
  submit(1, base::hours(3));  // 2 runs
  submit(4);                  // 3 waits
  const Explanation found = of(3);
  EXPECT_FALSE(found.starts_now.has_value());
  EXPECT_EQ(found.line.jobs_ahead, 0U);
  ASSERT_TRUE(found.planned.has_value());
  EXPECT_EQ(found.planned->start, kNoon + base::hours(3));
  EXPECT_EQ(found.planned->allocation.gpu_count(), 4U);
  EXPECT_THAT(found.planned->after, ElementsAre(model::JobId(2), model::JobId(1)));
  EXPECT_THAT(options(found), ElementsAre("--gpus 1"));
}

TEST_F(ExplanationTest, ASpentBudgetPutsThePlannedStartAtItsRenewal) {
  model::Price price;
  price.gpu_type = "H100";
  price.per_hour = base::MicroUsd(3'600'000);
  model::Billing billing;
  billing.prices = {price};
  policy_.billing = billing;
  model::Budget budget;
  budget.key = {model::QuotaHolder::kUser, "ann"};
  budget.amount = base::MicroUsd(1'000'000);
  budget.act = model::BudgetAct::kRefuse;
  policy_.budgets = {budget};
  core_.apply_policy(policy_, "test", kNoon);
  submit(1);  // 1 runs
  core_.observe(execution::Started{testing::attempt(1), 5, kNoon}, kNoon);
  const base::Instant spent = kNoon + base::seconds(1000);
  core_.advance(spent);
  ASSERT_TRUE(core_.command(testing::submission(spec(1)), spent, store::Headroom::kAmple));
  core_.advance(spent);  // 2 waits
  const base::Instant renewal = model::end_of(model::BudgetPeriod::kMonth, spent);
  PlanningView view(core_.snapshot());
  const auto own = std::make_shared<const model::JobSpec>(spec(1));
  for (const Explanation& found : {explain_waiting(view, model::JobId(2), spent, Effort::kQuick),
                                   explain_waiting(view, model::JobId(2), spent, Effort::kThorough),
                                   explain_new(view, own, spent, Effort::kQuick)}) {
    EXPECT_FALSE(found.starts_now.has_value());
    ASSERT_TRUE(found.planned.has_value());
    EXPECT_EQ(found.planned->start, renewal);
    EXPECT_THAT(options(found), IsEmpty());
  }
  EXPECT_TRUE(view.books()->budgets == core_.snapshot()->budgets) << "the bars are back";
  model::JobSpec other = spec(1);
  other.user = "bob";
  EXPECT_TRUE(
      explain_new(view, std::make_shared<const model::JobSpec>(other), spent, Effort::kQuick)
          .starts_now.has_value());
}

TEST_F(ExplanationTest, NamesThoseAheadAndWhatWouldPassThem) {
  submit(3);                  // 1 runs
  submit(4);                  // 2 waits
  submit(1, base::hours(2));  // 3 waits: would delay 2
  const Explanation found = of(3);
  EXPECT_EQ(found.line.jobs_ahead, 1U);
  EXPECT_THAT(found.line.first_ahead, ElementsAre(model::JobId(2)));
  EXPECT_THAT(options(found), ElementsAre("--time 1h"));
  ASSERT_TRUE(found.planned.has_value());
  EXPECT_EQ(found.planned->start, kNoon + base::hours(2));
}

TEST_F(ExplanationTest, NamesTheWaitingJobsThatItsStartDependsOn) {
  submit(4);  // 1 runs
  submit(4);  // 2 waits for it
  submit(4);  // 3 waits for 2
  submit(1);  // 4 waits for 3
  EXPECT_THAT(of(2).planned->after, ElementsAre(model::JobId(1)));
  EXPECT_THAT(of(3).planned->after, ElementsAre(model::JobId(2), model::JobId(1)));
  EXPECT_THAT(of(4).planned->after, ElementsAre(model::JobId(3), model::JobId(2), model::JobId(1)));
  EXPECT_THAT(of_new(spec(4)).planned->after, Contains(model::JobId(4)));
}

TEST_F(ExplanationTest, AJobBehindThatFitsInAGapIsNotWhatItWaitsFor) {
  submit(3, base::hours(2));  // 1 runs
  submit(4);                  // 2 waits for it
  submit(4);                  // 3 waits for 2
  submit(1);                  // 4 runs in the gap before 2
  EXPECT_THAT(of(2).planned->after, ElementsAre(model::JobId(1), model::JobId(4)));
  EXPECT_THAT(of(3).planned->after, ElementsAre(model::JobId(2), model::JobId(1), model::JobId(4)));
}

TEST_F(ExplanationTest, BehindJobsWithoutAPlannedStartOnlyEffortTellsWhen) {
  policy_.backfill_depth = 1;
  core_.apply_policy(policy_, "test", kNoon);
  for (int i = 0; i < 4; ++i) submit(4);  // 1 runs, 2 has the planned start
  EXPECT_TRUE(of(2).planned.has_value());
  EXPECT_TRUE(of(3).planned.has_value());
  EXPECT_FALSE(of(4).planned.has_value());
  const Explanation thorough = of(4, Effort::kThorough);
  ASSERT_TRUE(thorough.planned.has_value());
  EXPECT_EQ(thorough.planned->start, kNoon + base::hours(3));
  EXPECT_THAT(thorough.planned->after,
              ElementsAre(model::JobId(3), model::JobId(2), model::JobId(1)));
  EXPECT_EQ(of_new(spec(4), Effort::kThorough).planned->start, kNoon + base::hours(4));
}

TEST_F(ExplanationTest, AJobThatIsNotSubmittedStandsBehindItsLike) {
  submit(3);
  submit(4);
  const Explanation small = of_new(spec(1));
  ASSERT_TRUE(small.starts_now.has_value());
  EXPECT_EQ(small.starts_now->gpu_count(), 1U);
  EXPECT_THAT(options(small), IsEmpty());
  const Explanation longer = of_new(spec(1, base::hours(2)));
  EXPECT_FALSE(longer.starts_now.has_value());
  EXPECT_EQ(longer.line.jobs_ahead, 1U);
  model::JobSpec urgent = spec(1, base::hours(2));
  urgent.priority = model::priority_of_class(model::PriorityClass::kHigh);
  EXPECT_TRUE(of_new(urgent).starts_now.has_value());
  PlanningView view(core_.snapshot());
  EXPECT_TRUE(starts_now(view, std::make_shared<const model::JobSpec>(urgent), kNoon));
  EXPECT_FALSE(
      starts_now(view, std::make_shared<const model::JobSpec>(spec(1, base::hours(2))), kNoon));
}

TEST_F(ExplanationTest, LeavesTheViewAsItWas) {
  submit(3);
  submit(4);
  PlanningView view(core_.snapshot());
  const std::uint64_t before = view.books()->cluster.hash();
  explain_waiting(view, model::JobId(2), kNoon, Effort::kThorough);
  EXPECT_EQ(view.books()->cluster.hash(), before);
}

TEST_F(ExplanationTest, ViewFollowsPreemptionHoldsAsTheyComeAndGo) {
  policy_.preempt_min_runtime = {};
  core_.apply_policy(policy_, "test", kNoon);
  model::JobSpec low = spec(4);
  low.priority = model::priority_of_class(model::PriorityClass::kLow);
  low.preemptible = true;
  model::JobSpec high = spec(4);
  high.priority = model::priority_of_class(model::PriorityClass::kHigh);
  PlanningView view;
  const auto follow = [&](std::size_t holds) {
    core_.advance(kNoon);
    view.follow(core_.snapshot());
    EXPECT_EQ(view.books()->holds.all().size(), holds);
    EXPECT_THAT(
        scheduling::Books::differences(view.books(), PlanningView(core_.snapshot()).books()),
        IsEmpty());
  };
  ASSERT_TRUE(core_.command(testing::submission(low), kNoon, store::Headroom::kAmple));
  core_.advance(kNoon);
  execution::Started started;
  started.attempt = testing::attempt(1);
  started.at = kNoon;
  core_.observe(started, kNoon);
  follow(0);
  ASSERT_TRUE(core_.command(testing::submission(high), kNoon, store::Headroom::kAmple));
  follow(1);
  core_.observe(testing::ended(testing::attempt(1), 0, kNoon), kNoon);
  core_.observe(execution::Cleaned{testing::attempt(1)}, kNoon);
  follow(0);
}

// After any change between two snapshots, the planning view that follows is the one made anew.
TEST_F(ExplanationTest, ViewThatFollowsIsTheViewMadeAnew) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    base::Prng random(seed);
    controller::Core core;
    base::Instant now = kNoon;
    policy_.organisation = model::Organisation();
    if (seed % 2 == 0) {
      policy_.organisation = model::Organisation{
          .of_users = {{"cat", {.gpu_types = {{"H100", {}, 2}}}}, {"dan", {.guaranteed_gpus = 1}}}};
    }
    core.apply_policy(policy_, "test", now);
    PlanningView following;
    std::uint64_t jobs = 0;
    for (int step = 0; step < 60; ++step) {
      now = now + base::seconds(static_cast<std::int64_t>(random.below(600)));
      const std::uint64_t number = 1 + random.below(jobs + 1);
      switch (random.below(6)) {
        case 0: {
          model::NodeInfo info = testing::node_info("n" + std::to_string(random.below(4)),
                                                    static_cast<std::uint32_t>(random.below(5)));
          const bool is_other = random.chance(1, 2);
          for (model::GpuInfo& gpu : info.gpus) gpu.type = is_other ? "A100-40GB" : gpu.type;
          core.observe(execution::NodeObserved{std::move(info)}, now);
          break;
        }
        case 1:
          (void)core.command(testing::stop(number), now, store::Headroom::kAmple);
          break;
        case 2:
          core.observe(testing::ended(testing::attempt(number), 0, now), now);
          core.observe(execution::Cleaned{testing::attempt(number)}, now);
          break;
        case 3:
          policy_.priority_points[2] = static_cast<std::int64_t>(random.below(20'000));
          core.apply_policy(policy_, "test", now);
          break;
        default: {
          model::JobSpec some = spec(static_cast<std::uint32_t>(random.below(4)));
          some.priority = model::priority_of_number(static_cast<std::uint8_t>(random.below(10)));
          if (core.command(testing::submission(some), now, store::Headroom::kAmple)) ++jobs;
        }
      }
      core.advance(now);
      if (random.chance(1, 2)) continue;
      const auto snapshot = core.snapshot();
      following.follow(snapshot);
      PlanningView anew(snapshot);
      const auto found = scheduling::Books::differences(following.books(), anew.books());
      ASSERT_TRUE(found.empty()) << found.front() << " differ, seed " << seed;
      ASSERT_THAT(controller::check_invariants(core.state()), IsEmpty()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace gpu_platform::views
