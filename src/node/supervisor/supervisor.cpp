#include "node/supervisor/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "model/job_signal.h"
#include "node/cgroup.h"
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
#include "node/supervisor/output_pump.h"
#include "node/supervisor/session.h"
#include "node/supervisor/site_hook.h"
#include "node/time_limit.h"
#include "os/clock.h"
#include "os/small_file.h"

namespace gpu_platform::node {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kRepeatKill = kSecond / 5;  // where cgroup.kill is missing or processes hang
constexpr int kRetryNoticeMs = 100;

std::int64_t after_ms(std::uint64_t ms) {
  return os::boot_ns() + in_ns(ms);
}

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
        steps_(request_),
        prolog_(options.folders->output, output_folder(options.attempt),
                output_name(options.attempt, "prolog")),
        epilog_(options.folders->output, output_folder(options.attempt),
                output_name(options.attempt, "epilog")),
        container_(o_, request_),
        limit_(request_.time_limit_ms, request_.limit_signal_before_ms),
        processes_(options.base_fd, attempt_name(options.attempt)),
        report_(options.attempt, options.record_fd, options.notice_fd),
        owed_epilog_(options.folders->attempts, options.attempt) {}

  void run() {
    if (!write_beginning()) return;  // not even a record: the daemon sees that nothing was started
    if (!prepare()) {
      finish_unstarted(0, setup_error_);
      return;
    }
    take_signals();
    if (cause_ != EndCause::kItself) {  // stopped before it began
      finish_unstarted(0, "stopped before it was started");
      return;
    }
    if (!note_epilog()) {
      finish_unstarted(0, setup_error_);
      return;
    }
    begin();
    while (advance()) {
      report_.retry();
      wait_for_something();
      take_signals();
      look_at_start();
      if (warn_at_ != 0 && os::boot_ns() >= warn_at_) warn();
      if (start_by_ != 0 && os::boot_ns() >= start_by_) {
        give_up_start("not done after " + std::to_string(request_.start_timeout_ms / 1000) + " s");
      }
      if (deadline_ != 0 && os::boot_ns() >= deadline_) deadline_passed();
      session_.work(os::boot_ns());
      if (session_.is_idle(os::boot_ns())) end_idle();
      pump_all();
      reap();
    }
    report_.retry();
    say_goodbye();
  }

 private:
  enum class Phase { kSetUp, kProlog, kJob, kClearing, kEpilog, kOver };

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

  // From here on it is run, also without us.
  bool note_epilog() {
    if (o_.hooks->epilog.empty() || owed_epilog_.note(request_)) return true;
    return setup_failed("note the site's epilog");
  }

  void finish_unstarted(std::uint8_t code, std::string detail) {
    processes_.remove();
    end_unstarted(code, std::move(detail));
    record_end();
    finish();
  }

  // ---- the phases

  void begin() {
    if (o_.hooks->prolog.empty()) {
      begin_job();
    } else {
      phase_ = Phase::kProlog;
      begin_hook(prolog_, o_.hooks->prolog, "prolog", o_.hooks->prolog_timeout_ms);
    }
  }

  // Does what has become possible; false when all is done.
  bool advance() {
    if (phase_ == Phase::kProlog && prolog_.has_ended()) prolog_has_ended();
    if (phase_ == Phase::kJob && next_step_) start_next_step();
    if (is_lost_with_host()) return false;
    if (phase_ == Phase::kJob && main_ended_) {
      end_session();
      pump_.pump();  // all that it wrote is kept before its end is told
      record_end();
      phase_ = Phase::kClearing;
    }
    if (phase_ == Phase::kClearing && clean()) needs_epilog() ? begin_epilog() : finish();
    if (phase_ == Phase::kEpilog && epilog_.has_ended()) {
      phase_ = Phase::kClearing;
      if (clean()) finish();
    }
    if (end_recorded_ && !end_told_) tell_end(Notice::Kind::kEnded);
    return phase_ != Phase::kOver;
  }

  // The host ends what it runs: no end of the job's own, and none of the site's programs. Without a
  // record of it the daemon finds, when it is back, that the attempt was lost with its node.
  bool is_lost_with_host() const {
    const bool job_ended = phase_ == Phase::kJob && main_ended_ &&
                           (cause_ == EndCause::kItself || cause_ == EndCause::kPrologFailed);
    const bool epilog_ended = phase_ == Phase::kEpilog && epilog_.has_ended();
    return (job_ended || epilog_ended) && host_is_shutting_down();
  }

