#include "node/mps/mps_drain.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "node/cgroup.h"
#include "node/mps/control_words.h"
#include "node/syscalls.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

// One question to the daemon, within what is left of the time.
class Asking {
 public:
  Asking(const MpsProgram& program, std::int64_t until_ms)
      : program_(program), until_ms_(until_ms) {}

  std::string ask(std::string_view command) const {
    const std::int64_t left = until_ms_ - os::boot_ms();
    if (left <= 0) return {};
    return ask_mps_daemon(program_, command, static_cast<int>(left)).text;
  }
  std::vector<int> pids(std::string_view command) const {
    return parse_mps_pids(ask(command)).pids;
  }

 private:
  const MpsProgram& program_;
  std::int64_t until_ms_;
};

}  // namespace

MpsDrain::~MpsDrain() {
  if (child_ < 0) return;
  signal_pidfd(child_, SIGKILL);
  close(child_);
}

bool MpsDrain::is_over(int cgroup, std::int64_t now_ms) {
  if (!daemon_ || cgroup < 0) return true;
  if (until_ms_ == 0) begin(cgroup, now_ms);
  if (child_ < 0) return true;
  pollfd ended{child_, POLLIN, 0};
  if (poll(&ended, 1, 0) == 0 && now_ms < until_ms_) return false;
  signal_pidfd(child_, SIGKILL);
  close(child_);
  child_ = -1;
  return true;
}

void MpsDrain::begin(int cgroup, std::int64_t now_ms) {
  until_ms_ = now_ms + kTimeoutMs;
  if (fork_with_pidfd(&child_) == 0) drain(cgroup);
}

// The supervisor's lock on the record, above all, is not for this process. Clients end one after
// the other: an end is waited for until the daemon has drained it.
void MpsDrain::drain(int cgroup) const {
  constexpr int kCgroup = 3;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (dup2(cgroup, kCgroup) < 0) _exit(1);
  syscall(SYS_close_range, kCgroup + 1, ~0U, 0);
  const Asking daemon(*daemon_, until_ms_);
  const std::vector<int> ours = pids_in_cgroup(kCgroup);
  for (const int server : daemon.pids(kMpsServers)) {
    for (const int client : daemon.pids(mps_clients_of(server))) {
      if (std::ranges::find(ours, client) != ours.end()) daemon.ask(mps_end_client(server, client));
    }
  }
  _exit(0);
}

}  // namespace gpu_platform::node
