// What holds of every life of an attempt, in a world in which signals, ends and deadlines come late
// and twice, programs hang, and processes do not die of the first SIGKILL.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "node/supervisor/life/job_life.h"

namespace gpu_platform::node {
namespace {

using Kind = LifeAction::Kind;
using Place = LifeRules::Place;

constexpr std::int64_t kMs = 1'000'000;
constexpr int kTerm = 15;
constexpr int kUsr1 = 10;
constexpr int kUsr2 = 12;

struct Reached {
  std::set<Kind> actions;
  std::set<EndCause> causes;
  int lost = 0;
};

// One process or program. It dies of the last of so many SIGKILL, and is heard of later.
struct Process {
  bool is_there = false;
  bool heeds_term = false;
  int kills = 1;
  bool is_dead = false;
  std::uint8_t signal = 9;
  void take_kill() { is_dead |= is_there && --kills <= 0; }
};

class World {
 public:
  // Draws from the choices; when they are used up, nothing happens by itself any more.
  World(const std::vector<std::uint8_t>& choices, std::uint64_t variant, Reached& reached)
      : choices_(choices),
        variant_(variant),
        reached_(reached),
        rules_(draw_rules()),
        life_(rules_) {}

  void run() {
    if (pick(6) == 0) order_stop();
    if (pick(12) == 0) {
      life_.cannot_begin("no cgroup");
    } else {
      life_.set_up(now_);
      if (pick(8) == 0) life_.set_up(now_);
    }
    settle();
    turn();
    while (!is_calm() && !life_.is_over()) {
      live();
      turn();
    }
    if (!life_.is_over()) order_stop();
    settle();
    turn();
    // Only deadlines go on, and what they have killed dies.
    constexpr int kEnough = 200;
    for (int i = 0; i < kEnough && !life_.is_over(); ++i) {
      now_ = std::max(now_, life_.wake_at());
      pass_time();
      reap();
      turn();
    }
    judge();
  }

 private:
  // ---- choices

  bool is_calm() const { return at_ >= choices_.size(); }
  std::uint64_t pick(std::uint64_t n) {
    if (is_calm()) return n - 1;
    std::uint64_t bits = (choices_[at_] + 1) * 0x9E3779B97F4A7C15U + variant_ * 0xBF58476D1CE4E5B9U;
    ++at_;
    bits ^= bits >> 29U;
    return bits * 0x94D049BB133111EBU % 0xFFFF'FFFB % n;
  }
  bool perhaps() { return pick(2) == 0; }

  LifeRules draw_rules() {
    LifeRules rules;
    rules.has_site_prolog = perhaps();
    rules.has_site_epilog = perhaps();
    rules.site_prolog_timeout_ms = 500 + 1000 * pick(3);
    rules.site_epilog_timeout_ms = 500 + 1000 * pick(3);
    rules.has_prolog = perhaps();
    rules.has_epilog = perhaps();
    rules.place = static_cast<Place>(pick(3));
    rules.start_timeout_ms = 1000 + 1000 * pick(3);
    rules.grace_ms = 700 * pick(4);
    rules.time_limit_ms = 2000 * pick(3);
    rules.warning_before_ms = 600 * pick(3);
    rules.warning_signal = perhaps() ? kUsr2 : 0;
    rules.warns_first_process_only = perhaps();
    return rules;
  }

  Process draw_process() { return {true, perhaps(), 1 + static_cast<int>(pick(4)), false, 9}; }

  // ---- what happens by itself

  void live() {
    now_ += static_cast<std::int64_t>(pick(250)) * kMs;
    if (pick(5) == 0 && life_.wake_at() != 0) now_ = std::max(now_, life_.wake_at());
    if (pick(9) == 0) host_goes_down_ = pick(6) == 0 || host_goes_down_;
    if (start_.is_there && pick(3) == 0) start_is_over(pick(4) != 0);
    if (pick(12) == 0) order_stop();
    if (pick(12) == 0) change_limit();
    if (pick(8) == 0) ask_signal();
    pass_time();
    if (is_in_session_ && pick(25) == 0) {
      catch_up();
      note_grace(rules_.grace_ms, !has_end() && !is_ending_);
      life_.job_is_idle(now_);
      settle();
    }
    if (perhaps()) reap();
    if (program_.is_there && pick(3) == 0) end_program(perhaps() ? "" : "exit code 1");
    if (step_.is_there && pick(8) == 0) end_step(EndKind::kExited, perhaps() ? 0 : 3);
    if (step_.is_there && pick(30) == 0) end_step(EndKind::kSignalled, 11);
    if (!left_.empty() && pick(4) == 0) left_.pop_back();
    if (step_.is_there && pick(6) == 0) left_.push_back(draw_process());
  }

