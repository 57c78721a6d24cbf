#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "node/limits/cpu_binding.h"
#include "node/limits/limit_places.h"

namespace gpu_platform::node {

inline constexpr std::uint64_t kSiteMemory = std::uint64_t{1} << 30;

// Zero: no limit.
struct LimitValues {
  std::uint64_t memory_bytes = 0;  // swap included
  std::uint64_t processes = 0;     // threads count, as the kernel counts them
  std::uint32_t cpus = 0;          // a weight among jobs when CPUs or disks are short, no cap
  Bits cores;                      // the only ones it runs on; empty: any
};

// The limits of one attempt. A limit that this host cannot enforce is left out. If a possible limit
// cannot be set, that is an error: a job never runs with fewer limits than were reported.
class JobLimits {
 public:
  JobLimits() = default;
  ~JobLimits() { close_entrances(); }
  JobLimits(const JobLimits&) = delete;
  JobLimits& operator=(const JobLimits&) = delete;

  // Called before any process of the job exists. `cgroup_fd`: its own cgroup. Returns an empty
  // text, or what failed.
  std::string apply(const LimitPlaces& places, const std::string& name, int cgroup_fd,
                    const LimitValues& values);

  // The site's programs run in the same groups, but the job's user chose how much memory is there:
  // while they run it is at least kSiteMemory. Returns an empty text, or what failed.
  std::string give_site_room();
  std::string take_room_back();

  // The job's first process enters the groups apart from its cgroup by writing "0" to each of
  // these.
  const std::vector<int>& entrances() const { return entrances_; }
  void close_entrances();

  // Returns whether the kernel has killed a process of the job for lack of memory. Reliable if the
  // limit is ours; false if memory is not limited.
  bool ran_out_of_memory() const;
  std::optional<std::uint64_t> peak_memory_bytes() const;

 private:
  std::string set(Resource resource, const char* unified_file, const char* apart_file,
                  const std::string& value);
  std::string keep_to(const Bits& cores);
  void refuse_swap(std::uint64_t memory_bytes);
  std::string change_memory(std::uint64_t from, std::uint64_t to);
  std::string make_group(const std::string& path);

  LimitPlaces places_;
  std::string name_;
  int cgroup_fd_ = -1;
  bool limits_memory_ = false;
  std::uint64_t memory_bytes_ = 0;
  std::vector<std::string> groups_;  // made so far
  std::vector<int> entrances_;
};

// The calling process enters the groups that a running attempt has apart from its cgroup; false
// with errno.
bool join_limit_groups(const LimitPlaces& places, const std::string& name);

// Removes the groups that an attempt has apart from its cgroup. Fails on those with processes.
void remove_limit_groups(const LimitPlaces& places, const std::string& name);

}  // namespace gpu_platform::node
