#include "shims/steps/step_shares.h"

#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;

using Places = std::vector<std::uint32_t>;

// Takes a share on the one node of a job.
std::optional<Places> taken(StepShares& shares, const NodeRoom& room, const ShareWish& wish) {
  EXPECT_TRUE(shares.next_step());
  auto got = shares.take({room}, {wish});
  EXPECT_TRUE(got);
  if (!got || !*got) return std::nullopt;
  return (*got)->front().gpus;
}

// A process that has this room of a job until it is killed.
pid_t begin_hog(const std::string& file, const std::vector<NodeRoom>& rooms) {
  int told[2];
  EXPECT_EQ(::pipe(told), 0);
  const pid_t step = ::fork();
  if (step == 0) {
    const std::vector<ShareWish> all(rooms.size(), {rooms[0].gpus, rooms[0].cpus});
    auto shares = StepShares::open(file);
    if (shares && shares->next_step() && shares->take(rooms, all)) [[maybe_unused]]
      const ssize_t written = ::write(told[1], "x", 1);
    while (true) ::pause();
  }
  char said = 0;
  EXPECT_EQ(::read(told[0], &said, 1), 1);
  ::close(told[0]);
  ::close(told[1]);
  return step;
}

TEST(StepShares, AreDifferentGpusForStepsThatRunTogether) {
  const std::string file = *make_share_file();
  auto first = StepShares::open(file);
  auto second = StepShares::open(file);
  auto third = StepShares::open(file);
  ASSERT_TRUE(first && second && third);
  const NodeRoom room{0, 4, 8};
  const ShareWish wish{2, 1};
  EXPECT_THAT(*taken(*first, room, wish), ElementsAre(0, 1));
  EXPECT_THAT(*taken(*second, room, wish), ElementsAre(2, 3));
  EXPECT_FALSE(taken(*third, room, wish));
}

TEST(StepShares, AreAllOfTheWishOrNothing) {
  const std::string file = *make_share_file();
  auto first = StepShares::open(file);
  auto second = StepShares::open(file);
  auto third = StepShares::open(file);
  const NodeRoom room{0, 2, 2};
  ASSERT_TRUE(taken(*first, room, {0, 2}));
  EXPECT_FALSE(taken(*second, room, {2, 1}));
  EXPECT_TRUE(taken(*third, room, {2, 0})) << "a wish without room keeps nothing";
}

TEST(StepShares, AreOnTheFirstNodesWithRoom) {
  const std::string file = *make_share_file();
  auto first = StepShares::open(file);
  auto second = StepShares::open(file);
  auto third = StepShares::open(file);
  const std::vector<NodeRoom> rooms{{0, 2, 8}, {1, 2, 8}, {2, 2, 8}};
  ASSERT_TRUE(*first->take(rooms, {{1, 1}}));
  const auto pair = *second->take(rooms, {{2, 1}, {1, 1}});
  ASSERT_TRUE(pair);
  EXPECT_EQ((*pair)[0].node, 1U);
  EXPECT_EQ((*pair)[1].node, 2U);
  EXPECT_FALSE(*third->take(rooms, {{1, 1}, {2, 1}})) << "all of its nodes or none";
  EXPECT_TRUE(*third->take(rooms, {{1, 1}, {1, 1}}));
}

TEST(StepShares, ComeFreeWhenTheirProcessIsKilled) {
  const NodeRoom room{0, 1, 1};
  const std::string file = *make_share_file();
  const pid_t step = begin_hog(file, {room});
  auto other = StepShares::open(file);
  EXPECT_FALSE(taken(*other, room, {1, 1}));
  ::kill(step, SIGKILL);
  ASSERT_EQ(::waitpid(step, nullptr, 0), step);
  EXPECT_TRUE(taken(*other, room, {1, 1}));
}

TEST(StepShares, AreWaitedForUntilAStepHasEnded) {
  const NodeRoom room{1, 1, 1};
  const std::string file = *make_share_file();
  const pid_t step = begin_hog(file, {{0, 1, 1}, room});
  auto other = StepShares::open(file);
  ASSERT_FALSE(taken(*other, room, {1, 1}));
  EXPECT_FALSE(*other->wait_for_an_end(0)) << "the step has its share";
  ::kill(step, SIGKILL);
  EXPECT_TRUE(*other->wait_for_an_end(std::nullopt));
  EXPECT_TRUE(taken(*other, room, {1, 1}));
  ASSERT_EQ(::waitpid(step, nullptr, 0), step);
}

TEST(StepShares, CountMemory) {
  const NodeRoom room{0, 1, 8};
  const std::string file = *make_share_file();
  auto first = StepShares::open(file);
  auto second = StepShares::open(file);
  auto third = StepShares::open(file);
  ASSERT_TRUE(taken(*first, room, {0, 1, 600}));
  EXPECT_FALSE(taken(*second, room, {0, 1, 600}));
  EXPECT_TRUE(taken(*third, {1, 1, 8}, {0, 1, 600})) << "each node has memory of its own";
  EXPECT_TRUE(taken(*second, room, {0, 1, 400}));
}

TEST(StepShares, NumberTheStepsOfAJob) {
  const std::string file = *make_share_file();
  auto first = StepShares::open(file);
  auto second = StepShares::open(file);
  EXPECT_EQ(*first->next_step(), 0U);
  EXPECT_EQ(*second->next_step(), 1U);
  EXPECT_EQ(*first->next_step(), 2U);
}

}  // namespace
}  // namespace gpu_platform::shims
