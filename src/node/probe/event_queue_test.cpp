#include "node/probe/event_queue.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

using hardware::GpuEvent;
using hardware::GpuEventKind;

GpuEvent xid(std::uint64_t code, std::uint32_t gpu = 0) {
  return {gpu, "GPU-" + std::to_string(gpu), GpuEventKind::kXid, 8, code, std::nullopt, 1};
}

TEST(EventQueue, JoinsEqualEventsInARowAlone) {
  EventQueue queue;
  for (int i = 0; i < 10'000; ++i) queue.add(xid(45));
  queue.add(xid(48));
  queue.add(xid(45));
  queue.add(xid(45, 1));

  const auto events = queue.oldest(10);

  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].count, 10'000U);
  EXPECT_EQ(events[1].value, 48U);
  EXPECT_EQ(events[2].count, 1U);
  EXPECT_EQ(queue.dropped(), 0U);
}

TEST(EventQueue, KeepsWhatIsNotRemoved) {
  EventQueue queue;
  queue.add(xid(1));
  queue.add(xid(2));
  EXPECT_EQ(queue.oldest(1), std::vector{xid(1)});
  EXPECT_EQ(queue.oldest(1), std::vector{xid(1)});
  queue.remove(1);
  EXPECT_EQ(queue.oldest(5), std::vector{xid(2)});
  queue.remove(5);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, DropsTheOldestAndCountsThem) {
  EventQueue queue;
  queue.add(xid(0));
  queue.add(xid(0));
  for (std::uint64_t code = 1; code <= EventQueue::kMaxKept; ++code) queue.add(xid(code));
  EXPECT_EQ(queue.dropped(), 2U);
  EXPECT_EQ(queue.oldest(1).front().value, 1U);
  queue.remove(1);
  EXPECT_EQ(queue.dropped(), 0U);
}

}  // namespace
}  // namespace gpu_platform::node
