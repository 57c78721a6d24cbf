#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The cgroups (v2) of jobs: the places where they may be made, and the actions on one. A job's
// cgroup is <parent>/gpu-platform-<token>/<job>-<attempt>; the node part itself sits in .../node
// where it may move itself, so that a stop of the daemon's service does not stop jobs.

namespace gpu_platform::node {

// Returns the mount point of the cgroup v2 tree from the text of /proc/self/mountinfo: alone or
// beside v1 (hybrid).
std::optional<std::string> find_cgroup2_mount(std::string_view mountinfo);
// Returns those of the older trees (v1), of which hybrid systems have one for each controller.
std::vector<std::string> find_cgroup1_mounts(std::string_view mountinfo);
// Removes, in each cgroup v1 tree, the groups of the name of an attempt's cgroup (an absolute path
// in the v2 tree) and those that a container engine has made below it, unless processes are in
// them. The engine's own end a moment after the container: they are waited for so long.
void remove_engine_groups(const std::string& cgroup, int timeout_ms = 0);
// Returns the names directly below that of `base` in the cgroup v1 trees, each once.
std::vector<std::string> engine_groups_below(const std::string& base);
// Returns the peak memory of all processes of the attempt's containers in the cgroup v1 trees, in
// bytes; nothing where no older tree counts it.
std::optional<std::uint64_t> peak_of_engine_groups(const std::string& cgroup);
// Returns the path of the calling process in it, from the text of /proc/self/cgroup.
std::optional<std::string> find_cgroup2_path(std::string_view proc_cgroup);
// Returns the top of the tree that systemd manages, "" or "/a/b", from the text of /proc/1/cgroup;
// nothing if the first process is not systemd.
std::optional<std::string> find_systemd_top(std::string_view init_cgroup);

struct CgroupBase {
  std::string path;  // absolute; empty: jobs cannot have cgroups here
  std::string why;   // then this says why not
  std::string home;  // cgroup in which the calling process was before
};

// Makes gpu-platform-<token> in `parent` and proves with a process that jobs can be born into its
// children. `parent` is an absolute path in the cgroup v2 tree, such as the delegated cgroup of a
// service or scope that holds jobs; empty: the top of the tree as root, else the own cgroup.
CgroupBase make_cgroup_base(std::string_view token, const std::string& parent = {});

// Removes what make_cgroup_base made when a launcher ends, unless jobs or supervisors live in it.
// Returns whether nothing of it is left.
bool leave_cgroup_base(const CgroupBase& base);

// ---- one cgroup, by an open directory

// These four mean the cgroups below it, too: a container engine makes one for its container.
bool cgroup_is_empty(int cgroup_fd);
std::vector<int> pids_in_cgroup(int cgroup_fd);
// Sends the signal to every process in it, by handles proved to belong to it: no other process can
// be hit.
void signal_cgroup(int cgroup_fd, int signal);
// Sends it to those of them that are in the process group.
void signal_process_group(int cgroup_fd, int group, int signal);
// Sends it to those of them that have another PID namespace than the caller: those of a container,
// and not what its engine has beside them.
void signal_contained(int cgroup_fd, int signal);
// Sends SIGKILL to all of it at once, and to what it forks meanwhile. Does not wait.
void kill_cgroup(int cgroup_fd);
// Removes the cgroups below it that have no process.
void remove_cgroups_below(int cgroup_fd);
// Does that and passes no controller on to what is below: while it does, the kernel lets no process
// be born into the cgroup itself. Best effort.
void take_controllers_back(int cgroup_fd);

}  // namespace gpu_platform::node
