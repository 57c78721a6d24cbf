#include "node/seccomp/syscall_filter.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "node/raw_call.h"
#include "os/seccomp_program.h"

namespace gpu_platform::node {

namespace {

using os::Seccomp;

struct Refused {
  std::uint32_t number;
  std::uint32_t error;
};

// The calls of the architecture that this program is built for. ENOSYS is for calls that libraries
// try and replace; EPERM for calls that they expect to lack the right to.
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
constexpr std::uint32_t kX32 = 0x40000000;  // in the numbers of its calls
// The same for 32-bit programs; no header of a 64-bit system has their numbers.
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
#endif

// The kernel walks through the program once for every number when it is installed, so that numbers
// it never refuses cost nothing later, and translates it twice. A tree of comparisons keeps the
// walks short; one instruction for each call and answers that all of them share keep the program
// short. Both are part of the start of each job.
template <std::size_t Size>
struct Writer {
  static constexpr std::size_t kAllow = Size - 3;
  static constexpr std::size_t kNoRight = Size - 2;
  static constexpr std::size_t kUnknown = Size - 1;
  static_assert(Size <= 256, "further than a jump reaches");

  std::array<sock_filter, Size> program{};
  std::size_t at = 0;

  static constexpr std::size_t place_of(std::uint32_t error) {
    return error == ENOSYS ? kUnknown : kNoRight;
  }
  constexpr void load(std::uint32_t offset) { program[at++] = Seccomp::load(offset); }
  constexpr void jump(std::uint16_t comparison, std::uint32_t value, std::size_t if_it_holds,
                      std::size_t otherwise) {
    program[at] = Seccomp::skip(comparison, value, static_cast<std::uint8_t>(if_it_holds - at - 1),
                                static_cast<std::uint8_t>(otherwise - at - 1));
    ++at;
  }
  constexpr void tree(const Refused* calls, std::size_t count) {
    if (count == 1) return jump(BPF_JEQ, calls->number, place_of(calls->error), kAllow);
    const std::size_t half = count / 2;
    jump(BPF_JGE, calls[half].number, at + 1 + size_of_tree(half), at + 1);
    tree(calls, half);
    tree(calls + half, count - half);
  }
  constexpr void answers() {
    for (const std::uint32_t action :
         {SECCOMP_RET_ALLOW, Seccomp::refused_with(EPERM), Seccomp::refused_with(ENOSYS)}) {
      program[at++] = Seccomp::answer(action);
    }
  }
  static constexpr std::size_t size_of_tree(std::size_t count) { return 2 * count - 1; }
};

template <std::size_t Size>
constexpr std::array<Refused, Size> sorted(std::array<Refused, Size> calls) {
  std::ranges::sort(calls, {}, &Refused::number);
  return calls;
}

constexpr auto kNativeSorted = sorted(kNative);

// A call of an architecture without a list here does not exist.
#if defined(__x86_64__)
constexpr auto kForeignSorted = sorted(kForeign);
constexpr auto kProgram = [] {
  constexpr std::size_t kNativeSize = 2 + 2 * kNative.size() - 1;
  constexpr std::size_t kForeignSize = 2 + 2 * kForeign.size() - 1;
  using Out = Writer<2 + kNativeSize + kForeignSize + 3>;
  Out out;
  out.load(Seccomp::kArchitectureAt);
  out.jump(BPF_JEQ, Seccomp::kOwnArchitecture, out.at + 1, out.at + 1 + kNativeSize);
  out.load(Seccomp::kNumberAt);
  out.jump(BPF_JGE, kX32, Out::kUnknown, out.at + 1);
  out.tree(kNativeSorted.data(), kNativeSorted.size());
  out.jump(BPF_JEQ, kForeignArchitecture, out.at + 1, Out::kUnknown);
  out.load(Seccomp::kNumberAt);
  out.tree(kForeignSorted.data(), kForeignSorted.size());
  out.answers();
  return out.program;
}();
#elif defined(__aarch64__)
constexpr auto kProgram = [] {
  using Out = Writer<3 + 2 * kNative.size() - 1 + 3>;
  Out out;
  out.load(Seccomp::kArchitectureAt);
  out.jump(BPF_JEQ, Seccomp::kOwnArchitecture, out.at + 1, Out::kUnknown);
  out.load(Seccomp::kNumberAt);
  out.tree(kNativeSorted.data(), kNativeSorted.size());
  out.answers();
  return out.program;
}();
#endif
static_assert(kProgram.size() <= BPF_MAXINSNS);

}  // namespace

std::span<const sock_filter> syscall_filter() {
  return kProgram;
}

std::string error_in_syscall_filter() {
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