  void pass_time() {
    if (life_.is_warning_due(now_)) catch_up();
    // One that has ended keeps the limit that it had.
    const std::int64_t ends_at = step_.is_there ? limit_ends_at_ : first_limit_ends_at_;
    note_grace(rules_.grace_ms, ends_at != 0 && now_ >= ends_at && !is_ending_);
    // A grace of no time is over at once.
    for (int i = 0; i < 2 && (i == 0 || life_.wake_at() == now_); ++i) {
      life_.time_passed("open a file", now_);
      settle();
    }
    RC_ASSERT(life_.wake_at() == 0 || life_.wake_at() > now_);
    RC_ASSERT(!start_.is_there || now_ < start_by_);
    if (must_kill_by_ != 0 && now_ >= must_kill_by_) RC_ASSERT(is_killed_);
    // For every request to a job that runs, its time is counted from its first process.
    if (limit_ends_at_ != 0 && now_ >= limit_ends_at_ && step_.is_there) RC_ASSERT(is_ending_);
  }

  void order_stop() {
    StopSignal stop;
    stop.without_grace = pick(3) == 0;
    stop.grace_ms = 300 * pick(5);
    stop.code = static_cast<std::uint8_t>(1 + pick(9));
    for (std::uint64_t times = 1 + (pick(4) == 0 ? 1 : 0); times > 0; --times) {
      if (perhaps()) catch_up_for_stop();
      may_kill_ |= stop.without_grace || program_.is_there || start_.is_there;
      note_grace(stop.grace_ms, life_.has_started() && epilogs_ == 0);
      if (!has_end() && !is_recorded_) is_stopped_ = true;
      ++stops_;
      const std::int64_t kill_by = now_ + in_ns(stop.grace_ms);
      if (must_kill_by_ != 0) must_kill_by_ = std::min(must_kill_by_, kill_by);
      grace_ms_ = stop.grace_ms;
      life_.stop_ordered(stop, "open a file", now_);
      settle();
      grace_ms_ = rules_.grace_ms;
    }
  }

  void change_limit() {
    const std::uint64_t limit_ms = 1000 * pick(6);
    if (limit_ms != 0) limit_ms_ = limit_ms;
    if (started_at_ != 0 && limit_ms_ != 0) note_limit();
    life_.limit_changed(limit_ms);
    settle();
  }

  void ask_signal() {
    if (perhaps()) catch_up();
    life_.signal_asked(pick(6) == 0 ? 9 : kUsr1);
    settle();
  }

  void catch_up_for_stop() {
    if (start_.is_there && pick(3) == 0) start_is_over(true);
    if (life_.has_started()) reap();
  }
  void catch_up() {
    catch_up_for_stop();
    reap();
    life_.start_due_step(now_);
    settle();
  }

  void reap() {
    if (start_.is_dead) start_is_over(false);
    if (program_.is_dead) end_program("not done, killed");
    if (step_.is_dead) end_step(EndKind::kSignalled, step_.signal);
  }

  void start_is_over(bool is_executed) {
    start_ = {};
    if (is_executed) {
      step_ = draw_process();
      if (started_at_ == 0) {
        started_at_ = now_;
        if (limit_ms_ != 0) note_limit();
      }
      life_.step_started(now_);
      if (pick(8) == 0) life_.step_started(now_);
    } else {
      life_.step_not_started({127, "execute it: no such file", pick(4) == 0});
      if (pick(8) == 0) life_.step_not_started({126, "again", true});
    }
    settle();
  }

  void end_step(EndKind kind, std::uint8_t value) {
    step_ = {};
    if (at_step_ == JobStep::kCommand) {
      command_end_ = std::pair(kind, value);
      command_ended_at_ = now_;
    }
    StepEnd end;
    end.kind = kind;
    end.value = value;
    end.has_run_out = pick(6) == 0;
    life_.step_ended(end);
    if (pick(8) == 0) life_.step_ended({EndKind::kSignalled, 6, {}, false, false, "twice"});
    settle();
  }