  void begin_hook(SiteHook& hook, const std::string& file, std::string_view name,
                  std::uint64_t timeout_ms) {
    SiteHook::Options options;
    options.file = file;
    options.environment = hook_environment(name, o_.attempt, request_);
    if (phase_ == Phase::kEpilog) add_end(end_, options.environment);
    options.cgroup_fd = processes_.cgroup();
    options.entrances = &confinement_.limits().entrances();
    options.oom_score = o_.oom_score;
    confinement_.limits().give_site_room();  // where that fails, it has the job's
    hook.start(options);
    arm(after_ms(timeout_ms));
  }

  void prolog_has_ended() {
    arm(0);
    const bool may_begin = cause_ == EndCause::kItself && prolog_.failure().empty();
    const std::string why = may_begin ? confinement_.limits().take_room_back() : std::string();
    if (may_begin && why.empty()) {
      begin_job();
      return;
    }
    begin_kill();  // what it may have left
    phase_ = Phase::kJob;
    if (may_begin) {
      cause_ = EndCause::kOutOfMemory;
      end_unstarted(0, "after the site's prolog its memory is more than the job's limit: " + why);
      return;
    }
    if (cause_ == EndCause::kItself) cause_ = EndCause::kPrologFailed;
    end_unstarted(0, cause_ == EndCause::kPrologFailed ? "the site's prolog: " + prolog_.failure()
                                                       : "stopped during the site's prolog");
  }

  void begin_job() {
    phase_ = Phase::kJob;
    next_step_ = steps_.first();
    start_next_step();
  }

  void begin_epilog() {
    phase_ = Phase::kEpilog;
    has_begun_epilog_ = true;
    killing_ = false;
    in_grace_ = false;
    processes_.give_room();
    confinement_.drop_mounts();  // the memory of its /dev/shm is not to be the epilog's
    owed_epilog_.mark_begun();
    begin_hook(epilog_, o_.hooks->epilog, "epilog", o_.hooks->epilog_timeout_ms);
  }

  bool needs_epilog() const { return !o_.hooks->epilog.empty() && !has_begun_epilog_; }

  void finish() {
    pump_all();  // what the last processes wrote
    confinement_.remove_groups();
    record_cleaned();
    if (has_begun_epilog_) owed_epilog_.remove();
    // Afterwards, so that nothing waits for it.
    confinement_.remove_folder();
    container_.remove_groups();
    phase_ = Phase::kOver;
  }

  void pump_all() {
    pump_.pump();
    prolog_.pump();
    epilog_.pump();
  }

  // ---- the job's steps

  void start_next_step() {
    step_ = *std::exchange(next_step_, std::nullopt);
    if (step_ == JobStep::kCommand && cause_ != EndCause::kItself) {
      // Stopped during its prolog, which did well nevertheless: the command did not.
      end_.kind = EndKind::kSignalled;
      end_.value = SIGTERM;
      end_job(JobSteps::told(JobStep::kProlog, "stopped while it ran"));
      return;
    }
    if (killing_) {  // no time is left for an epilog
      end_job({});
      return;
    }
    start_ = std::make_unique<JobStart>(start_options());
    if (start_->begin()) {
      start_by_ = after_ms(request_.start_timeout_ms);
    } else {
      start_is_over();
    }
  }

  JobStartOptions start_options() {
    JobStartOptions options;
    options.command = steps_.command_of(step_);
    options.more_environment = JobSteps::environment_of(step_, end_);
    options.is_later = has_started_;
    options.request = &request_;
    options.output_fd = keeps_output_ ? pump_.write_end() : -1;
    if (step_ == JobStep::kCommand) {  // people attach to that alone
      options.input_fd = session_.job_input();
      if (session_.job_output() >= 0) options.output_fd = session_.job_output();
    }
    options.cgroup_fd = processes_.cgroup();
    options.confinement = &confinement_;
    options.oom_score = o_.oom_score;
    if (is_in_container()) {
      options.container = container_.start();
      options.cgroup_fd = -1;  // the engine puts the container there, and that alone
    }
    return options;
  }

