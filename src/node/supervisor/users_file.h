#pragma once

namespace gpu_platform::node {

// Opens a file that a user named for output, with the present rights of the process, and never
// waits: a FIFO without a reader, a lease of another process and the like are failures. The file is
// always opened to append, because two streams may share a file, and so may attempts.
//
// Regular files, FIFOs with a reader, and /dev/null are accepted, where they are the user's
// (os/named_file.h). Returns a descriptor that blocks as usual, or the reason why there is none.
struct UsersFile {
  int fd = -1;
  int error = 0;              // of one that was not opened
  const char* why = nullptr;  // more telling than the error
};
UsersFile open_users_file(const char* path, bool truncates);

}  // namespace gpu_platform::node
