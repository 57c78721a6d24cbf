#include "node/limits/job_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

// Ten for each CPU in the range that the kernel takes; the usual weight, 100, is that of ten CPUs.
std::uint64_t weight_of(std::uint32_t cpus) {
  return std::min<std::uint64_t>(std::uint64_t{10} * cpus, 10'000);
}
// The same proportions in v1's unit, of which 1024 is usual.
std::uint64_t shares_of(std::uint32_t cpus) {
  return std::clamp<std::uint64_t>(weight_of(cpus) * 1024 / 100, 2, 262'144);
}

// Each file is there, and means something, where the kernel has what reads it: io.weight the cost
// model (io.cost.qos), io.bfq.weight the scheduler BFQ, where the largest weight is 1000.
void weigh_disk_time(int cgroup_fd, std::uint32_t cpus) {
  const std::uint64_t weight = weight_of(cpus);
  os::write_small_file(cgroup_fd, "io.weight", std::to_string(weight));
  os::write_small_file(cgroup_fd, "io.bfq.weight",
                       std::to_string(std::min<std::uint64_t>(weight, 1000)));
}

std::string limit_failed(const std::string& what) {
  return what + ": " + strerror(errno);
}

std::optional<std::uint64_t> read_number(int dir, const std::string& path) {
  const std::string text = os::read_small_file(dir, path.c_str());
  if (text.empty()) return std::nullopt;
  return strtoull(text.c_str(), nullptr, 10);
}

}  // namespace

std::string JobLimits::apply(const LimitPlaces& places, const std::string& name, int cgroup_fd,
                             const LimitValues& values) {
  places_ = places;
  name_ = name;
  cgroup_fd_ = cgroup_fd;
  std::string why;
  if (values.memory_bytes > 0) {
    limits_memory_ = places.of(Resource::kMemory).kind != LimitPlace::Kind::kNone;
    memory_bytes_ = values.memory_bytes;
    why = set(Resource::kMemory, "memory.max", "memory.limit_in_bytes",
              std::to_string(values.memory_bytes));
    if (why.empty() && limits_memory_) refuse_swap(values.memory_bytes);
  }
  if (why.empty() && values.processes > 0) {
    why = set(Resource::kProcesses, "pids.max", "pids.max", std::to_string(values.processes));
  }
  if (why.empty() && values.cpus > 0) {
    const bool unified = places.of(Resource::kCpu).kind == LimitPlace::Kind::kUnified;
    why = set(Resource::kCpu, "cpu.weight", "cpu.shares",
              std::to_string(unified ? weight_of(values.cpus) : shares_of(values.cpus)));
    if (places.has_io_weight) weigh_disk_time(cgroup_fd, values.cpus);
  }
  if (why.empty() && !values.cores.empty()) why = keep_to(values.cores);
  return why;
}

// Keeps to those of the cores that the launcher has itself: a host may have more cores than were
// given to it. If it has none of them, there is nothing to keep to.
std::string JobLimits::keep_to(const Bits& cores) {
  const LimitPlace& place = places_.of(Resource::kCores);
  if (place.kind == LimitPlace::Kind::kNone) return {};
  const bool apart = place.kind == LimitPlace::Kind::kApart;
  std::string ours = apart ? os::read_small_file(AT_FDCWD, (place.path + "/cpuset.cpus").c_str())
                           : os::read_small_file(cgroup_fd_, "cpuset.cpus.effective");
  while (ours.ends_with('\n')) ours.pop_back();
  const std::string common =
      format_number_list(common_numbers(cores, parse_number_list(ours).value_or(Bits())));
  if (common.empty()) return {};
  if (apart) {
    const std::string memory = os::read_small_file(AT_FDCWD, (place.path + "/cpuset.mems").c_str());
    const std::string why = set(Resource::kCores, "", "cpuset.mems", memory);
    if (!why.empty()) return why;
  }
  return set(Resource::kCores, "cpuset.cpus", "cpuset.cpus", common);
}

std::string JobLimits::set(Resource resource, const char* unified_file, const char* apart_file,
                           const std::string& value) {
  const LimitPlace& place = places_.of(resource);
  if (place.kind == LimitPlace::Kind::kUnified) {
    return os::write_small_file(cgroup_fd_, unified_file, value) ? "" : limit_failed(unified_file);
  }
  if (place.kind == LimitPlace::Kind::kNone) return {};
  const std::string group = place.path + "/" + name_;
  if (std::string why = make_group(group); !why.empty()) return why;
  const std::string file = group + "/" + apart_file;
  return os::write_small_file(AT_FDCWD, file.c_str(), value) ? "" : limit_failed("write " + file);
}

// Without swap a job that is out of memory ends instead of crawling, and takes no other's swap. All
// of it ends at once where the kernel can do that: a job that lost one process is seldom of use.
// Both are not there on every kernel.
void JobLimits::refuse_swap(std::uint64_t memory_bytes) {
  const LimitPlace& place = places_.of(Resource::kMemory);
  if (place.kind == LimitPlace::Kind::kUnified) {
    os::write_small_file(cgroup_fd_, "memory.swap.max", "0");
    os::write_small_file(cgroup_fd_, "memory.oom.group", "1");
    return;
  }
  const std::string file = place.path + "/" + name_ + "/memory.memsw.limit_in_bytes";
  os::write_small_file(AT_FDCWD, file.c_str(), std::to_string(memory_bytes));
}

std::string JobLimits::give_site_room() {
  if (!limits_memory_ || memory_bytes_ >= kSiteMemory) return {};
  return change_memory(memory_bytes_, kSiteMemory);
}

std::string JobLimits::take_room_back() {
  if (!limits_memory_ || memory_bytes_ >= kSiteMemory) return {};
  return change_memory(kSiteMemory, memory_bytes_);
}

// In v1 the limit with swap is never the smaller of the two.
std::string JobLimits::change_memory(std::uint64_t from, std::uint64_t to) {
  const bool apart = places_.of(Resource::kMemory).kind == LimitPlace::Kind::kApart;
  if (apart && to > from) refuse_swap(to);
  std::string why =
      set(Resource::kMemory, "memory.max", "memory.limit_in_bytes", std::to_string(to));
  if (apart && to < from && why.empty()) refuse_swap(to);
  return why;
}

std::string JobLimits::make_group(const std::string& path) {
  // Two controllers of one hierarchy share the group.
  if (std::find(groups_.begin(), groups_.end(), path) != groups_.end()) return {};
  int made = mkdir(path.c_str(), 0755);
  if (made != 0 && errno == EEXIST) {
    // Left by an attempt to start that came to nothing; one with processes cannot be removed.
    rmdir(path.c_str());
    made = mkdir(path.c_str(), 0755);
  }
  if (made != 0) return limit_failed("make " + path);
  groups_.push_back(path);
  const int entrance = open((path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC);
  if (entrance < 0) return limit_failed("open " + path);
  entrances_.push_back(entrance);
  return {};
}

void JobLimits::close_entrances() {
  for (const int fd : entrances_) close(fd);
  entrances_.clear();
}

bool JobLimits::ran_out_of_memory() const {
  if (!limits_memory_) return false;
  const LimitPlace& place = places_.of(Resource::kMemory);
  const bool unified = place.kind == LimitPlace::Kind::kUnified;
  const std::string text =
      unified ? os::read_small_file(cgroup_fd_, "memory.events")
              : os::read_small_file(AT_FDCWD,
                                    (place.path + "/" + name_ + "/memory.oom_control").c_str());
  return os::number_after(text, "oom_kill") > 0;
}

std::optional<std::uint64_t> JobLimits::peak_memory_bytes() const {
  const LimitPlace& place = places_.of(Resource::kMemory);
  if (place.kind == LimitPlace::Kind::kUnified) return read_number(cgroup_fd_, "memory.peak");
  if (!limits_memory_) return std::nullopt;
  return read_number(AT_FDCWD, place.path + "/" + name_ + "/memory.max_usage_in_bytes");
}

bool join_limit_groups(const LimitPlaces& places, const std::string& name) {
  for (const LimitPlace& place : places.places) {
    if (place.kind != LimitPlace::Kind::kApart) continue;
    const std::string file = place.path + "/" + name + "/cgroup.procs";
    // A job that needs no bound there has no group.
    if (!os::write_small_file(AT_FDCWD, file.c_str(), "0") && errno != ENOENT) return false;
  }
  return true;
}

void remove_limit_groups(const LimitPlaces& places, const std::string& name) {
  for (const LimitPlace& place : places.places) {
    if (place.kind == LimitPlace::Kind::kApart) rmdir((place.path + "/" + name).c_str());
  }
}

}  // namespace gpu_platform::node