  // The steps around the command are the node's, whatever the command runs in.
  bool is_in_container() const { return container_.is_given() && step_ == JobStep::kCommand; }
  // Its client is not killed: the container would stay.
  bool is_in_rootless_container() const {
    return is_in_container() && container_.is_rootless() && main_pid_ > 0;
  }
  bool is_starting() const { return start_ != nullptr; }

  void look_at_start() {
    if (is_starting() && start_->is_over()) start_is_over();
  }

  void start_is_over() {
    const std::unique_ptr<JobStart> start = take_start();
    if (steps_.is_last(step_)) no_more_writers();
    if (start->was_executed()) {
      step_has_started(start->pid());
      return;
    }
    if (start->pid() > 0) wait_for(start->pid());  // it is on its last few steps
    std::string detail = start->detail();
    // On its way it is in the job's groups already.
    const bool ran_out = start->was_killed() && confinement_.limits().ran_out_of_memory();
    if (ran_out) detail += ": out of memory";
    if (step_ == JobStep::kEpilog) {
      end_job(JobSteps::told(step_, detail));
    } else {
      if (ran_out && cause_ == EndCause::kItself) cause_ = EndCause::kOutOfMemory;
      end_unstarted(static_cast<std::uint8_t>(start->exit_code()), JobSteps::told(step_, detail));
    }
  }

  std::unique_ptr<JobStart> take_start() {
    start_by_ = 0;
    const int mounts = start_->take_mounts();
    if (mounts >= 0) confinement_.hold_mounts(mounts);
    return std::move(start_);
  }

  // Nothing of the step has run, and what hangs on the way to it is killed. One that the kernel
  // does not let go of, because its file system does not answer, is waited for like any process
  // that is left; the end of the attempt is told before.
  void give_up_start(const std::string& why) {
    const std::string detail = JobSteps::told(step_, start_->doing() + ": " + why);
    start_->give_up();
    take_start();
    begin_kill();
    if (step_ == JobStep::kEpilog) {
      end_job(detail);
    } else if (has_started_) {
      end_.kind = EndKind::kSignalled;
      end_.value = SIGKILL;
      end_.cause = cause_;
      end_job(detail);
    } else {
      end_unstarted(0, detail);
    }
  }

  // The start of the first step is the job's start. For later steps the record names the process
  // that a command joins.
  void step_has_started(int pid) {
    main_pid_ = pid;
    started_.pid = static_cast<std::uint32_t>(main_pid_);
    if (processes_.cgroup() < 0) started_.start_ticks = start_ticks_of(main_pid_);
    if (!has_started_) started_.at = os::wall_now();
    report_.write(encode_slot(started_));
    if (step_ == JobStep::kCommand) session_.begin(os::boot_ns());
    if (std::exchange(owes_warning_, false)) send_warning();
    for (const int signal : std::exchange(owed_signals_, {})) signal_job(signal);
    Notice notice;
    notice.kind = has_started_ ? Notice::Kind::kEntered : Notice::Kind::kStarted;
    notice.started = started_;
    report_.send(notice);
    if (std::exchange(has_started_, true)) return;
    limit_.begin(os::boot_ns());
    arm_limit();
  }

  static void wait_for(int pid) {
    while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }

  void end_unstarted(std::uint8_t code, std::string detail) {
    reap();
    end_.kind = EndKind::kNotStarted;
    end_.value = code;
    end_.cause = cause_;
    end_.detail = std::move(detail);
    no_more_writers();
    main_ended_ = true;
  }

  // ---- the loop

  void wait_for_something() {
    const int empty_fd = phase_ == Phase::kClearing ? processes_.handle() : -1;
    pollfd fds[7 + Session::kHandles] = {
        {signal_fd_, POLLIN, 0},       {timer_.handle(), POLLIN, 0},
        {pump_.read_end(), POLLIN, 0},  // -1 is skipped
        {prolog_.output(), POLLIN, 0}, {epilog_.output(), POLLIN, 0},
        {empty_fd, POLLPRI, 0},        {is_starting() ? start_->handle() : -1, POLLIN, 0}};
    session_.watch(fds + 7);
    set_timer();
    poll(fds, std::size(fds), report_.has_unsent() ? kRetryNoticeMs : -1);
    // Only to make it quiet again: deadline_ decides.
    if ((fds[1].revents & POLLIN) != 0) timer_.quiet();
  }

