#include "execution/container/start_hold.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "execution/container/container_cleanup.h"
#include "os/small_file.h"

namespace gpu_platform::execution {

namespace {

constexpr std::string_view kUnique = "onhold";  // as long as what mkdtemp makes of a name
constexpr const char* kOwn = "/own";
constexpr const char* kProgramFile = "gpu-platform-start";
constexpr const char* kKept = "start";  // "DEVICE INODE WORKDIR"
constexpr std::size_t kMaxName = 32;

ContainerDone<> not_held(const char* what) {
  return container_failed(
      fmt::format("the container's start cannot be prepared: {}: {}", what, strerror(errno)));
}

std::string own_file(const std::string& folder, std::string_view name) {
  return fmt::format("{}{}/{}", folder, kOwn, name);
}

bool write_file(const std::string& path, std::string_view text, mode_t mode) {
  const os::Descriptor file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.is_open()) return false;
  while (!text.empty()) {
    const ssize_t wrote = write(file.get(), text.data(), text.size());
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return fchmod(file.get(), mode) == 0;
}

// It lies beside this program.
std::string program_path() {
  char self[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof self);
  const std::string path(self, size < 0 ? 0 : static_cast<std::size_t>(size));
  return path.substr(0, path.rfind('/') + 1) + kProgramFile;
}

bool is_usable_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  const bool begins_well = !name.empty() && (name[0] < '0' || name[0] > '9') && name[0] != '-';
  return begins_well && name.size() <= kMaxName && std::ranges::all_of(name, is_allowed);
}

}  // namespace

std::string start_folder(std::string_view cgroup, std::string_view attempt) {
  const std::string_view base = cgroup.substr(0, cgroup.rfind('/'));
  return mounts_folder_begin(base.substr(base.rfind('/') + 1), attempt) + std::string(kUnique);
}

bool is_start_folder(std::string_view path) {
  return path.ends_with(kUnique);
}

StartWord StartWord::make(const std::string& folder, const std::string& name) {
  StartWord word;
  const std::string path = own_file(folder, name);
  os::Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::uint32_t wait = kWait;
  if (!file.is_open() || pwrite(file.get(), &wait, sizeof wait, 0) != sizeof wait ||
      fchmod(file.get(), 0444) != 0) {
    return word;
  }
  word.name_ = name;
  word.path_ = path;
  word.file_ = std::move(file);
  return word;
}

StartWord& StartWord::operator=(StartWord&& other) noexcept {
  if (this == &other) return *this;
  remove();
  name_ = std::move(other.name_);
  path_ = std::move(other.path_);
  file_ = std::move(other.file_);
  return *this;
}

// What waits for it has it open by then, or ends.
void StartWord::remove() {
  if (file_.is_open()) unlink(path_.c_str());
  file_.reset();
}

