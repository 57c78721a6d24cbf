// `jobs top` and `jobs signal`: what a user may do with jobs of their own in the queue, and with
// the processes of those that run.

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "base/prng.h"
#include "controller/core.h"
#include "controller/invariants.h"
#include "controller/orders.h"
#include "controller/snapshot.h"
#include "controller/test_support.h"
#include "model/job_spec.h"
#include "scheduling/order/rank.h"

namespace gpu_platform::controller {
namespace {

using base::ErrorCode;
using base::seconds;
using model::JobState;
using testing::attempt;
using testing::kAdministrator;
using testing::kNoon;
using testing::kOtherUser;
using testing::kOwner;
using Order = std::vector<std::uint64_t>;

model::JobSpec of(const model::Caller& user, std::uint32_t gpus = 1, std::uint8_t priority = 5) {
  model::JobSpec spec = testing::spec(gpus);
  spec.user = user.user;
  spec.uid = spec.gid = user.uid;
  spec.priority = model::priority_of_number(priority);
  spec.time_limit = base::hours(1);
  return spec;
}

class TopTest : public ::testing::Test {
 protected:
  TopTest() {
    policy_.max_queue_percent_per_user = 100;
    policy_.highest_user_priority = model::PriorityClass::kCritical;
    apply(policy_);
    see(execution::NodeObserved{testing::node_info("n1", 8)});
  }

  void apply(const model::Policy& policy) { core_.apply_policy(policy, "test", now_); }
  std::uint64_t submit(model::JobSpec spec, bool hold = false) {
    model::Command command = testing::submission(std::move(spec));
    std::get<model::SubmitJob>(command.body).hold = hold;
    const auto reply = core_.command(command, now_, store::Headroom::kAmple);
    EXPECT_TRUE(reply) << reply.error().message;
    now_ = now_ + seconds(1);
    core_.advance(now_);
    return reply ? reply->job.value : 0;
  }
  // So that what comes after it waits.
  std::uint64_t fill() {
    const std::uint64_t id = submit(of(kAdministrator, 8, 0));
    see(execution::Started{attempt(id), 5, now_});
    return id;
  }
  base::Result<model::CommandReply> top(std::uint64_t job, const model::Caller& caller = kOwner,
                                        bool whole_array = false) {
    auto reply = core_.command({caller, model::RaiseJob{model::JobId(job), whole_array}}, now_,
                               store::Headroom::kAmple);
    EXPECT_EQ(check_invariants(core_.state()), std::vector<std::string>());
    return reply;
  }
  base::Result<model::CommandReply> signal(std::uint64_t job, std::uint8_t number = SIGUSR1,
                                           const model::Caller& caller = kOwner,
                                           bool whole_array = false) {
    core_.take_batch();
    return core_.command({caller, model::SignalJob{model::JobId(job), number, whole_array}}, now_,
                         store::Headroom::kAmple);
  }
  void see(execution::Observation observation) {
    core_.observe(observation, now_);
    core_.advance(now_);
  }
  static Order order_in(const State& state) {
    Order order;
    state.books->queue.for_each_while([&](const scheduling::WaitingJob& job) {
      order.push_back(job.id.value);
      return true;
    });
    return order;
  }
  Order order() const { return order_in(core_.state()); }
  // The order by the basis that is published.
  static Order order_for_readers(const Snapshot& snapshot) {
    std::vector<scheduling::Rank> ranks;
    snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
      if (job.state != JobState::kQueued) return;
      ranks.push_back(scheduling::rank_of(job, *snapshot.order));
    });
    std::ranges::sort(ranks);
    Order order;
    for (const scheduling::Rank& rank : ranks) order.push_back(rank.job.value);
    return order;
  }
  const model::Job& job(std::uint64_t id) const { return *core_.state().jobs.find(id); }
  std::vector<model::AuditedCall> trail() {
    std::vector<model::AuditedCall> calls;
    for (const model::EventRecord& record : core_.take_batch().events) {
      const auto* audited = std::get_if<model::CallAudited>(&record.event);
      if (audited != nullptr) calls.push_back(audited->call);
    }
    return calls;
  }
  std::vector<execution::SignalOrder> signals() {
    std::vector<execution::SignalOrder> orders;
    for (const Effect& effect : core_.take_batch().effects) {
      const auto* order = std::get_if<execution::SignalOrder>(&effect);
      if (order != nullptr) orders.push_back(*order);
    }
    return orders;
  }

