#include "node/supervisor/life/job_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

using Kind = LifeAction::Kind;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kLifeSecond = 1'000'000'000;
constexpr std::int64_t kNow = 100 * kLifeSecond;

// One life with a clock, a step after the other.
class Life {
 public:
  explicit Life(const LifeRules& rules = life_rules()) : life_(rules) {}

  static LifeRules life_rules() {
    LifeRules rules;
    rules.start_timeout_ms = 30'000;
    rules.grace_ms = 5'000;
    rules.site_prolog_timeout_ms = rules.site_epilog_timeout_ms = 60'000;
    return rules;
  }

  JobLife* operator->() { return &life_; }

  std::vector<Kind> actions() {
    std::vector<Kind> kinds;
    while (const auto action = life_.take_action()) {
      kinds.push_back(action->kind);
      last_ = *action;
    }
    return kinds;
  }
  const LifeAction& last() const { return last_; }

  std::vector<Kind> turn(bool host_goes_down = false) {
    life_.begin_turn();
    return on(host_goes_down);
  }
  std::vector<Kind> on(bool host_goes_down = false) {
    life_.go_on(host_goes_down, now_);
    return actions();
  }
  std::vector<Kind> pass(std::int64_t seconds) {
    now_ += seconds * kLifeSecond;
    life_.time_passed("change to directory /x", now_);
    return actions();
  }
  std::int64_t now() const { return now_; }

  // The command runs.
  Life& run() {
    life_.set_up(now_);
    life_.step_started(now_);
    actions();
    return *this;
  }
  std::vector<Kind> end(EndKind kind, std::uint8_t value) {
    StepEnd step;
    step.kind = kind;
    step.value = value;
    life_.step_ended(step);
    return actions();
  }
  std::vector<Kind> stop(std::uint64_t grace_ms, bool without_grace = false) {
    life_.stop_ordered({without_grace, grace_ms, 3}, "change to directory /x", now_);
    return actions();
  }

 private:
  JobLife life_;
  std::int64_t now_ = kNow;
  LifeAction last_;
};

LifeRules with(void (*change)(LifeRules&)) {
  LifeRules rules = Life::life_rules();
  change(rules);
  return rules;
}

TEST(JobLife, RecordsAStartBeforeItIsToldAndAnEndBeforeWhatIsLeftIsLookedFor) {
  Life life;
  life->set_up(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kStartStep));
  life->step_started(life.now());
  EXPECT_THAT(life.actions(),
              ElementsAre(Kind::kEndOutput, Kind::kRecordStart, Kind::kBeginSession, Kind::kTell));
  EXPECT_EQ(life.last().notice, Notice::Kind::kStarted);
  EXPECT_THAT(life.end(EndKind::kExited, 3), ElementsAre(Kind::kEndOutput));
  EXPECT_THAT(life.turn(), ElementsAre(Kind::kEndSession, Kind::kRecordEnd, Kind::kLook));
  EXPECT_EQ(life->end().value, 3);
  EXPECT_EQ(life->end().cause, EndCause::kItself);
  life->processes_gone(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kRemoveGroups, Kind::kRecordCleaned, Kind::kTell,
                                          Kind::kRemoveFolders));
  EXPECT_EQ(life.last().kind, Kind::kRemoveFolders);
  EXPECT_TRUE(life->is_over());
  EXPECT_EQ(life->wake_at(), 0);
}

TEST(JobLife, TellsAnEndOnlyAfterWhatIsLeftIsToldToGoAndThenKillsItAfterTheGrace) {
  Life life;
  life.run().end(EndKind::kExited, 0);
  life.turn();
  life->processes_left(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kSignal, Kind::kSignal, Kind::kWatch));
  EXPECT_THAT(life.on(), ElementsAre(Kind::kTell));
  EXPECT_EQ(life.last().notice, Notice::Kind::kEnded);
  EXPECT_THAT(life.on(), IsEmpty());
  EXPECT_EQ(life->wake_at(), life.now() + 5 * kLifeSecond);
  EXPECT_THAT(life.pass(4), IsEmpty());
  EXPECT_THAT(life.pass(1), ElementsAre(Kind::kKill));
  EXPECT_EQ(life->wake_at(), life.now() + kLifeSecond / 5);
  EXPECT_THAT(life.pass(1), ElementsAre(Kind::kKill)) << "again, until nothing is left";
}

