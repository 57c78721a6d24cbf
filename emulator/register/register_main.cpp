#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "register/registration.h"

// gpu-emulator-register enter|leave STATE UUID[,UUID...] PID
// gpu-emulator-register follow
//
// The same as `gpu-emulator register` and `unregister`, for programs that start many processes: a
// static program without start-up cost. SIGALRM kills it after 5 s. `follow` reads such words from
// lines of standard input until its end, each with its own 5 s.

namespace {

int change(int count, char* const* words) {
  using gpu_emulator::Registration;
  const bool is_enter = count == 4 && strcmp(words[0], "enter") == 0;
  const bool is_leave = count == 4 && strcmp(words[0], "leave") == 0;
  char* end = nullptr;
  const unsigned long long pid = count == 4 ? strtoull(words[3], &end, 10) : 0;
  constexpr unsigned long long kMaxPid = 4'194'304;
  if ((!is_enter && !is_leave) || *end != '\0' || pid == 0 || pid > kMaxPid) {
    fputs("usage: gpu-emulator-register enter|leave STATE UUID[,UUID...] PID\n", stderr);
    return gpu_emulator::kExitUsage;
  }
  // Any user may hold the file's lock, and the program that starts a job must not wait for ever.
  constexpr unsigned kLimitSeconds = 5;
  alarm(kLimitSeconds);
  const gpu_emulator::RegistrationResult result = gpu_emulator::change_registration(
      is_enter ? Registration::kEnter : Registration::kLeave, words[1], words[2], pid);
  alarm(0);
  if (result.exit_code != gpu_emulator::kExitDone)
    fprintf(stderr, "gpu-emulator-register: %s\n", result.message);
  return result.exit_code;
}

int follow() {
  constexpr int kWords = 4;
  char line[8192];
  while (fgets(line, sizeof line, stdin) != nullptr) {
    char* words[kWords + 1] = {};
    int count = 0;
    char* rest = nullptr;
    for (char* word = strtok_r(line, " \n", &rest); word != nullptr && count <= kWords;
         word = strtok_r(nullptr, " \n", &rest)) {
      words[count++] = word;
    }
    change(count, words);
  }
  return gpu_emulator::kExitDone;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "follow") == 0) return follow();
  return change(argc - 1, argv + 1);
}