bool StartWord::say_go() const {
  void* const place =
      mmap(nullptr, sizeof(std::uint32_t), PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (place == MAP_FAILED) return false;
  __atomic_store_n(static_cast<std::uint32_t*>(place), kGo, __ATOMIC_RELEASE);
  syscall(SYS_futex, place, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  munmap(place, sizeof(std::uint32_t));
  return true;
}

ContainerDone<> StartHold::make(const std::string& folder, const node::Identity& user,
                                const std::string& workdir) {
  if (mkdir(folder.c_str(), 0700) != 0) return not_held(folder.c_str());
  folder_ = folder;
  const std::string own = folder + kOwn;
  if (mkdir(own.c_str(), 0700) != 0 || chmod(own.c_str(), 0755) != 0) return not_held(own.c_str());
  return fill(user, workdir);
}

ContainerDone<> StartHold::fill(const node::Identity& user, const std::string& workdir) {
  program_ = program_path();
  struct stat program{};
  if (stat(program_.c_str(), &program) != 0) return not_held(program_.c_str());
  const std::string kept = fmt::format("{} {} {}", program.st_dev, program.st_ino, workdir);
  if (!write_file(own_file(folder_, "passwd"), passwd_of(user), 0444) ||
      !write_file(own_file(folder_, "group"), group_of(user), 0444) ||
      !write_file(own_file(folder_, kKept), kept, 0400)) {
    return not_held(kKept);
  }
  // Only the container's processes reach it, of which the first is alone until it goes on.
  const std::string fifo = own_file(folder_, kOutcome);
  if (mkfifo(fifo.c_str(), 0600) != 0) return not_held(kOutcome);
  outcome_.reset(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
  if (!outcome_.is_open() || fchmod(outcome_.get(), 0200) != 0 ||
      fchown(outcome_.get(), user.uid, user.gid) != 0) {
    return not_held(kOutcome);
  }
  word_ = StartWord::make(folder_, kFirstWord);
  return word_.is_made() ? ContainerDone<>() : not_held(kFirstWord);
}

// None lies in another, so that the order in which an engine makes them does not matter.
std::vector<OpenMount> StartHold::mounts() const {
  std::string there(kStartFolder);
  there.pop_back();
  return {{folder_ + kOwn, there, true},
          {program_, kStartProgram, true},
          {own_file(folder_, "passwd"), "/etc/passwd", true},
          {own_file(folder_, "group"), "/etc/group", true}};
}

std::optional<StartOutcome> StartHold::outcome() const {
  StartOutcome outcome;
  const bool is_told = read(outcome_.get(), &outcome, sizeof outcome) == sizeof outcome;
  return is_told ? std::optional(outcome) : std::nullopt;
}

void StartHold::remove() {
  if (!folder_.empty()) remove_start_folder(std::exchange(folder_, {}));
}

// Only root writes there.
void remove_start_folder(const std::string& folder) {
  const std::string own = folder + kOwn;
  if (DIR* const files = opendir(own.c_str()); files != nullptr) {
    while (const dirent* entry = readdir(files)) unlinkat(dirfd(files), entry->d_name, 0);
    closedir(files);
  }
  rmdir(own.c_str());
  rmdir(folder.c_str());
}

std::optional<KeptStart> read_start(const std::string& folder) {
  KeptStart start;
  start.folder = folder;
  const std::string text = os::read_small_file(AT_FDCWD, own_file(folder, kKept).c_str());
  const char* const end = text.data() + text.size();
  const auto device = std::from_chars(text.data(), end, start.device);
  if (device.ec != std::errc() || device.ptr == end) return std::nullopt;
  const auto inode = std::from_chars(device.ptr + 1, end, start.inode);
  if (inode.ec != std::errc() || inode.ptr == end) return std::nullopt;
  start.workdir.assign(inode.ptr + 1, end);
  const os::Descriptor word(
      open(own_file(folder, kFirstWord).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  std::uint32_t said = kWait;
  start.goes_on = pread(word.get(), &said, sizeof said, 0) == sizeof said && said == kGo;
  return start;
}

bool is_held(int pid, const KeptStart& start) {
  struct stat its{};
  return stat(fmt::format("/proc/{}/exe", pid).c_str(), &its) == 0 && its.st_dev == start.device &&
         its.st_ino == start.inode;
}

bool has_our_files(const std::string& root, const KeptStart& start) {
  const os::Descriptor top(open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const auto is_there = [&](const char* place, dev_t device, ino_t inode) {
    open_how how{};
    how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW;
    how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    const os::Descriptor file(
        static_cast<int>(syscall(SYS_openat2, top.get(), place, &how, sizeof how)));
    struct stat about{};
    return file.is_open() && fstat(file.get(), &about) == 0 && about.st_dev == device &&
           about.st_ino == inode;
  };
  const auto is_ours = [&](const char* place, std::string_view name) {
    struct stat ours{};
    return stat(own_file(start.folder, name).c_str(), &ours) == 0 &&
           is_there(place, ours.st_dev, ours.st_ino);
  };
  return is_ours("/etc/passwd", "passwd") && is_ours("/etc/group", "group") &&
         is_ours("/dev/gpu-platform/start", kKept) &&
         is_there(kStartProgram, start.device, start.inode);
}

std::string passwd_of(const node::Identity& user) {
  const std::string name = is_usable_name(user.name) ? user.name : "user";
  return fmt::format("{}:x:{}:{}::/:/bin/sh\n", name, user.uid, user.gid);
}

std::string group_of(const node::Identity& user) {
  std::set<std::uint32_t> groups(user.groups.begin(), user.groups.end());
  groups.insert(user.gid);
  std::string text;
  for (const std::uint32_t group : groups) text += fmt::format("{0}:x:{0}:\n", group);
  return text;
}

}  // namespace gpu_platform::execution