TEST(JobLife, AStopOrderGivesAGraceThatARepeatedOneShortensAndNeverLengthens) {
  Life life;
  EXPECT_THAT(life.run().stop(4000), ElementsAre(Kind::kSignal, Kind::kSignal, Kind::kTell));
  EXPECT_EQ(life->wake_at(), kNow + 4 * kLifeSecond);
  EXPECT_THAT(life.stop(9000), ElementsAre(Kind::kTell));
  EXPECT_EQ(life->wake_at(), kNow + 4 * kLifeSecond);
  life.stop(1000);
  EXPECT_EQ(life->wake_at(), kNow + kLifeSecond);
  EXPECT_THAT(life.stop(0, true), ElementsAre(Kind::kKill, Kind::kTell));
}

TEST(JobLife, AnExitThatCameBeforeTheOrderWasNotCausedByItAndADeathBySignalMayBe) {
  Life exited;
  exited.run().end(EndKind::kExited, 0);
  exited.stop(0);
  exited.turn();
  EXPECT_EQ(exited->end().cause, EndCause::kItself);
  Life killed;
  killed.run().end(EndKind::kSignalled, 9);
  killed.stop(0);
  killed.turn();
  EXPECT_EQ(killed->end().cause, EndCause::kStopped);
  EXPECT_EQ(killed->end().stop_code, 3);
}

TEST(JobLife, OneStoppedBeforeItBeganStartsNothingAndIsCleaned) {
  Life life(with([](LifeRules& rules) { rules.has_site_prolog = rules.has_site_epilog = true; }));
  EXPECT_THAT(life.stop(0), ElementsAre(Kind::kTell));
  life->set_up(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kRemoveCgroup, Kind::kReap, Kind::kEndOutput,
                                          Kind::kRecordEnd, Kind::kRemoveGroups,
                                          Kind::kRecordCleaned, Kind::kTell, Kind::kRemoveFolders));
  EXPECT_EQ(life->end().detail, "stopped before it was started");
}

TEST(JobLife, AStopGivesAStartUpThatIsOnItsWayAndSaysWhatItDid) {
  Life life;
  life->set_up(life.now());
  life.actions();
  EXPECT_THAT(life.stop(4000), ElementsAre(Kind::kGiveUpStart, Kind::kKill, Kind::kReap,
                                           Kind::kEndOutput, Kind::kTell));
  EXPECT_EQ(life->end().kind, EndKind::kNotStarted);
  EXPECT_EQ(life->end().detail, "change to directory /x: stopped meanwhile");
}

TEST(JobLife, AStartThatTakesTooLongIsGivenUp) {
  Life life;
  life->set_up(life.now());
  life.actions();
  EXPECT_THAT(life.pass(29), IsEmpty());
  EXPECT_THAT(life.pass(1),
              ElementsAre(Kind::kGiveUpStart, Kind::kKill, Kind::kReap, Kind::kEndOutput));
  EXPECT_EQ(life->end().detail, "change to directory /x: not done after 30 s");
  EXPECT_EQ(life->end().cause, EndCause::kItself);
}

TEST(JobLife, TheTimeLimitCountsFromTheFirstProcessAndAStepLaterDoesNotMoveIt) {
  Life life(with([](LifeRules& rules) {
    rules.has_prolog = true;
    rules.time_limit_ms = 10'000;
  }));
  life->set_up(life.now());
  EXPECT_EQ(life.actions(), std::vector{Kind::kStartStep});
  life.pass(3);
  life->step_started(life.now());
  life.actions();
  EXPECT_EQ(life->wake_at(), kNow + 13 * kLifeSecond);
  life.end(EndKind::kExited, 0);
  life.pass(2);
  EXPECT_THAT(life.turn(), ElementsAre(Kind::kStartStep));
  life->step_started(life.now());
  EXPECT_THAT(life.actions(),
              ElementsAre(Kind::kEndOutput, Kind::kRecordStart, Kind::kBeginSession, Kind::kTell));
  EXPECT_EQ(life.last().notice, Notice::Kind::kEntered);
  EXPECT_EQ(life->wake_at(), kNow + 13 * kLifeSecond);
  EXPECT_THAT(life.pass(8), ElementsAre(Kind::kSignal, Kind::kSignal));
  life.end(EndKind::kSignalled, 15);
  life.turn();
  EXPECT_EQ(life->end().cause, EndCause::kTimeLimit);
  EXPECT_EQ(life->end().time_limit, base::seconds(10));
}

