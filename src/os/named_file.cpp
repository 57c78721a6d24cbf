#include "os/named_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

namespace gpu_platform::os {

namespace {

// They count no blocks, or may be mounted so that they count none, and hold files nevertheless.
constexpr std::uint32_t kOfFiles[] = {
    0x01021994,  // tmpfs without a limit
    0x858458f6,  // ramfs
    0x65735546,  // fuse, virtiofs
    0x794c7630,  // overlayfs
    0x6969,      // nfs
    0xff534d42,  // cifs
    0xfe534d42,  // smb2
    0x01021997,  // 9p
    0x0bd00bd0,  // lustre
    0x47504653,  // gpfs
    0x19830326,  // fhgfs (BeeGFS)
    0x00c36400,  // ceph
    0x5346414f,  // afs
    0x786f4256,  // vboxsf
    0x9123683e,  // btrfs
};

// They may count blocks.
constexpr std::uint32_t kOfTheKernel[] = {
    0xde5e81e4,  // efivarfs
    0x958458f6,  // hugetlbfs
    0x6165676c,  // pstore
    0x9fa0,      // proc
    0x62656572,  // sysfs
    0x27e0eb,    // cgroup
    0x63677270,  // cgroup2
};

bool contains(const std::uint32_t* begin, const std::uint32_t* end, unsigned long type) {
  return std::find(begin, end, static_cast<std::uint32_t>(type)) != end;
}

}  // namespace

int open_named_file(const char* path, int flags, unsigned mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_LARGEFILE);
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
}

int change_to_named_folder(const char* path) {
  open_how how{};
  how.flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
  how.resolve = RESOLVE_NO_MAGICLINKS;
  const int fd = static_cast<int>(syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how));
  if (fd < 0) return -1;
  const int changed = fchdir(fd);
  const int error = errno;
  close(fd);
  errno = error;
  return changed;
}

const char* error_in_place(int fd) {
  struct statfs about{};
  if (fstatfs(fd, &about) != 0) return "the type of its file system cannot be read";
  const auto type = static_cast<unsigned long>(about.f_type);
  if (internal::holds_files(type, static_cast<unsigned long>(about.f_blocks))) return nullptr;
  return "it is not a user's file but a view of the kernel (/proc, /sys and the like)";
}

bool internal::holds_files(unsigned long type, unsigned long blocks) {
  if (contains(std::begin(kOfTheKernel), std::end(kOfTheKernel), type)) return false;
  return blocks != 0 || contains(std::begin(kOfFiles), std::end(kOfFiles), type);
}

}  // namespace gpu_platform::os
