#include "node/folders/remove_tree.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace gpu_platform::node {
namespace {

class RemoveTree : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/remove_tree_test.XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
    fd_ = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    std::filesystem::create_directory(root_ + "/keep");
    std::ofstream(root_ + "/keep/file") << "kept";
    std::filesystem::create_directory(root_ + "/victim");
  }
  void TearDown() override {
    close(fd_);
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  bool exists(const std::string& name) const {
    struct stat about{};
    return lstat((root_ + "/" + name).c_str(), &about) == 0;
  }

  std::string root_;
  int fd_ = -1;
};

TEST_F(RemoveTree, TakesFilesFoldersAndLinksButNotWhatLinksPointTo) {
  const std::string victim = root_ + "/victim";
  std::filesystem::create_directories(victim + "/a/b/c");
  std::filesystem::create_directories(victim + "/a/d");
  std::ofstream(victim + "/a/b/file") << "x";
  std::filesystem::create_symlink(root_ + "/keep", victim + "/a/link");
  std::filesystem::create_symlink(root_ + "/keep/file", victim + "/link");
  std::filesystem::create_symlink("/nowhere", victim + "/a/b/dangling");
  ASSERT_EQ(mkfifo((victim + "/fifo").c_str(), 0600), 0);
  EXPECT_TRUE(remove_tree(fd_, "victim"));
  EXPECT_FALSE(exists("victim"));
  EXPECT_TRUE(exists("keep/file"));
}

TEST_F(RemoveTree, NeedsNoMoreHandlesForADeepTree) {
  constexpr int kDepth = 3000;
  int fd = openat(fd_, "victim", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  for (int depth = 0; depth < kDepth; ++depth) {
    ASSERT_EQ(mkdirat(fd, "deeper", 0700), 0);
    const int next = openat(fd, "deeper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ASSERT_GE(next, 0);
    close(fd);
    fd = next;
  }
  close(fd);
  EXPECT_TRUE(remove_tree(fd_, "victim"));
  EXPECT_FALSE(exists("victim"));
}

TEST_F(RemoveTree, DoesNotFollowALinkInPlaceOfTheFolder) {
  std::filesystem::remove(root_ + "/victim");
  std::filesystem::create_symlink(root_ + "/keep", root_ + "/victim");
  EXPECT_FALSE(remove_tree(fd_, "victim"));
  EXPECT_TRUE(exists("keep/file"));
}

TEST_F(RemoveTree, IsContentWithNothing) {
  EXPECT_TRUE(remove_tree(fd_, "absent"));
}

}  // namespace
}  // namespace gpu_platform::node
