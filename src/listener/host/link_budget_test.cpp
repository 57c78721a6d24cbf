#include "listener/host/link_budget.h"

#include <gtest/gtest.h>

namespace gpu_platform::listener {
namespace {

Credential token(const std::string& secret) {
  return {Credential::Kind::kBearer, secret, "192.0.2.7"};
}

LinkBudget::Limits small() {
  return {.notes = {3, 1}, .links = {10, 5}, .links_of_credential = {4, 2}, .credentials = 3};
}

int links(LinkBudget& budget, const std::string& secret, int tries, std::int64_t now_ms) {
  int taken = 0;
  for (int i = 0; i < tries; ++i) taken += budget.take_link(token(secret), now_ms) ? 1 : 0;
  return taken;
}

TEST(LinkBudget, NotesComeBackWithTime) {
  LinkBudget budget(small());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(budget.take_note(0));
  EXPECT_FALSE(budget.take_note(999));
  EXPECT_TRUE(budget.take_note(1'000));
  EXPECT_FALSE(budget.take_note(1'000));
  EXPECT_TRUE(budget.take_note(50'000'000'000));
}

TEST(LinkBudget, ACredentialLeavesRoomForTheOthers) {
  LinkBudget budget(small());
  EXPECT_EQ(links(budget, "loud", 1'000, 0), 4);
  EXPECT_EQ(links(budget, "other", 3, 0), 3);
  EXPECT_EQ(links(budget, "loud", 1'000, 1'000), 2);
}

TEST(LinkBudget, AllTogetherHaveALimit) {
  LinkBudget budget(small());
  EXPECT_EQ(links(budget, "a", 4, 0) + links(budget, "b", 4, 0) + links(budget, "c", 4, 0), 10);
}

TEST(LinkBudget, InventedCredentialsCountTogetherAndTheKnownOnesAlone) {
  LinkBudget::Limits limits = small();
  limits.links = {1'000, 1'000};
  LinkBudget budget(limits);
  EXPECT_EQ(links(budget, "known", 1, 0), 1);
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += links(budget, "invented" + std::to_string(i), 1, 0);
  EXPECT_EQ(taken, 2 + 4) << "two more are told apart";
  EXPECT_EQ(links(budget, "known", 3, 0), 3);
  EXPECT_EQ(links(budget, "later", 1, 60'000), 1) << "the idle ones are forgotten";
}

}  // namespace
}  // namespace gpu_platform::listener
