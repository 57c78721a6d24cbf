#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "register/registration.h"

// gpu-emulator-register enter|leave STATE UUID[,UUID...] PID
//
// The same as `gpu-emulator register` and `unregister`, for programs that start many processes: a
// static program without start-up cost. Killed by SIGALRM after 5 s.

int main(int argc, char** argv) {
  using gpu_emulator::Registration;
  const bool is_enter = argc == 5 && strcmp(argv[1], "enter") == 0;
  const bool is_leave = argc == 5 && strcmp(argv[1], "leave") == 0;
  char* end = nullptr;
  const unsigned long long pid = argc == 5 ? strtoull(argv[4], &end, 10) : 0;
  constexpr unsigned long long kMaxPid = 4'194'304;
  if ((!is_enter && !is_leave) || *end != '\0' || pid == 0 || pid > kMaxPid) {
    fputs("usage: gpu-emulator-register enter|leave STATE UUID[,UUID...] PID\n", stderr);
    return gpu_emulator::kExitUsage;
  }
  // Any user may hold the file's lock: whoever starts a job must not wait for ever.
  constexpr unsigned kLimitSeconds = 5;
  alarm(kLimitSeconds);
  const gpu_emulator::RegistrationResult result = gpu_emulator::change_registration(
      is_enter ? Registration::kEnter : Registration::kLeave, argv[2], argv[3], pid);
  if (result.exit_code != gpu_emulator::kExitDone)
    fprintf(stderr, "gpu-emulator-register: %s\n", result.message);
  return result.exit_code;
}
