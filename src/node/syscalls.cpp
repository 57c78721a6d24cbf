#include "node/syscalls.h"

#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gpu_platform::node {

namespace {

clone_args fork_arguments(int cgroup_fd) {
  clone_args args;
  memset(&args, 0, sizeof args);
  args.exit_signal = SIGCHLD;
  if (cgroup_fd >= 0) {
    args.flags |= CLONE_INTO_CGROUP;
    args.cgroup = static_cast<std::uint64_t>(cgroup_fd);
  }
  return args;
}

}  // namespace

int open_pidfd(int pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
}

int signal_pidfd(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

int queue_signal(int pidfd, int signal, std::uint64_t data) {
  siginfo_t info;
  memset(&info, 0, sizeof info);
  info.si_signo = signal;
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = reinterpret_cast<void*>(data);
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, &info, 0));
}

void reset_signal(int signal) {
  struct {  // the kernel's own form of struct sigaction
    void* handler = nullptr;
    unsigned long flags = 0;
    void* restorer = nullptr;
    std::uint64_t mask = 0;
  } action;
  syscall(SYS_rt_sigaction, signal, &action, nullptr, sizeof action.mask);
}

int fork_into_cgroup(int cgroup_fd) {
  clone_args args = fork_arguments(cgroup_fd);
  return static_cast<int>(syscall(SYS_clone3, &args, sizeof args));
}

int fork_with_pidfd(int* pidfd) {
  clone_args args = fork_arguments(-1);
  args.flags |= CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(pidfd);
  return static_cast<int>(syscall(SYS_clone3, &args, sizeof args));
}

}  // namespace gpu_platform::node
