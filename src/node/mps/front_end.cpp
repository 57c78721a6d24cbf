#include "node/mps/front_end.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "node/mps/control_words.h"
#include "node/mps/program_start.h"
#include "node/syscalls.h"
#include "node/user_switch.h"
#include "os/clock.h"
#include "os/descriptor.h"

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxAnswer = 64 * 1024;
constexpr int kKilledMs = 5000;  // in which a killed front end is expected to go

std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

struct ProgramPipe {
  os::Descriptor read;
  os::Descriptor write;
  bool open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return false;
    read.reset(ends[0]);
    write.reset(ends[1]);
    return true;
  }
};

// The program expects ordinary descriptors.
bool make_blocking(int fd) {
  return fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK) == 0;
}

// One run of the program.
class FrontEnd {
 public:
  FrontEnd(const MpsProgram& program, std::int64_t until_ms)
      : o_(program), user_(program.user), until_ms_(until_ms) {}

  MpsAnswer run(std::string_view commands) {
    if (!give(commands) || !output_.open() || !make_blocking(output_.write.get())) {
      return {{}, failed("give the MPS control program its input")};
    }
    if (!start()) return {{}, failed("start the MPS control program")};
    const bool has_ended = listen();
    if (!has_ended) end();
    waitpid(pid_, nullptr, WNOHANG);
    if (!has_ended) return {{}, "the MPS daemon did not answer in time"};
    std::string why = error_in_mps_contact(text_);
    return {why.empty() ? std::move(text_) : "", std::move(why)};
  }

 private:
  static std::string failed(const char* what) { return std::string(what) + ": " + strerror(errno); }

  // Before the program is there: the pipe holds all of it.
  bool give(std::string_view commands) {
    if (!input_.open()) return false;
    const std::string lines = std::string(commands) + "\n";
    const ssize_t wrote = write(input_.write.get(), lines.data(), lines.size());
    input_.write.reset();
    if (wrote >= 0) errno = E2BIG;
    return wrote == static_cast<ssize_t>(lines.size()) && make_blocking(input_.read.get());
  }

  bool start() {
    MpsStart start;
    start.words = {o_.path};
    start.environment = mps_front_end_environment(o_);
    start.user = geteuid() == 0 ? &user_ : nullptr;
    start.input = input_.read.get();
    start.output = output_.write.get();
    start.ends_with_us = true;
    int pidfd = -1;
    pid_ = fork_with_pidfd(&pidfd);
    if (pid_ == 0) become_mps_program(start);
    pidfd_.reset(pidfd);
    input_.read.reset();
    output_.write.reset();
    return pid_ > 0;
  }

  // Returns whether it ends in time.
  bool listen() {
    while (true) {
      pollfd seen[] = {{pidfd_.get(), POLLIN, 0}, {output_.read.get(), POLLIN, 0}};
      const std::int64_t left = std::max<std::int64_t>(until_ms_ - os::boot_ms(), 0);
      const int count = poll(seen, output_.read.is_open() ? 2 : 1, static_cast<int>(left));
      take_text();
      if (count > 0 && seen[0].revents != 0) return true;
      if (left == 0) return false;
    }
  }

  // More than is kept is read and dropped, so that the program can go on to its end.
  void take_text() {
    char buffer[4096];
    while (output_.read.is_open()) {
      const ssize_t got = read(output_.read.get(), buffer, sizeof buffer);
      if (got == 0) output_.read.reset();
      if (got <= 0) return;
      text_.append(buffer, std::min(static_cast<std::size_t>(got), kMaxAnswer - text_.size()));
    }
  }

  void end() const {
    signal_pidfd(pidfd_.get(), SIGKILL);
    pollfd ended{pidfd_.get(), POLLIN, 0};
    poll(&ended, 1, kKilledMs);
  }

  const MpsProgram& o_;
  UserSwitch user_;
  const std::int64_t until_ms_;
  ProgramPipe input_;
  ProgramPipe output_;
  os::Descriptor pidfd_;
  int pid_ = -1;
  std::string text_;
};

}  // namespace

std::vector<std::string> mps_front_end_environment(const MpsProgram& program) {
  return {"PATH=" + folder_of(program.path) + ":/usr/sbin:/usr/bin:/sbin:/bin",
          "CUDA_MPS_PIPE_DIRECTORY=" + program.folder + "/pipe",
          "CUDA_MPS_LOG_DIRECTORY=" + program.folder + "/log"};
}

std::vector<std::string> mps_daemon_environment(const MpsProgram& program, std::string_view gpu,
                                                const std::optional<BoardFiles>& board) {
  std::vector<std::string> environment = mps_front_end_environment(program);
  environment.push_back("CUDA_VISIBLE_DEVICES=" + std::string(gpu));
  environment.push_back("CUDA_DEVICE_ORDER=PCI_BUS_ID");
  if (!board) return environment;
  environment.push_back("GPU_EMULATOR_STATE=" + board->state);
  environment.push_back("LD_LIBRARY_PATH=" + folder_of(board->library));
  return environment;
}

MpsAnswer ask_mps_daemon(const MpsProgram& program, std::string_view commands, int timeout_ms) {
  return FrontEnd(program, os::boot_ms() + timeout_ms).run(commands);
}

}  // namespace gpu_platform::node
