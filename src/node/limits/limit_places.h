#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// The places on this host where a job's memory, processes, CPU time and cores can be limited: the
// job's own cgroup (v2), or one of the older hierarchies (v1) beside it, which hybrid systems and
// many containers still have. There the job gets a group gpu-platform-<token>/<job>-<attempt> too,
// below the group of this process, so that the limits of a surrounding container still hold.

namespace gpu_platform::node {

// kCpu is time on CPUs, kCores which of them.
enum class Resource : std::uint8_t { kMemory, kProcesses, kCpu, kCores };
inline constexpr std::size_t kResources = 4;

struct LimitPlace {
  enum class Kind : std::uint8_t {
    kNone,     // cannot be limited here
    kUnified,  // in the job's cgroup
    kApart,    // in a group of its own below `path`
  };
  Kind kind = Kind::kNone;
  std::string path;
};

struct LimitPlaces {
  std::array<LimitPlace, kResources> places;
  bool has_io_weight = false;  // jobs' cgroups take one (v2 only); fairness of disks, no promise
  LimitPlace& of(Resource resource) { return places[static_cast<std::size_t>(resource)]; }
  const LimitPlace& of(Resource resource) const {
    return places[static_cast<std::size_t>(resource)];
  }
};

// The group that we are in, in the v1 hierarchy with this controller; from the texts of
// /proc/self/mountinfo and /proc/self/cgroup.
std::optional<std::string> find_v1_group(std::string_view mountinfo, std::string_view proc_cgroup,
                                         std::string_view controller);

// Passes the controllers on to the children of `base`, the cgroup above those of the jobs, and
// makes the corresponding groups elsewhere. `delegated`: the parent of `base` if it was delegated
// to us and so may pass them on too; empty: everything above is left as it is.
LimitPlaces make_limit_places(std::string_view token, const std::string& base,
                              const std::string& delegated);
// Removes these groups when a launcher ends and no supervisor is left, unless jobs are in them.
void leave_limit_places(const LimitPlaces& places);

}  // namespace gpu_platform::node
