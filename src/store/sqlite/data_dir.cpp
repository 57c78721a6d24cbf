#include "store/sqlite/data_dir.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::store {

using base::ErrorCode;
using base::fail;

namespace {

std::unexpected<base::Error> failed(std::string_view call, const std::filesystem::path& path) {
  const int error_number = errno;
  base::Error error = base::system_error(fmt::format("{} {}", call, path.string()), error_number);
  if (error_number == ENOSPC || error_number == EDQUOT) error.code = ErrorCode::kResourceExhausted;
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    error.code = ErrorCode::kPermissionDenied;
  }
  return std::unexpected(std::move(error));
}

base::Status write_all(int fd, std::string_view bytes, const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::string read_small(int fd) {
  char buffer[64];
  const ssize_t size = ::pread(fd, buffer, sizeof buffer, 0);
  return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : std::string();
}

}  // namespace

base::Result<DirectoryLock> DirectoryLock::acquire(const StoreFiles& files) {
  DirectoryLock lock;
  lock.path_ = files.lock.string();
  lock.fd_ = os::Descriptor(
      ::open(lock.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (lock.fd_.get() < 0) return failed("open", files.lock);
  if (::flock(lock.fd_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock", files.lock);
    const std::string holder = read_small(lock.fd_.get());
    const std::string pid = holder.substr(0, holder.find_first_not_of("0123456789"));
    return fail(ErrorCode::kAlreadyExists,
                fmt::format("the data directory {} is in use by process {}", files.dir.string(),
                            pid.empty() ? "(not known yet)" : pid));
  }
  lock.was_left_open_ = read_small(lock.fd_.get()).find("open") != std::string::npos;
  TRY(lock.write(fmt::format("{}{}\n", ::getpid(), lock.was_left_open_ ? " open" : "")));
  return lock;
}

base::Status DirectoryLock::note_open() {
  return write(fmt::format("{} open\n", ::getpid()));
}

base::Status DirectoryLock::note_closed() {
  return write(fmt::format("{}\n", ::getpid()));
}

// One write of fewer bytes than a sector, padded so that nothing older shows behind it: a full disk
// and a crash leave either the old text or the new.
base::Status DirectoryLock::write(std::string_view text) {
  const std::string padded = fmt::format("{: <31}\n", text.substr(0, text.size() - 1));
  if (::pwrite(fd_.get(), padded.data(), padded.size(), 0) < 0) return failed("write", path_);
  return {};
}

base::Status prepare_directory(const StoreFiles& files, bool others_may_pass) {
  std::error_code error;
  std::filesystem::path dir = std::filesystem::absolute(files.dir, error).lexically_normal();
  if (!dir.has_filename()) dir = dir.parent_path();  // "data/"
  std::filesystem::create_directories(dir.parent_path(), error);
  const bool is_made = ::mkdir(files.dir.c_str(), S_IRWXU) == 0;
  if (!is_made && errno != EEXIST) return failed("create", files.dir);
  constexpr mode_t kPassable = S_IRWXU | S_IXGRP | S_IXOTH;
  if (is_made && others_may_pass && ::chmod(files.dir.c_str(), kPassable) != 0) {
    return failed("set the mode of", files.dir);
  }
  struct stat status{};
  if (::stat(files.dir.c_str(), &status) != 0) return failed("look at", files.dir);
  if (!S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{} is not a directory", files.dir.string()));
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return fail(ErrorCode::kPermissionDenied,
                fmt::format("the data directory {} is writable by all users (mode {:o}): "
                            "another user could replace its files. Use a directory of its own, "
                            "or chmod it to 700",
                            files.dir.string(), status.st_mode & 07777));
  }
  return {};
}

base::Status write_private_file(const std::filesystem::path& path, std::string_view content) {
  const os::Descriptor fd(::open(
      path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (fd.get() < 0) return failed("create", path);
  TRY(write_all(fd.get(), content, path));
  if (::fsync(fd.get()) != 0) return failed("sync", path);
  return {};
}

base::Status create_private_file(const std::filesystem::path& path) {
  return write_private_file(path, {});
}

base::Status sync_directory(const std::filesystem::path& dir) {
  const os::Descriptor fd(::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::fsync(fd.get()) != 0) return failed("sync", dir);
  return {};
}

base::Status rename_file(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", from);
  return {};
}

base::Status remove_file(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return failed("remove", path);
  return {};
}

bool file_exists(const std::filesystem::path& path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

base::Error damaged_store(const StoreFiles& files, std::string_view what) {
  return base::Error{
      ErrorCode::kDataLoss,
      fmt::format("{} is damaged: {}. Nothing was changed. `gpu-platform store check --data-dir "
                  "{}` lists all damage, `gpu-platform store recover --data-dir {}` keeps "
                  "what can be read and puts the old file aside; or put a backup in its place",
                  files.database.string(), what, files.dir.string(), files.dir.string()),
      {}};
}

}  // namespace gpu_platform::store
