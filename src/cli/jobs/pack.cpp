#include "cli/jobs/pack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::cli {

namespace {

std::string why_of(int number) {
  return std::string(::strerror(number));
}

}  // namespace

base::Result<Packer> Packer::open(const std::string& path, const std::string& root) {
  struct stat is{};
  if (::stat(path.c_str(), &is) != 0) {
    return std::unexpected(base::system_error("read " + path, errno));
  }
  if (!S_ISREG(is.st_mode) && !S_ISDIR(is.st_mode)) {
    return base::fail(base::ErrorCode::kInvalidArgument,
                      path + " is neither a file nor a directory");
  }
  if (::access(path.c_str(), R_OK) != 0) {
    return std::unexpected(base::system_error("read " + path, errno));
  }
  Packer packer;
  packer.found_.push_back({path, root});
  return packer;
}

std::size_t Packer::read(std::span<char> into) {
  while (true) {
    if (taken_ < ready_.size()) {
      const std::size_t count = std::min(into.size(), ready_.size() - taken_);
      std::memcpy(into.data(), ready_.data() + taken_, count);
      taken_ += count;
      return count;
    }
    ready_.clear();
    taken_ = 0;
    if (left_ > 0) {
      const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left_, into.size()));
      const ssize_t got = ::read(file_.get(), into.data(), most);
      if (got < 0 && errno == EINTR) continue;
      const std::size_t count = got > 0 ? static_cast<std::size_t>(got) : most;
      if (got <= 0) std::memset(into.data(), 0, most);
      left_ -= count;
      if (left_ == 0) ready_.assign(padding_, '\0');
      return count;
    }
    if (has_ended_) return 0;
    begin_next();
  }
}

void Packer::begin_next() {
  if (found_.empty()) {
    ready_ = tar_end();
    has_ended_ = true;
    return;
  }
  const Found found = std::move(found_.back());
  found_.pop_back();
  const bool follows = std::exchange(is_root_, false);
  struct stat is{};
  if ((follows ? ::stat : ::lstat)(found.path.c_str(), &is) != 0) {
    left_out_.push_back(fmt::format("{}: {}", found.path, why_of(errno)));
    return;
  }
  TarEntry entry{.name = found.name, .mode = is.st_mode & 0777U, .modified = is.st_mtime};
  if (S_ISDIR(is.st_mode)) {
    entry.type = TarEntry::Type::kDirectory;
    entry.name += '/';
    add_children(found);
  } else if (S_ISLNK(is.st_mode)) {
    std::error_code error;
    entry.type = TarEntry::Type::kLink;
    entry.target = std::filesystem::read_symlink(found.path, error).string();
  } else if (!S_ISREG(is.st_mode)) {
    left_out_.push_back(found.path + ": not a file, directory or link");
    return;
  } else if (!begin_file(found, entry)) {
    return;
  }
  ready_ = tar_header(entry);
}

void Packer::add_children(const Found& found) {
  std::error_code error;
  std::vector<Found> children;
  for (const auto& child : std::filesystem::directory_iterator(found.path, error)) {
    const std::string name = child.path().filename().string();
    children.push_back({found.path + "/" + name, found.name + "/" + name});
  }
  if (error) left_out_.push_back(fmt::format("{}: {}", found.path, error.message()));
  std::ranges::sort(children, std::ranges::greater(), &Found::name);
  found_.insert(found_.end(), children.begin(), children.end());
}

bool Packer::begin_file(const Found& found, TarEntry& entry) {
  file_ = os::Descriptor(::open(found.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat is{};
  if (!file_.is_open() || ::fstat(file_.get(), &is) != 0 || !S_ISREG(is.st_mode)) {
    left_out_.push_back(fmt::format("{}: {}", found.path, why_of(errno)));
    return false;
  }
  entry.size = left_ = static_cast<std::uint64_t>(is.st_size);
  padding_ = tar_padding(left_);
  ++files_;
  return true;
}

}  // namespace gpu_platform::cli
