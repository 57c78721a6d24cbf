#include "node/folders/node_folders.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

namespace gpu_platform::node {
namespace {

namespace fs = std::filesystem;

class NodeFoldersTest : public ::testing::Test {
 protected:
  NodeFoldersTest() {
    char name[] = "/tmp/gp-folders-XXXXXX";
    root_ = mkdtemp(name);
  }
  ~NodeFoldersTest() override {
    close_all();
    fs::remove_all(root_);
  }
  std::string open(const std::string& path) {
    close_all();
    return open_node_folders(path, -1, folders_);
  }
  void close_all() {
    for (int* fd :
         {&folders_.root, &folders_.attempts, &folders_.output, &folders_.run, &folders_.tmp}) {
      if (*fd >= 0) close(*fd);
      *fd = -1;
    }
  }
  static unsigned mode_of(const std::string& path) {
    struct stat about{};
    return stat(path.c_str(), &about) == 0 ? about.st_mode & 07777 : 0;
  }

  std::string root_;
  NodeFolders folders_;
};

TEST_F(NodeFoldersTest, AreMadeForTheirOwnerAlone) {
  ASSERT_EQ(open(root_ + "/node"), "");
  for (const char* name : {"", "/attempts", "/output", "/run", "/tmp"}) {
    EXPECT_EQ(mode_of(root_ + "/node" + name), 0700U) << name;
  }
  EXPECT_EQ(open(root_ + "/node"), "");
}

TEST_F(NodeFoldersTest, OneThatWasOpenedToOthersIsClosedAgain) {
  ASSERT_EQ(open(root_ + "/node"), "");
  chmod((root_ + "/node/attempts").c_str(), 0777);
  ASSERT_EQ(open(root_ + "/node"), "");
  EXPECT_EQ(mode_of(root_ + "/node/attempts"), 0700U);
}

TEST_F(NodeFoldersTest, GroupOfReadersGetsNeitherSocketsNorJobsFolders) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder to a group";
  ASSERT_EQ(open_node_folders(root_ + "/node", 65534, folders_), "");
  EXPECT_EQ(mode_of(root_ + "/node"), 02750U);
  EXPECT_EQ(mode_of(root_ + "/node/attempts"), 02750U);
  EXPECT_EQ(mode_of(root_ + "/node/output"), 02750U);
  EXPECT_EQ(mode_of(root_ + "/node/run"), 0700U);
  EXPECT_EQ(mode_of(root_ + "/node/tmp"), 0700U);
}

TEST_F(NodeFoldersTest, LinkInThePlaceOfOneIsRefused) {
  for (const char* name : {"attempts", "output", "run", "tmp"}) {
    ASSERT_EQ(open(root_ + "/node"), "");
    close_all();
    fs::create_directory(root_ + "/elsewhere");
    fs::remove(root_ + "/node/" + name);
    fs::create_directory_symlink(root_ + "/elsewhere", root_ + "/node/" + name);
    EXPECT_NE(open(root_ + "/node"), "") << name;
    EXPECT_TRUE(fs::is_empty(root_ + "/elsewhere")) << name;
    fs::remove(root_ + "/node/" + name);
  }
}

TEST_F(NodeFoldersTest, AsRootEveryFolderOfThePathIsInRootsHands) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: without it there are no rights to protect";
  fs::create_directories(root_ + "/theirs/inner");
  ASSERT_EQ(chown((root_ + "/theirs").c_str(), 65534, 65534), 0);
  EXPECT_EQ(open(root_ + "/theirs/inner/node"),
            root_ +
                "/theirs belongs to user 65534, who could replace it; "
                "choose a folder whose path belongs to root");
  EXPECT_FALSE(fs::exists(root_ + "/theirs/inner/node"));
  fs::create_directory(root_ + "/open");
  chmod((root_ + "/open").c_str(), 0777);
  EXPECT_NE(open(root_ + "/open/node"), "");
  chmod((root_ + "/open").c_str(), 01777);
  EXPECT_EQ(open(root_ + "/open/node"), "");
}

TEST_F(NodeFoldersTest, LinkOnTheWayIsFollowedWhereItIsRoots) {
  fs::create_directory(root_ + "/real");
  fs::create_directory_symlink("real", root_ + "/link");
  ASSERT_EQ(open(root_ + "/link/node"), "");
  EXPECT_TRUE(fs::is_directory(root_ + "/real/node"));
}

TEST_F(NodeFoldersTest, LinkOnTheWayIsNotFollowedWhereItIsAnothers) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a link away";
  fs::create_directory(root_ + "/real");
  fs::create_directory_symlink("real", root_ + "/link");
  ASSERT_EQ(lchown((root_ + "/link").c_str(), 65534, 65534), 0);
  EXPECT_NE(open(root_ + "/link/node"), "");
}

TEST_F(NodeFoldersTest, FolderOfAnotherUserIsNotTaken) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root to give a folder away";
  ASSERT_EQ(open(root_ + "/node"), "");
  ASSERT_EQ(chown((root_ + "/node/run").c_str(), 65534, 65534), 0);
  EXPECT_EQ(open(root_ + "/node"), root_ +
                                       "/node/run belongs to user 65534, not to user 0: move "
                                       "it away, or name another folder");
}

TEST_F(NodeFoldersTest, LinksAreNotFollowedBelowAHandle) {
  ASSERT_EQ(open(root_ + "/node"), "");
  fs::create_directory(root_ + "/victim");
  fs::create_directory_symlink(root_ + "/victim", root_ + "/node/output/0");
  EXPECT_EQ(make_folder_below(folders_.output, "0"), -1);
  EXPECT_EQ(open_below(folders_.output, "0/file", O_WRONLY | O_CREAT, 0600), -1);
  EXPECT_EQ(open_below(folders_.output, "../../victim", O_RDONLY), -1);
  EXPECT_TRUE(fs::is_empty(root_ + "/victim"));
}

TEST_F(NodeFoldersTest, PathsWithTwoDotsAndEndlessLinksAreRefused) {
  EXPECT_NE(open(root_ + "/../x/node"), "");
  fs::create_symlink("b", root_ + "/a");
  fs::create_symlink("a", root_ + "/b");
  EXPECT_NE(open(root_ + "/a/node"), "");
}

}  // namespace
}  // namespace gpu_platform::node
