#include "node/driver/device_holders.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace gpu_platform::node {
namespace {

namespace fs = std::filesystem;
using Holders = std::vector<DeviceHolder>;

// A folder that looks like /proc.
class DeviceHolders : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/device_holders_XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    proc_ = folder;
  }
  void TearDown() override { fs::remove_all(proc_); }

  void add(const std::string& pid, const std::string& name, const std::vector<std::string>& files,
           const std::string& program = "/bin/true") {
    const fs::path process = fs::path(proc_) / pid;
    fs::create_directories(process / "fd");
    std::ofstream(process / "comm") << name << "\n";
    fs::create_symlink(program, process / "exe");
    for (std::size_t i = 0; i < files.size(); ++i) {
      fs::create_symlink(files[i], process / "fd" / std::to_string(i));
    }
  }

  std::string proc_;
};

TEST_F(DeviceHolders, AreWhoHasOneOfTheDevicesOpen) {
  add("20", "python", {"/dev/null", "/dev/nvidiactl", "/dev/nvidia3", "/dev/nvidia3"});
  add("7", "cuda-app", {"/dev/nvidia0", "/dev/nvidia3"});
  add("30", "other", {"/dev/nvidia1", "/dev/nvidia33", "/dev/nvidia-uvm", "/tmp/nvidia3"});
  add("self", "none", {"/dev/nvidia3"});
  EXPECT_EQ(device_holders({3}, proc_), (Holders{{7, 3, "cuda-app"}, {20, 3, "python"}}));
  EXPECT_EQ(device_holders({0, 3}, proc_),
            (Holders{{7, 0, "cuda-app"}, {7, 3, "cuda-app"}, {20, 3, "python"}}));
  EXPECT_EQ(device_holders({5}, proc_), Holders{});
}

TEST_F(DeviceHolders, ThisProcessIsNone) {
  add(std::to_string(getpid()), "driver", {"/dev/nvidia0"});
  EXPECT_EQ(device_holders({0}, proc_), Holders{});
}

// Its program is compared, not its name; a file that is not there belongs to no user.
TEST_F(DeviceHolders, AProgramThatOnlyCallsItselfThePersistenceServiceIsOne) {
  add("8", "nvidia-persiste", {"/dev/nvidia0"});
  add("9", "x", {"/dev/nvidia0"}, "/tmp/none/nvidia-persistenced");
  EXPECT_EQ(device_holders({0}, proc_), (Holders{{8, 0, "nvidia-persiste"}, {9, 0, "x"}}));
}

TEST_F(DeviceHolders, OfNoFolderAreNone) {
  EXPECT_EQ(device_holders({0}, proc_ + "/none"), Holders{});
}

}  // namespace
}  // namespace gpu_platform::node
