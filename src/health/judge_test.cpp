#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "health/evidence_words.h"
#include "health/judge_fixture.h"
#include "health/nvlink_registers.h"
#include "health/rule_table.h"

namespace gpu_platform::health::testing {
namespace {

struct Row {
  std::uint32_t xid;
  Action action;
};

// The rows of the project's table of XIDs, each alone and for the first time.
constexpr Row kTable[] = {
    {13, Action::kCount},    {31, Action::kCount},    {32, Action::kCount},
    {38, Action::kCount},    {43, Action::kCount},    {44, Action::kCount},
    {45, Action::kNone},     {46, Action::kReset},    {48, Action::kReset},
    {54, Action::kOffline},  {61, Action::kDegrade},  {62, Action::kReset},
    {63, Action::kReset},    {64, Action::kReset},    {66, Action::kCount},
    {68, Action::kCount},    {69, Action::kCount},    {74, Action::kDegrade},
    {78, Action::kCount},    {79, Action::kReboot},   {92, Action::kDegrade},
    {93, Action::kCount},    {94, Action::kReset},    {95, Action::kReset},
    {109, Action::kDegrade}, {110, Action::kReset},   {119, Action::kReset},
    {120, Action::kReset},   {121, Action::kCount},   {136, Action::kReset},
    {137, Action::kCount},   {140, Action::kReset},   {141, Action::kCount},
    {143, Action::kOffline}, {144, Action::kDegrade}, {145, Action::kDegrade},
    {146, Action::kDegrade}, {147, Action::kDegrade}, {148, Action::kDegrade},
    {149, Action::kDegrade}, {150, Action::kDegrade}, {151, Action::kCount},
    {154, Action::kCount},   {155, Action::kDegrade}, {156, Action::kReset},
    {157, Action::kDegrade}, {158, Action::kReset},   {160, Action::kCount},
    {161, Action::kCount},   {162, Action::kCount},   {163, Action::kCount},
    {164, Action::kCount},   {165, Action::kCount},   {167, Action::kOffline},
    {168, Action::kDegrade}, {169, Action::kReset},   {171, Action::kReset},
    {172, Action::kReset},   {173, Action::kDegrade}, {175, Action::kDegrade},
    {176, Action::kCount},
};

TEST_F(Judge, EachRowOfTheTableHasItsVerdict) {
  for (const Row& row : kTable) {
    CaseBook one;
    one.add_gpu(key("n:0"));
    one.add(key("n:0"), of_job(xid(row.xid), 1, "ann", "train"));
    const GpuVerdict verdict = judge_gpu(one, key("n:0"), rules, after(base::seconds(1)));
    EXPECT_EQ(verdict.action, row.action) << row.xid << ": " << verdict.text;
    if (row.action == Action::kNone) continue;
    EXPECT_EQ(verdict.rule, "xid-" + std::to_string(row.xid));
    EXPECT_FALSE(verdict.reasons.empty()) << row.xid;
    EXPECT_EQ(verdict.next.empty(), row.action == Action::kCount) << row.xid;
  }
}

TEST_F(Judge, TellsTheFaultTheTimeAndWhatHelps) {
  see(xid(79));
  const GpuVerdict verdict = judged();
  EXPECT_EQ(verdict.text,
            "XID 79 (fallen off the bus) at 2026-09-21T14:13:20Z: it is out until its node has "
            "been restarted");
  EXPECT_EQ(verdict.next, "restart its node");
  EXPECT_EQ(verdict.fault, FaultClass::kHardware);
  EXPECT_GE(verdict.confidence_percent, 95U);
}

TEST_F(Judge, DriverIsAskedFirst) {
  for (const auto& [number, expected] :
       {std::pair(0U, Action::kNone), std::pair(1U, Action::kReset), std::pair(2U, Action::kReboot),
        std::pair(3U, Action::kDrain), std::pair(4U, Action::kReset), std::pair(5U, Action::kDrain),
        std::pair(6U, Action::kDrain), std::pair(7U, Action::kReboot),
        std::pair(99U, Action::kDrain)}) {
    CaseBook one;
    one.add_gpu(key("n:0"));
    one.add(key("n:0"), piece_of(EvidenceKind::kRecoveryAction, kNoon, number));
    EXPECT_EQ(judge_gpu(one, key("n:0"), rules, kNoon).action, expected) << number;
  }
  see(xid(109));
  EXPECT_EQ(action(), Action::kDegrade);
  see(piece_of(EvidenceKind::kRecoveryAction, after(base::seconds(1))));
  EXPECT_EQ(action(), Action::kCount) << "it asks for nothing";
  see(piece_of(EvidenceKind::kRecoveryAction, after(base::seconds(2)), 1));
  EXPECT_EQ(judged().rule, "recovery-reset");
}

TEST_F(Judge, RecoveryActionIsReadFromXid154) {
  see(saying(xid(154),
             "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"));
  EXPECT_EQ(judged().rule, "recovery-reboot");
}

TEST_F(Judge, AnApplicationsErrorIsNothingTheFirstTime) {
  run(1, "ann", "train", {"n:0"}, kNoon);
  see(of_job(xid(31, after(base::minutes(1))), 1, "ann", "train"));
  see(of_job(xid(43, after(base::minutes(1))), 1, "ann", "train"));
  EXPECT_EQ(action(), Action::kCount);
}

TEST_F(Judge, DriversErrorsTwiceADay) {
  for (const std::uint32_t code : {32, 38, 44, 39, 126}) {
    CaseBook one;
    one.add_gpu(key("n:0"));
    one.add(key("n:0"), xid(code));
    one.add(key("n:0"), xid(code, after(base::hours(30))));
    EXPECT_EQ(judge_gpu(one, key("n:0"), rules, after(base::hours(31))).action, Action::kCount);
    one.add(key("n:0"), xid(code, after(base::hours(40))));
    EXPECT_EQ(judge_gpu(one, key("n:0"), rules, after(base::hours(41))).action, Action::kDegrade)
        << code;
  }
}

TEST_F(Judge, UnknownXidIsShownAndDegradesWhenItComesAgain) {
  see(xid(777));
  EXPECT_EQ(action(), Action::kCount);
  EXPECT_EQ(judged().rule, "xid-unknown");
  see(xid(777, after(base::hours(1))));
  EXPECT_EQ(action(after(base::hours(2))), Action::kDegrade);
}

TEST_F(Judge, FiveFatalErrorsInADayAreForTheVendor) {
  for (int i = 0; i < 5; ++i) {
    see(xid(119, after(base::hours(i))));
    see(piece_of(EvidenceKind::kNodeRestarted, after(base::hours(i) + base::minutes(20))));
  }
  EXPECT_EQ(judged(after(base::hours(6))).rule, "often-fatal");
  EXPECT_EQ(action(after(base::hours(24 * 9))), Action::kNone) << "the window has passed";
}

TEST_F(Judge, FiveResetsInAWeekAndItDoesNotComeBack) {
  for (int i = 0; i < 5; ++i) {
    see(piece_of(EvidenceKind::kReset, after(base::hours(24 * i))));
    see(piece_of(EvidenceKind::kCheck, after(base::hours(24 * i) + base::minutes(5))));
    EXPECT_EQ(action(after(base::hours(24 * i + 1))), i < 4 ? Action::kNone : Action::kDrain) << i;
  }
}

TEST_F(Judge, PairsThatCancel) {
  see(xid(163));
  EXPECT_EQ(judged().rule, "xid-163");
  see(xid(162, after(base::seconds(30))));
  EXPECT_EQ(judged().rule, "xid-162");
}

TEST_F(Judge, RegistersOfNvlinkErrors) {
  const auto read = [&](std::vector<std::uint32_t> registers, int times) {
    CaseBook one;
    one.add_gpu(key("n:0"));
    for (int i = 0; i < times; ++i) {
      Evidence piece = xid(74, after(base::hours(i)));
      piece.registers = registers;
      one.add(key("n:0"), piece);
    }
    return judge_gpu(one, key("n:0"), rules, after(base::hours(times))).action;
  };
  EXPECT_EQ(read({1U << 20}, 1), Action::kCount) << "an error of the driver";
  EXPECT_EQ(read({1U << 16}, 1), Action::kDegrade);
  EXPECT_EQ(read({1U << 16}, 2), Action::kReset);
  EXPECT_EQ(read({0, 0, 1U << 13}, 1), Action::kReset) << "at once";
  EXPECT_EQ(read({}, 1), Action::kDegrade);
}

TEST_F(Judge, RegistersAreReadFromTheLogLine) {
  const Evidence piece = saying(
      xid(74), "NVLink: fatal error detected on link 6(0x10000, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0)");
  EXPECT_EQ(registers_of(piece), (std::vector<std::uint32_t>{0x10000, 0, 0, 0, 0, 0, 0}));
}

TEST_F(Judge, LinkErrorsBesideALostGpuAreItsSymptom) {
  see(xid(79), "n:1");
  see(xid(74, after(base::seconds(1))));
  EXPECT_EQ(action(), Action::kCount);
  EXPECT_EQ(action(after(base::minutes(2)), "n:1"), Action::kReboot);
}

TEST_F(Judge, LevelsLastUntilTheyAreOver) {
  const std::pair<EvidenceKind, Action> kLevels[] = {
      {EvidenceKind::kRemapPending, Action::kReset},
      {EvidenceKind::kRemapFailed, Action::kReset},
      {EvidenceKind::kRetirementPending, Action::kReset},
      {EvidenceKind::kHeat, Action::kAvoid},
      {EvidenceKind::kMemoryHeat, Action::kAvoid},
      {EvidenceKind::kSlowdown, Action::kDegrade},
      {EvidenceKind::kPcieWidth, Action::kDegrade},
      {EvidenceKind::kNvlinkDown, Action::kDrain},
      {EvidenceKind::kNotAnswering, Action::kOffline},
      {EvidenceKind::kLost, Action::kReboot},
      {EvidenceKind::kSlow, Action::kDegrade},
  };
  for (const auto& [kind, expected] : kLevels) {
    CaseBook one;
    one.add_gpu(key("n:0"));
    one.add(key("n:0"), worth(piece_of(kind, kNoon), 80));
    EXPECT_EQ(judge_gpu(one, key("n:0"), rules, after(base::hours(1))).action, expected)
        << to_string(kind);
    one.add(key("n:0"), over(piece_of(kind, after(base::hours(2)))));
    EXPECT_LE(judge_gpu(one, key("n:0"), rules, after(base::hours(3))).action, Action::kCount)
        << to_string(kind);
  }
}

TEST_F(Judge, ShortSlowdownsAndNarrowLinksAreNoFaultYet) {
  for (const EvidenceKind kind : {EvidenceKind::kSlowdown, EvidenceKind::kPcieWidth}) {
    CaseBook one;
    one.add_gpu(key("n:0"));
    one.add(key("n:0"), worth(piece_of(kind, kNoon), 8));
    const GpuVerdict verdict = judge_gpu(one, key("n:0"), rules, after(base::minutes(1)));
    EXPECT_EQ(verdict.action, Action::kCount);
    EXPECT_EQ(verdict.again_at, after(base::minutes(5))) << "time alone changes it";
  }
}

TEST_F(Judge, PowerCapOfTheSiteIsNoFault) {
  see(saying(piece_of(EvidenceKind::kSlowdown, kNoon), "SW power cap"));
  EXPECT_EQ(action(after(base::hours(1))), Action::kNone);
}

TEST_F(Judge, WhatCuresAFault) {
  see(xid(48));
  see(piece_of(EvidenceKind::kReset, after(base::minutes(1))));
  EXPECT_EQ(judged().rule, "unchecked");
  see(piece_of(EvidenceKind::kCheck, after(base::minutes(2))));
  EXPECT_EQ(action(after(base::minutes(3))), Action::kNone);
  see(xid(79, after(base::minutes(4))));
  see(piece_of(EvidenceKind::kReset, after(base::minutes(5))));
  EXPECT_EQ(action(after(base::minutes(6))), Action::kReboot) << "a reset is not enough";
  book.add_to_node("n", piece_of(EvidenceKind::kNodeRestarted, after(base::minutes(7))));
  EXPECT_EQ(action(after(base::minutes(8))), Action::kNone);
}

TEST_F(Judge, AResetWithoutAFaultBeforeItNeedsNoCheck) {
  see(xid(31));
  see(piece_of(EvidenceKind::kReset, after(base::minutes(1))));
  EXPECT_LT(action(after(base::minutes(2))), Action::kDegrade);
}

TEST_F(Judge, ACheckWithoutAResetClearsWhatOnlyDegrades) {
  see(piece_of(EvidenceKind::kEccUncorrected, kNoon));
  see(piece_of(EvidenceKind::kReset, after(base::seconds(1))));
  EXPECT_EQ(judged(after(base::seconds(2))).rule, "unchecked");
  see(piece_of(EvidenceKind::kCheck, after(base::minutes(1))));
  EXPECT_EQ(action(after(base::minutes(2))), Action::kNone);
  see(xid(48, after(base::minutes(3))));
  see(piece_of(EvidenceKind::kCheck, after(base::minutes(4))));
  EXPECT_EQ(action(after(base::minutes(5))), Action::kReset) << "it still wants its reset";
  see(xid(79, after(base::minutes(6))));
  see(piece_of(EvidenceKind::kCheck, after(base::minutes(7))));
  EXPECT_EQ(action(after(base::minutes(8))), Action::kReboot);
  see(piece_of(EvidenceKind::kReset, after(base::minutes(9))));
  see(piece_of(EvidenceKind::kCheck, after(base::minutes(9))));
  EXPECT_EQ(action(after(base::minutes(10))), Action::kNone);
  // A later reset without its check says nothing about what was cured.
  see(piece_of(EvidenceKind::kReset, after(base::minutes(11))));
  EXPECT_EQ(judged(after(base::minutes(12))).rule, "unchecked");
}

TEST_F(Judge, FailedResetsAndChecksKeepItOut) {
  see(piece_of(EvidenceKind::kReset, kNoon, 1));
  EXPECT_EQ(judged().rule, "reset-failed");
  see(piece_of(EvidenceKind::kCheck, after(base::minutes(1)), 1), "n:1");
  EXPECT_EQ(judged(after(base::minutes(2)), "n:1").rule, "check-failed");
}

TEST_F(Judge, TrialsThatWereNotAllowedSayNothing) {
  const auto refused = static_cast<std::uint32_t>(model::TrialCode::kRefused);
  see(piece_of(EvidenceKind::kReset, kNoon, refused));
  see(piece_of(EvidenceKind::kCheck, kNoon, refused));
  EXPECT_EQ(action(), Action::kNone);
  see(xid(48));
  EXPECT_EQ(action(), Action::kReset);
  for (int day = 1; day <= 6; ++day) {
    see(piece_of(EvidenceKind::kReset, after(base::hours(24 * day)), refused));
  }
  EXPECT_EQ(action(after(base::hours(24 * 6))), Action::kReset) << "and are no resets of a week";
}

TEST_F(Judge, WhatWasBeforeAPersonBroughtItOnlineDoesNotCount) {
  see(xid(95));
  see(piece_of(EvidenceKind::kCleared, after(base::minutes(1))));
  EXPECT_EQ(action(), Action::kNone);
  see(xid(95, after(base::minutes(1) + base::seconds(1))));
  EXPECT_EQ(action(), Action::kReset);
}

TEST_F(Judge, RemapThatFailedAfterAResetNeedsAnotherGpu) {
  see(piece_of(EvidenceKind::kRemapFailed, kNoon));
  see(piece_of(EvidenceKind::kReset, after(base::minutes(1))));
  EXPECT_EQ(action(), Action::kOffline);
}

TEST_F(Judge, FaultOfANodeHitsAllItsGpus) {
  const Evidence fault =
      saying(piece_of(EvidenceKind::kNodeCondition, kNoon), "NVSwitchFault: SXid 20034, fatal");
  book.add_to_node("n", fault);
  for (const char* gpu : {"n:0", "n:3"}) EXPECT_EQ(action(kNoon, gpu), Action::kDrain);
  EXPECT_EQ(action(kNoon, "m:0"), Action::kNone);
  book.add_to_node("n", saying(piece_of(EvidenceKind::kNodeCondition, kNoon), "DiskPressure: low"));
  book.add_to_node("n", over(saying(piece_of(EvidenceKind::kNodeCondition, after(base::hours(1))),
                                    "NVSwitchFault: cleared")));
  EXPECT_EQ(action(after(base::hours(2))), Action::kCount) << "a full disk is no fault of a GPU";
}

TEST_F(Judge, RuleInShadowIsToldAndDoesNothing) {
  rules = *Rules::make(Profile::kNvidia,
                       std::vector<RuleOverride>{{"xid-48", "", {}, RuleMode::kShadow}});
  see(xid(48));
  EXPECT_EQ(action(), Action::kNone);
  ASSERT_EQ(judged().reasons.size(), 1U);
  EXPECT_TRUE(judged().reasons.front().starts_with("In shadow: "));
  rules =
      *Rules::make(Profile::kNvidia, std::vector<RuleOverride>{{"xid-48", "", {}, RuleMode::kOff}});
  EXPECT_TRUE(judged().reasons.empty());
}

TEST_F(Judge, RuleOfOtherNodesDoesNotHold) {
  rules = *Rules::make(Profile::kNvidia,
                       std::vector<RuleOverride>{{"xid-48", "", {}, RuleMode::kOff, "m*"}});
  see(xid(48));
  see(xid(48), "m:0");
  EXPECT_EQ(action(), Action::kReset);
  EXPECT_EQ(action(after(base::minutes(2)), "m:0"), Action::kNone);
}

TEST_F(Judge, RuleOfASiteHoldsFromTheFirstPiece) {
  see(xid(31));
  EXPECT_EQ(action(), Action::kCount);
  rules = *Rules::make(Profile::kNvidia,
                       std::vector<RuleOverride>{{"xid-31", "", Action::kDegrade, {}}});
  EXPECT_EQ(action(), Action::kDegrade);
}

TEST_F(Judge, OddNumbersDoNoHarm) {
  see(worth(piece_of(EvidenceKind::kEccUncorrected, kNoon), -5));
  see(worth(piece_of(EvidenceKind::kEccCorrected, kNoon), -1));
  EXPECT_EQ(action(), Action::kNone);
  see(worth(piece_of(EvidenceKind::kEccCorrected, kNoon), std::int64_t{1} << 62));
  see(worth(piece_of(EvidenceKind::kEccCorrected, after(base::seconds(2))), std::int64_t{1} << 62));
  EXPECT_EQ(action(), Action::kDegrade);
}

}  // namespace
}  // namespace gpu_platform::health::testing
