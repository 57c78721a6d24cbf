#include "client/places.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpu_platform::client {
namespace {

// The folders are real and lie in one that the test made: /tmp/gpu-platform-UID may be where this
// user's own daemon keeps its journal. The user is one that owns them or does not.
class PlacesTest : public ::testing::Test {
 protected:
  PlacesTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "gp-places-XXXXXX").string();
    made_ = ::mkdtemp(pattern.data());
    folder_ = made_ + "/home";
    owner_.temporary = other_.temporary = made_ + "/tmp";
    std::filesystem::create_directory(folder_);
    std::filesystem::create_directory(owner_.temporary);
    // Root's own places are fixed, so where the tests run as root the folders get another owner.
    owner_.uid = ::geteuid() != 0 ? ::geteuid() : 54321;
    other_.uid = owner_.uid + 1;
    own(folder_);
  }
  ~PlacesTest() override { std::filesystem::remove_all(made_); }
  void own(const std::string& path) const {
    if (::geteuid() != 0) return;
    EXPECT_EQ(::chown(path.c_str(), owner_.uid, owner_.uid), 0);
  }
  std::string fallback() const { return fallback_folder(owner_); }

  std::string made_;
  std::string folder_;  // the user's home and runtime folder
  ProcessEnvironment owner_;
  ProcessEnvironment other_;
};

TEST_F(PlacesTest, AServerAnswersInTheUsersRuntimeFolder) {
  owner_.environment = {"XDG_RUNTIME_DIR=" + folder_};
  EXPECT_EQ(socket_to_serve(owner_), folder_ + "/gpu-platform.sock");
  EXPECT_EQ(sockets_to_try(owner_).front(), folder_ + "/gpu-platform.sock");
}

// As su leaves it: the variable names the folder of another user.
TEST_F(PlacesTest, NobodyUsesTheRuntimeFolderOfAnother) {
  other_.environment = {"XDG_RUNTIME_DIR=" + folder_};
  EXPECT_NE(socket_to_serve(other_), folder_ + "/gpu-platform.sock");
  for (const std::string& socket : sockets_to_try(other_)) {
    EXPECT_FALSE(socket.starts_with(folder_)) << socket;
  }
}

TEST_F(PlacesTest, TheFallbackLiesInTheFolderForTemporaryFiles) {
  ProcessEnvironment usual;
  usual.uid = 54321;
  EXPECT_EQ(fallback_folder(usual), "/tmp/gpu-platform-54321");
  EXPECT_EQ(fallback(), fmt::format("{}/tmp/gpu-platform-{}", made_, owner_.uid));
}

TEST_F(PlacesTest, WithoutAnyFolderServerAndClientsMeetInTheFallback) {
  EXPECT_EQ(socket_to_serve(owner_), fallback() + "/gpu-platform.sock");
  EXPECT_EQ(default_data_dir(owner_), fallback() + "/data");
  // Root makes it for another user, who owns it only then.
  const auto made = make_fallback_folder(owner_, socket_to_serve(owner_));
  EXPECT_EQ(made.has_value(), ::geteuid() != 0);
  own(fallback());
  ASSERT_TRUE(make_fallback_folder(owner_, socket_to_serve(owner_)));
  const auto sockets = sockets_to_try(owner_);
  EXPECT_NE(std::ranges::find(sockets, socket_to_serve(owner_)), sockets.end());
  struct stat about{};
  ASSERT_EQ(::lstat(fallback().c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777, 0700U);
}

TEST_F(PlacesTest, AFallbackThatAnotherHasMadeIsNotUsed) {
  ASSERT_EQ(::mkdir(fallback_folder(other_).c_str(), 0755), 0);
  own(fallback_folder(other_));
  const auto refused = make_fallback_folder(other_, socket_to_serve(other_));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, base::ErrorCode::kPermissionDenied);
  const auto sockets = sockets_to_try(other_);
  EXPECT_EQ(std::ranges::find(sockets, socket_to_serve(other_)), sockets.end());
}

TEST_F(PlacesTest, DataLiesInTheHomeFolderOnlyWhereItIsTheUsers) {
  owner_.environment = other_.environment = {"HOME=" + folder_};
  EXPECT_EQ(default_data_dir(owner_), folder_ + "/.local/state/gpu-platform");
  EXPECT_EQ(default_data_dir(other_), fallback_folder(other_) + "/data");
  owner_.environment.push_back("XDG_STATE_HOME=" + folder_ + "/state");
  EXPECT_EQ(default_data_dir(owner_), folder_ + "/state/gpu-platform");
}

TEST_F(PlacesTest, AFolderThatAllMayWriteToIsNobodysOwn) {
  ASSERT_EQ(::chmod(folder_.c_str(), 0777), 0);
  owner_.environment = {"XDG_RUNTIME_DIR=" + folder_, "HOME=" + folder_};
  EXPECT_EQ(socket_to_serve(owner_), fallback() + "/gpu-platform.sock");
  EXPECT_EQ(default_data_dir(owner_), fallback() + "/data");
}

}  // namespace
}  // namespace gpu_platform::client
