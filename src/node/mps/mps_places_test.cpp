#include "node/mps/mps_places.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "node/cgroup.h"
#include "node/folders/private_folders.h"
#include "node/mps/testing/mps_place.h"
#include "node/syscalls.h"
#include "os/small_file.h"
#include "os/testing/eventually.h"

namespace gpu_platform::node {
namespace {

namespace fs = std::filesystem;

class MpsPlacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root has MPS daemons";
    if (const std::string why = error_in_private_folders(); !why.empty()) GTEST_SKIP() << why;
    const auto mount = find_cgroup2_mount(os::read_small_file(AT_FDCWD, "/proc/self/mountinfo"));
    if (!mount) GTEST_SKIP() << "no cgroup v2 tree is mounted";
    base_ = *mount + "/gp-places-test-" + std::to_string(getpid());
    if (mkdir(base_.c_str(), 0755) != 0) GTEST_SKIP() << "no cgroup can be made here";
    base_fd_ = open(base_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    begin();
  }
  void TearDown() override {
    if (base_fd_ < 0) return;
    for (const char* const name : {"one", "two"}) {
      EXPECT_TRUE(os::eventually([&] { return places_->remove(name); }));
    }
    close(base_fd_);
    EXPECT_EQ(rmdir(base_.c_str()), 0) << "nothing is left in it";
  }
  // As another launcher.
  void begin() { places_.emplace(MpsPlaces::Options{place_.path() + "/run", "token", base_fd_}); }

  std::string folder(const std::string& name) const { return place_.path() + "/run/token/" + name; }
  static bool is_users(const std::string& path) {
    struct stat about{};
    return lstat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
           about.st_uid == MpsPlace::kUser && (about.st_mode & 07777) == 0700;
  }
  static bool is_mounted(const std::string& path) {
    const std::string mounts = os::read_small_file(AT_FDCWD, "/proc/self/mountinfo");
    return mounts.find(" " + path + " ") != std::string::npos;
  }

  MpsPlace place_;
  std::string base_;
  int base_fd_ = -1;
  std::optional<MpsPlaces> places_;
};

TEST_F(MpsPlacesTest, PlaceIsTheUsersAlone) {
  const MpsPlaces::Place made = places_->make("one", MpsPlace::user());
  ASSERT_EQ(made.why, "");
  EXPECT_TRUE(made.folder.is_open());
  EXPECT_TRUE(cgroup_is_empty(made.cgroup.get()));
  for (const char* const part : {"", "/pipe", "/log", "/shm"}) {
    EXPECT_TRUE(is_users(folder("one") + part)) << part;
  }
  EXPECT_TRUE(is_mounted(folder("one") + "/shm"));
  for (const char* const above : {"/run", "/run/token"}) {
    struct stat about{};
    ASSERT_EQ(stat((place_.path() + above).c_str(), &about), 0);
    EXPECT_EQ(about.st_uid, 0U);
    EXPECT_EQ(about.st_mode & 07777, 0755U);
  }
}

TEST_F(MpsPlacesTest, PlaceThatIsWholeIsKept) {
  ASSERT_EQ(places_->make("one", MpsPlace::user()).why, "");
  const std::string kept = folder("one") + "/shm/kept";
  std::ofstream(kept) << "x";
  begin();
  ASSERT_EQ(places_->make("one", MpsPlace::user()).why, "");
  EXPECT_TRUE(fs::exists(kept));
}

TEST_F(MpsPlacesTest, FolderThatIsAnotherThingIsMadeAnew) {
  ASSERT_EQ(places_->make("two", MpsPlace::user()).why, "");
  fs::create_directory(folder("one"));  // root's, without memory
  fs::create_directory(place_.path() + "/elsewhere");
  std::ofstream(place_.path() + "/elsewhere/file") << "x";
  fs::create_directory_symlink(place_.path() + "/elsewhere", folder("one") + "/shm");
  ASSERT_EQ(places_->make("one", MpsPlace::user()).why, "");
  EXPECT_TRUE(is_users(folder("one") + "/shm"));
  EXPECT_TRUE(is_mounted(folder("one") + "/shm"));
  EXPECT_TRUE(fs::exists(place_.path() + "/elsewhere/file")) << "no link is followed";
}

TEST_F(MpsPlacesTest, FolderAboveThatIsNotRootsIsRefused) {
  fs::create_directory(place_.path() + "/run");
  ASSERT_EQ(chown((place_.path() + "/run").c_str(), MpsPlace::kUser, MpsPlace::kUser), 0);
  EXPECT_NE(places_->make("one", MpsPlace::user()).why, "");
  fs::remove(place_.path() + "/run");
  fs::create_directory(place_.path() + "/elsewhere");
  fs::create_directory_symlink(place_.path() + "/elsewhere", place_.path() + "/run");
  EXPECT_NE(places_->make("one", MpsPlace::user()).why, "");
  EXPECT_TRUE(fs::is_empty(place_.path() + "/elsewhere"));
  fs::remove(place_.path() + "/run");
}

TEST_F(MpsPlacesTest, NothingIsLeftOfAPlaceThatIsRemoved) {
  ASSERT_EQ(places_->make("one", MpsPlace::user()).why, "");
  std::ofstream(folder("one") + "/pipe/file") << "x";
  ASSERT_TRUE(places_->remove("one"));
  EXPECT_FALSE(is_mounted(folder("one") + "/shm"));
  EXPECT_FALSE(fs::exists(place_.path() + "/run/token"));
  EXPECT_FALSE(fs::exists(base_ + "/mps-one"));
}

TEST_F(MpsPlacesTest, LauncherThatBeginsKeepsOnlyPlacesWithProcesses) {
  ASSERT_EQ(places_->make("one", MpsPlace::user()).why, "");
  const MpsPlaces::Place two = places_->make("two", MpsPlace::user());
  ASSERT_EQ(two.why, "");
  const pid_t process = fork_into_cgroup(two.cgroup.get());
  if (process == 0) {
    while (true) pause();
  }
  begin();
  EXPECT_EQ(places_->find_living(), std::set<std::string>{"two"});
  EXPECT_FALSE(fs::exists(folder("one")));
  EXPECT_TRUE(is_mounted(folder("two") + "/shm"));
  EXPECT_TRUE(places_->remove("two"));
  EXPECT_EQ(waitpid(process, nullptr, 0), process) << "it was killed";
  EXPECT_TRUE(places_->find_living().empty());
}

}  // namespace
}  // namespace gpu_platform::node