  model::Policy policy_;
  base::Instant now_ = kNoon;
  Core core_;
};

TEST_F(TopTest, RaisesAJobAboveTheOthersOfItsUserAndMovesNobodyElse) {
  fill();
  const std::uint64_t a = submit(of(kOwner));
  const std::uint64_t bobs = submit(of(kOtherUser));
  const std::uint64_t b = submit(of(kOwner, 4));
  const std::uint64_t last = submit(of(kOtherUser));
  const std::uint64_t c = submit(of(kOwner, 2));
  ASSERT_EQ(order(), (Order{a, bobs, b, last, c}));
  const auto reply = top(c);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->changed);
  EXPECT_EQ(order(), (Order{c, bobs, a, last, b}));
  EXPECT_EQ(job(c).turn->of.value, a);
  EXPECT_FALSE(top(c)->changed);
  ASSERT_TRUE(top(a)->changed);
  EXPECT_EQ(order(), (Order{a, bobs, c, last, b}));
  EXPECT_FALSE(job(a).turn) << "its own again";
  EXPECT_EQ(job(bobs).submitted_at - job(a).submitted_at, seconds(1)) << "it is not younger for it";
}

TEST_F(TopTest, CountsJobsOfOneTeamAndClassOnly) {
  fill();
  const std::uint64_t high = submit(of(kOwner, 1, 1));
  const std::uint64_t other = submit([] {
    model::JobSpec spec = of(kOwner);
    spec.team = "vision";
    return spec;
  }());
  const std::uint64_t a = submit(of(kOwner, 1, 4));
  const std::uint64_t b = submit(of(kOwner, 1, 5));
  ASSERT_EQ(order(), (Order{high, a, other, b}));
  ASSERT_TRUE(top(b)->changed);
  EXPECT_EQ(order(), (Order{high, b, other, a})) << "also above a better number of the same class";
}

// The user could have given any number in the first place.
TEST_F(TopTest, ANewPriorityCountsAgain) {
  fill();
  const std::uint64_t a = submit(of(kOwner));
  const std::uint64_t b = submit(of(kOwner));
  ASSERT_TRUE(top(b)->changed);
  model::UpdateJob update;
  update.job = model::JobId(a);
  update.to.set(&model::JobSpec::priority, model::priority_of_number(4));
  ASSERT_TRUE(core_.command({kOwner, update}, now_, store::Headroom::kAmple));
  EXPECT_EQ(order(), (Order{a, b}));
}

// Priority there and back must not make a second early turn of one.
TEST_F(TopTest, NoTurnIsGainedByChangingTheClassAndBack) {
  fill();
  const std::uint64_t a = submit(of(kOwner));
  const std::uint64_t bobs = submit(of(kOtherUser));
  const std::uint64_t b = submit(of(kOwner));
  ASSERT_TRUE(top(b)->changed);
  for (const std::uint8_t number : {8, 5}) {
    model::UpdateJob update;
    update.job = model::JobId(a);
    update.to.set(&model::JobSpec::priority, model::priority_of_number(number));
    ASSERT_TRUE(core_.command({kOwner, update}, now_, store::Headroom::kAmple));
  }
  EXPECT_EQ(order(), (Order{b, bobs, a}));
}

TEST_F(TopTest, AnArrayIsRaisedWithItsMembersInTheirOrder) {
  fill();
  const std::uint64_t a = submit(of(kOwner));
  model::JobSpec members = of(kOwner);
  members.array = model::ArraySpec{.runs = {{0, 2, 1}}, .limit = 0};
  const std::uint64_t array = submit(members);
  ASSERT_TRUE(top(array, kOwner, true)->changed);
  EXPECT_EQ(order(), (Order{array, array + 1, array + 2, a}));
  ASSERT_TRUE(top(array + 2)->changed);
  EXPECT_EQ(order(), (Order{array + 2, array, array + 1, a}));
}

