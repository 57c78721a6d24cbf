#pragma once

// Freezing and thawing the cgroups (v2) of jobs that take turns, by open directories. A keeper
// (node/time_slices) freezes and thaws them by turns. A process that talks to a job thaws its
// cgroup itself, also while no keeper runs. The kernel's file is the whole protocol between them: a
// cgroup that its keeper did not thaw was thawed by another process, and gets its turn.
//
// A cgroup that is held is left awake. A hold is an extended attribute of the cgroup with the pid
// of its holder: it goes with the cgroup, and counts only while the holder lives. To hold is to
// mark first and to thaw then; a keeper freezes first and looks for marks then. So none is left
// frozen that is held, whatever comes first.
//
// Linux has both files and attributes wherever jobs can be born into cgroups (5.7).

namespace gpu_platform::node {

// Does not wait until all stand still. Returns whether the kernel took it.
bool freeze_cgroup(int cgroup_fd);
bool thaw_cgroup(int cgroup_fd);

// What a cgroup is asked to be, and what it is.
struct CgroupBody {
  bool is_there = false;  // false: it has been removed, and the rest means nothing
  bool is_to_stand_still = false;
  bool stands_still = false;  // none of its processes runs
  bool is_empty = false;
};
// `events_fd`: of its cgroup.events, which is readable (POLLPRI) again after the next change.
CgroupBody look_at_cgroup(int cgroup_fd, int events_fd);

// Keeps it awake until the same process lets it go, or has ended.
void hold_awake(int cgroup_fd);
void let_go(int cgroup_fd);
// Returns whether a process that lives holds it. Removes marks of processes that have ended.
bool is_held_awake(int cgroup_fd);

// A process that thaws for each of many inputs does so no more often than this: a turn that is
// asked for is as long, and a job with too much debt is awake for a moment each time.
inline constexpr int kThawAgainMs = 100;

// Opens what thaw_by uses, so that a process can still thaw after it has given up its rights.
// The caller closes it; -1 with errno.
int open_freezer(int cgroup_fd);
void thaw_by(int freezer);

// Thaws each cgroup directly in it.
void thaw_cgroups_below(int cgroup_fd);

}  // namespace gpu_platform::node
