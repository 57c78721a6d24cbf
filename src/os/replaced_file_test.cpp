#include "os/replaced_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "os/small_file.h"

namespace gpu_platform::os {
namespace {

class ReplacedFile : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/replaced-file-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/file"; }
  std::string content() const { return read_small_file(AT_FDCWD, path().c_str()); }

  std::string folder_;
};

TEST_F(ReplacedFile, IsMadeWithItsModeAndThenReplaced) {
  ASSERT_TRUE(replace_file(path(), "one", 0600));
  EXPECT_EQ(content(), "one");
  struct stat about{};
  ASSERT_EQ(::stat(path().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0600u);

  ASSERT_TRUE(replace_file(path(), std::string(100'000, 'x'), 0600));
  EXPECT_EQ(content(), std::string(100'000, 'x'));
  EXPECT_FALSE(std::filesystem::exists(path() + ".new"));
}

TEST_F(ReplacedFile, TakesNoNoticeOfWhatAKilledWriterLeft) {
  ASSERT_EQ(::symlink("/etc/passwd", (path() + ".new").c_str()), 0);
  ASSERT_TRUE(replace_file(path(), "mine", 0644));
  EXPECT_EQ(content(), "mine");
}

TEST_F(ReplacedFile, IsLeftAloneWhereTheNewOneCannotBeWritten) {
  ASSERT_TRUE(replace_file(path(), "old", 0644));
  std::filesystem::create_directories(path() + ".new/in-the-way");
  const base::Status status = replace_file(path(), "new", 0644);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("write " + path()), std::string::npos);
  EXPECT_EQ(content(), "old");
}

TEST_F(ReplacedFile, NamesTheFileWhoseFolderIsMissing) {
  const base::Status status = replace_file(folder_ + "/none/file", "text", 0644);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("/none/file"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::os
