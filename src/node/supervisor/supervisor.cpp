#include "node/supervisor/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "node/boot_timer.h"
#include "node/host_shutdown.h"
#include "node/supervisor/attempt_executor.h"
#include "node/supervisor/life/job_life.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

constexpr int kRetryNoticeMs = 100;

LifeRules::Place place_of(const SupervisorOptions& options) {
  if (!options.request->container.is_given()) return LifeRules::Place::kCgroup;
  return options.containers.cluster.empty() ? LifeRules::Place::kContainer
                                            : LifeRules::Place::kRootlessContainer;
}

LifeRules rules_of(const SupervisorOptions& options) {
  const LaunchRequest& request = *options.request;
  const SiteHooks& hooks = *options.hooks;
  LifeRules rules;
  rules.has_site_prolog = !hooks.prolog.empty();
  rules.has_site_epilog = !hooks.epilog.empty();
  rules.site_prolog_timeout_ms = hooks.prolog_timeout_ms;
  rules.site_epilog_timeout_ms = hooks.epilog_timeout_ms;
  rules.has_prolog = request.prolog.size() > 1;
  rules.has_epilog = request.epilog.size() > 1;
  rules.place = place_of(options);
  rules.start_timeout_ms = request.start_timeout_ms;
  rules.grace_ms = request.grace_ms;
  rules.time_limit_ms = request.time_limit_ms;
  rules.warning_before_ms = request.limit_signal_before_ms;
  rules.warning_signal = request.limit_signal;
  rules.warns_first_process_only = request.limit_signal_first_only;
  return rules;
}

// Waits for what happens to an attempt, and tells it to the attempt's life: signals, time, and what
// AttemptExecutor finds.
class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options)
      : life_(rules_of(options)), attempt_(options, life_) {}

  void run() {
    // Not even a record: the daemon sees that nothing was started.
    if (!attempt_.write_beginning()) return;
    const std::string why = prepare();
    if (why.empty()) {
      take_signals();
      life_.set_up(os::boot_ns());
    } else {
      life_.cannot_begin(why);
    }
    attempt_.act();
    while (advance()) {
      attempt_.report().retry();
      wait_for_something();
      take_signals();
      attempt_.look_at_start();
      look_at_clock();
      attempt_.look_at_session();
      attempt_.pump_all();
      attempt_.reap();
    }
    attempt_.report().retry();
    say_goodbye();
  }

 private:
  std::string prepare() {
    sigset_t all;
    sigfillset(&all);
    signal_fd_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0 || !timer_.open()) {
      return std::string("make signal and timer handles: ") + strerror(errno);
    }
    return attempt_.prepare();
  }

  // Does what has become possible; false when all is done.
  bool advance() {
    life_.begin_turn();
    do {
      const bool host_goes_down = life_.asks_for_host() && host_is_shutting_down();
      life_.go_on(host_goes_down, os::boot_ns());
    } while (attempt_.act());
    return !life_.is_over();
  }

  void wait_for_something() {
    pollfd fds[2 + AttemptExecutor::kHandles] = {{signal_fd_, POLLIN, 0},
                                                 {timer_.handle(), POLLIN, 0}};
    attempt_.watch(fds + 2);
    set_timer();
    poll(fds, std::size(fds), attempt_.report().has_unsent() ? kRetryNoticeMs : -1);
    // Only to make it quiet again: the life decides.
    if ((fds[1].revents & POLLIN) != 0) timer_.quiet();
  }

  // For the earliest of what is to come; without anything it stays quiet.
  void set_timer() {
    const std::int64_t life = life_.wake_at();
    const std::int64_t session = attempt_.session().wake_at();
    timer_.set(life == 0 || (session != 0 && session < life) ? session : life);
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      // Anything else that reaches us, SIGTERM of a stopping service first, changes nothing.
      if (info.ssi_code == SI_QUEUE) take_order(static_cast<int>(info.ssi_signo), info.ssi_ptr);
    }
  }

  void take_order(int number, std::uint64_t bits) {
    if (number == stop_signal_number()) {
      attempt_.look_at_start();
      if (life_.has_started()) attempt_.reap();
      life_.stop_ordered(unpack(bits), attempt_.doing(), os::boot_ns());
    } else if (number == limit_signal_number()) {
      life_.limit_changed(bits);
    } else if (number == send_signal_number()) {
      attempt_.catch_up();
      life_.signal_asked(bits);
    } else if (number == warning_signal_number()) {
      attempt_.warn(unpack_warning(bits));
    }
    attempt_.act();
  }

  void look_at_clock() {
    if (life_.is_warning_due(os::boot_ns())) attempt_.catch_up();
    life_.time_passed(attempt_.doing(), os::boot_ns());
    attempt_.act();
  }

  // Everything of the job is gone and recorded, but a client still reads its output.
  void say_goodbye() {
    Session& session = attempt_.session();
    while (session.is_talking()) {
      pollfd fds[1 + Session::kHandles] = {{timer_.handle(), POLLIN, 0}};
      session.watch(fds + 1);
      set_timer();
      poll(fds, std::size(fds), -1);
      session.work(os::boot_ns());
    }
  }

  JobLife life_;
  AttemptExecutor attempt_;
  BootTimer timer_;
  int signal_fd_ = -1;
};

}  // namespace

void take_own_place(const SupervisorOptions& options) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  struct sigaction regular{};
  regular.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &regular, nullptr);
  setsid();
  prctl(PR_SET_NAME, "gp-supervisor");
  if (options.title.empty()) return;
  const std::string title = "gp-supervisor " + attempt_name(options.attempt);
  const std::size_t size = std::min(title.size(), options.title.size() - 1);
  memset(options.title.data(), 0, options.title.size());
  memcpy(options.title.data(), title.data(), size);
}

void run_supervisor(const SupervisorOptions& options) {
  take_own_place(options);
  Supervisor(options).run();
  _exit(0);
}

}  // namespace gpu_platform::node
