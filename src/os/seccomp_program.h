#pragma once

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

#include <cstdint>

// The instructions of filters of system calls (seccomp(2)). All of it is constexpr: a program that
// must not allocate has its filter made when it is compiled.

namespace gpu_platform::os {

// Used as a namespace: its names are short and say little outside of it.
struct Seccomp {
#if defined(__x86_64__)
  static constexpr std::uint32_t kOwnArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  static constexpr std::uint32_t kOwnArchitecture = AUDIT_ARCH_AARCH64;
#endif

  // The places of what the kernel tells of a call.
  static constexpr std::uint32_t kNumberAt = offsetof(seccomp_data, nr);
  static constexpr std::uint32_t kArchitectureAt = offsetof(seccomp_data, arch);
  // The low half of an argument, counted from 0: it comes first on these architectures.
  static constexpr std::uint32_t argument_at(std::uint32_t argument) {
    return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8 * argument;
  }

  static constexpr std::uint32_t refused_with(std::uint32_t error) {
    return SECCOMP_RET_ERRNO | error;
  }

  static constexpr sock_filter load(std::uint32_t offset) {
    return {BPF_LD | BPF_W | BPF_ABS, 0, 0, offset};
  }
  static constexpr sock_filter keep_bits(std::uint32_t bits) {
    return {BPF_ALU | BPF_AND | BPF_K, 0, 0, bits};
  }
  static constexpr sock_filter answer(std::uint32_t action) {
    return {BPF_RET | BPF_K, 0, 0, action};
  }
  // Skips the next instructions: so many where the comparison (BPF_JEQ, BPF_JGE, BPF_JSET) of what
  // was loaded with the value holds, and so many where it does not.
  static constexpr sock_filter skip(std::uint16_t comparison, std::uint32_t value,
                                    std::uint8_t if_it_holds, std::uint8_t otherwise) {
    return {static_cast<std::uint16_t>(BPF_JMP | comparison | BPF_K), if_it_holds, otherwise,
            value};
  }
};

}  // namespace gpu_platform::os
