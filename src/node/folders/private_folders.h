#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// A job's own /tmp, /dev/shm and /proc, in a mount namespace of its first process. The job sees no
// others, and no other process sees the job's; but clients of one MPS server share /dev/shm, as
// that server asks. /tmp is the folder <job>-<attempt> of NodeFolders::tmp and belongs to the user
// alone; /dev/shm is a tmpfs that is removed with the job's last process.
//
// A working directory below either is shown in its place within the private one, because a job must
// find the directory that it was started in.

namespace gpu_platform::node {

// Checks whether this process may make mount namespaces. Returns an empty text, or why not.
std::string error_in_private_folders();

// Makes a /proc that shows the processes of other users to root alone. It is not mounted anywhere
// yet; jobs get copies of it. Returns -1 and sets `why` on failure.
int open_hidden_proc(std::string& why);

struct FolderOwner {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};
// The form in which a child that shares its parent's memory gets it: nothing to allocate.
struct PrivateFolders {
  int tmp = -1;             // what becomes /tmp: a mount that is nowhere yet
  int shm = -1;             // what becomes /dev/shm, in the same way; -1: a tmpfs of its own
  std::string shm_options;  // of the tmpfs that becomes /dev/shm
  std::string workdir;      // the working directory where it would be hidden, else empty
  int proc = -1;            // what becomes /proc, see open_hidden_proc; -1: it stays the host's
  std::string hosts_text;   // of the file that becomes /etc/hosts; empty: it stays the host's
  int hosts = -1;           // that file, as a mount that is nowhere yet
};
// Makes the empty folder `name` in NodeFolders::tmp and opens it. Returns an empty text, or what
// failed.
std::string make_private_tmp(int tmp_fd, const std::string& name, FolderOwner owner,
                             PrivateFolders& folders);
// Opens the folder at `path`, a tmpfs of the owner's, to become /dev/shm instead of a new one.
// Returns an empty text, or what failed.
std::string share_shm(const std::string& path, FolderOwner owner, PrivateFolders& folders);
void close_private_tmp(PrivateFolders& folders);
// Sets the remaining values: the size of /dev/shm, and the job's working directory. Names of
// emulated nodes (host_names.h) are added to the host's /etc/hosts. Before make_private_tmp().
void describe_folders(std::uint64_t memory_bytes, std::string_view workdir,
                      std::string_view emulated_nodes, PrivateFolders& folders);

// The first step in the child, as root: makes a mount namespace of its own, which receives the
// host's new mounts and passes none on. This and the next function make only raw calls (raw_call.h)
// and return 0 or -errno.
int enter_mount_namespace();
// Then replaces the host's folders. `workdir_fd`: the directory to be shown again, opened by the
// job's user after entering; -1: none.
int replace_folders(const PrivateFolders& folders, int workdir_fd);

}  // namespace gpu_platform::node
