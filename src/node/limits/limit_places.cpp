#include "node/limits/limit_places.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "node/mount_table.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

// The index is Resource; the names are the same in both versions.
constexpr std::string_view kControllers[kResources] = {"memory", "pids", "cpu", "cpuset"};

bool has_word(std::string_view list, std::string_view word, char separator) {
  while (!list.empty()) {
    const std::size_t end = list.find(separator);
    std::string_view one = list.substr(0, end);
    while (one.ends_with('\n')) one.remove_suffix(1);
    if (one == word) return true;
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return false;
}

// "4:memory:/a/b" is line of `controller`: "/a/b".
std::optional<std::string_view> own_path(std::string_view proc_cgroup,
                                         std::string_view controller) {
  while (!proc_cgroup.empty()) {
    std::string_view line = take_line(proc_cgroup);
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    if (!has_word(line.substr(first + 1, second - first - 1), controller, ',')) continue;
    return line.substr(second + 1);
  }
  return std::nullopt;
}

// A parent that does not pass a controller on is left as it is.
bool enable_below(const std::string& base, std::string_view controller) {
  const std::string passed_on =
      os::read_small_file(AT_FDCWD, (base + "/cgroup.controllers").c_str());
  return has_word(passed_on, controller, ' ') &&
         os::write_small_file(AT_FDCWD, (base + "/cgroup.subtree_control").c_str(),
                              "+" + std::string(controller));
}

// All jobs together weigh as much as one ordinary process for each CPU: by default they would weigh
// as one alone, and all else that runs beside them would leave them nearly nothing.
void set_weight_of_all_jobs(const LimitPlace& place, const std::string& base) {
  const auto cpus = static_cast<std::uint64_t>(std::max(sysconf(_SC_NPROCESSORS_ONLN), 1L));
  if (place.kind == LimitPlace::Kind::kUnified) {
    os::write_small_file(AT_FDCWD, (base + "/cpu.weight").c_str(),
                         std::to_string(std::min<std::uint64_t>(100 * cpus, 10'000)));
  } else if (place.kind == LimitPlace::Kind::kApart) {
    os::write_small_file(AT_FDCWD, (place.path + "/cpu.shares").c_str(),
                         std::to_string(std::min<std::uint64_t>(1024 * cpus, 262'144)));
  }
}

// A group of v1 takes no process before it was told its cores and memory nodes.
void pass_on_cores(const std::string& from, const std::string& to) {
  for (const char* file : {"/cpuset.cpus", "/cpuset.mems"}) {
    os::write_small_file(AT_FDCWD, (to + file).c_str(),
                         os::read_small_file(AT_FDCWD, (from + file).c_str()));
  }
}

}  // namespace

std::optional<std::string> find_v1_group(std::string_view mountinfo, std::string_view proc_cgroup,
                                         std::string_view controller) {
  const std::optional<std::string_view> own = own_path(proc_cgroup, controller);
  if (!own) return std::nullopt;
  while (const std::optional<Mount> mount = take_mount(mountinfo)) {
    if (mount->type != "cgroup" || !has_word(mount->options, controller, ',')) continue;
    // In a container the mount may show a part of the tree, and the path may be of all of it.
    std::string_view below = *own;
    if (mount->root != "/") {
      if (!below.starts_with(mount->root)) return mount->point;
      below.remove_prefix(mount->root.size());
    }
    return below.empty() || below == "/" ? mount->point : mount->point + std::string(below);
  }
  return std::nullopt;
}

LimitPlaces make_limit_places(std::string_view token, const std::string& base,
                              const std::string& delegated) {
  LimitPlaces places;
  if (base.empty()) return places;
  if (!delegated.empty()) {
    enable_below(delegated, "io");
    for (const std::string_view controller : kControllers) enable_below(delegated, controller);
  }
  places.has_io_weight = enable_below(base, "io");
  const std::string mounts = os::read_small_file(AT_FDCWD, "/proc/self/mountinfo");
  const std::string own = os::read_small_file(AT_FDCWD, "/proc/self/cgroup");
  for (std::size_t i = 0; i < kResources; ++i) {
    LimitPlace& place = places.places[i];
    if (enable_below(base, kControllers[i])) {
      place.kind = LimitPlace::Kind::kUnified;
    } else if (const auto group = find_v1_group(mounts, own, kControllers[i])) {
      place.path = *group + "/gpu-platform-" + std::string(token);
      const bool made = mkdir(place.path.c_str(), 0755) == 0 || errno == EEXIST;
      if (!made || access(place.path.c_str(), W_OK) != 0) continue;
      place.kind = LimitPlace::Kind::kApart;
      if (static_cast<Resource>(i) == Resource::kCores) pass_on_cores(*group, place.path);
    }
  }
  set_weight_of_all_jobs(places.of(Resource::kCpu), base);
  return places;
}

void leave_limit_places(const LimitPlaces& places) {
  for (const LimitPlace& place : places.places) {
    if (place.kind == LimitPlace::Kind::kApart) rmdir(place.path.c_str());
  }
}

}  // namespace gpu_platform::node
