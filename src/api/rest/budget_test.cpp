#include "api/rest/budget.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include <unistd.h>

#include "api/subordinate_ids.h"

namespace gpu_platform::api {
namespace {

const Holder kAnn{1001, "user ann", false};
const Holder kHolderBob{1002, "user bob", false};
const Holder kHolderRoot{0, "user root", true};

Budget::Limits limits() {
  return {"apples", "eat some", "garden.max_apples", "garden.max_apples_per_user", 10, 6, 20};
}

TEST(Budget, NamesItsLimitItsValueItsKeyAndWhatToDo) {
  Budget budget(limits());
  ASSERT_TRUE(budget.try_take(kAnn, 6));
  const auto refused = budget.try_take(kAnn, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kResourceExhausted);
  EXPECT_EQ(refused.error().message,
            "user ann has 6 apples; the limit for one user is 6 (garden.max_apples_per_user): eat "
            "some");
}

TEST(Budget, KeepsItsLastPartForThosePrivileged) {
  Budget budget(limits());
  ASSERT_TRUE(budget.try_take(kAnn, 5));
  ASSERT_TRUE(budget.try_take(kHolderBob, 3));
  const auto refused = budget.try_take(kHolderBob, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kUnavailable);
  EXPECT_NE(refused.error().message.find("garden.max_apples: 10, of which 2 are kept for root"),
            std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(budget.try_take(kHolderRoot, 2));
  EXPECT_FALSE(budget.try_take(kHolderRoot, 1)) << "the whole is the whole";
  budget.give_back(kAnn, 5);
  EXPECT_TRUE(budget.try_take(kHolderRoot, 5)) << "unused places are root's too";
}

TEST(Budget, KeepsAtLeastOneForThosePrivileged) {
  Budget budget({"apples", "eat some", "a", "b", 3, 3, 10});
  ASSERT_TRUE(budget.try_take(kAnn, 2));
  EXPECT_FALSE(budget.try_take(kAnn, 1));
}

TEST(Budget, AllWithoutAnAccountAreOne) {
  Budget budget(limits());
  ASSERT_TRUE(budget.try_take({kUnknownUsers, "unknown", false}, 6));
  EXPECT_FALSE(budget.try_take({kUnknownUsers, "unknown", false}, 1));
  EXPECT_TRUE(budget.try_take(kAnn, 1));
}

TEST(Budget, TellsThoseWhoWaitWhenThereIsRoom) {
  Budget budget(limits());
  budget.take(kAnn, 8);
  int ann = 0;
  int bob = 0;
  budget.call_when_less(kAnn, [&] { ++ann; });
  budget.call_when_less(kHolderBob, [&] { ++bob; });
  EXPECT_EQ(bob, 0) << "the users' part is taken, no matter which user took it";
  budget.give_back(kAnn, 2);
  EXPECT_EQ(ann, 0) << "its own limit is still reached";
  EXPECT_EQ(bob, 1);
  budget.give_back(kAnn, 1);
  EXPECT_EQ(ann, 1);
  budget.give_back(kAnn, 5);
  EXPECT_EQ(ann, 1) << "once";
  budget.call_when_less(kAnn, [&] { ++ann; });
  EXPECT_EQ(ann, 2) << "at once where there is room";
}

TEST(Budget, ALeaseGivesBackWhatItHas) {
  Budget budget(limits());
  {
    Lease lease(budget, kAnn);
    ASSERT_TRUE(lease.try_become(4));
    ASSERT_TRUE(lease.try_become(6));
    EXPECT_FALSE(lease.try_become(7));
    EXPECT_EQ(budget.taken(), 6U);
    Lease moved(std::move(lease));
    moved.become(9);
    EXPECT_EQ(budget.taken(), 9U) << "what is there cannot be refused";
    moved.become(2);
    EXPECT_EQ(budget.taken(), 2U);
  }
  EXPECT_EQ(budget.taken(), 0U);
}

TEST(SubordinateIds, SaysWhoseRangeAUidLiesIn) {
  std::string path = "/tmp/subuid-XXXXXX";
  ::close(::mkstemp(path.data()));
  std::ofstream(path) << "ann:100000:65536\n# a comment\nbroken\n:5:5\nbob:x:1\n1002:300000:10\n";
  SubordinateIds ids(path);
  EXPECT_EQ(ids.owner_of(100'000), "ann");
  EXPECT_EQ(ids.owner_of(165'535), "ann");
  EXPECT_EQ(ids.owner_of(165'536), std::nullopt);
  EXPECT_EQ(ids.owner_of(99'999), std::nullopt);
  EXPECT_EQ(ids.owner_of(300'009), "1002");
  EXPECT_EQ(ids.owner_of(5), std::nullopt);
  ::unlink(path.c_str());
  EXPECT_EQ(SubordinateIds("/nonexistent").owner_of(100'000), std::nullopt);
}

}  // namespace
}  // namespace gpu_platform::api
