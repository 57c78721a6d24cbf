#include "terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace gpu_platform::e2e {

Terminal::Terminal(const std::vector<std::string>& command,
                   const std::vector<std::string>& environment) {
  winsize size{};
  size.ws_col = 80;
  size.ws_row = 24;
  if (openpty(&ours_, &theirs_, nullptr, nullptr, &size) != 0) return;
  fcntl(ours_, F_SETFD, FD_CLOEXEC);
  fcntl(ours_, F_SETFL, O_NONBLOCK);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  setsid();
  ioctl(theirs_, TIOCSCTTY, 0);
  for (int fd = 0; fd < 3; ++fd) dup2(theirs_, fd);
  close(theirs_);
  for (const std::string& entry : environment) putenv(const_cast<char*>(entry.c_str()));
  execvp(arguments.front(), arguments.data());
  _exit(127);
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(ours_);
  close(theirs_);
}

void Terminal::type(const std::string& keys) {
  std::string_view rest = keys;
  while (!rest.empty()) {
    const ssize_t wrote = write(ours_, rest.data(), rest.size());
    if (wrote > 0) {
      rest.remove_prefix(static_cast<std::size_t>(wrote));
    } else {
      read_some();
    }
  }
}

void Terminal::resize(unsigned short columns, unsigned short rows) {
  winsize size{};
  size.ws_col = columns;
  size.ws_row = rows;
  ioctl(ours_, TIOCSWINSZ, &size);
}

bool Terminal::read_some() {
  pollfd watched{ours_, POLLIN, 0};
  poll(&watched, 1, 20);
  std::array<char, 4096> bytes;
  const ssize_t got = read(ours_, bytes.data(), bytes.size());
  if (got > 0) shown_.append(bytes.data(), static_cast<std::size_t>(got));
  return got > 0;
}

bool Terminal::shows(const std::string& text) {
  return eventually(
      [&] {
        read_some();
        return shown_.find(text) != std::string::npos;
      },
      std::chrono::seconds(60));
}

int Terminal::wait() {
  int status = 0;
  const bool ended = eventually(
      [&] {
        while (read_some()) {
        }
        return waitpid(pid_, &status, WNOHANG) == pid_;
      },
      std::chrono::seconds(60));
  if (!ended) return -1;
  pid_ = -1;
  while (read_some()) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Terminal::signal(int number) const {
  kill(pid_, number);
}

bool Terminal::is_as_a_shell_has_it() const {
  termios modes{};
  return tcgetattr(theirs_, &modes) == 0 && (modes.c_lflag & ICANON) != 0 &&
         (modes.c_lflag & ECHO) != 0 && (modes.c_oflag & OPOST) != 0;
}

}  // namespace gpu_platform::e2e
