#include "scheduling/waiting_queue.h"

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

TEST(WaitingQueue, ChangesItsVersionWithEveryChangeAndNoOther) {
  model::Policy policy;
  WaitingQueue queue;
  std::uint64_t version = queue.version();
  const auto changed = [&] { return std::exchange(version, queue.version()) != queue.version(); };
  queue.put(waiting(1, gpus(1)), policy);
  EXPECT_TRUE(changed());
  queue.reorder(policy);
  EXPECT_FALSE(changed());
  policy.priority_points[0] += 1;
  queue.reorder(policy);
  EXPECT_TRUE(changed());
  EXPECT_FALSE(queue.erase(model::JobId(7)));
  EXPECT_FALSE(changed());
  EXPECT_TRUE(queue.erase(model::JobId(1)));
  EXPECT_TRUE(changed());
  EXPECT_TRUE(queue.empty());
}

}  // namespace
}  // namespace gpu_platform::scheduling
