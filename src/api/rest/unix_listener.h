#pragma once

#include <sys/types.h>

#include <string>

#include "base/result.h"

namespace gpu_platform::api {

// A listening Unix socket at a path. The path appears in one step, listening already, with mode
// 0666 (peer credentials decide about rights). A socket that a dead daemon left there is replaced.
class UnixListener {
 public:
  // kAlreadyExists when a daemon answers at the path, kFailedPrecondition when something other than
  // a socket is there.
  static base::Result<UnixListener> open(const std::string& path);

  UnixListener(UnixListener&& other) noexcept;
  UnixListener& operator=(UnixListener&&) = delete;
  // Closes the descriptor, unless it was taken, and removes the path if it is still this socket's.
  ~UnixListener();

  // The caller owns the descriptor from here on.
  int take_descriptor();
  const std::string& path() const { return path_; }

 private:
  UnixListener(int descriptor, std::string path, dev_t device, ino_t inode)
      : descriptor_(descriptor), path_(std::move(path)), device_(device), inode_(inode) {}

  int descriptor_;
  std::string path_;
  dev_t device_;
  ino_t inode_;
};

}  // namespace gpu_platform::api