TEST(JobLife, ALimitThatChangesMovesTheEndUntilThatHasBegun) {
  Life life(with([](LifeRules& rules) { rules.time_limit_ms = 10'000; }));
  life.run()->limit_changed(20'000);
  EXPECT_EQ(life->wake_at(), kNow + 20 * kLifeSecond);
  life.stop(1000);
  life->limit_changed(90'000);
  EXPECT_EQ(life->wake_at(), kNow + kLifeSecond);
}

TEST(JobLife, OwesAWarningAndSignalsToAStepThatIsOnItsWay) {
  Life life(with([](LifeRules& rules) {
    rules.has_prolog = true;
    rules.time_limit_ms = 10'000;
    rules.warning_before_ms = 9'000;
    rules.warning_signal = 12;
  }));
  life.run().end(EndKind::kExited, 0);
  life.turn();
  life->signal_asked(10);
  life->signal_asked(9);  // none that is passed on
  EXPECT_THAT(life.pass(1), IsEmpty());
  life->step_started(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kEndOutput, Kind::kRecordStart, Kind::kBeginSession,
                                          Kind::kSignal, Kind::kSignal, Kind::kTell));
}

TEST(JobLife, SignalsOfPeopleAreForTheCommandAndItsPrologAlone) {
  Life life(with([](LifeRules& rules) { rules.has_epilog = true; }));
  life->signal_asked(10);
  EXPECT_THAT(life.actions(), IsEmpty());
  life.run()->signal_asked(10);
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kSignal));
  life.end(EndKind::kExited, 0);
  life->signal_asked(10);
  EXPECT_THAT(life.actions(), IsEmpty());
}

TEST(JobLife, ASitesPrologThatFailsStartsNothingAndItsEpilogIsRunNevertheless) {
  Life life(with([](LifeRules& rules) { rules.has_site_prolog = rules.has_site_epilog = true; }));
  life->set_up(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kNoteEpilog));
  life->epilog_is_noted(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kStartProgram));
  life->program_ended(SiteProgram::kProlog, "exit code 1");
  EXPECT_THAT(life.turn(),
              ElementsAre(Kind::kKill, Kind::kKillProgram, Kind::kReap, Kind::kEndOutput));
  EXPECT_EQ(life->end().cause, EndCause::kPrologFailed);
  EXPECT_EQ(life->end().detail, "the site's prolog: exit code 1");
  EXPECT_THAT(life.on(), ElementsAre(Kind::kEndSession, Kind::kRecordEnd, Kind::kLook));
  EXPECT_TRUE(life.last().keeps_cgroup);
  life->processes_gone(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kStartProgram));
  EXPECT_EQ(life.last().program, SiteProgram::kEpilog);
  EXPECT_THAT(life.on(), ElementsAre(Kind::kTell));
  life->program_ended(SiteProgram::kEpilog, "");
  EXPECT_THAT(life.turn(), ElementsAre(Kind::kLook));
  EXPECT_FALSE(life.last().keeps_cgroup);
  life->processes_left(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kKill, Kind::kWatch)) << "without a grace";
  life->processes_gone(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kRemoveGroups, Kind::kRecordCleaned, Kind::kTell,
                                          Kind::kForgetEpilog, Kind::kRemoveFolders));
}

