#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// A job's own /tmp and /dev/shm, in a mount namespace of its first process: nobody else's are in
// sight, and nobody else sees the job's. /tmp is the folder <root>/tmp/<job>-<attempt>, the user's
// alone; /dev/shm a tmpfs that goes with the job's last process.
//
// A working directory below either is shown in its place within the private one, because a job must
// find where it was sent.

namespace gpu_platform::node {

// Whether this process may make mount namespaces; empty, or why not.
std::string objection_to_private_folders();

// <root>/tmp/<name>, empty, for this user. Empty, or what failed.
struct FolderOwner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
std::string make_private_tmp(const std::string& root, const std::string& name, FolderOwner owner);
// With all that is in it; harmless where there is none.
void remove_private_tmp(const std::string& root, const std::string& name);

// The form in which a child that shares its parent's memory gets it: nothing to allocate.
struct PrivateFolders {
  std::string tmp;          // what becomes /tmp
  std::string shm_options;  // of the tmpfs that becomes /dev/shm
  std::string workdir;      // the working directory where it would be hidden, else empty
};
PrivateFolders private_folders(const std::string& root, const std::string& name,
                               std::uint64_t memory_bytes, std::string_view workdir);

// In the child, as root, first: a mount namespace of its own, into which the host's new mounts come
// and out of which none go. False with errno.
bool enter_mount_namespace();
// Then the host's folders are replaced. `workdir_fd`: the directory to be shown again, opened by
// the job's user after entering; -1: none. False with errno.
bool replace_folders(const PrivateFolders& folders, int workdir_fd);

}  // namespace gpu_platform::node
