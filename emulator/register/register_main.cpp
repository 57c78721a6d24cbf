#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "register/followed.h"
#include "register/registration.h"

// gpu-emulator-register enter|leave STATE UUID[,UUID...] PID
// gpu-emulator-register follow
//
// The same as `gpu-emulator register` and `unregister`, for programs that start many processes: a
// static program without start-up cost. SIGALRM kills it after 5 s. `follow` reads such words from
// lines of standard input until its end, each with its own 5 s, and shows the loads that entered
// processes state (stated_load.h).

namespace {

// Any user may hold the file's lock, and the program that starts a job must not wait for ever.
constexpr unsigned kLimitSeconds = 5;
// How often the loads of followed processes are read.
constexpr int kLookMs = 1000;

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
  alarm(kLimitSeconds);
  const gpu_emulator::RegistrationResult result = gpu_emulator::change_registration(
      is_enter ? Registration::kEnter : Registration::kLeave, words[1], words[2], pid);
  alarm(0);
  if (result.exit_code != gpu_emulator::kExitDone)
    fprintf(stderr, "gpu-emulator-register: %s\n", result.message);
  return result.exit_code;
}

void read_line(char* line, gpu_emulator::FollowedProcesses& followed) {
  constexpr int kWords = 4;
  char* words[kWords + 1] = {};
  int count = 0;
  char* rest = nullptr;
  for (char* word = strtok_r(line, " \n", &rest); word != nullptr && count <= kWords;
       word = strtok_r(nullptr, " \n", &rest)) {
    words[count++] = word;
  }
  const bool is_done = change(count, words) == gpu_emulator::kExitDone;
  if (is_done && strcmp(words[0], "enter") == 0) {
    followed.add(words[1], words[2], strtoull(words[3], nullptr, 10));
  }
}

// Reads lines from standard input until its end, and the stated loads of what was entered once a
// second.
int follow() {
  static gpu_emulator::FollowedProcesses followed;
  static char buffer[16384];
  std::size_t size = 0;
  while (true) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = poll(&input, 1, followed.is_empty() ? -1 : kLookMs);
    if (ready < 0 && errno != EINTR) return gpu_emulator::kExitFailed;
    if (ready <= 0) {
      alarm(kLimitSeconds);
      followed.look();
      alarm(0);
      continue;
    }
    const ssize_t got = read(STDIN_FILENO, buffer + size, sizeof buffer - 1 - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return gpu_emulator::kExitDone;
    size += static_cast<std::size_t>(got);
    buffer[size] = '\0';
    char* begin = buffer;
    for (char* end = strchr(begin, '\n'); end != nullptr; end = strchr(begin, '\n')) {
      *end = '\0';
      read_line(begin, followed);
      begin = end + 1;
    }
    size -= static_cast<std::size_t>(begin - buffer);
    memmove(buffer, begin, size);
    if (size == sizeof buffer - 1) size = 0;  // no line of ours is as long
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "follow") == 0) return follow();
  return change(argc - 1, argv + 1);
}