TEST_F(TopTest, OnlyJobsInTheQueueTakePart) {
  const std::uint64_t runs = fill();
  const std::uint64_t held = submit(of(kOwner), true);
  const std::uint64_t bobs = submit(of(kOtherUser));
  const std::uint64_t a = submit(of(kOwner));
  EXPECT_FALSE(top(a)->changed) << "a held job has no place to give";
  EXPECT_EQ(order(), (Order{bobs, a}));
  model::JobSpec dependent = of(kOwner);
  dependent.dependencies = {{model::DependencyKind::kAfterOk, {model::JobId(a), false}}};
  const std::uint64_t waits = submit(dependent);
  for (const std::uint64_t id : {held, waits}) {
    const auto refused = top(id);
    ASSERT_FALSE(refused) << id;
    EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
    EXPECT_NE(refused.error().message.find("only a QUEUED job can be raised"), std::string::npos)
        << refused.error().message;
  }
  EXPECT_EQ(top(runs, kAdministrator).error().code, ErrorCode::kFailedPrecondition);
  see(testing::ended(attempt(runs), 0, now_));
  EXPECT_EQ(top(runs, kAdministrator).error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(TopTest, OthersMayNotAndRootMay) {
  fill();
  const std::uint64_t a = submit(of(kOwner));
  const std::uint64_t b = submit(of(kOwner));
  EXPECT_EQ(top(b, kOtherUser).error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(order(), (Order{a, b}));
  core_.take_batch();
  EXPECT_TRUE(top(b, kAdministrator)->changed);
  EXPECT_EQ(order(), (Order{b, a}));
  const auto calls = trail();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].action, model::AuditAction::kTop);
  EXPECT_EQ(calls[0].by.user, "root");
  EXPECT_EQ(calls[0].owner->user, "ann");
  EXPECT_EQ(calls[0].jobs, std::vector{model::JobId(b)});
}

TEST_F(TopTest, AnOverdueJobStaysBeforeTheOthers) {
  policy_.overdue_after = base::minutes(10);
  apply(policy_);
  fill();
  const std::uint64_t old = submit(of(kOwner));
  const std::uint64_t a = submit(of(kOwner));
  const std::uint64_t b = submit(of(kOwner));
  now_ = now_ + base::minutes(10);
  core_.advance(now_);
  ASSERT_TRUE(job(old).overdue_since.is_set());
  ASSERT_TRUE(top(b)->changed);
  EXPECT_EQ(order(), (Order{old, b, a}));
}

TEST_F(TopTest, AJobThatComesBackHasTheTurnThatItStartedWith) {
  const std::uint64_t runs = fill();
  const std::uint64_t a = submit(of(kOwner, 8));
  const std::uint64_t b = submit(of(kOwner, 8));
  ASSERT_TRUE(top(b)->changed);
  see(testing::ended(attempt(runs), 0, now_));
  see(execution::Cleaned{attempt(runs), {}});
  see(execution::Started{attempt(b), 6, now_});
  ASSERT_EQ(job(b).state, JobState::kRunning);
  execution::Ended evicted = testing::ended(attempt(b), 0, now_);
  evicted.reason = model::EndReason::kPreempted;
  see(evicted);
  see(execution::Cleaned{attempt(b), {}});
  EXPECT_EQ(job(b).state, JobState::kStarting);
  EXPECT_EQ(order(), (Order{a}));
}

TEST_F(TopTest, AJobThatAPersonRequeuesTakesANewTurn) {
  const std::uint64_t runs = submit(of(kOwner, 8));
  see(execution::Started{attempt(runs), 6, now_});
  const std::uint64_t a = submit(of(kOwner, 8));
  const std::uint64_t b = submit(of(kOwner, 8));
  now_ = now_ + base::minutes(1);
  ASSERT_TRUE(
      core_.command({kOwner, model::ActOnJob{model::JobId(runs), model::JobAction::kRequeue}}, now_,
                    store::Headroom::kAmple));
  see(testing::ended(attempt(runs), 0, now_));
  see(execution::Cleaned{attempt(runs), {}});
  EXPECT_EQ(job(a).state, JobState::kStarting);
  EXPECT_EQ(order(), (Order{b, runs}));
  ASSERT_TRUE(top(runs)->changed);
  EXPECT_EQ(order(), (Order{runs, b}));
  EXPECT_EQ(job(b).turn->of, model::JobId(runs));
}

// Every order, two users, all classes: jobs that take part exchange places, all others keep theirs,
// and all of it is the same after a restart.
TEST_F(TopTest, PlacesOfOthersNeverChange) {
  using model::QueueOrder;
  for (const QueueOrder queue_order :
       {QueueOrder::kPriority, QueueOrder::kFcfs, QueueOrder::kFairShare, QueueOrder::kWeighted}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      base::Prng random(seed);
      core_ = Core();
      policy_.order = queue_order;
      policy_.weights.size = 5'000;
      apply(policy_);
      see(execution::NodeObserved{testing::node_info("n1", 8)});
      fill();
      for (int i = 0; i < 24; ++i) {
        const model::Caller& user = random.chance(1, 3) ? kOtherUser : kOwner;
        submit(of(user, static_cast<std::uint32_t>(1 + random.below(8)),
                  static_cast<std::uint8_t>(random.below(10))));
        if (random.chance(1, 3)) continue;
        const Order before = order();
        const std::uint64_t raised = before[random.below(before.size())];
        ASSERT_TRUE(top(raised, kAdministrator));
        const Order after = order();
        const auto takes_part = [&](std::uint64_t id) {
          return job(id).spec->uid == job(raised).spec->uid &&
                 job(id).spec->priority.priority_class == job(raised).spec->priority.priority_class;
        };
        Order of_it;
        for (std::size_t place = 0; place < before.size(); ++place) {
          EXPECT_EQ(takes_part(before[place]), takes_part(after[place])) << seed;
          if (!takes_part(before[place])) {
            EXPECT_EQ(before[place], after[place]) << seed;
          }
          if (takes_part(after[place])) of_it.push_back(after[place]);
        }
        ASSERT_EQ(of_it.front(), raised) << seed;
        const auto restored = decode_state(encode_state(core_.state()));
        ASSERT_TRUE(restored);
        EXPECT_EQ(order_in(*restored), after) << seed;
        EXPECT_EQ(order_for_readers(*core_.snapshot()), after) << seed;
      }
    }
  }
}

