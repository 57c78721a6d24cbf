#pragma once

#include <cstdint>

// "Process P runs on these GPUs": what a program that starts processes tells the emulated board, as
// a driver would see for itself. Depends on libc alone; takes well under a millisecond.

namespace gpu_emulator {

enum class Registration { kEnter, kLeave };

// Exit codes of the programs.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitUnknownGpu = 3;
inline constexpr int kExitRefused = 4;

struct RegistrationResult {
  int exit_code = kExitDone;
  char message[320] = {};  // empty when done
};

// `uuids` are separated by commas. All are looked for before the first is changed. A process that
// is there already keeps what it uses; one that ended is not entered and that is no error; leaving
// twice is none either.
RegistrationResult change_registration(Registration what, const char* state_path, const char* uuids,
                                       std::uint64_t pid);

}  // namespace gpu_emulator
