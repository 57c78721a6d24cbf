#include "tool/layout.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tool/commands.h"
#include "tool/library_fixture.h"

namespace gpu_emulator {
namespace {

namespace fs = std::filesystem;
using gpu_platform::base::ErrorCode;

class Layout : public Library {
 protected:
  void lay_out(const char* board) {
    open_board(board);
    const auto said = layout(root_, libraries(), "n1", dir());
    ASSERT_TRUE(said) << said.error().message;
  }
  std::string dir() const { return root_ + "/laid"; }
  static std::string libraries() { return fs::path(EMULATED_NVML).parent_path(); }
  std::string text(const std::string& path) const {
    std::ifstream in(dir() + "/" + path);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST_F(Layout, ShowsGpusAndSwitchesAsPciDevices) {
  lay_out("dgx-h100");
  const std::string gpu = "sys/bus/pci/devices/0000:9d:00.0/";

  EXPECT_EQ(text(gpu + "vendor"), "0x10de\n");
  EXPECT_EQ(text(gpu + "device"), "0x2330\n");
  EXPECT_EQ(text(gpu + "class"), "0x030200\n");
  EXPECT_EQ(text(gpu + "numa_node"), "1\n");
  EXPECT_EQ(text(gpu + "local_cpulist"), "56-111,168-223\n");
  EXPECT_EQ(text(gpu + "max_link_speed"), "32.0 GT/s PCIe\n");
  EXPECT_EQ(fs::canonical(dir() + "/" + gpu + "driver").filename(), "nvidia");
  EXPECT_EQ(text("sys/bus/pci/drivers/nvidia/0000:9d:00.0/vendor"), "0x10de\n");
  EXPECT_EQ(text("sys/bus/pci/devices/0000:08:00.0/class"), "0x068000\n") << "a switch";
  const fs::directory_iterator devices(dir() + "/sys/bus/pci/devices");
  EXPECT_EQ(std::distance(fs::begin(devices), fs::end(devices)), 12) << "8 GPUs, 4 switches";
}

// The first line of a range: its addresses differ by its size less one.
std::pair<std::uint64_t, std::uint64_t> range_of(const std::string& line) {
  unsigned long long start = 0;
  unsigned long long end = 0;
  EXPECT_EQ(std::sscanf(line.c_str(), "0x%llx 0x%llx", &start, &end), 2) << line;
  return {start, end};
}

// 128 GiB for the memory of an H100, as its BAR1 says, and nothing overlaps.
TEST_F(Layout, ShowsAddressesAndConfigurationOfEachPciDevice) {
  lay_out("dgx-h100");
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  for (const auto& device : fs::directory_iterator(dir() + "/sys/bus/pci/devices")) {
    const std::string path =
        "sys/bus/pci/devices/" + std::string(device.path().filename().string()) + "/";
    EXPECT_FALSE(text(path + "numa_node").empty()) << path;
    std::istringstream lines(text(path + "resource"));
    std::vector<std::string> found;
    for (std::string line; std::getline(lines, line);) found.push_back(line);
    ASSERT_EQ(found.size(), 13U) << path;
    for (const std::string& line : found) {
      if (range_of(line).second != 0) ranges.push_back(range_of(line));
    }
    const std::string config = text(path + "config");
    ASSERT_EQ(config.size(), 4096U);
    EXPECT_EQ(config.substr(0, 2), "\xde\x10") << path;
    if (text(path + "class") != "0x030200\n") continue;
    EXPECT_EQ(config.substr(2, 2), "\x30\x23");
    EXPECT_EQ(config.substr(9, 3), std::string("\0\x02\x03", 3)) << "the class";
    const auto [start, end] = range_of(found[2]);
    EXPECT_EQ(end - start + 1, std::uint64_t{128} << 30);
    EXPECT_EQ(config.substr(0x18, 1), std::string("\x0c", 1)) << "64 bits";
  }
  EXPECT_EQ(ranges.size(), 8U * 3 + 4);
  std::ranges::sort(ranges);
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    EXPECT_LT(ranges[i - 1].second, ranges[i].first);
  }
}

TEST_F(Layout, ShowsTheDriver) {
  lay_out("dgx-h100");
  const StateFile file = state();

  EXPECT_EQ(text("sys/module/nvidia/version"), "550.90.07\n");
  EXPECT_NE(text("proc/driver/nvidia/version").find("550.90.07"), std::string::npos);
  EXPECT_NE(text("proc/modules").find("nvidia "), std::string::npos);
  const std::string information = text("proc/driver/nvidia/gpus/0000:9d:00.0/information");
  EXPECT_NE(information.find(file.state().gpus[4].uuid), std::string::npos) << information;
  EXPECT_NE(information.find("Device Minor: \t 4\n"), std::string::npos) << information;
  EXPECT_FALSE(text("proc/driver/nvidia/capabilities/mig/config").empty());
}

TEST_F(Layout, HasTheCapabilitiesOfTheInstances) {
  lay_out("dgx-a100");
  ASSERT_TRUE(state().change_instances(0, [](GpuState& gpu) {
    std::uint32_t id = 0;
    gpu.mig_mode = static_cast<std::uint32_t>(Support::kOn);
    return create_gpu_instance(gpu, *profile_called(gpu, "7g.80gb"), kNoId, &id);
  }));
  fs::remove_all(dir());
  const auto again = layout(root_, libraries(), "n1", dir());
  ASSERT_TRUE(again) << again.error().message;

  EXPECT_NE(text("proc/driver/nvidia-caps/mig-minors").find("gpu1/gi0/ci0/access 139\n"),
            std::string::npos);
  EXPECT_EQ(text("proc/driver/nvidia/capabilities/gpu0/mig/gi0/access"),
            "DeviceFileMinor: 3\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
  EXPECT_TRUE(fs::exists(dir() + "/driver/dev/nvidia-caps/nvidia-cap3"));
  EXPECT_FALSE(fs::exists(dir() + "/driver/dev/nvidia-caps/nvidia-cap4"));
}

TEST_F(Layout, HasNoCapabilitiesWithoutMig) {
  lay_out("t4x4");
  EXPECT_FALSE(fs::exists(dir() + "/proc/driver/nvidia/capabilities"));
}

TEST_F(Layout, HasADriversRootWithTheLibrary) {
  lay_out("t4x4");

  void* library =
      dlopen((dir() + "/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  EXPECT_NE(dlsym(library, "nvmlInit_v2"), nullptr);
  dlclose(library);
  EXPECT_EQ(fs::canonical(dir() + "/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").filename(),
            "libnvidia-ml.so." + std::string(state().state().driver_version));
  EXPECT_TRUE(fs::exists(dir() + "/driver/dev/nvidia3"));
  EXPECT_FALSE(fs::exists(dir() + "/driver/dev/nvidia4"));
}

TEST_F(Layout, OverwritesNothing) {
  lay_out("t4x4");

  const auto again = layout(root_, libraries(), "n1", dir());

  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(Layout, StandsInForTheDriverInAMountNamespace) {
  if (std::system("unshare -m true 2>/dev/null") != 0) {
    GTEST_SKIP() << "this user may not make a mount namespace";
  }
  lay_out("dgx-h100");
  const std::string script = fmt::format(
      "cd {} && for i in sys/bus/pci proc/driver proc/modules; do [ ! -e /$i ] || mount --bind $i "
      "/$i "
      "|| exit 9; done; cmp /sys/bus/pci/devices/0000:9d:00.0/numa_node "
      "sys/bus/pci/devices/0000:9d:00.0/numa_node && "
      "[ -e /proc/driver/nvidia/gpus/0000:9d:00.0/information ]",
      dir());

  const int status = std::system(fmt::format("unshare -m sh -c '{}'", script).c_str());

  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gpu_emulator
