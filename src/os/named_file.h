#pragma once

// Files by paths that users wrote, opened for them by a process of ours with their rights. Such a
// process is more than the user: what /proc shows it of itself is ours, and its descriptors are.

namespace gpu_platform::os {

// open(2), but no path leads through a descriptor or another such link of /proc ("/dev/fd/3",
// "/proc/self/root"): ELOOP. Always O_CLOEXEC, O_NOCTTY and O_NONBLOCK, so that it waits for no
// lease and no other end of a FIFO. Returns -1 with errno.
int open_named_file(const char* path, int flags, unsigned mode = 0);

// chdir(2) with the same rule for the path.
int change_to_named_folder(const char* path);

// Why what is open may not be read or written for the user; null: it may. File systems through
// which the kernel shows itself, or takes orders, hold no file of a user: /proc, /sys, cgroups,
// tracing, descriptors and the like. One that is unknown and counts no blocks, as all of these do,
// is taken for such.
const char* error_in_place(int fd);

namespace internal {
// The rule of error_in_place: `type` and `blocks` as statfs(2) has them.
bool holds_files(unsigned long type, unsigned long blocks);
}  // namespace internal

}  // namespace gpu_platform::os
