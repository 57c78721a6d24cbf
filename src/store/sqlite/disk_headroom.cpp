#include "store/sqlite/disk_headroom.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "store/sqlite/data_dir.h"

namespace gpu_platform::store {

namespace {

// Allocates without writing where the file system can, else by writing (glibc's fallback).
bool allocate(int fd, base::Bytes size) {
  int result = EINTR;
  while (result == EINTR) result = ::posix_fallocate(fd, 0, size.value());
  return result == 0;
}

bool is_whole(const std::filesystem::path& file, base::Bytes size) {
  struct stat status{};
  return ::lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_size == size.value();
}

}  // namespace

DiskHeadroom::DiskHeadroom(std::filesystem::path ballast_file, DiskHeadroomOptions options)
    : file_(std::move(ballast_file)), directory_(file_.parent_path()), options_(options) {
  has_ballast_ = options_.ballast > base::Bytes{} && is_whole(file_, options_.ballast);
  // A ballast of another size, or one cut short by a full disk, is made anew when there is room.
  if (!has_ballast_) ::unlink(file_.c_str());
}

base::Bytes DiskHeadroom::available() const {
  struct statvfs status{};
  if (::statvfs(directory_.c_str(), &status) != 0) return base::Bytes{};
  const auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t blocks =
      std::min<std::uint64_t>(status.f_bavail, limit / std::max<std::uint64_t>(status.f_frsize, 1));
  return base::Bytes(static_cast<std::int64_t>(blocks * status.f_frsize));
}

Headroom DiskHeadroom::assess() {
  base::Bytes free = available();
  // A quarter more is asked for on the way back, so that the answer does not flicker at the mark.
  const base::Bytes mark = is_low_
                               ? options_.low_water + base::Bytes(options_.low_water.value() / 4)
                               : options_.low_water;
  const bool wants_ballast = options_.ballast > base::Bytes{};
  if (wants_ballast && !has_ballast_ && free >= options_.ballast + mark && make_ballast()) {
    free = available();
  }
  // The last quarter of the mark is not enough to go on writing safely beside other writers.
  if (has_ballast_ && free < base::Bytes(options_.low_water.value() / 4) && release_ballast()) {
    free = available();
  }
  is_low_ = free < mark || (wants_ballast && !has_ballast_);
  return is_low_ ? Headroom::kReserved : Headroom::kAmple;
}

bool DiskHeadroom::release_ballast() {
  if (!has_ballast_) return false;
  has_ballast_ = false;
  return ::unlink(file_.c_str()) == 0;
}

bool DiskHeadroom::make_ballast() {
  const os::Descriptor fd(::open(
      file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (fd.get() < 0) return false;
  has_ballast_ = allocate(fd.get(), options_.ballast);
  if (!has_ballast_) ::unlink(file_.c_str());
  return has_ballast_;
}

}  // namespace gpu_platform::store
