#pragma once

#include <string_view>

// What the program's exit status means; scripts rely on these numbers (docs/cli.md).

namespace gpu_platform::client {

enum ExitCode : int {
  kOk = 0,
  kFailure = 1,
  kUsage = 2,  // bad flags, bad values
  kNotFound = 3,
  kRefused = 4,  // by policy or by the state things are in
  kNoDaemon = 5,
  kTimedOut = 124,
  kInterrupted = 130,
  // Codes of `run` and `submit --wait`, which pass on the small exit codes of the job's program.
  kNoExitCode = 250,  // cancelled, timed out or lost before there was one
  kRunRefused = 251,
  kRunNoDaemon = 252,
};

// The code of `run` for an error that would end another command with `code`.
constexpr int as_run(int code) {
  if (code == kNotFound || code == kRefused) return kRunRefused;
  return code == kNoDaemon ? kRunNoDaemon : code;
}

}  // namespace gpu_platform::client
