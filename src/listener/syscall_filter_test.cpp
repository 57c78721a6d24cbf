#include "listener/syscall_filter.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cstring>

namespace gpu_platform::listener {
namespace {

#if defined(__x86_64__)
// As the kernel runs the few instructions that the filter is made of.
std::uint32_t answer_to(long number, std::array<std::uint64_t, 6> arguments = {},
                        std::uint32_t architecture = AUDIT_ARCH_X86_64) {
  seccomp_data data{};
  data.arch = architecture;
  data.nr = static_cast<int>(number);
  std::copy(arguments.begin(), arguments.end(), data.args);
  const auto program = syscall_filter();
  std::uint32_t loaded = 0;
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    bool holds = false;
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&loaded, reinterpret_cast<const char*>(&data) + step.k, sizeof loaded);
        continue;
      case BPF_ALU | BPF_AND | BPF_K:
        loaded &= step.k;
        continue;
      case BPF_RET | BPF_K:
        return step.k;
      case BPF_JMP | BPF_JEQ | BPF_K:
        holds = loaded == step.k;
        break;
      case BPF_JMP | BPF_JSET | BPF_K:
        holds = (loaded & step.k) != 0;
        break;
      default:
        ADD_FAILURE() << "instruction " << step.code;
        return 0;
    }
    at += holds ? step.jt : step.jf;
  }
  ADD_FAILURE() << "it ends without an answer";
  return 0;
}

constexpr std::uint32_t kNo = SECCOMP_RET_ERRNO | EPERM;

TEST(ListenerFilter, NothingNamesAFileAnAddressOrAProcess) {
  for (const long number : {SYS_open,
                            SYS_openat,
                            SYS_openat2,
                            SYS_creat,
                            SYS_execve,
                            SYS_execveat,
                            SYS_fork,
                            SYS_vfork,
                            SYS_socket,
                            SYS_connect,
                            SYS_bind,
                            SYS_listen,
                            SYS_ptrace,
                            SYS_process_vm_readv,
                            SYS_process_vm_writev,
                            SYS_kill,
                            SYS_tgkill,
                            SYS_tkill,
                            SYS_pidfd_open,
                            SYS_pidfd_getfd,
                            SYS_pidfd_send_signal,
                            SYS_unlink,
                            SYS_rename,
                            SYS_chmod,
                            SYS_mount,
                            SYS_bpf,
                            SYS_keyctl,
                            SYS_io_uring_setup,
                            SYS_perf_event_open,
                            SYS_userfaultfd,
                            SYS_memfd_create,
                            SYS_setuid,
                            SYS_setresuid,
                            SYS_unshare,
                            SYS_setns,
                            SYS_chroot,
                            SYS_prlimit64,
                            SYS_seccomp,
                            SYS_readlink,
                            SYS_stat,
                            SYS_newfstatat,
                            SYS_dup,
                            SYS_shmget,
                            SYS_msgget}) {
    EXPECT_EQ(answer_to(number), kNo) << number;
  }
}

TEST(ListenerFilter, BytesMemoryAndThreadsAreAllowed) {
  for (const long number : {SYS_read, SYS_write, SYS_recvmsg, SYS_sendmsg, SYS_accept4, SYS_close,
                            SYS_epoll_wait, SYS_futex, SYS_munmap, SYS_getrandom, SYS_exit_group}) {
    EXPECT_EQ(answer_to(number), SECCOMP_RET_ALLOW) << number;
  }
}

TEST(ListenerFilter, SomeCallsAreAllowedInPart) {
  EXPECT_EQ(answer_to(SYS_mmap, {0, 0, PROT_READ | PROT_WRITE}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer_to(SYS_mmap, {0, 0, PROT_READ | PROT_EXEC}), kNo);
  EXPECT_EQ(answer_to(SYS_mprotect, {0, 0, PROT_EXEC}), kNo);
  EXPECT_EQ(answer_to(SYS_clone, {CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD}),
            SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer_to(SYS_clone, {CLONE_VM}), kNo);
  EXPECT_EQ(answer_to(SYS_clone, {17}), kNo) << "fork";
  EXPECT_EQ(answer_to(SYS_clone3), SECCOMP_RET_ERRNO | ENOSYS);
  EXPECT_EQ(answer_to(SYS_socketpair, {AF_UNIX}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer_to(SYS_socketpair, {AF_INET}), kNo);
  EXPECT_EQ(answer_to(SYS_fcntl, {0, F_SETFL}), SECCOMP_RET_ALLOW);
  EXPECT_EQ(answer_to(SYS_fcntl, {0, F_SETOWN}), kNo);
}

TEST(ListenerFilter, KnowsNoOtherWayToCall) {
  EXPECT_EQ(answer_to(SYS_read, {}, AUDIT_ARCH_I386), SECCOMP_RET_ERRNO | ENOSYS);
  EXPECT_EQ(answer_to(SYS_read | 0x40000000), kNo) << "x32";
}
#endif

}  // namespace
}  // namespace gpu_platform::listener
