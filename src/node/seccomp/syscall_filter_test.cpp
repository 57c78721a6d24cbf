#include "node/seccomp/syscall_filter.h"

#include <gtest/gtest.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <sys/prctl.h>

namespace gpu_platform::node {
namespace {

// As the kernel runs the few instructions that the filter is made of.
std::uint32_t answer_to(std::uint32_t architecture, std::uint32_t number) {
  seccomp_data data{};
  data.arch = architecture;
  data.nr = static_cast<int>(number);
  std::uint32_t loaded = 0;
  const auto program = syscall_filter();
  for (std::size_t at = 0; at < program.size(); ++at) {
    const sock_filter& step = program[at];
    switch (step.code) {
      case BPF_LD | BPF_W | BPF_ABS:
        std::memcpy(&loaded, reinterpret_cast<const char*>(&data) + step.k, sizeof loaded);
        break;
      case BPF_JMP | BPF_JEQ | BPF_K:
        at += loaded == step.k ? step.jt : step.jf;
        break;
      case BPF_JMP | BPF_JGE | BPF_K:
        at += loaded >= step.k ? step.jt : step.jf;
        break;
      case BPF_RET | BPF_K:
        return step.k;
      default:
        ADD_FAILURE() << "instruction " << step.code;
        return 0;
    }
  }
  ADD_FAILURE() << "it ends without an answer";
  return 0;
}

std::map<std::uint32_t, std::uint32_t> refused(std::uint32_t architecture) {
  std::map<std::uint32_t, std::uint32_t> errors;
  for (std::uint32_t number = 0; number < 1024; ++number) {
    const std::uint32_t answer = answer_to(architecture, number);
    if (answer != SECCOMP_RET_ALLOW) errors[number] = answer & SECCOMP_RET_DATA;
  }
  return errors;
}

#if defined(__x86_64__)
TEST(SyscallFilter, RefusesItsListAndNothingElse) {
  const std::map<std::uint32_t, std::uint32_t> expected = {
      {SYS_syslog, EPERM},
      {SYS_acct, EPERM},
      {SYS_settimeofday, EPERM},
      {SYS_swapon, EPERM},
      {SYS_swapoff, EPERM},
      {SYS_reboot, EPERM},
      {SYS_iopl, EPERM},
      {SYS_ioperm, EPERM},
      {SYS_init_module, EPERM},
      {SYS_delete_module, EPERM},
      {SYS_clock_settime, EPERM},
      {SYS_kexec_load, EPERM},
      {SYS_add_key, EPERM},
      {SYS_request_key, EPERM},
      {SYS_keyctl, EPERM},
      {SYS_perf_event_open, EPERM},
      {SYS_open_by_handle_at, EPERM},
      {SYS_finit_module, EPERM},
      {SYS_kexec_file_load, EPERM},
      {SYS_bpf, EPERM},
      {SYS_userfaultfd, EPERM},
      {SYS_io_uring_setup, ENOSYS},
      {SYS_io_uring_enter, ENOSYS},
      {SYS_io_uring_register, ENOSYS},
  };
  EXPECT_EQ(refused(AUDIT_ARCH_X86_64), expected);
}

// The numbers of 32-bit programs, from the kernel's table for them.
TEST(SyscallFilter, RefusesTheSameTo32BitPrograms) {
  const std::map<std::uint32_t, std::uint32_t> expected = {
      {25, EPERM},  {51, EPERM},  {79, EPERM},   {87, EPERM},   {88, EPERM},
      {101, EPERM}, {103, EPERM}, {110, EPERM},  {115, EPERM},  {128, EPERM},
      {129, EPERM}, {264, EPERM}, {283, EPERM},  {286, EPERM},  {287, EPERM},
      {288, EPERM}, {336, EPERM}, {342, EPERM},  {350, EPERM},  {357, EPERM},
      {374, EPERM}, {404, EPERM}, {425, ENOSYS}, {426, ENOSYS}, {427, ENOSYS},
  };
  EXPECT_EQ(refused(AUDIT_ARCH_I386), expected);
}

TEST(SyscallFilter, KnowsNoOtherWayToCall) {
  constexpr std::uint32_t kRefusal = SECCOMP_RET_ERRNO | ENOSYS;
  EXPECT_EQ(answer_to(AUDIT_ARCH_AARCH64, SYS_getpid), kRefusal);
  EXPECT_EQ(answer_to(AUDIT_ARCH_X86_64, SYS_getpid | 0x40000000), kRefusal) << "x32";
  EXPECT_EQ(answer_to(AUDIT_ARCH_X86_64, UINT32_MAX), kRefusal);
}
#endif

TEST(SyscallFilter, HoldsForAProcessAndItsChildren) {
  if (const std::string why = error_in_syscall_filter(); !why.empty()) GTEST_SKIP() << why;
  const pid_t child = fork();
  if (child == 0) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || install_syscall_filter() != 0) _exit(1);
    if (fork() == 0) _exit(syscall(SYS_io_uring_setup, 0, nullptr) < 0 && errno == ENOSYS ? 0 : 2);
    int status = 0;
    wait(&status);
    _exit(WEXITSTATUS(status));
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace gpu_platform::node
