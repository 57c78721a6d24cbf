#include "node/supervisor/supervisor.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "node/host_shutdown.h"
#include "node/owed_epilog.h"
#include "node/process_tree.h"
#include "node/record.h"
#include "node/supervisor/attempt_processes.h"
#include "node/supervisor/attempt_report.h"
#include "node/supervisor/boot_timer.h"
#include "node/supervisor/container_job.h"
#include "node/supervisor/job_start.h"
#include "node/supervisor/job_steps.h"
#include "node/supervisor/life/job_life.h"
#include "node/supervisor/output_pump.h"
#include "node/supervisor/session.h"
#include "node/supervisor/site_hook.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

constexpr int kRetryNoticeMs = 100;

LifeRules::Place place_of(const ContainerJob& container) {
  if (!container.is_given()) return LifeRules::Place::kCgroup;
  return container.is_rootless() ? LifeRules::Place::kRootlessContainer
                                 : LifeRules::Place::kContainer;
}

LifeRules rules_of(const LaunchRequest& request, const SiteHooks& hooks,
                   const ContainerJob& container) {
  LifeRules rules;
  rules.has_site_prolog = !hooks.prolog.empty();
  rules.has_site_epilog = !hooks.epilog.empty();
  rules.site_prolog_timeout_ms = hooks.prolog_timeout_ms;
  rules.site_epilog_timeout_ms = hooks.epilog_timeout_ms;
  rules.has_prolog = request.prolog.size() > 1;
  rules.has_epilog = request.epilog.size() > 1;
  rules.place = place_of(container);
  rules.start_timeout_ms = request.start_timeout_ms;
  rules.grace_ms = request.grace_ms;
  rules.time_limit_ms = request.time_limit_ms;
  rules.warning_before_ms = request.limit_signal_before_ms;
  rules.warning_signal = request.limit_signal;
  rules.warns_first_process_only = request.limit_signal_first_only;
  return rules;
}

// The hands and ears of JobLife: descriptors, processes and the clock. What is to be done, and
// when, is decided there.
class Supervisor {
 public:
  explicit Supervisor(const SupervisorOptions& options)
      : o_(options),
        request_(*options.request),
        keeps_output_(request_.output.size() <= 1),
        confinement_(*options.confinement, attempt_name(options.attempt)),
        pump_({options.folders->output, output_folder(options.attempt),
               output_name(options.attempt), request_.output_file_bytes, request_.output_files,
               request_.output_limit_bytes}),
        session_({options.attempt, options.request, options.folders->run,
                  keeps_output_ ? &pump_ : nullptr}),
        prolog_(options.folders->output, output_folder(options.attempt),
                output_name(options.attempt, "prolog")),
        epilog_(options.folders->output, output_folder(options.attempt),
                output_name(options.attempt, "epilog")),
        container_(o_, request_),
        processes_(options.base_fd, attempt_name(options.attempt)),
        report_(options.attempt, options.record_fd, options.notice_fd),
        owed_epilog_(options.folders->attempts, options.attempt),
        life_(rules_of(request_, *options.hooks, container_)) {}

  void run() {
    if (!write_beginning()) return;  // not even a record: the daemon sees that nothing was started
    if (prepare()) {
      take_signals();
      life_.set_up(os::boot_ns());
    } else {
      life_.cannot_begin(setup_error_);
    }
    act();
    while (advance()) {
      report_.retry();
      wait_for_something();
      take_signals();
      look_at_start();
      look_at_clock();
      look_at_session();
      pump_all();
      reap();
    }
    report_.retry();
    say_goodbye();
  }

 private:
  // ---- set-up

  bool write_beginning() {
    Beginning beginning;
    beginning.attempt = o_.attempt;
    beginning.boot_id = request_.boot_id;
    beginning.supervisor_pid = static_cast<std::uint32_t>(getpid());
    beginning.supervisor_ticks = start_ticks_of(getpid());
    beginning.uid = request_.user.uid;
    if (o_.base_fd >= 0) beginning.cgroup = o_.cgroup_base + "/" + attempt_name(o_.attempt);
    return report_.begin(beginning);
  }

