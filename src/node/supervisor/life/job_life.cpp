#include "node/supervisor/life/job_life.h"

#include <utility>

#include "model/job_signal.h"

namespace gpu_platform::node {

namespace {

using Kind = LifeAction::Kind;

constexpr std::uint64_t kRepeatKillMs = 200;  // where cgroup.kill is missing or processes hang
constexpr int kSigKill = 9;
constexpr int kSigTerm = 15;
constexpr int kSigCont = 18;

// The detail of an end that is not the command's: "its prolog: exit code 3".
std::string told(JobStep step, const std::string& what) {
  if (step == JobStep::kCommand) return what;
  return (step == JobStep::kProlog ? "its prolog: " : "its epilog: ") + what;
}

std::string described(const StepEnd& end) {
  return (end.kind == EndKind::kSignalled ? "signal " : "exit code ") + std::to_string(end.value);
}

}  // namespace

JobLife::JobLife(const LifeRules& rules)
    : rules_(rules), limit_(rules.time_limit_ms, rules.warning_before_ms) {}

std::optional<LifeAction> JobLife::take_action() {
  if (actions_.empty()) return std::nullopt;
  const LifeAction action = actions_.front();
  actions_.pop_front();
  return action;
}

void JobLife::add(Kind kind) {
  LifeAction action;
  action.kind = kind;
  actions_.push_back(action);
}

void JobLife::tell(Notice::Kind notice) {
  add(Kind::kTell);
  actions_.back().notice = notice;
}

// ---- set-up

void JobLife::set_up(std::int64_t now) {
  if (phase_ != Phase::kSetUp) return;
  if (is_stopped()) return cannot_begin("stopped before it was started");
  if (!rules_.has_site_epilog) return begin(now);
  phase_ = Phase::kNoting;  // from here on it is run, also without us
  add(Kind::kNoteEpilog);
}

void JobLife::cannot_begin(std::string why) {
  if (phase_ > Phase::kNoting) return;
  add(Kind::kRemoveCgroup);
  end_unstarted(0, std::move(why));
  record_end();
  finish();
}

void JobLife::epilog_is_noted(std::int64_t now) {
  if (phase_ == Phase::kNoting) begin(now);
}

void JobLife::begin(std::int64_t now) {
  if (!rules_.has_site_prolog) return begin_job(now);
  phase_ = Phase::kSiteProlog;
  start_program(SiteProgram::kProlog, now);
}

// ---- the site's programs

void JobLife::start_program(SiteProgram program, std::int64_t now) {
  program_failure_.reset();
  add(Kind::kStartProgram);
  actions_.back().program = program;
  deadline_ = now + in_ns(program == SiteProgram::kProlog ? rules_.site_prolog_timeout_ms
                                                          : rules_.site_epilog_timeout_ms);
}

void JobLife::program_ended(SiteProgram program, std::string failure) {
  const Phase its = program == SiteProgram::kProlog ? Phase::kSiteProlog : Phase::kSiteEpilog;
  if (phase_ == its && !program_failure_ && !waits_for_room_) program_failure_ = std::move(failure);
}

void JobLife::site_prolog_has_ended(std::int64_t now) {
  deadline_ = 0;
  const std::string failure = *std::exchange(program_failure_, std::nullopt);
  if (!is_stopped() && failure.empty()) {
    waits_for_room_ = true;
    return add(Kind::kTakeRoomBack);
  }
  if (!is_stopped()) cause_ = EndCause::kPrologFailed;
  end_after_site_prolog(cause_ == EndCause::kPrologFailed ? "the site's prolog: " + failure
                                                          : "stopped during the site's prolog",
                        now);
}

void JobLife::room_is_back(const std::string& why, std::int64_t now) {
  if (!std::exchange(waits_for_room_, false)) return;
  if (why.empty()) return begin_job(now);
  cause_ = EndCause::kOutOfMemory;
  end_after_site_prolog("after the site's prolog its memory is more than the job's limit: " + why,
                        now);
}

void JobLife::end_after_site_prolog(std::string detail, std::int64_t now) {
  begin_kill(now);  // what it may have left
  end_unstarted(0, std::move(detail));
}

void JobLife::begin_site_epilog(std::int64_t now) {
  phase_ = Phase::kSiteEpilog;
  ending_ = Ending::kNot;
  start_program(SiteProgram::kEpilog, now);
}

// ---- the job's steps

void JobLife::begin_job(std::int64_t now) {
  phase_ = Phase::kJob;
  next_step_ = first_step();
  start_next_step(now);
}

void JobLife::start_due_step(std::int64_t now) {
  if (phase_ == Phase::kJob && next_step_) start_next_step(now);
}

void JobLife::start_next_step(std::int64_t now) {
  step_ = *std::exchange(next_step_, std::nullopt);
  if (step_ == JobStep::kCommand && is_stopped()) {
    // Stopped during its prolog, which did well nevertheless: the command did not.
    end_.kind = EndKind::kSignalled;
    end_.value = kSigTerm;
    return end_job(told(JobStep::kProlog, "stopped while it ran"));
  }
  if (ending_ == Ending::kKill) return end_job({});  // no time is left for an epilog
  step_is_ = StepIs::kStarting;
  start_by_ = now + in_ns(rules_.start_timeout_ms);
  add(Kind::kStartStep);
  actions_.back().step = step_;
  actions_.back().is_first = !has_started_;
}

// The start of the first step is the job's start. For later steps the record names the process that
// a command joins.
void JobLife::step_started(std::int64_t now) {
  if (!is_starting()) return;
  step_is_ = StepIs::kRunning;
  start_by_ = 0;
  if (is_last(step_)) add(Kind::kEndOutput);
  add(Kind::kRecordStart);
  actions_.back().is_first = !has_started_;
  if (step_ == JobStep::kCommand) add(Kind::kBeginSession);
  if (std::exchange(owes_warning_, false)) send_warning();
  for (const int signal : std::exchange(owed_signals_, {})) signal_job(signal);
  tell(has_started_ ? Notice::Kind::kEntered : Notice::Kind::kStarted);
  if (std::exchange(has_started_, true)) return;
  limit_.begin(now);
  arm_limit();
}

void JobLife::step_not_started(const FailedStart& start) {
  if (!is_starting()) return;
  step_is_ = StepIs::kNot;
  start_by_ = 0;
  if (is_last(step_)) add(Kind::kEndOutput);
  const std::string detail =
      told(step_, start.has_run_out ? start.detail + ": out of memory" : start.detail);
  if (step_ == JobStep::kEpilog) return end_job(detail);
  if (start.has_run_out && !is_stopped()) cause_ = EndCause::kOutOfMemory;
  end_unstarted(start.exit_code, detail);
}

// Nothing of the step has run, and what hangs on the way to it is killed. One that the kernel does
// not let go of, because its file system does not answer, is waited for like any process that is
// left; the end of the attempt is told before.
void JobLife::give_up_start(const std::string& doing, const std::string& why, std::int64_t now) {
  const std::string detail = told(step_, doing + ": " + why);
  add(Kind::kGiveUpStart);
  step_is_ = StepIs::kNot;
  start_by_ = 0;
  begin_kill(now);
  if (step_ == JobStep::kEpilog) return end_job(detail);
  if (!has_started_) return end_unstarted(0, detail);
  end_.kind = EndKind::kSignalled;
  end_.value = kSigKill;
  end_.cause = cause_;
  end_job(detail);
}

void JobLife::step_ended(const StepEnd& end) {
  if (step_is_ != StepIs::kRunning) return;
  step_is_ = StepIs::kNot;
  if (phase_ != Phase::kJob) return;
  const bool did_well = end.kind == EndKind::kExited && end.value == 0;
  if (step_ == JobStep::kProlog && did_well) {
    next_step_ = JobStep::kCommand;
  } else if (step_ == JobStep::kEpilog) {
    end_job(did_well ? std::string() : told(step_, described(end)));
  } else {
    command_has_ended(end);
  }
}

// Or its prolog, which failed: then this is the command's end.
void JobLife::command_has_ended(const StepEnd& end) {
  end_.kind = is_in_container() && end.could_not_execute ? EndKind::kNotStarted : end.kind;
  end_.value = end.value;
  end_.peak_memory = end.peak_memory;
  if (!is_stopped() && has_failed() && end.has_run_out) cause_ = EndCause::kOutOfMemory;
  end_.cause = cause_;
  if (step_ == JobStep::kProlog) return end_job(told(step_, described(end)));
  if (is_last(step_)) return end_job(end.failure_of_container);
  end_.detail = end.failure_of_container;
  add(Kind::kGiveRoom);
  next_step_ = JobStep::kEpilog;
}

void JobLife::end_job(std::string detail) {
  if (!detail.empty()) end_.detail = std::move(detail);
  add(Kind::kEndOutput);
  phase_ = Phase::kJobEnded;
}

void JobLife::end_unstarted(std::uint8_t code, std::string detail) {
  add(Kind::kReap);
  end_.kind = EndKind::kNotStarted;
  end_.value = code;
  end_.cause = cause_;
  end_.detail = std::move(detail);
  add(Kind::kEndOutput);
  phase_ = Phase::kJobEnded;
}

// Returns whether processes of the job itself may be there.
bool JobLife::is_of_job() const {
  return has_started_ && phase_ >= Phase::kJob && phase_ <= Phase::kClearing;
}

// Returns whether the command's end is known, or that the command will not be run.
bool JobLife::has_end() const {
  return phase_ >= Phase::kJobEnded || step_ == JobStep::kEpilog || next_step_ == JobStep::kEpilog;
}

// A job that lost a process to the limit and ended well nevertheless has ended well.
bool JobLife::has_failed() const {
  return end_.kind == EndKind::kSignalled || (end_.kind == EndKind::kExited && end_.value != 0);
}

// ---- what was asked

void JobLife::stop_ordered(const StopSignal& stop, const std::string& doing, std::int64_t now) {
  // An exit that came before the order was not caused by it. A death by signal may be: a launcher
  // that bypasses a supervisor without an answer kills first and is heard afterwards.
  const bool came_too_late = end_is_ != EndIs::kUnknown || step_ == JobStep::kEpilog ||
                             (has_end() && end_.kind == EndKind::kExited);
  if (!is_stopped() && !came_too_late) {
    cause_ = EndCause::kStopped;
    end_.stop_code = stop.code;
  }
  if (is_starting() && step_ != JobStep::kEpilog) {
    give_up_start(doing, "stopped meanwhile", now);
  } else if (phase_ == Phase::kSiteProlog || (is_of_job() && stop.without_grace)) {
    begin_kill(now);
  } else if (is_of_job()) {
    begin_grace(stop.grace_ms, now);
  }
  tell(Notice::Kind::kStopping);
}

void JobLife::limit_changed(std::uint64_t limit_ms) {
  limit_.change(limit_ms);
  arm_limit();
}

// A person's signal to the job's processes. Before the first of them runs and after the end of the
// command there are none that it could be meant for.
void JobLife::signal_asked(std::uint64_t signal) {
  if (!model::is_job_signal(signal) || !is_of_job() || has_end()) return;
  if (is_starting()) {
    owed_signals_.push_back(static_cast<int>(signal));
  } else {
    signal_job(static_cast<int>(signal));
  }
}

void JobLife::job_is_idle(std::int64_t now) {
  if (has_end() || ending_ != Ending::kNot) return;
  if (!is_stopped()) cause_ = EndCause::kIdleTimeout;
  begin_grace(rules_.grace_ms, now);
}

// ---- time

std::int64_t JobLife::wake_at() const {
  std::int64_t next = 0;
  if (is_over()) return next;
  for (const std::int64_t at : {deadline_, warn_at_, start_by_}) {
    if (at != 0 && (next == 0 || at < next)) next = at;
  }
  return next;
}

// Nothing to do before the start, and once its end has begun.
void JobLife::arm_limit() {
  if (phase_ != Phase::kJob || !has_started_ || ending_ != Ending::kNot) return;
  warn_at_ = rules_.warning_signal == 0 ? 0 : limit_.warning();
  deadline_ = limit_.deadline();
}

void JobLife::time_passed(const std::string& doing, std::int64_t now) {
  if (is_over()) return;
  if (is_warning_due(now)) warn();
  if (start_by_ != 0 && now >= start_by_) {
    give_up_start(doing, "not done after " + std::to_string(rules_.start_timeout_ms / 1000) + " s",
                  now);
  }
  if (deadline_ != 0 && now >= deadline_) deadline_passed(doing, now);
}

void JobLife::warn() {
  limit_.warned();
  warn_at_ = 0;
  if (has_end()) return;
  if (is_starting()) {
    owes_warning_ = true;  // it would be the signal's end before it could take it
  } else {
    send_warning();
  }
}

void JobLife::send_warning() {
  if (!rules_.warns_first_process_only) return signal_job(rules_.warning_signal);
  if (step_is_ != StepIs::kRunning) return;
  add(Kind::kSignalFirst);
  actions_.back().signal = rules_.warning_signal;
}

void JobLife::deadline_passed(const std::string& doing, std::int64_t now) {
  const bool is_programs = phase_ == Phase::kSiteProlog || phase_ == Phase::kSiteEpilog;
  if (is_programs && ending_ != Ending::kKill) {
    add(Kind::kSayOutOfTime);
    actions_.back().program =
        phase_ == Phase::kSiteProlog ? SiteProgram::kProlog : SiteProgram::kEpilog;
  }
  if (is_programs || ending_ != Ending::kNot) return begin_kill(now);
  if (!is_stopped() && !has_end()) {
    cause_ = EndCause::kTimeLimit;
    end_.time_limit = base::Duration(limit_.limit());
  }
  if (is_starting() && step_ != JobStep::kEpilog) {
    return give_up_start(doing, "the time limit is over", now);
  }
  begin_grace(rules_.grace_ms, now);
}

// A repeated order may shorten the time that is left, never lengthen it.
void JobLife::begin_grace(std::uint64_t grace_ms, std::int64_t now) {
  if (ending_ == Ending::kKill) return;
  const std::int64_t kill_at = now + in_ns(grace_ms);
  if (ending_ == Ending::kNot) {
    if (is_in_container()) add(Kind::kStopContainer);
    signal_job(kSigTerm);
    signal_job(kSigCont);  // one that is stopped could not end itself
  }
  if (ending_ == Ending::kNot || kill_at < deadline_) deadline_ = kill_at;
  ending_ = Ending::kGrace;
  warn_at_ = 0;
}

// Done again and again until nothing is left.
void JobLife::begin_kill(std::int64_t now) {
  ending_ = Ending::kKill;
  warn_at_ = 0;
  if (!is_in_rootless_container()) add(Kind::kKill);
  if (is_in_container()) add(Kind::kKillContainer);
  if (is_starting()) add(Kind::kKillStart);
  if (phase_ == Phase::kSiteProlog || phase_ == Phase::kSiteEpilog) {
    add(Kind::kKillProgram);
    actions_.back().program =
        phase_ == Phase::kSiteProlog ? SiteProgram::kProlog : SiteProgram::kEpilog;
  }
  deadline_ = now + in_ns(kRepeatKillMs);
}

void JobLife::signal_job(int signal) {
  const bool is_in_job = phase_ == Phase::kJob || phase_ == Phase::kJobEnded;
  if (is_in_job && is_in_rootless_container()) {
    add(Kind::kSignalClient);
  } else if (is_in_job && is_in_container()) {
    add(Kind::kSignalInside);
  } else {
    add(Kind::kSignal);
  }
  actions_.back().signal = signal;
}

// ---- going on

void JobLife::begin_turn() {
  has_looked_ = false;
  has_asked_for_host_ = false;
}

// The host ends what it runs: no end of the job's own, and none of the site's programs. Without a
// record of it the daemon finds, when it is back, that the attempt was lost with its node.
bool JobLife::asks_for_host() const {
  if (has_asked_for_host_) return false;
  const bool has_ended_by_itself =
      phase_ == Phase::kJobEnded &&
      (cause_ == EndCause::kItself || cause_ == EndCause::kPrologFailed);
  return has_ended_by_itself || (phase_ == Phase::kSiteEpilog && program_failure_.has_value());
}

void JobLife::go_on(bool host_goes_down, std::int64_t now) {
  if (is_over()) return;
  if (phase_ == Phase::kSiteProlog && program_failure_) return site_prolog_has_ended(now);
  if (phase_ == Phase::kJob && next_step_) return start_next_step(now);
  if (asks_for_host() && host_goes_down) {
    phase_ = Phase::kOver;
    return;
  }
  has_asked_for_host_ = true;
  if (phase_ == Phase::kJobEnded) {
    add(Kind::kEndSession);
    record_end();
    phase_ = Phase::kClearing;
    return look();
  }
  if (phase_ == Phase::kSiteEpilog && program_failure_) {
    phase_ = Phase::kLastClearing;
    return look();
  }
  if (is_clearing() && !has_looked_) return look();
  if (end_is_ == EndIs::kRecorded) {
    end_is_ = EndIs::kTold;
    tell(Notice::Kind::kEnded);
  }
}

void JobLife::record_end() {
  end_is_ = EndIs::kRecorded;
  end_.cause = cause_;
  add(Kind::kRecordEnd);
}

void JobLife::look() {
  has_looked_ = true;
  add(Kind::kLook);
  actions_.back().keeps_cgroup = needs_site_epilog();
}

void JobLife::processes_gone(std::int64_t now) {
  if (!is_clearing()) return;
  needs_site_epilog() ? begin_site_epilog(now) : finish();
}

// What is left is told to go, and killed after the grace; what the site's epilog left is killed.
void JobLife::processes_left(std::int64_t now) {
  if (!is_clearing()) return;
  if (ending_ == Ending::kNot) {
    phase_ == Phase::kLastClearing ? begin_kill(now) : begin_grace(rules_.grace_ms, now);
  }
  add(Kind::kWatch);
  actions_.back().keeps_cgroup = needs_site_epilog();
}

void JobLife::finish() {
  const bool has_run_epilog = phase_ >= Phase::kSiteEpilog;
  add(Kind::kRemoveGroups);
  add(Kind::kRecordCleaned);
  tell(Notice::Kind::kCleaned);
  end_is_ = EndIs::kTold;
  if (has_run_epilog) add(Kind::kForgetEpilog);
  add(Kind::kRemoveFolders);  // afterwards, so that nothing waits for it
  phase_ = Phase::kOver;
}

}  // namespace gpu_platform::node