TEST(JobLife, NothingStopsTheSitesEpilogButItsOwnTime) {
  Life life(with([](LifeRules& rules) { rules.has_site_epilog = true; }));
  life->set_up(life.now());
  life->epilog_is_noted(life.now());
  life.run().end(EndKind::kExited, 0);
  life.turn();
  life->processes_gone(life.now());
  life.actions();
  EXPECT_THAT(life.stop(0, true), ElementsAre(Kind::kTell));
  EXPECT_THAT(life.pass(59), IsEmpty());
  EXPECT_THAT(life.pass(1), ElementsAre(Kind::kSayOutOfTime, Kind::kKill, Kind::kKillProgram));
  EXPECT_THAT(life.pass(1), ElementsAre(Kind::kKill, Kind::kKillProgram)) << "it is told once";
}

TEST(JobLife, AStopDuringAUsersPrologThatEndsWellStartsNoCommand) {
  Life life(with([](LifeRules& rules) { rules.has_prolog = rules.has_epilog = true; }));
  life.run().stop(5000);
  life.end(EndKind::kExited, 0);
  EXPECT_THAT(life.turn(), ElementsAre(Kind::kEndOutput));
  EXPECT_EQ(life->end().kind, EndKind::kSignalled);
  EXPECT_EQ(life->end().detail, "its prolog: stopped while it ran");
}

TEST(JobLife, AUsersEpilogRunsInTheGraceAndNotAfterIt) {
  const LifeRules rules = with([](LifeRules& r) { r.has_epilog = true; });
  Life in_grace(rules);
  in_grace.run().stop(5000);
  EXPECT_THAT(in_grace.end(EndKind::kSignalled, 15), ElementsAre(Kind::kGiveRoom));
  EXPECT_THAT(in_grace.turn(), ElementsAre(Kind::kStartStep));
  EXPECT_EQ(in_grace.last().step, JobStep::kEpilog);
  Life killed(rules);
  killed.run().stop(0, true);
  killed.end(EndKind::kSignalled, 9);
  EXPECT_THAT(killed.turn(), ElementsAre(Kind::kEndOutput));
}

TEST(JobLife, ARootlessContainerHearsOfItsEndFromItsClientAlone) {
  Life life(with([](LifeRules& rules) { rules.place = LifeRules::Place::kRootlessContainer; }));
  EXPECT_THAT(life.run().stop(1000), ElementsAre(Kind::kStopContainer, Kind::kSignalClient,
                                                 Kind::kSignalClient, Kind::kTell));
  EXPECT_THAT(life.pass(1), ElementsAre(Kind::kKillContainer)) << "its client is not killed";
  life.end(EndKind::kSignalled, 9);
  life.turn();
  life->processes_left(life.now());
  life.actions();
  EXPECT_THAT(life.pass(1), ElementsAre(Kind::kKill, Kind::kKillContainer));
}

TEST(JobLife, AnIdleJobIsEndedUnlessItsEndHasBegun) {
  Life life;
  life.run()->job_is_idle(life.now());
  EXPECT_THAT(life.actions(), ElementsAre(Kind::kSignal, Kind::kSignal));
  life->job_is_idle(life.now());
  EXPECT_THAT(life.actions(), IsEmpty());
  life.end(EndKind::kSignalled, 15);
  life.turn();
  EXPECT_EQ(life->end().cause, EndCause::kIdleTimeout);
}

TEST(JobLife, OneThatAHostsShutdownEndedIsLostAndOneThatWasStoppedIsNot) {
  Life lost;
  lost.run().end(EndKind::kSignalled, 15);
  EXPECT_TRUE(lost->asks_for_host());
  EXPECT_THAT(lost.turn(true), IsEmpty());
  EXPECT_TRUE(lost->is_over());
  Life stopped;
  stopped.run().stop(1000);
  stopped.end(EndKind::kSignalled, 15);
  EXPECT_FALSE(stopped->asks_for_host());
  EXPECT_THAT(stopped.turn(true), ElementsAre(Kind::kEndSession, Kind::kRecordEnd, Kind::kLook));
}

TEST(JobLife, AJobWithoutMemoryHasThatCauseWhereItFailed) {
  for (const std::uint8_t code : {0, 1}) {
    Life life;
    StepEnd end;
    end.value = code;
    end.has_run_out = true;
    life.run()->step_ended(end);
    life.turn();
    EXPECT_EQ(life->end().cause, code == 0 ? EndCause::kItself : EndCause::kOutOfMemory);
  }
}

}  // namespace
}  // namespace gpu_platform::node
