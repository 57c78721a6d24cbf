#include "cli/jobs/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ranges>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpu_platform::cli {

namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// "a//./b/" as a, b. Refuses what leads elsewhere.
base::Result<std::vector<std::string>> parts_of(const std::string& name) {
  if (name.starts_with('/')) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("the job sends the absolute name '{}': refused", name));
  }
  std::vector<std::string> parts;
  for (const auto part : std::views::split(name, '/')) {
    const std::string_view word(part.begin(), part.end());
    if (word.empty() || word == ".") continue;
    if (word == "..") {
      return base::fail(
          base::ErrorCode::kFailedPrecondition,
          fmt::format("the job sends the name '{}', which leads elsewhere: refused", name));
    }
    parts.emplace_back(word);
  }
  return parts;
}

// Whether a link that lies so deep below the root leads out of it.
bool leads_out(const std::string& target, std::size_t depth) {
  if (target.empty() || target.starts_with('/')) return true;
  auto left = static_cast<std::ptrdiff_t>(depth);
  for (const auto part : std::views::split(target, '/')) {
    const std::string_view word(part.begin(), part.end());
    if (word == "..") --left;
    if (word != ".." && word != "." && !word.empty()) ++left;
    if (left < 0) return true;
  }
  return false;
}

void set_times(int fd, std::int64_t modified) {
  const timespec times[2] = {{0, UTIME_OMIT}, {static_cast<time_t>(modified), 0}};
  ::futimens(fd, times);
}

}  // namespace

Unpacker::Unpacker(std::string root, const std::string& path, unsigned umask)
    : root_(std::move(root)), umask_(umask) {
  const std::size_t slash = path.rfind('/');
  folder_ = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  name_ = slash == std::string::npos ? path : path.substr(slash + 1);
}

// The names below the path that is written; none for itself.
base::Result<Unpacker::Names> Unpacker::names_below(const std::string& name) const {
  TRY_ASSIGN(Names names, parts_of(name));
  if (root_.empty()) return names;
  if (names.empty() || names.front() != root_) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("the job sends '{}', which was not requested: refused", name));
  }
  names.erase(names.begin());
  return names;
}

const std::string& Unpacker::last_of(const Names& names) const {
  return names.empty() ? name_ : names.back();
}

std::string Unpacker::shown(const Names& names) const {
  return names.empty() ? name_ : fmt::format("{}/{}", name_, fmt::join(names, "/"));
}

// The directory in which the last name lies. The folder of the path is the user's own choice, links
// and all; from there on no link is followed.
base::Result<os::Descriptor> Unpacker::parent_of(const Names& names) const {
  os::Descriptor at(::open(folder_.c_str(), kDirectory));
  if (!at.is_open()) return std::unexpected(base::system_error("open " + folder_, errno));
  std::string last = name_;
  for (const std::string& name : names) {
    if (::mkdirat(at.get(), last.c_str(), 0777) != 0 && errno != EEXIST) {
      return std::unexpected(base::system_error("make " + shown(names), errno));
    }
    os::Descriptor next(::openat(at.get(), last.c_str(), kDirectory | O_NOFOLLOW));
    if (!next.is_open())
      return std::unexpected(base::system_error("open the directory of " + shown(names), errno));
    at = std::move(next);
    last = name;
  }
  return at;
}

base::Status Unpacker::entry(const TarEntry& entry) {
  TRY_ASSIGN(const Names names, names_below(entry.name));
  current_ = entry;
  switch (entry.type) {
    case TarEntry::Type::kDirectory:
      return make_directory(names, entry);
    case TarEntry::Type::kFile:
      return begin_file(names, entry);
    case TarEntry::Type::kLink:
      return make_link(names, entry);
    case TarEntry::Type::kHardLink:
      return make_hard_link(names, entry);
    case TarEntry::Type::kOther:
      left_out_.push_back(shown(names) + ": not a file, directory or link");
      return {};
  }
  return {};
}

base::Status Unpacker::make_directory(const Names& names, const TarEntry& entry) {
  TRY_ASSIGN(const os::Descriptor parent, parent_of(names));
  const std::string& name = last_of(names);
  if (::mkdirat(parent.get(), name.c_str(), 0777) != 0 && errno != EEXIST) {
    return std::unexpected(base::system_error("make " + shown(names), errno));
  }
  struct stat is{};
  if (::fstatat(parent.get(), name.c_str(), &is, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISDIR(is.st_mode)) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("{} exists and is not a directory", shown(names)));
  }
  directories_.push_back({names, entry.mode, entry.modified});
  return {};
}

base::Status Unpacker::begin_file(const Names& names, const TarEntry& entry) {
  TRY_ASSIGN(const os::Descriptor parent, parent_of(names));
  const std::string& name = last_of(names);
  // A file that is there is replaced, not written into: it may be a link, or run just now.
  if (::unlinkat(parent.get(), name.c_str(), 0) != 0 && errno != ENOENT) {
    return std::unexpected(base::system_error("replace " + shown(names), errno));
  }
  const mode_t mode = static_cast<mode_t>(entry.mode & 0777U & ~umask_);
  file_ = os::Descriptor(::openat(parent.get(), name.c_str(),
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                                  mode | S_IWUSR));
  if (!file_.is_open()) return std::unexpected(base::system_error("make " + shown(names), errno));
  ::fchmod(file_.get(), mode);
  ++files_;
  return {};
}

base::Status Unpacker::make_link(const Names& names, const TarEntry& entry) {
  if (names.empty() || leads_out(entry.target, names.size() - 1)) {
    left_out_.push_back(fmt::format("{}: it is a link to {}", shown(names), entry.target));
    return {};
  }
  TRY_ASSIGN(const os::Descriptor parent, parent_of(names));
  ::unlinkat(parent.get(), names.back().c_str(), 0);
  if (::symlinkat(entry.target.c_str(), parent.get(), names.back().c_str()) != 0) {
    return std::unexpected(base::system_error("make " + shown(names), errno));
  }
  return {};
}

// Another name of a file that was written before.
base::Status Unpacker::make_hard_link(const Names& names, const TarEntry& entry) {
  TRY_ASSIGN(const Names former, names_below(entry.target));
  TRY_ASSIGN(const os::Descriptor from, parent_of(former));
  TRY_ASSIGN(const os::Descriptor to, parent_of(names));
  ::unlinkat(to.get(), last_of(names).c_str(), 0);
  if (::linkat(from.get(), last_of(former).c_str(), to.get(), last_of(names).c_str(), 0) != 0) {
    return std::unexpected(base::system_error("make " + shown(names), errno));
  }
  ++files_;
  return {};
}

base::Status Unpacker::content(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(file_.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return std::unexpected(base::system_error("write " + current_.name, errno));
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return {};
}

base::Status Unpacker::end_of_entry() {
  if (!file_.is_open()) return {};
  set_times(file_.get(), current_.modified);
  file_ = os::Descriptor();
  return {};
}

base::Status Unpacker::finish() {
  // The inner ones first: the outer ones may then forbid to enter them.
  for (const Directory& directory : std::views::reverse(directories_)) {
    TRY_ASSIGN(const os::Descriptor parent, parent_of(directory.names));
    const os::Descriptor at(
        ::openat(parent.get(), last_of(directory.names).c_str(), kDirectory | O_NOFOLLOW));
    if (!at.is_open()) continue;
    ::fchmod(at.get(), static_cast<mode_t>(directory.mode & 0777U & ~umask_));
    set_times(at.get(), directory.modified);
  }
  return {};
}

}  // namespace gpu_platform::cli