  void take_signals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
      // Anything else that reaches us, SIGTERM of a stopping service first, changes nothing.
      if (info.ssi_code != SI_QUEUE) continue;
      if (static_cast<int>(info.ssi_signo) == stop_signal_number()) {
        take_stop(unpack(info.ssi_ptr));
      } else if (static_cast<int>(info.ssi_signo) == limit_signal_number()) {
        limit_.change(info.ssi_ptr);
        arm_limit();
      } else if (static_cast<int>(info.ssi_signo) == send_signal_number()) {
        pass_on(info.ssi_ptr);
      }
    }
  }

  // Nothing to do before the start, and once its end has begun.
  void arm_limit() {
    if (phase_ != Phase::kJob || !has_started_ || main_ended_ || in_grace_ || killing_) return;
    warn_at_ = request_.limit_signal == 0 ? 0 : limit_.warning();
    arm(limit_.deadline());
  }

  void warn() {
    limit_.warned();
    warn_at_ = 0;
    reap();
    if (next_step_) start_next_step();
    if (has_end()) return;
    if (is_starting()) {
      owes_warning_ = true;  // it would be the signal's end before it could take it
    } else {
      send_warning();
    }
  }

  // A person's signal to the job's processes. Before the first of them runs and after the end of
  // the command there are none that it could be meant for.
  void pass_on(std::uint64_t signal) {
    look_at_start();
    reap();
    if (next_step_) start_next_step();
    if (!model::is_job_signal(signal) || !is_of_job() || has_end()) return;
    if (is_starting()) {
      owed_signals_.push_back(static_cast<int>(signal));
    } else {
      signal_job(static_cast<int>(signal));
    }
  }

  // In a container's cgroup are its engine's processes, too, which would die of it.
  void signal_job(int signal) {
    if (phase_ == Phase::kJob && is_in_rootless_container()) {
      container_.signal(main_pid_, signal);
    } else if (phase_ == Phase::kJob && is_in_container()) {
      processes_.signal_contained(signal);
    } else {
      processes_.signal(signal);
    }
  }

  void send_warning() {
    if (!request_.limit_signal_first_only) {
      signal_job(request_.limit_signal);
    } else if (main_pid_ > 0) {
      kill(main_pid_, request_.limit_signal);  // not reaped yet, so the number is still its own
    }
  }

  void take_stop(const StopSignal& stop) {
    // An exit that came before the order was not caused by it. A death by signal may be: a launcher
    // that bypasses a supervisor without an answer kills first and is heard afterwards.
    look_at_start();
    if (has_started_) reap();
    const bool came_too_late =
        end_recorded_ || step_ == JobStep::kEpilog || (has_end() && end_.kind == EndKind::kExited);
    if (cause_ == EndCause::kItself && !came_too_late) {
      cause_ = EndCause::kStopped;
      end_.stop_code = stop.code;
    }
    if (is_starting() && step_ != JobStep::kEpilog) {
      give_up_start("stopped meanwhile");
    } else if (phase_ == Phase::kProlog || (is_of_job() && stop.without_grace)) {
      begin_kill();
    } else if (is_of_job()) {
      begin_grace(stop.grace_ms);
    }
    Notice notice;
    notice.kind = Notice::Kind::kStopping;
    report_.send(notice);
  }

  // Returns whether processes of the job itself may be there.
  bool is_of_job() const {
    const bool is_before_epilog = phase_ == Phase::kJob || phase_ == Phase::kClearing;
    return has_started_ && is_before_epilog && !has_begun_epilog_;
  }
  // Returns whether the command's end is known, or that the command will not be run.
  bool has_end() const { return main_ended_ || step_ == JobStep::kEpilog || next_is_epilog(); }
  bool next_is_epilog() const { return next_step_ == JobStep::kEpilog; }

  void deadline_passed() {
    if (phase_ == Phase::kProlog && !killing_) prolog_.is_out_of_time(o_.hooks->prolog_timeout_ms);
    if (phase_ == Phase::kEpilog && !killing_) epilog_.is_out_of_time(o_.hooks->epilog_timeout_ms);
    if (killing_ || in_grace_ || phase_ == Phase::kProlog || phase_ == Phase::kEpilog) {
      begin_kill();
      return;
    }
    if (cause_ == EndCause::kItself && !has_end()) {
      cause_ = EndCause::kTimeLimit;
      end_.time_limit = base::Duration(limit_.limit());
    }
    if (is_starting() && step_ != JobStep::kEpilog) {
      give_up_start("the time limit is over");
      return;
    }
    begin_grace(request_.grace_ms);
  }

  void end_idle() {
    reap();
    if (next_step_) start_next_step();
    if (has_end() || in_grace_ || killing_) return;
    if (cause_ == EndCause::kItself) cause_ = EndCause::kIdleTimeout;
    begin_grace(request_.grace_ms);
  }

  // A session still passes on what it reads.
  void no_more_writers() {
    if (!request_.takes_input) pump_.close_write_end();
  }

  void end_session() {
    const bool was_signalled = end_.kind == EndKind::kSignalled;
    session_.end(was_signalled ? model::ChannelEnd::kSignalled : model::ChannelEnd::kExited,
                 end_.value, os::boot_ns());
  }

  // Everything of the job is gone and recorded, but a client still reads its output.
  void say_goodbye() {
    deadline_ = warn_at_ = 0;
    while (session_.is_talking()) {
      pollfd fds[1 + Session::kHandles] = {{timer_.handle(), POLLIN, 0}};
      session_.watch(fds + 1);
      set_timer();
      poll(fds, std::size(fds), -1);
      session_.work(os::boot_ns());
    }
  }

  // A repeated order may shorten the time that is left, never lengthen it.
  void begin_grace(std::uint64_t grace_ms) {
    if (killing_) return;
    const std::int64_t kill_at = after_ms(grace_ms);
    if (!in_grace_) {
      if (is_in_container()) container_.stop(main_pid_);
      signal_job(SIGTERM);
      signal_job(SIGCONT);  // one that is stopped could not end itself
    }
    if (!in_grace_ || kill_at < deadline_) arm(kill_at);
    in_grace_ = true;
    warn_at_ = 0;
  }

  void begin_kill() {
    killing_ = true;
    warn_at_ = 0;
    if (!is_in_rootless_container()) processes_.kill();
    if (is_in_container()) container_.kill(main_pid_);
    if (is_starting()) start_->give_up();
    if (phase_ == Phase::kProlog) prolog_.kill_now();
    if (phase_ == Phase::kEpilog) epilog_.kill_now();
    arm(os::boot_ns() + kRepeatKill);
  }

  void reap() {
    while (const auto exited = processes_.next_exited()) {
      if (exited->pid == prolog_.pid()) prolog_.ended(exited->status);
      if (exited->pid == epilog_.pid()) epilog_.ended(exited->status);
      // It had executed its program, or has failed.
      if (is_starting() && exited->pid == start_->pid()) look_at_start();
      if (exited->pid == main_pid_) step_has_ended(exited->status, exited->usage);
    }
  }

  void step_has_ended(int status, const rusage& usage) {
    main_pid_ = -1;
    if (main_ended_) return;
    const EndRecord end = end_of(status);
    const bool did_well = end.kind == EndKind::kExited && end.value == 0;
    if (step_ == JobStep::kProlog && did_well) {
      next_step_ = JobStep::kCommand;
      return;
    }
    const std::string told = JobSteps::told(step_, describe_end(end));
    if (step_ == JobStep::kEpilog) {
      end_job(did_well ? std::string() : told);
      return;
    }
    const bool is_launched = !is_in_container() || !container_.could_not_execute(end);
    end_.kind = is_launched ? end.kind : EndKind::kNotStarted;
    end_.value = end.value;
    end_.peak_memory = base::Bytes(usage.ru_maxrss * 1024);
    const bool ran_out =
        confinement_.limits().ran_out_of_memory() || container_.ran_out_of_memory();
    if (cause_ == EndCause::kItself && failed() && ran_out) cause_ = EndCause::kOutOfMemory;
    end_.cause = cause_;
    if (step_ == JobStep::kProlog) {
      end_job(told);
    } else if (steps_.is_last(step_)) {
      end_job(container_.failure());
    } else {
      end_.detail = container_.failure();
      processes_.give_room();
      next_step_ = JobStep::kEpilog;
    }
  }

  static EndRecord end_of(int status) {
    EndRecord end;
    end.kind = WIFSIGNALED(status) ? EndKind::kSignalled : EndKind::kExited;
    end.value =
        static_cast<std::uint8_t>(WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    return end;
  }

  void end_job(std::string detail) {
    if (!detail.empty()) end_.detail = std::move(detail);
    no_more_writers();
    main_ended_ = true;
  }

  // ---- the end

  void measure_usage() {
    end_.cpu_time = processes_.cpu_time();
    std::optional<std::uint64_t> peak = confinement_.limits().peak_memory_bytes();
    // Nothing is less than any number.
    peak = std::max(peak, container_.peak_memory_bytes());
    if (peak) end_.peak_memory = base::Bytes(static_cast<std::int64_t>(*peak));
  }

  // A job that lost a process to the limit and ended well nevertheless has ended well.
  bool failed() const {
    return end_.kind == EndKind::kSignalled || (end_.kind == EndKind::kExited && end_.value != 0);
  }

  void record_end() {
    end_recorded_ = true;
    end_.at = os::wall_now();
    end_.cause = cause_;
    if (has_started_) measure_usage();
    if (pump_.dropped_bytes() > 0) {
      add_detail(std::to_string(pump_.dropped_bytes()) +
                 " bytes of output could not be stored: " + strerror(pump_.drop_error()));
    } else if (pump_.is_cut()) {
      add_detail("it printed more than the platform keeps of an attempt (execution.output_limit)");
    }
    report_.write(encode_slot(end_));
  }

  void add_detail(const std::string& detail) {
    end_.detail += (end_.detail.empty() ? "" : "; ") + detail;
  }

  void record_cleaned() {
    report_.write(encode_slot(CleanedRecord{os::wall_now(), epilog_.failure()}));
    tell_end(Notice::Kind::kCleaned);
  }

  void tell_end(Notice::Kind kind) {
    Notice notice;
    notice.kind = kind;
    notice.end = end_;
    notice.has_detail = !end_.detail.empty();
    notice.epilog_failed = !epilog_.failure().empty();
    notice.ended_too = kind == Notice::Kind::kCleaned;
    end_told_ = true;
    report_.send(notice);
  }

  // True when nothing of the job is left. What is left is told to go, and killed after the grace;
  // what the site's epilog left is killed.
  bool clean() {
    const auto cgroup =
        needs_epilog() ? AttemptProcesses::Cgroup::kKeep : AttemptProcesses::Cgroup::kRemove;
    if (processes_.are_gone(cgroup)) return true;
    if (!in_grace_ && !killing_) {
      has_begun_epilog_ ? begin_kill() : begin_grace(request_.grace_ms);
    }
    return processes_.cgroup() >= 0 && !processes_.watch(cgroup);
  }

  // ---- time

  void arm(std::int64_t deadline) { deadline_ = deadline; }

  // For the earliest of what is to come; without anything it stays quiet.
  void set_timer() {
    std::int64_t next = deadline_;
    for (const std::int64_t at : {warn_at_, start_by_, session_.wake_at()}) {
      if (at != 0 && (next == 0 || at < next)) next = at;
    }
    timer_.set(next);
  }

  const SupervisorOptions& o_;
  const LaunchRequest& request_;
  const bool keeps_output_;
  JobConfinement confinement_;
  OutputPump pump_;
  Session session_;
  const JobSteps steps_;
  SiteHook prolog_;
  SiteHook epilog_;
  ContainerJob container_;
  Phase phase_ = Phase::kSetUp;
  JobStep step_ = JobStep::kProlog;
  std::optional<JobStep> next_step_;
  StartedRecord started_;
  bool has_started_ = false;  // a process of the job itself
  bool has_begun_epilog_ = false;
  std::string setup_error_;
  int signal_fd_ = -1;
  std::unique_ptr<JobStart> start_;  // of a step that is on its way
  std::int64_t start_by_ = 0;        // when that must be over, on the boot clock; 0: none is
  int main_pid_ = -1;                // of the step that runs, until it is reaped
  TimeLimit limit_;
  AttemptProcesses processes_;
  AttemptReport report_;
  OwedEpilog owed_epilog_;
  BootTimer timer_;
  std::int64_t deadline_ = 0;  // on the boot clock; 0: none
  std::int64_t warn_at_ = 0;   // likewise
  bool in_grace_ = false;
  bool killing_ = false;
  bool owes_warning_ = false;      // to a step that is on its way
  std::vector<int> owed_signals_;  // likewise
  bool main_ended_ = false;        // all steps of the job
  bool end_recorded_ = false;
  bool end_told_ = false;
  EndCause cause_ = EndCause::kItself;
  EndRecord end_;
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
