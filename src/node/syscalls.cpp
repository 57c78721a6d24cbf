#include "node/syscalls.h"

#include <errno.h>
#include <linux/sched.h>
#include <sanitizer/asan_interface.h>
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

// Calls clone3; the child begins on a stack of its own. Written as one piece of assembly, because
// no compiled code may touch the caller's stack frame between the call and the switch. The child
// has no caller, which the unwinder is told: AddressSanitizer looks at the frames of a stack.
long clone3_and_call(const clone_args* args, void (*run)(void*), void* argument) {
#if defined(__x86_64__)
  long result = SYS_clone3;
  register void (*run_register)(void*) asm("r12") = run;
  register void* argument_register asm("r13") = argument;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %%r13, %%rdi\n\t"
      ".cfi_remember_state\n\t"
      ".cfi_undefined rip\n\t"
      "call *%%r12\n\t"
      "ud2\n\t"
      ".cfi_restore_state\n"
      "1:"
      : "+a"(result)
      : "D"(args), "S"(sizeof *args), "r"(run_register), "r"(argument_register)
      : "rcx", "r11", "memory", "cc");
  return result;
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_clone3;
  register long first asm("x0") = reinterpret_cast<long>(args);
  register long second asm("x1") = static_cast<long>(sizeof *args);
  register void (*run_register)(void*) asm("x19") = run;
  register void* argument_register asm("x20") = argument;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "mov x0, x20\n\t"
      ".cfi_remember_state\n\t"
      ".cfi_undefined x30\n\t"
      "blr x19\n\t"
      "brk #0\n\t"
      ".cfi_restore_state\n"
      "1:"
      : "+r"(first)
      : "r"(number), "r"(second), "r"(run_register), "r"(argument_register)
      : "memory", "cc");
  return first;
#else
#error "clone3_and_call is written for x86-64 and arm64"
#endif
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

int spawn_sharing_memory(void (*run)(void*), void* argument, SharedStack stack, int cgroup_fd) {
  clone_args args = fork_arguments(cgroup_fd);
  args.flags |= CLONE_VM;
  args.stack = reinterpret_cast<std::uint64_t>(stack.base);
  args.stack_size = stack.size;
  const long result = clone3_and_call(&args, run, argument);
  // A child does not return from its frames, which AddressSanitizer would go on guarding there.
  ASAN_UNPOISON_MEMORY_REGION(stack.base, stack.size);
  if (result >= 0) return static_cast<int>(result);
  errno = static_cast<int>(-result);
  return -1;
}

}  // namespace gpu_platform::node
