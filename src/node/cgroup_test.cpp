#include "node/cgroup.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "os/small_file.h"

namespace gpu_platform::node {
namespace {

TEST(CgroupMount, IsFoundOnAUnifiedSystem) {
  EXPECT_EQ(
      find_cgroup2_mount("24 1 8:1 / / rw - ext4 /dev/vda rw\n"
                         "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"),
      "/sys/fs/cgroup");
}

TEST(CgroupMount, IsFoundOnAHybridSystem) {
  EXPECT_EQ(
      find_cgroup2_mount("31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
                         "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
                         "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"),
      "/sys/fs/cgroup/unified");
}

TEST(CgroupMount, EscapedBlanksAreRead) {
  EXPECT_EQ(find_cgroup2_mount("41 31 0:38 / /mnt/my\\040groups rw - cgroup2 none rw"),
            "/mnt/my groups");
}

TEST(CgroupMount, IsAbsentWhereThereIsOnlyVersionOne) {
  EXPECT_EQ(find_cgroup2_mount("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"),
            std::nullopt);
  EXPECT_EQ(find_cgroup2_mount(""), std::nullopt);
  EXPECT_EQ(find_cgroup2_mount("garbage\n\n - cgroup2\n"), std::nullopt);
}

TEST(CgroupPath, IsThatOfTheUnifiedTree) {
  EXPECT_EQ(find_cgroup2_path("9:name=systemd:/\n3:cpuset:/x\n0::/user.slice/a.scope\n"),
            "/user.slice/a.scope");
  EXPECT_EQ(find_cgroup2_path("3:cpuset:/x\n"), std::nullopt);
}

TEST(SystemdTop, IsWhereTheFirstProcessHasItsScope) {
  EXPECT_EQ(find_systemd_top("0::/init.scope\n"), "");
  EXPECT_EQ(find_systemd_top("1:name=systemd:/init.scope\n0::/machine/a/init.scope\n"),
            "/machine/a");
}

TEST(SystemdTop, IsAbsentWhereSystemdIsNotTheFirstProcess) {
  EXPECT_EQ(find_systemd_top("0::/\n"), std::nullopt);
  EXPECT_EQ(find_systemd_top("0::/user.slice/init.scope.d\n"), std::nullopt);
  EXPECT_EQ(find_systemd_top("1:name=systemd:/init.scope\n"), std::nullopt);
}

TEST(NumberAfter, ReadsTheLineOfItsKey) {
  constexpr std::string_view kText = "usage_usec 4711\nuser_usec 12\npopulated 0";
  EXPECT_EQ(os::number_after(kText, "usage_usec"), 4711);
  EXPECT_EQ(os::number_after(kText, "populated"), 0);
  EXPECT_EQ(os::number_after(kText, "usec"), -1);
  EXPECT_EQ(os::number_after("", "populated"), -1);
}

// Folders stand for cgroups here: what is in one keeps it from being removed in the same way.
TEST(CgroupBaseThatIsLeft, IsGoneOnlyWhenNothingIsInIt) {
  const std::string base = testing::TempDir() + "/left-base";
  std::filesystem::create_directories(base + "/node/supervisor");
  EXPECT_FALSE(leave_cgroup_base({base, {}, base + "/nowhere"}));
  std::filesystem::remove(base + "/node/supervisor");
  EXPECT_TRUE(leave_cgroup_base({base, {}, base + "/nowhere"}));
  EXPECT_FALSE(std::filesystem::exists(base));
  EXPECT_TRUE(leave_cgroup_base({base, {}, base + "/nowhere"}));
  EXPECT_TRUE(leave_cgroup_base({})) << "there was none";
}

}  // namespace
}  // namespace gpu_platform::node