  void end_program(const std::string& failure) {
    program_ = {};
    may_kill_ = true;
    if (which_program_ == SiteProgram::kProlog) prolog_did_well_ = failure.empty();
    life_.program_ended(which_program_, failure);
    if (pick(8) == 0) life_.program_ended(which_program_, "told twice");
  }

  // ---- turns and actions

  void turn() {
    life_.begin_turn();
    constexpr int kEnough = 20;
    int rounds = 0;
    do {
      RC_ASSERT(++rounds < kEnough);
      const bool was_over = life_.is_over();
      life_.go_on(host_goes_down_, now_);
      if (life_.is_over() && !was_over && !is_cleaned_) is_lost_ = !life_.take_action();
    } while (settle());
  }

  bool settle() {
    if (std::exchange(is_settling_, true)) return true;
    bool was_any = false;
    while (const auto action = life_.take_action()) {
      was_any = true;
      reached_.actions.insert(action->kind);
      carry_out(*action);
    }
    is_settling_ = false;
    return was_any;
  }

  void carry_out(const LifeAction& action) {
    switch (action.kind) {
      case Kind::kNoteEpilog:
        RC_ASSERT(rules_.has_site_epilog && !is_noted_);
        if (pick(8) == 0) return life_.cannot_begin("disk full");
        is_noted_ = true;
        life_.epilog_is_noted(now_);
        if (pick(8) == 0) life_.epilog_is_noted(now_);
        return;
      case Kind::kStartProgram:
        return start_program(action.program);
      case Kind::kSayOutOfTime:
        RC_ASSERT(now_ >= program_ends_at_ && !is_out_of_time_);
        may_kill_ = is_out_of_time_ = true;
        return;
      case Kind::kKillProgram:
        // Nothing stops the epilog but its own time.
        if (action.program == SiteProgram::kEpilog) RC_ASSERT(is_out_of_time_);
        return program_.take_kill();
      case Kind::kTakeRoomBack:
        may_kill_ = true;
        return life_.room_is_back(pick(6) == 0 ? "it is in use" : "", now_);
      case Kind::kStartStep:
        return start_step(action);
      case Kind::kKillStart:
        RC_ASSERT(start_.is_there);
        start_.take_kill();
        return;
      case Kind::kGiveUpStart:
        RC_ASSERT(start_.is_there);
        left_.push_back({true, false, start_.kills, false, 9});
        start_ = {};
        may_kill_ = true;
        return;
      case Kind::kSignal:
      case Kind::kSignalInside:
      case Kind::kSignalClient:
      case Kind::kSignalFirst:
        return take_signal(action);
      case Kind::kStopContainer:
      case Kind::kKillContainer:
        RC_ASSERT(rules_.place != Place::kCgroup);
        is_ending_ = true;
        is_killed_ |= action.kind == Kind::kKillContainer;
        if (action.kind == Kind::kKillContainer) step_.take_kill();
        return;
      case Kind::kKill:
        return kill_all();
      case Kind::kReap:
      case Kind::kGiveRoom:
      case Kind::kEndOutput:
      case Kind::kRemoveCgroup:
      case Kind::kRemoveFolders:
        return;
      case Kind::kBeginSession:
        RC_ASSERT(at_step_ == JobStep::kCommand && !is_in_session_);
        is_in_session_ = true;
        return;
      case Kind::kEndSession:
        RC_ASSERT(!is_recorded_);
        is_in_session_ = false;
        return;
      case Kind::kRecordStart:
        RC_ASSERT(step_.is_there && action.is_first == (started_records_ == 0));
        ++started_records_;
        return;
      case Kind::kRecordEnd:
        return record_end();
      case Kind::kRecordCleaned:
        RC_ASSERT(is_recorded_ && !is_cleaned_ && is_empty());
        is_cleaned_ = true;
        return;
      case Kind::kTell:
        return hear(action.notice);
      case Kind::kLook:
        if (is_empty()) {
          life_.processes_gone(now_);
          if (pick(8) == 0) life_.processes_gone(now_);
        } else {
          note_grace(rules_.grace_ms, !is_ending_);
          if (epilogs_ > 0) may_kill_ = true;
          life_.processes_left(now_);
        }
        return;
      case Kind::kWatch:
        if (is_empty()) life_.processes_gone(now_);
        return;
      case Kind::kRemoveGroups:
        RC_ASSERT(is_empty());
        return;
      case Kind::kForgetEpilog:
        RC_ASSERT(is_cleaned_ && epilogs_ == 1);
        return;
    }
  }

