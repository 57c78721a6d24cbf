#include "doctor/facts/host_facts.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <fstream>
#include <sstream>

namespace gpu_platform::doctor {
namespace {

namespace fs = std::filesystem;

class HostFacts : public ::testing::Test {
 protected:
  HostFacts() {
    std::string name = (fs::temp_directory_path() / "gp-doctor-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~HostFacts() override { fs::remove_all(folder_); }

  fs::path folder_;
};

constexpr std::string_view kMounts =
    "overlay / overlay rw 0 0\n"
    "/dev/sda1 /var ext4 rw 0 0\n"
    "nas:/x /var/lib nfs4 rw 0 0\n"
    "tmpfs /tmp tmpfs rw 0 0\n"
    "/dev/sdb1 /tmp xfs rw 0 0\n";

TEST_F(HostFacts, TheLongestMountPointAboveAPathHoldsIt) {
  EXPECT_EQ(file_system_of("/var/lib/gpu-platform", kMounts), "nfs4");
  EXPECT_EQ(file_system_of("/var/lib", kMounts), "nfs4");
  EXPECT_EQ(file_system_of("/var/library", kMounts), "ext4") << "a name that only begins so";
  EXPECT_EQ(file_system_of("/srv", kMounts), "overlay");
}

TEST_F(HostFacts, TheLaterMountOnAPointCounts) {
  EXPECT_EQ(file_system_of("/tmp/a", kMounts), "xfs");
}

TEST_F(HostFacts, APathWithoutAMountIsOnAnUnknownFileSystem) {
  EXPECT_EQ(file_system_of("/srv", ""), "unknown");
  EXPECT_EQ(file_system_of("/srv", "tmpfs /tmp tmpfs rw 0 0\n"), "unknown");
}

TEST_F(HostFacts, ADataDirectoryThatIsNotThereYetIsJudgedByTheFolderAboveIt) {
  const DiskFacts disk = look_at_disk((folder_ / "not/there").string());
  EXPECT_EQ(disk.path, folder_.string());
  EXPECT_TRUE(disk.is_writable);
  // In a plain chroot the table of mounts has no row for it.
  std::ostringstream mounts;
  mounts << std::ifstream("/proc/self/mounts").rdbuf();
  EXPECT_EQ(disk.file_system, file_system_of(folder_.string(), mounts.str()));
}

TEST_F(HostFacts, TheKernelHasALimitOfOpenFiles) {
  EXPECT_GT(look_at_kernel().open_files, 0U);
}

TEST_F(HostFacts, AUnitIsFoundInAnyOfTheFolders) {
  EXPECT_FALSE(has_unit_in({folder_ / "a", folder_ / "b"}));
  fs::create_directories(folder_ / "b");
  std::ofstream(folder_ / "b/gpu-platform.service") << "[Unit]\n";
  EXPECT_TRUE(has_unit_in({folder_ / "a", folder_ / "b"}));
}

}  // namespace
}  // namespace gpu_platform::doctor
