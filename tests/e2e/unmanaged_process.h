#pragma once

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace gpu_platform::e2e {

// A process of no job. It ends with the object.
class UnmanagedProcess {
 public:
  UnmanagedProcess() {
    char name[] = "/bin/sleep";
    char time[] = "1000";
    char* arguments[] = {name, time, nullptr};
    EXPECT_EQ(posix_spawn(&pid_, name, nullptr, nullptr, arguments, environ), 0);
  }
  ~UnmanagedProcess() { end(); }
  UnmanagedProcess(const UnmanagedProcess&) = delete;
  UnmanagedProcess& operator=(const UnmanagedProcess&) = delete;

  pid_t pid() const { return pid_; }
  void end() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
};

}  // namespace gpu_platform::e2e
