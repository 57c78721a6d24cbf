#include "hardware/procfs/procfs_host.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpu_platform::hardware {
namespace {

// A made-up kernel's files.
class FakeKernel : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/procfs_host_test.XXXXXX";
    root_ = mkdtemp(path);
    write("proc/sys/kernel/random/boot_id", "5d2f9c1e-0000-4000-8000-000000000001\n");
    write("proc/meminfo", "MemFree:   1 kB\nMemTotal:       65794000 kB\n");
    write("sys/devices/system/cpu/online", "0-3\n");
    write("sys/devices/system/node/online", "0-1\n");
    write("sys/devices/system/node/node0/cpulist", "0-1\n");
    write("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1024 kB\n");
    write("sys/devices/system/node/node1/cpulist", "2-3\n");
    write("sys/bus/pci/devices/0000:9d:00.0/numa_node", "1\n");
    write("sys/bus/pci/devices/0000:1b:00.0/numa_node", "-1\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }

  std::unique_ptr<HostTopology> host() {
    return open_procfs_host({root_ + "/proc", root_ + "/sys"});
  }

  std::string root_;
};

TEST_F(FakeKernel, IsRead) {
  const auto description = host()->describe();

  ASSERT_TRUE(description) << description.error().message;
  EXPECT_EQ(description->boot_id, "5d2f9c1e-0000-4000-8000-000000000001");
  EXPECT_EQ(description->memory, base::Bytes(65794000ll * 1024));
  EXPECT_FALSE(description->name.empty());
  EXPECT_FALSE(description->cpus.empty());
  ASSERT_EQ(description->numa_nodes.size(), 2u);
  EXPECT_EQ(description->numa_nodes[0], (NumaNode{0, {0, 1}, base::Bytes(1024 * 1024)}));
  EXPECT_EQ(description->numa_nodes[1], (NumaNode{1, {2, 3}, std::nullopt}));
}

TEST_F(FakeKernel, WithoutNumaIsReadToo) {
  std::filesystem::remove_all(root_ + "/sys/devices/system/node");

  const auto description = host()->describe();

  ASSERT_TRUE(description);
  EXPECT_TRUE(description->numa_nodes.empty());
}

TEST_F(FakeKernel, SaysWhichFileIsDamaged) {
  write("sys/devices/system/cpu/online", "many\n");
  EXPECT_NE(host()->describe().error().message.find("cpu/online"), std::string::npos);

  write("sys/devices/system/cpu/online", "0\n");
  write("proc/meminfo", "MemTotal: -5 kB\n");
  EXPECT_NE(host()->describe().error().message.find("MemTotal"), std::string::npos);

  std::filesystem::remove(root_ + "/proc/sys/kernel/random/boot_id");
  EXPECT_NE(host()->describe().error().message.find("boot_id"), std::string::npos);
}

TEST_F(FakeKernel, KnowsTheNumaNodeOfADeviceInTheSpellingOfTheDriver) {
  EXPECT_EQ(host()->numa_node_of("00000000:9D:00.0"), 1u);
  EXPECT_EQ(host()->numa_node_of("0000:9d:00.0"), 1u);
}

TEST_F(FakeKernel, DoesNotTakeMinusOneForANumaNode) {
  EXPECT_EQ(host()->numa_node_of("0000:1b:00.0"), std::nullopt);
  EXPECT_EQ(host()->numa_node_of("0000:ff:00.0"), std::nullopt);
  EXPECT_EQ(host()->numa_node_of("../0000:9d:00.0"), std::nullopt);
}

TEST(RunningKernel, IsRead) {
  const auto description = open_procfs_host()->describe();

  ASSERT_TRUE(description) << description.error().message;
  EXPECT_EQ(description->boot_id.size(), 36u);
  EXPECT_GT(description->memory.value(), 0);
  EXPECT_LE(description->cpus.size(), static_cast<std::size_t>(sysconf(_SC_NPROCESSORS_CONF)));
}

}  // namespace
}  // namespace gpu_platform::hardware
