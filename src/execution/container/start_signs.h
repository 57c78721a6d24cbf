#pragma once

#include <cstdint>

// What the platform's first program in a container (start_main.cpp) and the process that lets it go
// on (start_hold.h) agree on.

namespace gpu_platform::execution {

// The folder of the container that has what the platform puts into it, for all its life.
inline constexpr char kStartFolder[] = "/dev/gpu-platform/";
inline constexpr char kStartProgram[] = "/dev/gpu-platform-start";
inline constexpr char kOutcome[] = "outcome";  // a FIFO
inline constexpr char kFirstWord[] = "go";     // of the container's first process

// A word is a file that begins with one of these numbers. Only root writes it.
inline constexpr std::uint32_t kWait = 0;
inline constexpr std::uint32_t kGo = 1;

// What the first process writes to the FIFO if it does not come to execute the job's program.
struct StartOutcome {
  enum class Step : std::uint32_t { kWorkdir = 1, kProgram = 2 };
  Step step = Step::kProgram;
  std::int32_t error = 0;  // of errno
};

inline constexpr int kNotExecutable = 126;
inline constexpr int kNoProgram = 127;

}  // namespace gpu_platform::execution
