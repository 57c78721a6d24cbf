#include "tool/layout.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

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
