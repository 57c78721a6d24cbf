#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <iterator>
#include <string>
#include <vector>

#include "node/boot_timer.h"
#include "node/owed_epilog.h"
#include "node/supervisor/attempt_processes.h"
#include "node/supervisor/attempt_report.h"
#include "node/supervisor/site_hook.h"
#include "node/supervisor/supervisor.h"
#include "node/time_limit.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

constexpr std::uint64_t kRepeatKillMs = 200;
constexpr const char* kLost = "GPU_PLATFORM_END=SUPERVISOR_LOST";

std::int64_t after_ms(std::uint64_t ms) {
  return os::boot_ns() + in_ns(ms);
}

class LostEpilog {
 public:
  LostEpilog(const SupervisorOptions& options, const std::optional<EndRecord>& end)
      : o_(options),
        end_(end),
        confinement_(*options.confinement, attempt_name(options.attempt)),
        processes_(options.base_fd, attempt_name(options.attempt)),
        report_(options.attempt, options.record_fd, options.notice_fd),
        epilog_(options.folders->output, output_folder(options.attempt),
                output_name(options.attempt, "epilog")) {}

  void run() {
    std::string why = prepare();
    if (why.empty()) {
      run_epilog();
      why = epilog_.failure();
    }
    clear();
    confinement_.remove_groups();
    report_.write(encode_slot(CleanedRecord{os::wall_now(), why}));
    OwedEpilog(o_.folders->attempts, o_.attempt).remove();
    Notice notice;
    notice.kind = Notice::Kind::kCleaned;
    notice.epilog_failed = !why.empty();
    report_.send(notice);  // if it is lost, the daemon asks what is left
  }

 private:
  std::string prepare() {
    sigset_t all;
    sigfillset(&all);
    signal_fd_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0 || !timer_.open()) {
      return std::string("make signal and timer handles: ") + strerror(errno);
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    std::string why = processes_.make();
    return why.empty() ? confinement_.set_up(*o_.request, processes_.cgroup()) : why;
  }

  void run_epilog() {
    SiteHook::Options options;
    options.file = o_.hooks->epilog;
    for (const std::string_view entry : o_.request->environment) {
      options.environment.emplace_back(entry.data());
    }
    if (end_) {
      add_end(*end_, options.environment);
    } else {
      options.environment.emplace_back(kLost);
    }
    options.cgroup_fd = processes_.cgroup();
    options.entrances = &confinement_.limits().entrances();
    options.oom_score = o_.oom_score;
    confinement_.limits().give_site_room();
    epilog_.start(options);
    std::int64_t until = after_ms(o_.hooks->epilog_timeout_ms);
    bool is_late = false;
    while (!epilog_.has_ended()) {
      wait_until(until);
      reap();
      if (epilog_.has_ended() || os::boot_ns() < until) continue;
      if (!is_late) epilog_.is_out_of_time(o_.hooks->epilog_timeout_ms);
      is_late = true;
      processes_.kill();
      epilog_.kill_now();
      until = after_ms(kRepeatKillMs);
    }
  }

  // What the epilog has left is killed.
  void clear() {
    while (true) {
      reap();
      if (processes_.are_gone(AttemptProcesses::Cgroup::kRemove)) return;
      if (processes_.cgroup() >= 0 && !processes_.watch(AttemptProcesses::Cgroup::kRemove)) return;
      processes_.kill();
      wait_until(after_ms(kRepeatKillMs));
    }
  }

  void wait_until(std::int64_t at) {
    timer_.set(at);
    pollfd fds[] = {{signal_fd_, POLLIN, 0},
                    {timer_.handle(), POLLIN, 0},
                    {epilog_.output(), POLLIN, 0},  // -1 is skipped
                    {processes_.handle(), POLLPRI, 0}};
    poll(fds, std::size(fds), -1);
    if ((fds[1].revents & POLLIN) != 0) timer_.quiet();
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    }
    epilog_.pump();
  }

  void reap() {
    while (const auto exited = processes_.next_exited()) {
      if (exited->pid == epilog_.pid()) epilog_.ended(exited->status);
    }
  }

  const SupervisorOptions& o_;
  const std::optional<EndRecord>& end_;
  JobConfinement confinement_;
  AttemptProcesses processes_;
  AttemptReport report_;
  SiteHook epilog_;
  BootTimer timer_;
  int signal_fd_ = -1;
};

}  // namespace

void run_lost_epilog(const SupervisorOptions& options, const std::optional<EndRecord>& end) {
  take_own_place(options);
  LostEpilog(options, end).run();
  _exit(0);
}

}  // namespace gpu_platform::node
