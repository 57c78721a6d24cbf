#include "scheduling/waiting_queue.h"
#include "model/job_spec.h"
#include "scheduling/order/order_factors.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "scheduling/testing/world.h"

namespace gpu_platform::scheduling {
namespace {

std::vector<std::uint64_t> order_of(const WaitingQueue& queue) {
  std::vector<std::uint64_t> order;
  queue.for_each_while([&](const WaitingJob& job) {
    order.push_back(job.id.value);
    return true;
  });
  return order;
}

using Order = std::vector<std::uint64_t>;

TEST(WaitingQueue, GoesByClassThenNumberThenTimeThenId) {
  const model::Policy policy;
  WaitingQueue queue;
  queue.put(waiting(1, gpus(1), 5, 20), policy);
  queue.put(waiting(2, gpus(1), 5, 10), policy);
  queue.put(waiting(4, gpus(1), 5, 10), policy);
  queue.put(waiting(3, gpus(1), 5, 10), policy);
  queue.put(waiting(5, gpus(1), 4, 30), policy);
  queue.put(waiting(6, gpus(1), 8, 1), policy);
  queue.put(waiting(7, gpus(1), 0, 99), policy);
  EXPECT_EQ(order_of(queue), (Order{7, 5, 2, 3, 4, 1, 6}));
}

TEST(WaitingQueue, FollowsThePointsOfThePolicy) {
  model::Policy policy;
  WaitingQueue queue;
  queue.put(waiting(1, gpus(1), 5), policy);
  queue.put(waiting(2, gpus(1), 8), policy);
  policy.priority_points[3] = 5'000;
  queue.reorder(policy);
  EXPECT_EQ(order_of(queue), (Order{2, 1}));
  EXPECT_TRUE(queue.erase(model::JobId(1)));
  EXPECT_EQ(order_of(queue), (Order{2}));
}

TEST(WaitingQueue, ReplacesAJobThatIsPutAgain) {
  const model::Policy policy;
  WaitingQueue queue;
  queue.put(waiting(1, gpus(1), 5), policy);
  queue.put(waiting(2, gpus(1), 5), policy);
  queue.put(waiting(2, gpus(4), 1), policy);
  EXPECT_EQ(order_of(queue), (Order{2, 1}));
  EXPECT_EQ(queue.size(), 2U);
}

TEST(WaitingQueue, SaysWhetherAJobMovedOrLeft) {
  model::Policy policy;
  WaitingQueue queue;
  queue.put(waiting(1, gpus(1)), policy);
  EXPECT_FALSE(queue.reorder(policy));
  policy.priority_points[2] += 1;
  EXPECT_TRUE(queue.reorder(policy));
  EXPECT_FALSE(queue.erase(model::JobId(7)));
  EXPECT_TRUE(queue.erase(model::JobId(1)));
  EXPECT_TRUE(queue.empty());
}

WaitingJob of_user(std::string user, WaitingJob job) {
  auto spec = std::make_shared<model::JobSpec>(*job.spec);
  spec->user = std::move(user);
  job.spec = std::move(spec);
  return job;
}

base::Shared<FairShareRanking> ranking_of(const std::map<std::string, std::uint64_t>& use,
                                          const WaitingQueue& queue) {
  FairShareUse::Accounts accounts;
  for (const auto& [user, counted] : use) accounts[{"", user}].counted = counted;
  const base::Instant start(1);
  return FairShareRanking({}, {start, start, std::move(accounts)}, *queue.basis().ranking);
}

TEST(WaitingQueue, FirstComeFirstServedKnowsNoClasses) {
  model::Policy policy;
  policy.order = model::QueueOrder::kFcfs;
  WaitingQueue queue;
  queue.put(waiting(1, gpus(1), 0, 30), policy);
  queue.put(waiting(2, gpus(1), 9, 10), policy);
  queue.put(waiting(3, gpus(1), 5, 20), policy);
  EXPECT_EQ(order_of(queue), (Order{2, 3, 1}));
  policy.order = model::QueueOrder::kPriority;
  queue.reorder(policy);
  EXPECT_EQ(order_of(queue), (Order{1, 3, 2}));
}

TEST(WaitingQueue, PutsWhoUsedLeastFirstAndTheirJobsByClass) {
  model::Policy policy;
  policy.order = model::QueueOrder::kFairShare;
  WaitingQueue queue;
  queue.put(of_user("ann", waiting(1, gpus(1), 0)), policy);
  queue.put(of_user("bob", waiting(2, gpus(1), 9)), policy);
  queue.put(of_user("bob", waiting(3, gpus(1), 5)), policy);
  EXPECT_EQ(order_of(queue), (Order{1, 3, 2}));  // both have used nothing
  queue.reorder(ranking_of({{"ann", 2}, {"bob", 1}}, queue));
  EXPECT_EQ(order_of(queue), (Order{3, 2, 1}));
  EXPECT_FALSE(queue.reorder(ranking_of({{"ann", 20}, {"bob", 15}}, queue)));  // no job moved
  queue.reorder(ranking_of({{"ann", 20}, {"bob", 25}}, queue));
  EXPECT_EQ(order_of(queue), (Order{1, 3, 2}));
}

TEST(WaitingQueue, WeighsAgePriorityFairShareAndSize) {
  model::Policy policy;
  policy.order = model::QueueOrder::kWeighted;
  constexpr std::int64_t kDay = 86'400;
  WaitingQueue queue;
  queue.resize_cluster(8);
  queue.put(of_user("ann", waiting(1, gpus(1), 5, kDay)), policy);
  queue.put(of_user("ann", waiting(2, gpus(8), 5, 2 * kDay)), policy);
  queue.put(of_user("bob", waiting(3, gpus(1), 0, 3 * kDay)), policy);
  const auto order_by = [&](model::OrderWeights weights) {
    policy.weights = weights;
    queue.reorder(policy);
    return order_of(queue);
  };
  EXPECT_EQ(order_by({.age = 1, .priority = 0, .fair_share = 0, .size = 0}), (Order{1, 2, 3}));
  EXPECT_EQ(order_by({.age = 0, .priority = 1, .fair_share = 0, .size = 0}), (Order{3, 1, 2}));
  EXPECT_EQ(order_by({.age = 0, .priority = 0, .fair_share = 0, .size = 1}), (Order{2, 3, 1}));
  // A day of waiting weighs as much as seven of eight GPUs.
  EXPECT_EQ(order_by({.age = 7, .priority = 0, .fair_share = 0, .size = 8}), (Order{1, 2, 3}));
  EXPECT_EQ(order_by({.age = 7, .priority = 0, .fair_share = 0, .size = 9}), (Order{2, 1, 3}));
  queue.resize_cluster(800);
  EXPECT_EQ(order_of(queue), (Order{1, 2, 3}));
  queue.reorder(ranking_of({{"ann", 7}, {"bob", 1}}, queue));
  EXPECT_EQ(order_by({.age = 1, .priority = 0, .fair_share = 100, .size = 0}), (Order{3, 1, 2}));
}

std::int64_t weighted_points(const WaitingJob& waiting, const OrderBasis& basis) {
  return rank_of(waiting.id, *waiting.spec, waiting.submitted_at, basis).points;
}

TEST(WaitingQueue, InTheWeightedOrderNoJobOvertakesByTimeAlone) {
  model::Policy policy;
  policy.order = model::QueueOrder::kWeighted;
  const OrderBasis basis = OrderBasis::of(policy);
  const WaitingJob early = waiting(1, gpus(1), 5, 1'700'000'000);
  const WaitingJob late = waiting(2, gpus(1), 5, 1'700'086'400);
  EXPECT_EQ(weighted_points(early, basis) - weighted_points(late, basis),
            std::int64_t{policy.weights.age} << 20);
}

TEST(WaitingQueue, TheFactorsOfAJobMakeItsWeightedSum) {
  model::Policy policy;
  policy.order = model::QueueOrder::kWeighted;
  policy.weights = {.age = 70, .priority = 500, .fair_share = 300, .size = 90};
  OrderBasis basis = OrderBasis::of(policy);
  basis.cluster_gpus = 16;
  const auto now = base::Instant(1'700'200'000LL * 1'000'000'000);
  const auto job_of = [](const WaitingJob& waiting) {
    model::Job job;
    job.id = waiting.id;
    job.spec = waiting.spec;
    job.submitted_at = waiting.submitted_at;
    return job;
  };
  const auto points_of = [&](const WaitingJob& waiting) {
    const OrderFactors factors = order_factors(job_of(waiting), basis, now);
    return factors.age_days * policy.weights.age + factors.priority * policy.weights.priority +
           factors.fair_share * policy.weights.fair_share + factors.size * policy.weights.size;
  };
  const WaitingJob a = waiting(1, gpus(4), 5, 1'700'000'000);
  const WaitingJob b = waiting(2, gpus(1), 1, 1'700'100'000);
  const std::int64_t sums = weighted_points(a, basis) - weighted_points(b, basis);
  EXPECT_NEAR(points_of(a) - points_of(b), static_cast<double>(sums) / (1 << 20), 0.001);
  EXPECT_NEAR(order_factors(job_of(a), basis, now).size, 0.25, 1e-9);
}

}  // namespace
}  // namespace gpu_platform::scheduling