  void start_program(SiteProgram program) {
    RC_ASSERT(!program_.is_there && is_empty());
    which_program_ = program;
    const bool is_prolog = program == SiteProgram::kProlog;
    if (is_prolog) {
      RC_ASSERT(rules_.has_site_prolog && ++prologs_ == 1 && steps_.empty() && !is_stopped_);
    } else {
      RC_ASSERT(is_noted_ && is_recorded_ && ++epilogs_ == 1);
    }
    program_ends_at_ =
        now_ + in_ns(is_prolog ? rules_.site_prolog_timeout_ms : rules_.site_epilog_timeout_ms);
    is_ending_ = is_killed_ = may_kill_ = is_out_of_time_ = false;
    kill_by_ = must_kill_by_ = 0;
    program_ = draw_process();
    if (pick(8) == 0) end_program("it was spoiled");
  }

  void start_step(const LifeAction& action) {
    RC_ASSERT(!start_.is_there && !step_.is_there && !program_.is_there && !is_recorded_);
    RC_ASSERT(steps_.insert(action.step).second && *steps_.rbegin() == action.step);
    RC_ASSERT(action.is_first == (started_records_ == 0));
    RC_ASSERT(!is_stopped_ || action.step == JobStep::kEpilog);
    at_step_ = action.step;
    if (action.is_first) may_kill_ = false;  // what was for the site's prolog
    start_ = draw_process();
    start_by_ = now_ + in_ns(rules_.start_timeout_ms);
    if (pick(8) == 0) start_is_over(false);
  }

  void take_signal(const LifeAction& action) {
    const bool is_first = action.kind == Kind::kSignalFirst;
    if (is_first || action.kind == Kind::kSignalClient) RC_ASSERT(step_.is_there);
    if (action.signal == kUsr1 || action.signal == kUsr2) {
      RC_ASSERT(step_.is_there && !has_end());
      return;
    }
    is_ending_ = true;
    if (action.signal != kTerm) return;
    must_kill_by_ = now_ + in_ns(grace_ms_);
    std::erase_if(left_, [](const Process& each) { return each.heeds_term; });
    if (!step_.is_there || !step_.heeds_term || step_.is_dead) return;
    step_.is_dead = perhaps();
    step_.signal = kTerm;
  }

  // ---- SIGKILL

  void note_limit() {
    limit_ends_at_ = started_at_ + in_ns(limit_ms_);
    const bool is_first = first_limit_ends_at_ == 0;
    first_limit_ends_at_ =
        is_first ? limit_ends_at_ : std::min(first_limit_ends_at_, limit_ends_at_);
  }

  // A grace that is given counts from now, or as it did where that is shorter.
  void note_grace(std::uint64_t grace_ms, bool is_given) {
    if (!is_given) return;
    const std::int64_t kill_by = now_ + in_ns(grace_ms);
    kill_by_ = kill_by_ == 0 ? kill_by : std::min(kill_by_, kill_by);
  }

  void kill_all() {
    is_ending_ = is_killed_ = true;
    // Not before its time, once nothing has said that there is none.
    RC_ASSERT(may_kill_ || program_.is_there || (kill_by_ != 0 && now_ >= kill_by_));
    may_kill_ = true;
    for (Process& each : left_) each.take_kill();
    std::erase_if(left_, [](const Process& each) { return each.is_dead; });
    for (Process* each : {&step_, &start_, &program_}) each->take_kill();
  }

  // ---- what is recorded and told

  void record_end() {
    RC_ASSERT(!is_recorded_ && !step_.is_there && !start_.is_there);
    is_recorded_ = true;
    const EndRecord& end = life_.end();
    reached_.causes.insert(end.cause);
    if (command_end_) {
      RC_ASSERT(end.kind == command_end_->first && end.value == command_end_->second);
    } else {
      RC_ASSERT(end.kind != EndKind::kExited || at_step_ == JobStep::kProlog);
    }
    if (end.cause == EndCause::kTimeLimit) {
      const std::int64_t until = command_end_ ? command_ended_at_ : now_;
      RC_ASSERT(started_at_ != 0 && end.time_limit > base::Duration());
      RC_ASSERT(until - started_at_ >= end.time_limit.value());
    }
    if (end.cause == EndCause::kPrologFailed) RC_ASSERT(prologs_ == 1 && !prolog_did_well_);
    if (end.cause == EndCause::kStopped) RC_ASSERT(stops_ > 0 && end.stop_code != 0);
  }

