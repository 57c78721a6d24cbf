#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "node/protocol.h"
#include "node/record.h"
#include "node/time_limit.h"

// The life of one attempt as its supervisor leads it: facts come in, actions go out. Pure: the
// clock is an argument, and what the world answers is a fact. README.md has the table of it.

namespace gpu_platform::node {

// The commands that an attempt runs as its user, one after the other: the user's prolog and epilog
// around the command, each only where there is one.
enum class JobStep : std::uint8_t { kProlog, kCommand, kEpilog };

// The site's programs around them.
enum class SiteProgram : std::uint8_t { kProlog, kEpilog };

// What an attempt is, for its whole life.
struct LifeRules {
  // How signals and the end reach the command: in a container's cgroup are its engine's processes,
  // too, which would die of them; a rootless container is reached through its client alone.
  enum class Place : std::uint8_t { kCgroup, kContainer, kRootlessContainer };

  bool has_site_prolog = false;
  bool has_site_epilog = false;
  std::uint64_t site_prolog_timeout_ms = 0;
  std::uint64_t site_epilog_timeout_ms = 0;
  bool has_prolog = false;  // the user's
  bool has_epilog = false;
  Place place = Place::kCgroup;         // of the command; the steps around it are in the cgroup
  std::uint64_t start_timeout_ms = 0;   // of each step, until its program is executed
  std::uint64_t grace_ms = 0;           // where no order says another
  std::uint64_t time_limit_ms = 0;      // 0: none
  std::uint64_t warning_before_ms = 0;  // of the limit
  std::uint8_t warning_signal = 0;      // 0: no warning
  bool warns_first_process_only = false;
};

struct LifeAction {
  enum class Kind : std::uint8_t {
    kNoteEpilog,     // that the site's epilog is owed. Answer: epilog_is_noted, or cannot_begin
    kStartProgram,   // the site's `program`. Answer: program_ended
    kSayOutOfTime,   // of the site's `program`, for how it failed
    kKillProgram,    // its first process
    kTakeRoomBack,   // the memory that the site's prolog had. Answer: room_is_back
    kStartStep,      // `step`. Answer: step_started or step_not_started
    kKillStart,      // SIGKILL to what is on its way to the step; its end is still heard
    kGiveUpStart,    // the same, and no more is heard of it
    kSignal,         // `signal` to all processes of the attempt
    kSignalInside,   // to those in the command's container
    kSignalClient,   // to those of the command's container, by way of its client
    kSignalFirst,    // to the first process of the step that runs
    kStopContainer,  // the client is told that the job is to end
    kKillContainer,  // the client is told that the container was killed
    kKill,           // SIGKILL to all processes of the attempt
    kReap,           // takes the children that have ended
    kGiveRoom,       // for processes in the cgroup, after a container
    kEndOutput,      // no further process prints
    kBeginSession,   // people may attach
    kEndSession,     // nothing more comes; all that was printed is kept
    kRecordStart,    // of the step's process
    kRecordEnd,      // end(), with what is measured
    kRecordCleaned,
    kTell,           // `notice`
    kLook,           // whether processes are left. Answer: processes_gone or processes_left
    kWatch,          // until they are gone, for a fact. Answer: processes_gone, or none
    kRemoveCgroup,   // of an attempt in which nothing has run
    kRemoveGroups,   // nothing of it runs any more; what was printed last is kept before
    kForgetEpilog,   // it is over
    kRemoveFolders,  // may take long
  };

  Kind kind = Kind::kLook;
  JobStep step = JobStep::kCommand;
  SiteProgram program = SiteProgram::kProlog;
  int signal = 0;
  Notice::Kind notice = Notice::Kind::kStarted;
  bool is_first = false;      // kStartStep, kRecordStart: nothing of the job has run before
  bool keeps_cgroup = false;  // kLook, kWatch: else it goes with the last process
  friend bool operator==(const LifeAction&, const LifeAction&) = default;
};

// How a step that was executed has ended.
struct StepEnd {
  EndKind kind = EndKind::kExited;  // or kSignalled
  std::uint8_t value = 0;
  base::Bytes peak_memory;
  bool has_run_out = false;          // the kernel killed a process at the memory limit
  bool could_not_execute = false;    // a container's client: there was no program to run
  std::string failure_of_container;  // empty: none
};

// Why a step was not executed.
struct FailedStart {
  std::uint8_t exit_code = 0;
  std::string detail;
  bool has_run_out = false;  // of memory, on its way
};

// Times are nanoseconds on the boot clock. `doing` says what the step that is on its way does now;
// it is read only while is_starting().
//
// Each fact may add actions. They are to be carried out in their order, and all of them before the
// next fact but those that answer them. A fact that does not fit the state changes nothing, so one
// may be told twice.
//
// Thread: the supervisor's one.
class JobLife {
 public:
  explicit JobLife(const LifeRules& rules);

  std::optional<LifeAction> take_action();

  // ---- facts

  // All is made ready, and the orders that had come were told.
  void set_up(std::int64_t now);
  // It could not be; nothing has run, and nothing will.
  void cannot_begin(std::string why);
  void epilog_is_noted(std::int64_t now);
  // `failure`: empty if it did well.
  void program_ended(SiteProgram program, std::string failure);
  // `why`: empty, or why it could not be taken back.
  void room_is_back(const std::string& why, std::int64_t now);
  void step_started(std::int64_t now);
  void step_not_started(const FailedStart& start);
  void step_ended(const StepEnd& end);
  void processes_gone(std::int64_t now);
  void processes_left(std::int64_t now);