  bool prepare() {
    sigset_t all;
    sigfillset(&all);
    signal_fd_ = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signal_fd_ < 0 || !timer_.open()) return setup_failed("make signal and timer handles");
    if (keeps_output_ && !pump_.open()) return setup_failed("make the output pipe");
    setup_error_ = session_.open();
    if (setup_error_.empty() && !container_.open())
      return setup_failed("make the files of a container's client");
    if (!setup_error_.empty()) return false;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    setup_error_ = processes_.make();
    if (setup_error_.empty()) setup_error_ = confinement_.set_up(request_, processes_.cgroup());
    return setup_error_.empty();
  }

  bool setup_failed(std::string_view what) {
    setup_error_ = std::string(what) + ": " + strerror(errno);
    return false;
  }

  void note_epilog() {
    if (owed_epilog_.note(request_)) return life_.epilog_is_noted(os::boot_ns());
    setup_failed("note the site's epilog");
    life_.cannot_begin(setup_error_);
  }

  // ---- what the life wants done

  // Does what has become possible; false when all is done.
  bool advance() {
    life_.begin_turn();
    do {
      const bool host_goes_down = life_.asks_for_host() && host_is_shutting_down();
      life_.go_on(host_goes_down, os::boot_ns());
    } while (act());
    return !life_.is_over();
  }

  // Returns whether there was anything to do. An answer's actions wait until this one is done.
  bool act() {
    if (std::exchange(is_acting_, true)) return true;
    bool was_any = false;
    while (const std::optional<LifeAction> action = life_.take_action()) {
      was_any = true;
      carry_out(*action);
    }
    is_acting_ = false;
    return was_any;
  }

  void carry_out(const LifeAction& action) {
    switch (action.kind) {
      case LifeAction::Kind::kNoteEpilog:
        return note_epilog();
      case LifeAction::Kind::kStartProgram:
        return start_program(action.program);
      case LifeAction::Kind::kSayOutOfTime:
        return say_out_of_time(action.program);
      case LifeAction::Kind::kKillProgram:
        return program(action.program).kill_now();
      case LifeAction::Kind::kTakeRoomBack:
        return life_.room_is_back(confinement_.limits().take_room_back(), os::boot_ns());
      case LifeAction::Kind::kStartStep:
        return start_step(action);
      case LifeAction::Kind::kKillStart:
        return start_->give_up();
      case LifeAction::Kind::kGiveUpStart:
        start_->give_up();
        take_start();
        return;
      case LifeAction::Kind::kSignal:
        return processes_.signal(action.signal);
      case LifeAction::Kind::kSignalInside:
        return processes_.signal_contained(action.signal);
      case LifeAction::Kind::kSignalClient:
        return container_.signal(main_pid_, action.signal);
      case LifeAction::Kind::kSignalFirst:
        return signal_first(action.signal);
      case LifeAction::Kind::kStopContainer:
        return container_.stop(main_pid_);
      case LifeAction::Kind::kKillContainer:
        return container_.kill(main_pid_);
      case LifeAction::Kind::kKill:
        return processes_.kill();
      case LifeAction::Kind::kReap:
        return reap();
      case LifeAction::Kind::kGiveRoom:
        return processes_.give_room();
      case LifeAction::Kind::kEndOutput:
        return end_output();
      case LifeAction::Kind::kBeginSession:
        return session_.begin(os::boot_ns());
      case LifeAction::Kind::kEndSession:
        return end_session();
      case LifeAction::Kind::kRecordStart:
        return record_start(action.is_first);
      case LifeAction::Kind::kRecordEnd:
        return record_end();
      case LifeAction::Kind::kRecordCleaned:
        return report_.write(encode_slot(CleanedRecord{os::wall_now(), epilog_.failure()}));
      case LifeAction::Kind::kTell:
        return tell(action.notice);
      case LifeAction::Kind::kLook:
        return look_for_processes(cgroup_after(action));
      case LifeAction::Kind::kWatch:
        return watch_processes(cgroup_after(action));
      case LifeAction::Kind::kRemoveCgroup:
        return processes_.remove();
      case LifeAction::Kind::kRemoveGroups:
        pump_all();  // what the last processes wrote
        return confinement_.remove_groups();
      case LifeAction::Kind::kForgetEpilog:
        return owed_epilog_.remove();
      case LifeAction::Kind::kRemoveFolders:
        confinement_.remove_folder();
        return container_.remove_groups();
    }
  }

  // ---- the site's programs

  SiteHook& program(SiteProgram which) { return which == SiteProgram::kProlog ? prolog_ : epilog_; }

  void start_program(SiteProgram which) {
    const bool is_prolog = which == SiteProgram::kProlog;
    SiteHook::Options options;
    options.file = is_prolog ? o_.hooks->prolog : o_.hooks->epilog;
    options.environment = hook_environment(is_prolog ? "prolog" : "epilog", o_.attempt, request_);
    if (!is_prolog) {
      processes_.give_room();
      confinement_.drop_mounts();  // the memory of its /dev/shm is not to be the epilog's
      owed_epilog_.mark_begun();
      add_end(end_, options.environment);
    }
    options.cgroup_fd = processes_.cgroup();
    options.entrances = &confinement_.limits().entrances();
    options.oom_score = o_.oom_score;
    confinement_.limits().give_site_room();  // where that fails, it has the job's
    program(which).start(options);
    if (program(which).has_ended()) tell_end_of(which);
  }

  void say_out_of_time(SiteProgram which) {
    program(which).is_out_of_time(which == SiteProgram::kProlog ? o_.hooks->prolog_timeout_ms
                                                                : o_.hooks->epilog_timeout_ms);
  }

  void tell_end_of(SiteProgram which) { life_.program_ended(which, program(which).failure()); }

  // ---- the job's steps

  void start_step(const LifeAction& action) {
    start_ = std::make_unique<JobStart>(start_options(action));
    if (!start_->begin()) start_is_over();
  }

  JobStartOptions start_options(const LifeAction& action) {
    JobStartOptions options;
    options.command = command_of(request_, action.step);
    options.more_environment = environment_of(action.step, life_.end());
    options.is_later = !action.is_first;
    options.request = &request_;
    options.output_fd = keeps_output_ ? pump_.write_end() : -1;
    if (action.step == JobStep::kCommand) {  // people attach to that alone
      options.input_fd = session_.job_input();
      if (session_.job_output() >= 0) options.output_fd = session_.job_output();
    }
    options.cgroup_fd = processes_.cgroup();
    options.confinement = &confinement_;
    options.oom_score = o_.oom_score;
    if (life_.is_in_container()) {
      options.container = container_.start();
      options.cgroup_fd = -1;  // the engine puts the container there, and that alone
    }
    return options;
  }

  void look_at_start() {
    if (start_ != nullptr && start_->is_over()) start_is_over();
    act();
  }

  void start_is_over() {
    const std::unique_ptr<JobStart> start = take_start();
    if (start->was_executed()) {
      main_pid_ = start->pid();
      started_.pid = static_cast<std::uint32_t>(main_pid_);
      return life_.step_started(os::boot_ns());
    }
    if (start->pid() > 0) wait_for(start->pid());  // it is on its last few steps
    FailedStart failed;
    failed.exit_code = static_cast<std::uint8_t>(start->exit_code());
    failed.detail = start->detail();
    // On its way it is in the job's groups already.
    failed.has_run_out = start->was_killed() && confinement_.limits().ran_out_of_memory();
    life_.step_not_started(failed);
  }

  std::unique_ptr<JobStart> take_start() {
    const int mounts = start_->take_mounts();
    if (mounts >= 0) confinement_.hold_mounts(mounts);
    return std::move(start_);
  }

  static void wait_for(int pid) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  // Not reaped yet, so the number is still its own.
  void signal_first(int signal) const {
    if (main_pid_ > 0) kill(main_pid_, signal);
  }

  void reap() {
    while (const auto exited = processes_.next_exited()) {
      for (const SiteProgram each : {SiteProgram::kProlog, SiteProgram::kEpilog}) {
        if (exited->pid != program(each).pid()) continue;
        program(each).ended(exited->status);
        tell_end_of(each);
      }
      // It had executed its program, or has failed.
      if (start_ != nullptr && exited->pid == start_->pid()) look_at_start();
      if (exited->pid == main_pid_) step_has_ended(exited->status, exited->usage);
      act();
    }
  }

  void step_has_ended(int status, const rusage& usage) {
    main_pid_ = -1;
    StepEnd end;
    end.kind = WIFSIGNALED(status) ? EndKind::kSignalled : EndKind::kExited;
    end.value =
        static_cast<std::uint8_t>(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    end.peak_memory = base::Bytes(usage.ru_maxrss * 1024);
    end.has_run_out = confinement_.limits().ran_out_of_memory() || container_.ran_out_of_memory();
    end.could_not_execute = container_.could_not_execute(end.kind, end.value);
    end.failure_of_container = container_.failure();
    life_.step_ended(end);
  }

  // ---- the loop

  void wait_for_something() {
    const int empty_fd = life_.is_clearing() ? processes_.handle() : -1;
    pollfd fds[7 + Session::kHandles] = {
        {signal_fd_, POLLIN, 0},       {timer_.handle(), POLLIN, 0},
        {pump_.read_end(), POLLIN, 0},  // -1 is skipped
        {prolog_.output(), POLLIN, 0}, {epilog_.output(), POLLIN, 0},
        {empty_fd, POLLPRI, 0},        {start_ != nullptr ? start_->handle() : -1, POLLIN, 0}};
    session_.watch(fds + 7);
    set_timer();
    poll(fds, std::size(fds), report_.has_unsent() ? kRetryNoticeMs : -1);
    // Only to make it quiet again: the life decides.
    if ((fds[1].revents & POLLIN) != 0) timer_.quiet();
  }

  // For the earliest of what is to come; without anything it stays quiet.
  void set_timer() {
    const std::int64_t life = life_.wake_at();
    const std::int64_t session = session_.wake_at();
    timer_.set(life == 0 || (session != 0 && session < life) ? session : life);
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      // Anything else that reaches us, SIGTERM of a stopping service first, changes nothing.
      if (info.ssi_code != SI_QUEUE) continue;
      const int number = static_cast<int>(info.ssi_signo);
      if (number == stop_signal_number()) {
        look_at_start();
        if (life_.has_started()) reap();
        life_.stop_ordered(unpack(info.ssi_ptr), doing(), os::boot_ns());
      } else if (number == limit_signal_number()) {
        life_.limit_changed(info.ssi_ptr);
      } else if (number == send_signal_number()) {
        catch_up();
        life_.signal_asked(info.ssi_ptr);
      }
      act();
    }
  }

  void look_at_clock() {
    if (life_.is_warning_due(os::boot_ns())) catch_up();
    life_.time_passed(doing(), os::boot_ns());
    act();
  }

  void look_at_session() {
    session_.work(os::boot_ns());
    if (!session_.is_idle(os::boot_ns())) return;
    catch_up();
    life_.job_is_idle(os::boot_ns());
    act();
  }

  // What is asked now is for the step that is there now.
  void catch_up() {
    look_at_start();
    reap();
    life_.start_due_step(os::boot_ns());
    act();
  }

  std::string doing() const { return start_ != nullptr ? start_->doing() : std::string(); }

  void pump_all() {
    pump_.pump();
    prolog_.pump();
    epilog_.pump();
  }

  // ---- what is left

  static AttemptProcesses::Cgroup cgroup_after(const LifeAction& action) {
    return action.keeps_cgroup ? AttemptProcesses::Cgroup::kKeep
                               : AttemptProcesses::Cgroup::kRemove;
  }

  void look_for_processes(AttemptProcesses::Cgroup cgroup) {
    if (processes_.are_gone(cgroup)) {
      life_.processes_gone(os::boot_ns());
    } else {
      life_.processes_left(os::boot_ns());
    }
  }

  void watch_processes(AttemptProcesses::Cgroup cgroup) {
    const bool are_gone = processes_.cgroup() >= 0 && !processes_.watch(cgroup);
    if (are_gone) life_.processes_gone(os::boot_ns());
  }

  // A session still passes on what it reads.
  void end_output() {
    if (!request_.takes_input) pump_.close_write_end();
  }

  void end_session() {
    const bool was_signalled = life_.end().kind == EndKind::kSignalled;
    session_.end(was_signalled ? model::ChannelEnd::kSignalled : model::ChannelEnd::kExited,
                 life_.end().value, os::boot_ns());
    pump_.pump();  // all that it wrote is kept before its end is told
  }

  // Everything of the job is gone and recorded, but a client still reads its output.
  void say_goodbye() {
    while (session_.is_talking()) {
      pollfd fds[1 + Session::kHandles] = {{timer_.handle(), POLLIN, 0}};
      session_.watch(fds + 1);
      set_timer();
      poll(fds, std::size(fds), -1);
      session_.work(os::boot_ns());
    }
  }

  // ---- what is recorded and told

  void record_start(bool is_first) {
    if (processes_.cgroup() < 0) started_.start_ticks = start_ticks_of(main_pid_);
    if (is_first) started_.at = os::wall_now();
    report_.write(encode_slot(started_));
  }

  void record_end() {
    end_ = life_.end();
    end_.at = os::wall_now();
    if (life_.has_started()) measure_usage();
    if (pump_.dropped_bytes() > 0) {
      add_detail(std::to_string(pump_.dropped_bytes()) +
                 " bytes of output could not be stored: " + strerror(pump_.drop_error()));
    } else if (pump_.is_cut()) {
      add_detail("it printed more than the platform keeps of an attempt (execution.output_limit)");
    }
    report_.write(encode_slot(end_));
  }

  void measure_usage() {
    end_.cpu_time = processes_.cpu_time();
    std::optional<std::uint64_t> peak = confinement_.limits().peak_memory_bytes();
    // Nothing is less than any number.
    peak = std::max(peak, container_.peak_memory_bytes());
    if (peak) end_.peak_memory = base::Bytes(static_cast<std::int64_t>(*peak));
  }

  void add_detail(const std::string& detail) {
    end_.detail += (end_.detail.empty() ? "" : "; ") + detail;
  }

  void tell(Notice::Kind kind) {
    Notice notice;
    notice.kind = kind;
    if (kind == Notice::Kind::kStarted || kind == Notice::Kind::kEntered) {
      notice.started = started_;
    } else if (kind == Notice::Kind::kEnded || kind == Notice::Kind::kCleaned) {
      notice.end = end_;
      notice.has_detail = !end_.detail.empty();
      notice.epilog_failed = !epilog_.failure().empty();
      notice.ended_too = kind == Notice::Kind::kCleaned;
    }
    report_.send(notice);
  }

  const SupervisorOptions& o_;
  const LaunchRequest& request_;
  const bool keeps_output_;
  JobConfinement confinement_;
  OutputPump pump_;
  Session session_;
  SiteHook prolog_;
  SiteHook epilog_;
  ContainerJob container_;
  AttemptProcesses processes_;
  AttemptReport report_;
  OwedEpilog owed_epilog_;
  JobLife life_;
  bool is_acting_ = false;
  std::string setup_error_;
  int signal_fd_ = -1;
  BootTimer timer_;
  std::unique_ptr<JobStart> start_;  // of a step that is on its way
  int main_pid_ = -1;                // of the step that runs, until it is reaped
  StartedRecord started_;
  EndRecord end_;  // as it was recorded
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
