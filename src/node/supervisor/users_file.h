#pragma once

namespace gpu_platform::node {

// Opens a file that a user named for output, with the rights that the process has now, and never
// waits for anybody: a FIFO without a reader, a lease of somebody else's and the like are failures.
// Always to append: two streams may share a file, and so may attempts.
//
// Taken are regular files, FIFOs that are read, and /dev/null. Raw calls only (raw_call.h): a
// descriptor that blocks again as usual, or why there is none.
struct UsersFile {
  int fd = -1;
  int error = 0;              // of one that was not opened
  const char* why = nullptr;  // more telling than the error
};
UsersFile open_users_file(const char* path, bool truncates);

}  // namespace gpu_platform::node
