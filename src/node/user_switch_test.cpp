#include "node/user_switch.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

namespace gpu_platform::node {
namespace {

// 0 where the work in a process of its own is content.
int in_child(const std::function<bool()>& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

class UserSwitchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
  UserSwitch nobody_{Identity{65534, 65533, {9, 4, 7}, {}}};
};

TEST_F(UserSwitchTest, BecomesTheUserForGood) {
  EXPECT_EQ(in_child([&] {
              const bool done = nobody_.become().what == nullptr;
              gid_t groups[4];
              return done && getuid() == 65534 && getegid() == 65533 && getgroups(4, groups) == 3 &&
                     groups[0] == 4 && setuid(0) != 0 && open("/etc/shadow", O_RDONLY) < 0;
            }),
            0);
}

TEST_F(UserSwitchTest, BorrowedUserIsGivenBack) {
  EXPECT_EQ(in_child([&] {
              const bool borrowed = nobody_.borrow() && geteuid() == 65534 && getuid() == 0;
              return borrowed && UserSwitch::give_back() && geteuid() == 0 && getegid() == 0;
            }),
            0);
}

// A process that may not switch does not go on as its former user.
TEST_F(UserSwitchTest, RefusedSwitchIsTold) {
  EXPECT_EQ(in_child([&] {
              if (nobody_.become().what != nullptr) return false;
              UserSwitch other{Identity{1000, 1000, {}, {}}};
              const SwitchFailure failure = other.become();
              return failure.what != nullptr && failure.error == EPERM;
            }),
            0);
}

}  // namespace
}  // namespace gpu_platform::node