  void hear(Notice::Kind notice) {
    switch (notice) {
      case Notice::Kind::kStarted:
        RC_ASSERT(started_records_ == 1 && ++starts_told_ == 1);
        return;
      case Notice::Kind::kEntered:
        RC_ASSERT(started_records_ == ++starts_told_);
        return;
      case Notice::Kind::kStopping:
        ++stops_told_;
        return;
      case Notice::Kind::kEnded:
        RC_ASSERT(is_recorded_ && !is_end_told_ && !is_cleaned_);
        is_end_told_ = true;
        return;
      case Notice::Kind::kCleaned:
        RC_ASSERT(is_cleaned_ && ++cleaned_told_ == 1);
        return;
    }
  }

  bool has_end() const { return command_end_.has_value() || is_recorded_; }
  bool is_empty() const {
    return !step_.is_there && !start_.is_there && !program_.is_there && left_.empty();
  }

  void judge() {
    RC_ASSERT(life_.is_over() && stops_told_ == stops_);
    if (is_lost_) {
      ++reached_.lost;
      RC_ASSERT(host_goes_down_ && !is_cleaned_);
      return;
    }
    RC_ASSERT(is_recorded_ && is_cleaned_ && cleaned_told_ == 1 && is_empty());
    RC_ASSERT(epilogs_ == (is_noted_ ? 1 : 0));
    RC_ASSERT(life_.wake_at() == 0);
  }

  const std::vector<std::uint8_t>& choices_;
  const std::uint64_t variant_;
  Reached& reached_;
  std::size_t at_ = 0;
  std::int64_t now_ = 1'000'000 * kMs;
  const LifeRules rules_;
  JobLife life_;

  Process program_;
  SiteProgram which_program_ = SiteProgram::kProlog;
  std::int64_t program_ends_at_ = 0;
  Process start_;
  std::int64_t start_by_ = 0;
  Process step_;
  JobStep at_step_ = JobStep::kProlog;
  std::vector<Process> left_;
  bool is_settling_ = false;
  bool is_in_session_ = false;
  bool host_goes_down_ = false;

  std::set<JobStep> steps_;
  std::optional<std::pair<EndKind, std::uint8_t>> command_end_;
  std::int64_t command_ended_at_ = 0;
  std::int64_t started_at_ = 0;
  std::uint64_t limit_ms_ = rules_.time_limit_ms;
  std::int64_t limit_ends_at_ = 0;
  std::int64_t first_limit_ends_at_ = 0;  // the earliest of all that it had
  std::int64_t kill_by_ = 0;              // the earliest SIGKILL after a grace; 0: none was given
  std::int64_t must_kill_by_ = 0;         // the end of the grace that the job was told of
  std::uint64_t grace_ms_ = rules_.grace_ms;
  bool may_kill_ = false;  // at once
  bool is_ending_ = false;
  bool is_killed_ = false;
  bool is_stopped_ = false;  // before the command's end
  bool is_noted_ = false;
  bool is_recorded_ = false;
  bool is_end_told_ = false;
  bool is_cleaned_ = false;
  bool is_lost_ = false;
  bool prolog_did_well_ = false;
  bool is_out_of_time_ = false;  // the site's program, as it was said
  int prologs_ = 0;
  int epilogs_ = 0;
  int started_records_ = 0;
  int starts_told_ = 0;
  int stops_ = 0;
  int stops_told_ = 0;
  int cleaned_told_ = 0;
};

TEST(JobLifeProperty, EndsOnceRecordsBeforeItTellsAndLeavesNothingWhateverComesLateOrTwice) {
  constexpr std::uint64_t kVariants = 200;
  Reached reached;
  const bool holds = rc::check([&reached] {
    const auto choices = *rc::gen::scale(
        6, rc::gen::container<std::vector<std::uint8_t>>(rc::gen::arbitrary<std::uint8_t>()));
    for (std::uint64_t variant = 0; variant < kVariants; ++variant) {
      World(choices, variant, reached).run();
    }
  });
  ASSERT_TRUE(holds);
  EXPECT_EQ(reached.actions.size(), static_cast<std::size_t>(Kind::kRemoveFolders) + 1);
  EXPECT_EQ(reached.causes.size(), kEndCauses);
  EXPECT_GT(reached.lost, 0);
}

}  // namespace
}  // namespace gpu_platform::node
