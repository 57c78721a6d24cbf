#include "os/named_file.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace gpu_platform::os {
namespace {

class NamedFile : public ::testing::Test {
 protected:
  NamedFile() {
    std::string path = ::testing::TempDir() + "named-XXXXXX";
    if (mkdtemp(path.data()) != nullptr) folder_ = path;
  }
  ~NamedFile() override { std::filesystem::remove_all(folder_); }
  std::string in(const std::string& name) const { return folder_ + "/" + name; }

  // Opens it and returns why it is not taken; empty: it is.
  static std::string error_of(const std::string& path, int flags = O_RDONLY) {
    const int fd = open_named_file(path.c_str(), flags, 0600);
    if (fd < 0) return errno == ELOOP ? "loop" : "error " + std::to_string(errno);
    const char* const why = error_in_place(fd);
    close(fd);
    return why == nullptr ? "" : why;
  }

  std::string folder_;
};

TEST_F(NamedFile, OfAUserIsOpenedThroughItsLinksToo) {
  std::ofstream(in("file")) << "x";
  std::filesystem::create_symlink("file", in("link"));
  EXPECT_EQ(error_of(in("link")), "");
  EXPECT_EQ(error_of(in("new"), O_WRONLY | O_CREAT | O_APPEND), "");
  EXPECT_TRUE(std::filesystem::exists(in("new")));
}

TEST_F(NamedFile, ThatTheKernelShowsIsRefusedHoweverItIsNamed) {
  std::filesystem::create_symlink("/proc/self/maps", in("link"));
  for (const std::string& path : {std::string("/proc/self/maps"), std::string("/proc/1/cmdline"),
                                  std::string("/sys/kernel/uevent_seqnum"), in("link")}) {
    EXPECT_NE(error_of(path), "") << path;
  }
}

TEST_F(NamedFile, IsNotReachedThroughADescriptor) {
  std::ofstream(in("file")) << "x";
  const int fd = open(in("file").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(error_of("/proc/self/fd/" + std::to_string(fd)), "loop");
  EXPECT_EQ(error_of("/dev/fd/" + std::to_string(fd)), "loop");
  EXPECT_EQ(error_of("/proc/self/root" + in("file")), "loop");
  close(fd);
}

TEST_F(NamedFile, OnAFileSystemWithoutBlocksIsTakenOnlyWhereItIsKnownToHoldFiles) {
  constexpr unsigned long kTmpfs = 0x01021994;
  constexpr unsigned long kFuse = 0x65735546;
  constexpr unsigned long kExt4 = 0xef53;
  constexpr unsigned long kUnknown = 0x12345678;
  EXPECT_TRUE(internal::holds_files(kExt4, 100));
  EXPECT_TRUE(internal::holds_files(kTmpfs, 0));
  EXPECT_TRUE(internal::holds_files(kFuse, 0));
  EXPECT_TRUE(internal::holds_files(kUnknown, 100));
  EXPECT_FALSE(internal::holds_files(kUnknown, 0));
  constexpr unsigned long kOfTheKernel[] = {
      0x9fa0,     /* proc */ 0x62656572,       /* sysfs */ 0x27e0eb,         /* cgroup */
      0x63677270, /* cgroup2 */ 0x64626720,    /* debugfs */ 0x74726163,     /* tracefs */
      0x73636673, /* securityfs */ 0xcafe4a11, /* bpf */ 0x62656570,         /* configfs */
      0x1cd1,     /* devpts */ 0x42494e4d,     /* binfmt_misc */ 0x19800202, /* mqueue */
      0x6e736673, /* nsfs */ 0x50495045,       /* pipefs */ 0x534f434b,      /* sockfs */
      0x7655821,  /* resctrl */ 0xf97cff8c,    /* selinuxfs */ 0x43415d53,   /* smackfs */
  };
  for (const unsigned long type : kOfTheKernel) EXPECT_FALSE(internal::holds_files(type, 0));
  EXPECT_FALSE(internal::holds_files(0xde5e81e4, 64)) << "efivarfs counts blocks";
}

// What the rule rests on, for all that this host has mounted.
TEST_F(NamedFile, EveryKernelFileSystemOfThisHostIsRefused) {
  std::ifstream mounts("/proc/self/mounts");
  std::string device;
  std::string point;
  std::string type;
  std::string rest;
  const std::string kinds =
      " proc sysfs cgroup cgroup2 debugfs tracefs securityfs bpf configfs devpts mqueue "
      "binfmt_misc pstore efivarfs fusectl hugetlbfs selinuxfs ";
  while (mounts >> device >> point >> type && std::getline(mounts, rest)) {
    const int fd = open(point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) continue;
    if (kinds.find(" " + type + " ") != std::string::npos) {
      EXPECT_NE(error_in_place(fd), nullptr) << type << " at " << point;
    }
    close(fd);
  }
}

}  // namespace
}  // namespace gpu_platform::os
