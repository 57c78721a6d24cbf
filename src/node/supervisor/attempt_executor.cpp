#include "node/supervisor/attempt_executor.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "node/cgroup_freezer.h"
#include "node/process_tree.h"
#include "node/site_hooks.h"
#include "node/supervisor/job_steps.h"
#include "os/clock.h"

namespace gpu_platform::node {

namespace {

std::string could_not(std::string_view what) {
  return std::string(what) + ": " + strerror(errno);
}

AttemptProcesses::Cgroup cgroup_after(const LifeAction& action) {
  return action.keeps_cgroup ? AttemptProcesses::Cgroup::kKeep : AttemptProcesses::Cgroup::kRemove;
}

// "23.1 GiB"
std::string gib_of(std::uint32_t mib) {
  constexpr std::uint32_t kTenth = 1024 / 10;
  return std::to_string(mib / 1024) + "." + std::to_string(std::min(mib % 1024 / kTenth, 9U)) +
         " GiB";
}

// Of the MPS server that the job is a client of.
std::optional<MpsProgram> mps_daemon_of(const LaunchRequest& request, const std::string& token) {
  if (request.mps_gpu.size() <= 1) return std::nullopt;
  const auto without_nul = [](std::string_view text) { return text.substr(0, text.size() - 1); };
  return MpsProgram{std::string(without_nul(request.mps_program)),
                    mps_folder(token, without_nul(request.mps_gpu), request.user.uid),
                    request.user};
}

void wait_for_child(int pid) {
  while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

AttemptExecutor::AttemptExecutor(const SupervisorOptions& options, JobLife& life)
    : o_(options),
      request_(*options.request),
      life_(life),
      keeps_output_(request_.output.size() <= 1),
      confinement_(*options.confinement, attempt_name(options.attempt)),
      pump_({options.folders->output, output_folder(options.attempt), output_name(options.attempt),
             request_.output_file_bytes, request_.output_files, request_.output_limit_bytes}),
      session_({options.attempt, options.request, options.folders->run,
                keeps_output_ ? &pump_ : nullptr}),
      prolog_(options.folders->output, output_folder(options.attempt),
              output_name(options.attempt, "prolog")),
      epilog_(options.folders->output, output_folder(options.attempt),
              output_name(options.attempt, "epilog")),
      container_(o_, request_),
      processes_(options.base_fd, attempt_name(options.attempt)),
      mps_drain_(mps_daemon_of(request_, options.confinement->token)),
      report_(options.attempt, options.record_fd, options.notice_fd),
      owed_epilog_(options.folders->attempts, options.attempt) {}

// ---- set-up

bool AttemptExecutor::write_beginning() {
  Beginning beginning;
  beginning.attempt = o_.attempt;
  beginning.boot_id = request_.boot_id;
  beginning.supervisor_pid = static_cast<std::uint32_t>(getpid());
  beginning.supervisor_ticks = start_ticks_of(getpid());
  beginning.uid = request_.user.uid;
  if (o_.base_fd >= 0) beginning.cgroup = o_.cgroup_base + "/" + attempt_name(o_.attempt);
  return report_.begin(beginning);
}

std::string AttemptExecutor::prepare() {
  if (keeps_output_ && !pump_.open()) return could_not("make the output pipe");
  std::string why = session_.open();
  if (!why.empty()) return why;
  if (!container_.open()) return could_not("make the files of a container's client");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  why = processes_.make();
  return why.empty() ? confinement_.set_up(request_, processes_.cgroup()) : why;
}

void AttemptExecutor::note_epilog() {
  if (owed_epilog_.note(request_)) return life_.epilog_is_noted(os::boot_ns());
  life_.cannot_begin(could_not("note the site's epilog"));
}

// ---- what the life wants done

// The actions that an answer adds wait until the one that it answers is done.
bool AttemptExecutor::act() {
  if (std::exchange(is_acting_, true)) return true;
  bool was_any = false;
  while (const std::optional<LifeAction> action = life_.take_action()) {
    was_any = true;
    carry_out(*action);
  }
  is_acting_ = false;
  return was_any;
}

// A frozen job would keep a signal until its turn, and a step on its way from its program. It has
// turns no more once its end has begun.
void AttemptExecutor::thaw_for(const LifeAction& action) {
  switch (action.kind) {
    case LifeAction::Kind::kStartProgram:
    case LifeAction::Kind::kStartStep:
    case LifeAction::Kind::kStopContainer:
    case LifeAction::Kind::kKillContainer:
    case LifeAction::Kind::kKill:
    case LifeAction::Kind::kLook:
      return processes_.hold_awake();
    case LifeAction::Kind::kSignal:
    case LifeAction::Kind::kSignalInside:
    case LifeAction::Kind::kSignalClient:
    case LifeAction::Kind::kSignalFirst:
      return life_.is_ending() ? processes_.hold_awake() : processes_.wake();
    default:
      return;
  }
}

void AttemptExecutor::start_is_past() {
  if (request_.takes_turns && !life_.is_ending()) processes_.let_go();
}

bool AttemptExecutor::counts_idle_time() const {
  return request_.takes_turns && request_.idle_timeout_ms != 0 && !life_.is_ending();
}

void AttemptExecutor::carry_out(const LifeAction& action) {
  if (request_.takes_turns) thaw_for(action);
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
      return kill_processes();
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

// The kill is repeated until no process is left.
void AttemptExecutor::kill_processes() {
  if (mps_drain_.is_over(processes_.cgroup(), os::boot_ms())) processes_.kill();
}

// ---- the site's programs

void AttemptExecutor::start_program(SiteProgram which) {
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

void AttemptExecutor::say_out_of_time(SiteProgram which) {
  program(which).is_out_of_time(which == SiteProgram::kProlog ? o_.hooks->prolog_timeout_ms
                                                              : o_.hooks->epilog_timeout_ms);
}

void AttemptExecutor::tell_end_of(SiteProgram which) {
  life_.program_ended(which, program(which).failure());
}

// ---- the job's steps

void AttemptExecutor::start_step(const LifeAction& action) {
  start_ = std::make_unique<JobStart>(start_options(action));
  if (!start_->begin()) start_is_over();
}

JobStartOptions AttemptExecutor::start_options(const LifeAction& action) {
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

void AttemptExecutor::look_at_start() {
  if (start_ != nullptr && start_->is_over()) start_is_over();
  act();
}

void AttemptExecutor::start_is_over() {
  const std::unique_ptr<JobStart> start = take_start();
  if (start->was_executed()) {
    main_pid_ = start->pid();
    started_.pid = static_cast<std::uint32_t>(main_pid_);
    start_is_past();
    return life_.step_started(os::boot_ns());
  }
  if (start->pid() > 0) wait_for_child(start->pid());  // it is on its last few steps
  FailedStart failed;
  failed.exit_code = static_cast<std::uint8_t>(start->exit_code());
  failed.detail = start->detail();
  // On its way it is in the job's groups already.
  failed.has_run_out = start->was_killed() && confinement_.limits().ran_out_of_memory();
  life_.step_not_started(failed);
}

std::unique_ptr<JobStart> AttemptExecutor::take_start() {
  const int mounts = start_->take_mounts();
  if (mounts >= 0) confinement_.hold_mounts(mounts);
  return std::move(start_);
}

// Not reaped yet, so the number is still its own.
void AttemptExecutor::signal_first(int signal) const {
  if (main_pid_ > 0) kill(main_pid_, signal);
}

void AttemptExecutor::reap() {
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

void AttemptExecutor::step_has_ended(int status, const rusage& usage) {
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

// ---- what others ask for

void AttemptExecutor::look_at_session() {
  if (counts_idle_time()) session_.job_stands_still(processes_.stands_still(), os::boot_ns());
  session_.work(os::boot_ns());
  if (session_.has_called() && request_.takes_turns && os::boot_ms() >= wake_again_ms_) {
    processes_.wake();
    wake_again_ms_ = os::boot_ms() + kThawAgainMs;
  }
  if (!session_.is_idle(os::boot_ns())) return;
  catch_up();
  life_.job_is_idle(os::boot_ns());
  act();
}

void AttemptExecutor::catch_up() {
  look_at_start();
  reap();
  life_.start_due_step(os::boot_ns());
  act();
}

void AttemptExecutor::watch(pollfd* handles) const {
  const int empty_fd = life_.is_clearing() || counts_idle_time() ? processes_.handle() : -1;
  const int start_fd = start_ != nullptr ? start_->handle() : -1;
  handles[0] = {pump_.read_end(), POLLIN, 0};  // -1 is skipped
  handles[1] = {prolog_.output(), POLLIN, 0};
  handles[2] = {epilog_.output(), POLLIN, 0};
  handles[3] = {empty_fd, POLLPRI, 0};
  handles[4] = {start_fd, POLLIN, 0};
  session_.watch(handles + 5);
}

void AttemptExecutor::pump_all() {
  pump_.pump();
  prolog_.pump();
  epilog_.pump();
}

namespace {

std::string words_of(const WarnOfMemory& warning) {
  if (const auto minutes = minutes_of_idle(warning)) {
    const std::string what = "[gpu-platform: the job does not use its GPUs; ";
    if (*minutes == 0) return what + "other jobs could use them]";
    return what + "it is stopped in " + std::to_string(*minutes) + " min unless it uses them]";
  }
  return "[gpu-platform: the job uses " + gib_of(warning.used_mib) +
         " of GPU memory, and its part of the GPU has " + gib_of(warning.part_mib) +
         "; it is stopped unless it uses less within seconds]";
}

}  // namespace

void AttemptExecutor::warn(const WarnOfMemory& warning) {
  const std::string words = words_of(warning);
  if (keeps_output_) pump_.note(words);
  session_.note(words, os::boot_ns());
}

// ---- what is left

void AttemptExecutor::look_for_processes(AttemptProcesses::Cgroup cgroup) {
  if (processes_.are_gone(cgroup)) {
    life_.processes_gone(os::boot_ns());
  } else {
    life_.processes_left(os::boot_ns());
  }
}

void AttemptExecutor::watch_processes(AttemptProcesses::Cgroup cgroup) {
  const bool are_gone = processes_.cgroup() >= 0 && !processes_.watch(cgroup);
  if (are_gone) life_.processes_gone(os::boot_ns());
}

// A session still passes on what it reads.
void AttemptExecutor::end_output() {
  if (!request_.takes_input) pump_.close_write_end();
}

void AttemptExecutor::end_session() {
  const bool was_signalled = life_.end().kind == EndKind::kSignalled;
  session_.end(was_signalled ? model::ChannelEnd::kSignalled : model::ChannelEnd::kExited,
               life_.end().value, os::boot_ns());
  pump_.pump();  // all that it wrote is kept before its end is told
}

// ---- what is recorded and told

void AttemptExecutor::record_start(bool is_first) {
  if (processes_.cgroup() < 0) started_.start_ticks = start_ticks_of(main_pid_);
  if (is_first) started_.at = os::wall_now();
  report_.write(encode_slot(started_));
}

void AttemptExecutor::record_end() {
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

void AttemptExecutor::measure_usage() {
  end_.cpu_time = processes_.cpu_time();
  std::optional<std::uint64_t> peak = confinement_.limits().peak_memory_bytes();
  // Nothing is less than any number.
  peak = std::max(peak, container_.peak_memory_bytes());
  if (peak) end_.peak_memory = base::Bytes(static_cast<std::int64_t>(*peak));
}

void AttemptExecutor::add_detail(const std::string& detail) {
  end_.detail += (end_.detail.empty() ? "" : "; ") + detail;
}

void AttemptExecutor::tell(Notice::Kind kind) {
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

}  // namespace gpu_platform::node
