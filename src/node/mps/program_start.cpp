#include "node/mps/program_start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "node/session_keyring.h"
#include "node/syscalls.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr unsigned kFirstOfOthers = 3;

[[noreturn]] void cannot(const std::string& step, int error) {
  dprintf(STDOUT_FILENO, "Cannot %s: %s\n", step.c_str(), strerror(error));
  _exit(127);
}

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

// Its own may be among the numbers of the three already.
void take_descriptors(const MpsStart& start) {
  const int input =
      start.input >= 0 ? fcntl(start.input, F_DUPFD, 10) : open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int output = fcntl(start.output, F_DUPFD, 10);
  if (dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0) _exit(127);
  if (input < 0 || dup2(input, STDIN_FILENO) < 0) cannot("open its input", errno);
  syscall(SYS_close_range, kFirstOfOthers, ~0U, 0);
}

void take_signals() {
  for (int signal = 1; signal <= SIGRTMAX; ++signal) reset_signal(signal);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

// An end with the parent is taken back by each switch, so it is asked for after it.
void become_user(const MpsStart& start) {
  if (const int error = join_new_session_keyring(); error != 0) {
    cannot("make a session keyring", -error);
  }
  if (start.user != nullptr) {
    const SwitchFailure failure = start.user->become();
    if (failure.what != nullptr)
      cannot(std::string("become its user: ") + failure.what, failure.error);
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

}  // namespace

void become_mps_program(const MpsStart& start) {
  const int parent = getppid();
  setsid();
  take_descriptors(start);
  if (start.oom_score != nullptr) {  // best effort, as for a job
    os::write_small_file(AT_FDCWD, "/proc/self/oom_score_adj", start.oom_score);
  }
  become_user(start);
  if (start.ends_with_us) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
  }
  umask(077);
  if (chdir("/") != 0) cannot("change to /", errno);
  take_signals();
  const std::string& program = start.words.front();
  execve(program.c_str(), pointers_to(start.words).data(), pointers_to(start.environment).data());
  cannot("execute " + program, errno);
}

}  // namespace gpu_platform::node
