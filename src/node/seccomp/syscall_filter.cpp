#include "node/seccomp/syscall_filter.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "node/raw_call.h"

namespace gpu_platform::node {

namespace {

struct Refused {
  std::uint32_t number;
  std::uint32_t error;
};

// Of the architecture that this program is built for. ENOSYS where libraries look whether the
// kernel has it and do it otherwise; EPERM where they expect to lack the right.
constexpr std::array kNative = {
    Refused{SYS_add_key, EPERM},
    Refused{SYS_request_key, EPERM},
    Refused{SYS_keyctl, EPERM},
    Refused{SYS_bpf, EPERM},
    Refused{SYS_perf_event_open, EPERM},
    Refused{SYS_userfaultfd, EPERM},
    Refused{SYS_io_uring_setup, ENOSYS},
    Refused{SYS_io_uring_enter, ENOSYS},
    Refused{SYS_io_uring_register, ENOSYS},
    Refused{SYS_kexec_load, EPERM},
    Refused{SYS_kexec_file_load, EPERM},
    Refused{SYS_reboot, EPERM},
    Refused{SYS_init_module, EPERM},
    Refused{SYS_finit_module, EPERM},
    Refused{SYS_delete_module, EPERM},
    Refused{SYS_open_by_handle_at, EPERM},
    Refused{SYS_swapon, EPERM},
    Refused{SYS_swapoff, EPERM},
    Refused{SYS_acct, EPERM},
    Refused{SYS_settimeofday, EPERM},
    Refused{SYS_clock_settime, EPERM},
    Refused{SYS_syslog, EPERM},
#if defined(__x86_64__)
    Refused{SYS_iopl, EPERM},
    Refused{SYS_ioperm, EPERM},
#endif
};

#if defined(__x86_64__)
constexpr std::uint32_t kNativeArchitecture = AUDIT_ARCH_X86_64;
constexpr std::uint32_t kX32 = 0x40000000;  // in the numbers of its calls
// The same for 32-bit programs, whose numbers no header of a 64-bit system has.
constexpr std::array kForeign = {
    Refused{286, EPERM},   // add_key
    Refused{287, EPERM},   // request_key
    Refused{288, EPERM},   // keyctl
    Refused{357, EPERM},   // bpf
    Refused{336, EPERM},   // perf_event_open
    Refused{374, EPERM},   // userfaultfd
    Refused{425, ENOSYS},  // io_uring_setup
    Refused{426, ENOSYS},  // io_uring_enter
    Refused{427, ENOSYS},  // io_uring_register
    Refused{283, EPERM},   // kexec_load
    Refused{88, EPERM},    // reboot
    Refused{128, EPERM},   // init_module
    Refused{350, EPERM},   // finit_module
    Refused{129, EPERM},   // delete_module
    Refused{342, EPERM},   // open_by_handle_at
    Refused{87, EPERM},    // swapon
    Refused{115, EPERM},   // swapoff
    Refused{51, EPERM},    // acct
    Refused{79, EPERM},    // settimeofday
    Refused{25, EPERM},    // stime
    Refused{264, EPERM},   // clock_settime
    Refused{404, EPERM},   // clock_settime64
    Refused{103, EPERM},   // syslog
    Refused{110, EPERM},   // iopl
    Refused{101, EPERM},   // ioperm
};
constexpr std::uint32_t kForeignArchitecture = AUDIT_ARCH_I386;
#elif defined(__aarch64__)
constexpr std::uint32_t kNativeArchitecture = AUDIT_ARCH_AARCH64;
#endif

constexpr sock_filter load(std::uint32_t offset) {
  return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset};
}
constexpr sock_filter answer(std::uint32_t action) {
  return {BPF_RET | BPF_K, 0, 0, action};
}
constexpr sock_filter refuse(std::uint32_t error) {
  return answer(SECCOMP_RET_ERRNO | error);
}
// Jumps over so many instructions where it holds, and where it does not.
constexpr sock_filter jump(std::uint16_t comparison, std::uint32_t value, std::size_t holds,
                           std::size_t fails) {
  return {static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K),
          static_cast<std::uint8_t>(holds), static_cast<std::uint8_t>(fails), value};
}