// ---- signals

TEST_F(TopTest, ASignalGoesToARunningJobOnceAndIsOnTheTrail) {
  const std::uint64_t id = submit(of(kOwner));
  see(execution::Started{attempt(id), 5, now_});
  ASSERT_TRUE(signal(id));
  const Batch batch = core_.take_batch();
  ASSERT_EQ(batch.effects.size(), 1U);
  const auto* order = std::get_if<execution::SignalOrder>(&batch.effects[0]);
  ASSERT_NE(order, nullptr);
  EXPECT_EQ(order->attempt, attempt(id));
  EXPECT_EQ(order->signal, SIGUSR1);
  const auto* audited = std::get_if<model::CallAudited>(&batch.events.back().event);
  ASSERT_NE(audited, nullptr);
  EXPECT_EQ(audited->call.action, model::AuditAction::kSignal);
  EXPECT_EQ(job(id).state, JobState::kRunning);
  for (const Effect& effect : pending_effects(core_.state())) {
    EXPECT_FALSE(std::holds_alternative<execution::SignalOrder>(effect)) << "it is not repeated";
  }
}

TEST_F(TopTest, ASignalIsRefusedWithoutProcessesAndForOthers) {
  const std::uint64_t id = submit(of(kOwner, 8));
  const std::uint64_t waits = submit(of(kOwner, 8));
  for (const std::uint64_t each : {id, waits}) {  // it is STARTING, and QUEUED
    const auto refused = signal(each);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kFailedPrecondition);
    EXPECT_NE(refused.error().message.find("only a running job has processes"), std::string::npos);
  }
  see(execution::Started{attempt(id), 5, now_});
  EXPECT_EQ(signal(id, SIGUSR1, kOtherUser).error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(signal(id, SIGKILL).error().code, ErrorCode::kInvalidArgument);
  EXPECT_TRUE(signal(id, SIGSTOP, kAdministrator));
  see(testing::ended(attempt(id), 0, now_));
  EXPECT_EQ(signal(id).error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(TopTest, ASignalToAnArrayReachesTheMembersThatRun) {
  model::JobSpec members = of(kOwner, 4);
  members.array = model::ArraySpec{.runs = {{0, 2, 1}}, .limit = 0};
  const std::uint64_t array = submit(members);
  EXPECT_FALSE(signal(array, SIGUSR1, kOwner, true));
  for (const std::uint64_t id : {array, array + 1}) see(execution::Started{attempt(id), 5, now_});
  const auto reply = signal(array, SIGUSR1, kOwner, true);
  ASSERT_TRUE(reply);
  EXPECT_TRUE(reply->changed);
  std::vector<model::AttemptId> told;
  for (const execution::SignalOrder& order : signals()) told.push_back(order.attempt);
  EXPECT_EQ(told, (std::vector{attempt(array), attempt(array + 1)}));
}

}  // namespace
}  // namespace gpu_platform::controller
