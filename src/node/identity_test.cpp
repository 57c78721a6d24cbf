#include "node/identity.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

TEST(IdentityRulesOf, RefuseRootSystemAccountsAndNoUserAtAll) {
  const IdentityRules rules;
  EXPECT_EQ(error_in_uid(0, rules), "this launcher starts no job as root");
  EXPECT_EQ(error_in_uid(4294967295, rules), "4294967295 is not a user");
  for (const std::uint32_t uid : {1U, 2U, 42U, 999U, 60'001U, 64'030U, 65'534U, 4'294'967'294U}) {
    EXPECT_NE(error_in_uid(uid, rules), "") << uid;
  }
  for (const std::uint32_t uid : {1000U, 60'000U}) EXPECT_EQ(error_in_uid(uid, rules), "");
}

TEST(IdentityRulesOf, AreTheSitesToLoosen) {
  const IdentityRules rules{.allow_root = true, .users = {.min_uid = 500, .max_uid = 70'000}};
  EXPECT_EQ(error_in_uid(0, rules), "");
  EXPECT_EQ(error_in_uid(500, rules), "");
  EXPECT_EQ(error_in_uid(70'000, rules), "");
  EXPECT_NE(error_in_uid(499, rules), "");
  EXPECT_NE(error_in_uid(65'534, rules), "");
  EXPECT_NE(error_in_uid(4294967295, rules), "");
}

TEST(Account, IsReadFromALineOfTheUserDatabase) {
  Identity user;
  ASSERT_TRUE(parse_account("ann:x:1000:100:Ann,,,:/home/ann:/bin/zsh", 1000, user));
  EXPECT_EQ(user, (Identity{1000, 100, {100}, "ann"}));
  ASSERT_TRUE(parse_groups("ann                   4 24 100 27", user));
  EXPECT_EQ(user.groups, (std::vector<std::uint32_t>{100, 4, 24, 27}));
}

TEST(Account, OfAnotherUserOrDamagedIsRefused) {
  for (const std::string_view line :
       {"", "ann", "ann:x:1001:100::/:", "ann:x:1000",
        "ann:x:1000:", "ann:x:1000:-1::/:", "ann:x:1000:4294967295::/:", ":x:1000:100::/:",
        "-ann:x:1000:100::/:", "a nn:x:1000:100::/:", "1000:100"}) {
    Identity user;
    EXPECT_FALSE(parse_account(line, 1000, user)) << line;
  }
  Identity user{1000, 100, {100}, "ann"};
  for (const std::string_view line : {"", "bob 4 24", "anne 4"}) {
    EXPECT_FALSE(parse_groups(line, user)) << line;
  }
  EXPECT_EQ(user.groups, (std::vector<std::uint32_t>{100}));
}

TEST(Account, GroupsThatAreNoNumbersAreLeftOut) {
  Identity user{1000, 100, {100}, "ann"};
  ASSERT_TRUE(parse_groups("ann 4 x 4294967295 -1 99999999999 5", user));
  EXPECT_EQ(user.groups, (std::vector<std::uint32_t>{100, 4, 5}));
}

}  // namespace
}  // namespace gpu_platform::node