  // What was asked. Call start_due_step() before, with all that is known of starts and ends.
  void stop_ordered(const StopSignal& stop, const std::string& doing, std::int64_t now);
  void limit_changed(std::uint64_t limit_ms);
  void signal_asked(std::uint64_t signal);  // one that is not model::is_job_signal is not passed on
  void job_is_idle(std::int64_t now);

  bool is_warning_due(std::int64_t now) const { return warn_at_ != 0 && now >= warn_at_; }
  void time_passed(const std::string& doing, std::int64_t now);

  // ---- going on

  // Starts the step that has become possible, if there is one.
  void start_due_step(std::int64_t now);
  // A turn is begun once for what has happened, and gone on with until there is no action more.
  // `host_goes_down` counts only where asks_for_host().
  void begin_turn();
  bool asks_for_host() const;
  void go_on(bool host_goes_down, std::int64_t now);

  // ---- what is so

  bool is_over() const { return phase_ == Phase::kOver; }
  bool is_stopped() const { return cause_ != EndCause::kItself; }
  // Its end has begun: nothing of the job but its epilog is started any more.
  bool is_ending() const { return ending_ != Ending::kNot || is_stopped() || phase_ > Phase::kJob; }
  bool is_starting() const { return step_is_ == StepIs::kStarting; }
  bool is_clearing() const { return phase_ == Phase::kClearing || phase_ == Phase::kLastClearing; }
  bool has_started() const { return has_started_; }  // a process of the job itself
  bool is_in_container() const {
    return rules_.place != LifeRules::Place::kCgroup && step_ == JobStep::kCommand;
  }
  const EndRecord& end() const { return end_; }
  std::int64_t wake_at() const;  // 0: never

 private:
  // In the order in which they are gone through.
  enum class Phase : std::uint8_t {
    kSetUp,
    kNoting,  // that the site's epilog is owed
    kSiteProlog,
    kJob,       // its steps
    kJobEnded,  // which is not recorded yet
    kClearing,  // what the job has left
    kSiteEpilog,
    kLastClearing,  // what the site's epilog has left
    kOver,
  };
  enum class StepIs : std::uint8_t { kNot, kStarting, kRunning };
  enum class Ending : std::uint8_t { kNot, kGrace, kKill };
  enum class EndIs : std::uint8_t { kUnknown, kRecorded, kTold };

  void add(LifeAction::Kind kind);
  void tell(Notice::Kind notice);
  void start_program(SiteProgram program, std::int64_t now);

  void begin(std::int64_t now);
  void begin_job(std::int64_t now);
  void site_prolog_has_ended(std::int64_t now);
  void end_after_site_prolog(std::string detail, std::int64_t now);
  void start_next_step(std::int64_t now);
  void give_up_start(const std::string& doing, const std::string& why, std::int64_t now);
  void command_has_ended(const StepEnd& end);
  void end_job(std::string detail);
  void end_unstarted(std::uint8_t code, std::string detail);
  void record_end();
  void look();
  void begin_site_epilog(std::int64_t now);
  void finish();

  void arm_limit();
  void warn();
  void deadline_passed(const std::string& doing, std::int64_t now);
  void begin_grace(std::uint64_t grace_ms, std::int64_t now);
  void begin_kill(std::int64_t now);
  void signal_job(int signal);
  void send_warning();

  JobStep first_step() const { return rules_.has_prolog ? JobStep::kProlog : JobStep::kCommand; }
  bool is_last(JobStep step) const {
    return step == JobStep::kEpilog || (step == JobStep::kCommand && !rules_.has_epilog);
  }
  bool is_in_rootless_container() const {
    return is_in_container() && rules_.place == LifeRules::Place::kRootlessContainer &&
           step_is_ == StepIs::kRunning;
  }
  bool is_of_job() const;
  bool has_end() const;
  bool has_failed() const;
  bool needs_site_epilog() const { return rules_.has_site_epilog && phase_ < Phase::kSiteEpilog; }

  const LifeRules rules_;
  TimeLimit limit_;
  std::deque<LifeAction> actions_;

  Phase phase_ = Phase::kSetUp;
  std::optional<std::string> program_failure_;  // of the site's program that has ended
  bool waits_for_room_ = false;                 // after the site's prolog
  JobStep step_ = JobStep::kProlog;
  std::optional<JobStep> next_step_;
  StepIs step_is_ = StepIs::kNot;
  bool has_started_ = false;
  Ending ending_ = Ending::kNot;
  EndIs end_is_ = EndIs::kUnknown;
  EndCause cause_ = EndCause::kItself;
  EndRecord end_;

  std::int64_t deadline_ = 0;  // 0: none, here and below
  std::int64_t warn_at_ = 0;
  std::int64_t start_by_ = 0;
  bool owes_warning_ = false;      // to a step that is on its way
  std::vector<int> owed_signals_;  // to such a step

  bool has_looked_ = false;          // in this turn
  bool has_asked_for_host_ = false;  // in this turn
};

}  // namespace gpu_platform::node
