#pragma once

#include <string>
#include <vector>

#include "node/identity.h"

namespace gpu_platform::node {

// Opens files that users have named, as those users, for the daemon to read: with their rights,
// without waiting, and each in a process of its own, because a file system that does not answer
// blocks the process that asks it. A user has at most kMaxPerUser such processes at once.
class FileOpener {
 public:
  static constexpr std::size_t kMaxPerUser = 8;

  ~FileOpener();
  FileOpener() = default;
  FileOpener(const FileOpener&) = delete;
  FileOpener& operator=(const FileOpener&) = delete;

  // Sends the result on the socket (OpenedFile), which stays the caller's.
  void open(const Identity& user, const std::string& path, int socket);

 private:
  struct Process {
    std::uint32_t uid = 0;
    int pidfd = -1;
  };
  std::size_t forget_ended(std::uint32_t uid);

  std::vector<Process> processes_;
};

}  // namespace gpu_platform::node
