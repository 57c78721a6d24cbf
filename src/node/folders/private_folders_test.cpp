#include "node/folders/private_folders.h"

#include <stdlib.h>
#include <unistd.h>

#include <string>

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

class SharedShm : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: copies mounts";
    char name[] = "/dev/shm/gp-shared-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    path_ = name;
  }
  void TearDown() override {
    close_private_tmp(folders_);
    if (!path_.empty()) rmdir(path_.c_str());
  }

  std::string path_;
  PrivateFolders folders_;
};

TEST_F(SharedShm, IsATmpfsOfTheUser) {
  EXPECT_EQ(share_shm(path_, {0, 0}, folders_), "");
  EXPECT_GE(folders_.shm, 0);
}

TEST_F(SharedShm, WhatIsNotTheUsersIsNotTaken) {
  const std::string refused = " is not the shared memory of the user's MPS server";
  EXPECT_EQ(share_shm(path_, {12345, 12345}, folders_), path_ + refused);
  EXPECT_EQ(share_shm("/proc", {0, 0}, folders_), "/proc" + refused) << "no tmpfs";
  const std::string link = path_ + "-link";
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_NE(share_shm(link, {0, 0}, folders_), "") << "a link is not followed";
  unlink(link.c_str());
  EXPECT_LT(folders_.shm, 0);
}

}  // namespace
}  // namespace gpu_platform::node
