#pragma once

#include <cstdint>
#include <string>

// The folders for data that the node part must be able to trust: attempts' records, kept output,
// its sockets and the folders that become jobs' /tmp. All of it lies below one folder that belongs
// to the launcher's own user (root, as a service), and no other user can write there.
//
// A path is resolved by name once, when the launcher begins. From then on everything is reached
// from these handles, one name after the other, and no link is followed.

namespace gpu_platform::node {

// Open handles; -1: not open. Supervisors inherit them.
struct NodeFolders {
  std::string path;  // absolute, for people and for the daemon, which reads with its group's right
  int root = -1;
  int attempts = -1;  // records
  int output = -1;    // kept output
  int run = -1;       // the launcher's lock, the notices, sockets of sessions
  int tmp = -1;       // jobs' own /tmp; never the group's to read
};

// Opens the folder at `path` and the folders in it, and makes those that are missing. As root every
// folder of the path must belong to root and be writable by no other user, unless it is sticky; for
// a link on the way its owner counts. `reader_gid`: the group that may read there; -1: only we may.
// Returns what stands in the way and what helps; empty if it is open.
std::string open_node_folders(const std::string& path, std::int64_t reader_gid,
                              NodeFolders& folders);

// Returns the folder that contains `path` if the whole way belongs to us or root; otherwise -1 and
// the reason.
int open_trusted_parent(const std::string& path, std::string& why);

// ---- below a handle: one name, or names with '/' between, without "..", and no link followed.
// -1 with errno; a link is ELOOP.

int open_below(int folder, const char* name, int flags, unsigned mode = 0);
// Returns a folder of ours and makes it if it is missing: it has the same readers as its parent.
// The process must have no umask.
int make_folder_below(int folder, const char* name);

}  // namespace gpu_platform::node
