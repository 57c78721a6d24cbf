#pragma once

#include <cstdint>

// Tells the emulated board that process P runs on these GPUs, which a driver would see for itself.
// It depends on libc alone and takes well under a millisecond.

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

// `uuids` are those of GPUs or of MIG devices, separated by commas. All are looked up before the
// first is changed. A process that is there already keeps what it uses. It is no error if the
// process has ended (it is not entered), nor to leave twice.
RegistrationResult change_registration(Registration what, const char* state_path, const char* uuids,
                                       std::uint64_t pid);

// What a process says that it does to each of its GPUs.
struct StatedLoad {
  std::uint64_t memory_bytes = 0;
  std::uint32_t percent = 0;  // of utilization, at most 100

  friend bool operator==(const StatedLoad&, const StatedLoad&) = default;
};

// Enters the process with this load, or changes its entry; of memory at most what is free. Nothing
// happens if the process of that start is gone.
RegistrationResult change_load(const char* state_path, const char* uuids, std::uint64_t pid,
                               std::uint64_t start_ticks, const StatedLoad& load);

}  // namespace gpu_emulator
