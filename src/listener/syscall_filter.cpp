#include "listener/syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cstdint>

#include "os/seccomp_program.h"

namespace gpu_platform::listener {

namespace {

using os::Seccomp;

constexpr std::uint32_t kUnlisted = Seccomp::refused_with(EPERM);
constexpr std::uint32_t kUnknown = Seccomp::refused_with(ENOSYS);

// Bytes to and fro, memory, time, threads. Nothing that names a file, an address or a process.
constexpr std::uint32_t kAllowed[] = {
    SYS_read,
    SYS_write,
    SYS_readv,
    SYS_writev,
    SYS_recvfrom,
    SYS_recvmsg,
    SYS_sendto,
    SYS_sendmsg,
    SYS_close,
    SYS_shutdown,
    SYS_accept,
    SYS_accept4,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_getsockname,
    SYS_getpeername,
    SYS_epoll_create1,
    SYS_epoll_ctl,
    SYS_epoll_pwait,
    SYS_ppoll,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_timerfd_settime,
    SYS_pipe2,
    SYS_futex,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_brk,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_getrandom,
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_set_robust_list,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
#ifdef SYS_rseq
    SYS_rseq,
#endif
#if defined(__x86_64__)
    SYS_epoll_wait,
    SYS_poll,
    SYS_time,
    SYS_arch_prctl,
#endif
};

// A call that is allowed with some values of an argument alone.
enum class Match { kEqual, kNoneOf, kAllOf };
struct Conditional {
  std::uint32_t number;
  std::uint32_t argument;
  Match match;
  std::uint32_t value;
};
constexpr Conditional kConditional[] = {
    // Memory is never both written and executed, and no file is mapped.
    {SYS_mmap, 2, Match::kNoneOf, PROT_EXEC},
    {SYS_mprotect, 2, Match::kNoneOf, PROT_EXEC},
    // Threads of this process, no processes.
    {SYS_clone, 0, Match::kAllOf, CLONE_THREAD | CLONE_VM | CLONE_SIGHAND},
    {SYS_socketpair, 0, Match::kEqual, AF_UNIX},
    {SYS_ioctl, 1, Match::kEqual, FIONBIO},
    {SYS_prctl, 0, Match::kEqual, PR_SET_NAME},
    {SYS_fcntl, 1, Match::kEqual, F_GETFL},
    {SYS_fcntl, 1, Match::kEqual, F_SETFL},
    {SYS_fcntl, 1, Match::kEqual, F_GETFD},
    {SYS_fcntl, 1, Match::kEqual, F_SETFD},
    {SYS_fcntl, 1, Match::kEqual, F_DUPFD_CLOEXEC},
};

// What follows is reached where the call is another, or its argument.
void add(std::vector<sock_filter>& program, const Conditional& call) {
  program.push_back(Seccomp::load(Seccomp::kNumberAt));
  switch (call.match) {
    case Match::kEqual:
      program.push_back(Seccomp::skip(BPF_JEQ, call.number, 0, 3));
      program.push_back(Seccomp::load(Seccomp::argument_at(call.argument)));
      program.push_back(Seccomp::skip(BPF_JEQ, call.value, 0, 1));
      break;
    case Match::kNoneOf:
      program.push_back(Seccomp::skip(BPF_JEQ, call.number, 0, 3));
      program.push_back(Seccomp::load(Seccomp::argument_at(call.argument)));
      program.push_back(Seccomp::skip(BPF_JSET, call.value, 1, 0));
      break;
    case Match::kAllOf:
      program.push_back(Seccomp::skip(BPF_JEQ, call.number, 0, 4));
      program.push_back(Seccomp::load(Seccomp::argument_at(call.argument)));
      program.push_back(Seccomp::keep_bits(call.value));
      program.push_back(Seccomp::skip(BPF_JEQ, call.value, 0, 1));
      break;
  }
  program.push_back(Seccomp::answer(SECCOMP_RET_ALLOW));
}

}  // namespace

std::vector<sock_filter> syscall_filter() {
  std::vector<sock_filter> program = {Seccomp::load(Seccomp::kArchitectureAt),
                                      Seccomp::skip(BPF_JEQ, Seccomp::kOwnArchitecture, 1, 0),
                                      Seccomp::answer(kUnknown), Seccomp::load(Seccomp::kNumberAt)};
  for (const std::uint32_t number : kAllowed) {
    program.push_back(Seccomp::skip(BPF_JEQ, number, 0, 1));
    program.push_back(Seccomp::answer(SECCOMP_RET_ALLOW));
  }
  // The C library goes on with clone, of which the flags can be seen.
  program.push_back(Seccomp::skip(BPF_JEQ, SYS_clone3, 0, 1));
  program.push_back(Seccomp::answer(kUnknown));
  for (const Conditional& call : kConditional) add(program, call);
  program.push_back(Seccomp::answer(kUnlisted));
  return program;
}

}  // namespace gpu_platform::listener
