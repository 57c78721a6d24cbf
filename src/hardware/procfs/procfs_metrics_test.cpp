#include "hardware/procfs/procfs_metrics.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace gpu_platform::hardware {
namespace {

// A made-up kernel's files.
class KernelFiles : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/procfs_metrics_test.XXXXXX";
    root_ = mkdtemp(path);
    write("proc/stat", "cpu  100 0 50 800 50 0 0 0 40 0\ncpu0 1 2 3\n");
    write("proc/loadavg", "12.05 0.10 0.00 3/1234 99\n");
    write("proc/meminfo",
          "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n"
          "SwapTotal:  300 kB\nSwapFree:   100 kB\nHugePages_Total:       0\n");
    write("proc/diskstats",
          "   8       0 sda 10 0 100 5 20 0 200 5 0 5 10 0 0 0 0\n"
          "   8       1 sda1 10 0 99 5 20 0 198 5 0 5 10\n"
          " 259       0 nvme0n1 1 0 7 0 1 0 9 0 0 0 0\n"
          "   7       0 loop0 1 0 1000 0 0 0 0 0 0 0 0\n"
          " 253       0 dm-0 10 0 100 5 20 0 200 5 0 5 10\n");
    for (const char* const disk : {"sda", "nvme0n1", "loop0", "dm-0"}) {
      write(std::string("sys/block/") + disk + "/size", "1\n");
    }
    write("proc/net/dev",
          "Inter-|   Receive                 |  Transmit\n"
          " face |bytes    packets errs drop fifo frame compressed multicast|bytes packets\n"
          "    lo: 999 1 0 0 0 0 0 0 999 1 0 0 0 0 0 0\n"
          "  eth0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n"
          "  ib0:300 1 0 0 0 0 0 0 40 1 0 0 0 0 0 0\n"
          "  br0: 1000 1 0 0 0 0 0 0 2000 1 0 0 0 0 0 0\n");
    write("sys/class/net/eth0/device/vendor", "x\n");
    write("sys/class/net/ib0/device/vendor", "x\n");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path whole = root_ + "/" + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }

  ProcfsMetrics metrics(const std::string& folder = "") {
    return ProcfsMetrics(folder, {root_ + "/proc", root_ + "/sys"});
  }

  std::string root_;
};

TEST_F(KernelFiles, AreRead) {
  const model::HostMetrics host = metrics().read();

  EXPECT_EQ(host.load_thousandths, 12'050u);
  EXPECT_EQ(host.memory_total, base::Bytes(1000 * 1024));
  EXPECT_EQ(host.memory_available, base::Bytes(400 * 1024));
  EXPECT_EQ(host.swap_used, base::Bytes(200 * 1024));
  EXPECT_EQ(host.disk_total, std::nullopt) << "no folder was named";
}

TEST_F(KernelFiles, TellTheUseOfTheCpusSinceTheLastReading) {
  ProcfsMetrics reader = metrics();

  EXPECT_EQ(reader.read().cpu_percent, std::nullopt) << "there is none before";
  write("proc/stat", "cpu  130 0 60 850 60 0 0 0 70 0\n");
  EXPECT_EQ(reader.read().cpu_percent, 40u) << "40 of 100; time of guests is in user's";
  EXPECT_EQ(reader.read().cpu_percent, std::nullopt) << "no time has passed";
  write("proc/stat", "cpu  230 0 60 849 60 0 0 0\n");
  EXPECT_EQ(reader.read().cpu_percent, std::nullopt) << "idle time went back";
  write("proc/stat", "cpu  330 0 60 849\n");
  EXPECT_EQ(reader.read().cpu_percent, std::nullopt) << "iowait is gone";
}

TEST_F(KernelFiles, CountEachDiskOnce) {
  const model::HostMetrics host = metrics().read();

  EXPECT_EQ(host.disk_read, base::Bytes(107 * 512));
  EXPECT_EQ(host.disk_written, base::Bytes(209 * 512));
}

TEST_F(KernelFiles, CountTheDevicesOfHardwareWhereThereAreSome) {
  EXPECT_EQ(metrics().read().network_received, base::Bytes(1300));
  EXPECT_EQ(metrics().read().network_sent, base::Bytes(2040));

  std::filesystem::remove_all(root_ + "/sys/class");
  EXPECT_EQ(metrics().read().network_received, base::Bytes(2300)) << "in a container";
}

TEST_F(KernelFiles, ThatAreMissingCostTheirValueAlone) {
  std::filesystem::remove_all(root_ + "/proc");
  EXPECT_EQ(metrics().read(), model::HostMetrics{});

  write("proc/loadavg", "0.5 0.10 0.00 3/1234 99\n");
  model::HostMetrics load;
  load.load_thousandths = 500;
  EXPECT_EQ(metrics().read(), load);
}

TEST_F(KernelFiles, ThatAreDamagedAreNoReadings) {
  const std::string texts[] = {"",
                               "\n\n\n",
                               "cpu",
                               "cpu -1 0 0 0 0 0",
                               "cpu 99999999999999999999999 0 0 0 0",
                               "1e9 x y",
                               "-1.00 0 0",
                               "MemTotal: -5 kB\nMemAvailable: many kB\nSwapTotal: 1\n",
                               "MemTotal: 36028797018963968000 kB\n",
                               " 8 0 sda a b c d e f g h",
                               " 8 0 sda 1",
                               ": 1 2 3 4 5 6 7 8 9",
                               "eth0: x 2 3 4 5 6 7 8 9",
                               "eth0:",
                               std::string(100'000, '\xff'),
                               std::string("a\0b: 1", 6)};
  for (const std::string& text : texts) {
    for (const char* const file : {"stat", "loadavg", "meminfo", "diskstats", "net/dev"}) {
      write(std::string("proc/") + file, text);
    }
    ProcfsMetrics reader = metrics();
    (void)reader.read();
    EXPECT_EQ(reader.read(), model::HostMetrics{}) << text.substr(0, 60);
  }
}

TEST_F(KernelFiles, WithMoreAvailableThanThereIsSayNothingOfIt) {
  write("proc/meminfo", "MemTotal: 10 kB\nMemAvailable: 11 kB\nSwapTotal: 1 kB\nSwapFree: 2 kB\n");

  const model::HostMetrics host = metrics().read();

  EXPECT_EQ(host.memory_total, base::Bytes(10 * 1024));
  EXPECT_EQ(host.memory_available, std::nullopt);
  EXPECT_EQ(host.swap_used, std::nullopt);
}

TEST_F(KernelFiles, DoNotHideTheSizeOfTheFileSystem) {
  const model::HostMetrics host = metrics(root_).read();

  ASSERT_TRUE(host.disk_total && host.disk_free);
  EXPECT_GT(host.disk_total->value(), 0);
  EXPECT_LE(*host.disk_free, *host.disk_total);
  EXPECT_EQ(metrics(root_ + "/nowhere").read().disk_total, std::nullopt);
}

TEST(RunningKernel, TellsItsMemoryAndLoad) {
  const model::HostMetrics host = ProcfsMetrics("/").read();

  EXPECT_TRUE(host.load_thousandths);
  ASSERT_TRUE(host.memory_total && host.memory_available);
  EXPECT_LE(*host.memory_available, *host.memory_total);
}

}  // namespace
}  // namespace gpu_platform::hardware
