#include <gtest/gtest.h>

#include "node/limits/cpu_binding.h"
#include "node/limits/limit_places.h"
#include "node/mount_table.h"

namespace gpu_platform::node {
namespace {

constexpr std::string_view kHybrid =
    "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime shared:9 - cgroup cgroup rw,cpuset\n"
    "35 31 0:32 /box /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
constexpr std::string_view kOwn =
    "9:name=systemd:/\n8:pids:/\n4:memory:/box/inner\n3:cpuset:/\n2:cpu,cpuacct:/a b\n0::/\n";

TEST(V1Group, IsOursInTheHierarchyOfItsController) {
  EXPECT_EQ(find_v1_group(kHybrid, kOwn, "cpu"), "/sys/fs/cgroup/cpu,cpuacct/a b");
  EXPECT_EQ(find_v1_group(kHybrid, kOwn, "cpuset"), "/sys/fs/cgroup/cpuset");
}

TEST(V1Group, IsFoundInTheShownPartOfATree) {
  EXPECT_EQ(find_v1_group(kHybrid, kOwn, "memory"), "/sys/fs/cgroup/memory/inner");
  EXPECT_EQ(find_v1_group(kHybrid, "4:memory:/other\n", "memory"), "/sys/fs/cgroup/memory");
}

TEST(V1Group, IsAbsentWhereItIsNotMountedOrNotNamed) {
  EXPECT_EQ(find_v1_group(kHybrid, kOwn, "pids"), std::nullopt);
  EXPECT_EQ(find_v1_group(kHybrid, kOwn, "mem"), std::nullopt);
  EXPECT_EQ(find_v1_group(kHybrid, "0::/\n", "memory"), std::nullopt);
  EXPECT_EQ(find_v1_group("", "", "memory"), std::nullopt);
  EXPECT_EQ(find_v1_group("x\n - \n", "4:memory\n4\n:\n", "memory"), std::nullopt);
}

TEST(MountTable, FieldsAreReadAndEscapesUndone) {
  std::string_view text =
      "garbage\n41 31 0:38 /r\\040x /mnt/a\\134b rw,relatime - ext4 /dev/vda rw";
  const auto mount = take_mount(text);
  ASSERT_TRUE(mount.has_value());
  EXPECT_EQ(mount->root, "/r x");
  EXPECT_EQ(mount->point, "/mnt/a\\b");
  EXPECT_EQ(mount->type, "ext4");
  EXPECT_EQ(mount->options, "rw");
  EXPECT_FALSE(take_mount(text).has_value());
}

TEST(NumberList, ReadsNumbersAndRanges) {
  EXPECT_EQ(parse_number_list("0"), Bits{1});
  EXPECT_EQ(parse_number_list("0-2,5"), Bits{0b100111});
  EXPECT_EQ(parse_number_list("63-64"), (Bits{1UL << 63, 1}));
  ASSERT_TRUE(parse_number_list("8191").has_value());
}

TEST(NumberList, IsWrittenAsItIsRead) {
  for (const char* text : {"0", "0-2,5", "63-64", "1,3,70-80,8191"}) {
    EXPECT_EQ(format_number_list(*parse_number_list(text)), text);
  }
  EXPECT_EQ(format_number_list({}), "");
}

TEST(NumberList, CommonNumbersAreInBoth) {
  EXPECT_EQ(format_number_list(
                common_numbers(*parse_number_list("0-9,70"), *parse_number_list("8-12,128"))),
            "8-9");
}

TEST(NumberList, RefusesWhatIsNone) {
  for (const char* wrong :
       {"", ",", "1,", "-1", "2-1", "1-", "1--2", "8192", "a", "1 ", "99999999999999999999"}) {
    EXPECT_EQ(parse_number_list(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace gpu_platform::node