// The kernel walks through the program once for every number when it is installed, so that numbers
// it never refuses cost nothing later: a tree of comparisons keeps the walks, and the start of a
// job, short. A leaf compares with one number and answers; a node looks on which side to go on.
constexpr std::size_t kLeaf = 3;

template <std::size_t Size>
constexpr std::size_t size_of_tree(const std::array<Refused, Size>&) {
  return Size * kLeaf + (Size - 1);
}

struct Writer {
  sock_filter* at;

  constexpr void tree(const Refused* calls, std::size_t count) {
    if (count == 1) {
      *at++ = jump(BPF_JEQ, calls->number, 0, 1);
      *at++ = refuse(calls->error);
      *at++ = answer(SECCOMP_RET_ALLOW);
      return;
    }
    const std::size_t half = count / 2;
    sock_filter* const node = at++;
    tree(calls, half);
    *node = jump(BPF_JGE, calls[half].number, static_cast<std::size_t>(at - node - 1), 0);
    tree(calls + half, count - half);
  }
};

template <std::size_t Size>
constexpr std::array<Refused, Size> sorted(std::array<Refused, Size> calls) {
  std::ranges::sort(calls, {}, &Refused::number);
  return calls;
}

constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArchitecture = offsetof(seccomp_data, arch);

// What is of no architecture that we have a list for does not exist.
#if defined(__x86_64__)
constexpr auto kNativeSorted = sorted(kNative);
constexpr auto kForeignSorted = sorted(kForeign);
constexpr std::size_t kNativeSize = size_of_tree(kNative) + 3;
static_assert(kNativeSize <= 255, "further than a jump reaches");
constexpr auto kProgram = [] {
  std::array<sock_filter, 2 + kNativeSize + 3 + size_of_tree(kForeign)> program{};
  Writer out{program.data()};
  *out.at++ = load(kArchitecture);
  *out.at++ = jump(BPF_JEQ, kNativeArchitecture, 0, kNativeSize);
  *out.at++ = load(kNumber);
  *out.at++ = jump(BPF_JGE, kX32, 0, 1);
  *out.at++ = refuse(ENOSYS);
  out.tree(kNativeSorted.data(), kNativeSorted.size());
  *out.at++ = jump(BPF_JEQ, kForeignArchitecture, 1, 0);
  *out.at++ = refuse(ENOSYS);
  *out.at++ = load(kNumber);
  out.tree(kForeignSorted.data(), kForeignSorted.size());
  return program;
}();
#elif defined(__aarch64__)
constexpr auto kNativeSorted = sorted(kNative);
constexpr auto kProgram = [] {
  std::array<sock_filter, 4 + size_of_tree(kNative)> program{};
  Writer out{program.data()};
  *out.at++ = load(kArchitecture);
  *out.at++ = jump(BPF_JEQ, kNativeArchitecture, 1, 0);
  *out.at++ = refuse(ENOSYS);
  *out.at++ = load(kNumber);
  out.tree(kNativeSorted.data(), kNativeSorted.size());
  return program;
}();
#endif
static_assert(kProgram.size() <= BPF_MAXINSNS);

}  // namespace

std::span<const sock_filter> syscall_filter() {
  return kProgram;
}

std::string objection_to_syscall_filter() {
  std::uint32_t action = SECCOMP_RET_ERRNO;
  const long answered = raw_call(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
  if (answered == 0) return {};
  return std::string("this kernel filters no system calls: ") +
         strerror(static_cast<int>(-answered));
}

int install_syscall_filter() {
  const sock_fprog program{static_cast<unsigned short>(kProgram.size()),
                           const_cast<sock_filter*>(kProgram.data())};
  // Without the flag older kernels turn on their dearest guards against speculation as well, and
  // every job would be slower for it.
  return static_cast<int>(
      raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program));
}

}  // namespace gpu_platform::node
