#include "bin/site_users.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include "bin/users_files.h"

namespace gpu_platform::bin {
namespace {

config::Configuration with_range(std::uint32_t from, std::uint32_t to) {
  config::Configuration site;
  site.min_uid = from;
  site.max_uid = to;
  return site;
}

TEST(SiteUsers, AreThoseOfTheConfiguration) {
  const auto users = users_of_site(with_range(2000, 3000), true);
  ASSERT_TRUE(users);
  EXPECT_EQ(*users, (model::UserRange{2000, 3000, {}}));
}

TEST(SiteUsers, TheDaemonsOwnUserIsNoneWhereJobsRunAsOthers) {
  const auto users = users_of_site(with_range(2000, 3000), false);
  ASSERT_TRUE(users);
  EXPECT_EQ(users->of_platform.size(), geteuid() == 0 ? 0U : 1U);
}

TEST(SiteUsers, ARangeWithoutUsersIsRefused) {
  const auto users = users_of_site(with_range(3000, 2000), true);
  ASSERT_FALSE(users);
  EXPECT_EQ(users.error().message,
            "execution.min_uid: 3000 is above execution.max_uid, which is 2000");
}

class ListenerUserTest : public ::testing::Test {
 protected:
  // The error's words; empty: it may be.
  std::string refusal_of(const std::string& name, const model::UserRange& users = {}) {
    const auto user = listener_user(name, users, directory_);
    return user ? "" : user.error().message;
  }
  host::UserDirectory directory_;
};

TEST_F(ListenerUserTest, IsAnAccountOfTheSystem) {
  EXPECT_EQ(refusal_of("daemon"), "");
  EXPECT_EQ(refusal_of("root"),
            "api.listener_user: 'root' is not a user of /etc/passwd other than root");
  EXPECT_EQ(refusal_of("no such user"),
            "api.listener_user: 'no such user' is not a user of /etc/passwd other than root");
}

TEST_F(ListenerUserTest, IsNoUserThatMayHaveJobs) {
  EXPECT_TRUE(
      refusal_of("daemon", {.min_uid = 1, .max_uid = 10})
          .starts_with("api.listener_user: 'daemon' has the number 1, which may have jobs"));
}

TEST_F(ListenerUserTest, WithoutANameIsANumberThatNothingElseHas) {
  const auto user = listener_user({}, {.min_uid = 1000, .max_uid = 2000}, directory_);
  ASSERT_TRUE(user) << user.error().message;
  EXPECT_EQ(user->uid, user->gid);
  EXPECT_TRUE(user->uid < 1000 || user->uid > 2000);
}

TEST(UsersFiles, AreNotOpenedWithoutAnEngine) {
  const UsersFiles files;
  const auto file = files.open(1001, "/home/ann/out.log");
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpu_platform::bin
