#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "health/case_book.h"
#include "health/evidence_words.h"
#include "health/nvlink_registers.h"
#include "health/rule_table.h"

namespace gpu_platform::health {
namespace {

using model::Evidence;
using model::EvidenceKind;

constexpr base::Instant kNoon(1'790'000'000'000'000'000);

base::Instant after(base::Duration duration) {
  return kNoon + duration;
}

Evidence piece_of(EvidenceKind kind, base::Instant at, std::uint32_t code = 0) {
  Evidence piece;
  piece.kind = kind;
  piece.at = at;
  piece.last = at;
  piece.code = code;
  return piece;
}

Evidence xid(std::uint32_t code, base::Instant at = kNoon) {
  return piece_of(EvidenceKind::kXid, at, code);
}

Evidence of_job(Evidence piece, std::uint64_t job, std::string user, std::string program) {
  piece.job = model::JobId(job);
  piece.user = std::move(user);
  piece.program = std::move(program);
  return piece;
}

Evidence over(Evidence piece) {
  piece.is_over = true;
  return piece;
}

Evidence worth(Evidence piece, std::int64_t value) {
  piece.value = value;
  return piece;
}

Evidence saying(Evidence piece, std::string text) {
  piece.text = std::move(text);
  return piece;
}

// One node with four GPUs, "n:0" to "n:3", and another one with "m:0".
class Judge : public ::testing::Test {
 protected:
  Judge() {
    for (const char* name : kNames) book.add_gpu(key(name));
  }

  static GpuKey key(std::string_view uuid) { return {uuid.substr(0, 1), uuid, "H100"}; }
  void see(Evidence piece, std::string_view gpu = "n:0") { book.add(key(gpu), std::move(piece)); }
  GpuVerdict judged(base::Instant now = after(base::minutes(2)), std::string_view gpu = "n:0") {
    return judge_gpu(book, key(gpu), rules, now);
  }
  Action action(base::Instant now = after(base::minutes(2)), std::string_view gpu = "n:0") {
    return judged(now, gpu).action;
  }
  void run(std::uint64_t job, const std::string& user, const std::string& program,
           const std::vector<std::string_view>& gpus, base::Instant at) {
    std::vector<GpuKey> keys;
    for (const std::string_view gpu : gpus) keys.push_back(key(gpu));
    book.start_job(keys, of_job(piece_of(EvidenceKind::kJobStarted, at), job, user, program));
  }
  void end(std::uint64_t job, std::uint32_t code, base::Instant at, const std::string& text = {}) {
    Evidence piece = saying(piece_of(EvidenceKind::kJobEnded, at, code), text);
    piece.job = model::JobId(job);
    book.end_job(piece.job, piece);
  }
  FaultClass fault_of(std::uint64_t job, const std::string& user, const std::string& program,
                      base::Instant started, base::Instant ended) {
    FailedJob failed{model::JobId(job), user, program, book.gpus_of_job(model::JobId(job)),
                     started,           ended};
    return judge_job(book, failed, rules).fault;
  }

  static constexpr const char* kNames[] = {"n:0", "n:1", "n:2", "n:3", "m:0"};
  CaseBook book;
  Rules rules = *Rules::make(Profile::kNvidia);
};

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

TEST_F(Judge, TwoDifferentJobsWithinAnHourDegradeTheGpu) {
  for (const std::uint32_t code : {13, 31, 43, 68, 69, 137}) {
    CaseBook one;
    for (const char* name : kNames) one.add_gpu(key(name));
    one.add(key("n:0"), of_job(xid(code), 1, "ann", "train"));
    one.add(key("n:0"), of_job(xid(code, after(base::minutes(50))), 2, "bob", "infer"));
    const GpuVerdict verdict = judge_gpu(one, key("n:0"), rules, after(base::minutes(51)));
    EXPECT_EQ(verdict.action, Action::kDegrade) << code;
    EXPECT_EQ(verdict.fault, FaultClass::kHardware);
    EXPECT_TRUE(verdict.again_at.is_set()) << "suspicion passes";
  }
}

TEST_F(Judge, TheSameJobOnDifferentGpusIsTheJobsFault) {
  for (const char* gpu : {"n:0", "n:1", "m:0"}) {
    see(of_job(xid(31, after(base::minutes(1))), 1, "ann", "train"), gpu);
  }
  see(of_job(xid(31, after(base::minutes(30))), 2, "ann", "train"));
  for (const char* gpu : {"n:0", "n:1", "m:0"}) {
    EXPECT_EQ(action(after(base::hours(1)), gpu), Action::kCount) << gpu;
  }
}

TEST_F(Judge, AProgramThatDidWellElsewhereConvictsTheGpu) {
  run(1, "ann", "train", {"m:0"}, kNoon);
  end(1, 0, after(base::minutes(10)));
  see(of_job(xid(31, after(base::hours(1))), 2, "ann", "train"));
  EXPECT_EQ(action(after(base::hours(2))), Action::kCount);
  see(of_job(xid(31, after(base::hours(3))), 3, "ann", "train"));
  EXPECT_EQ(action(after(base::hours(4))), Action::kDegrade);
}

TEST_F(Judge, PageFaultsOfUnknownJobsTwiceADayOnOneGpuOfTheNode) {
  see(xid(31));
  see(xid(31, after(base::minutes(2))));
  EXPECT_EQ(action(after(base::minutes(5))), Action::kCount) << "one burst";
  see(xid(31, after(base::hours(5))));
  EXPECT_EQ(action(after(base::hours(6))), Action::kDegrade);
  see(xid(31, after(base::hours(5))), "n:1");
  EXPECT_EQ(action(after(base::hours(6))), Action::kCount) << "on different GPUs";
}

TEST_F(Judge, OnePersonsProgramsProveNothing) {
  for (std::uint64_t i = 0; i < 6; ++i) {
    see(of_job(xid(13, after(base::minutes(static_cast<std::int64_t>(10 * i)))), i + 1, "ann",
               "try-" + std::to_string(i)));
  }
  EXPECT_EQ(action(after(base::hours(2))), Action::kCount);
}

TEST_F(Judge, ErrorsOnMostGpusOfANodeAreTheProgramsFault) {
  for (const char* gpu : {"n:0", "n:1", "n:2"}) {
    for (std::uint64_t i = 0; i < 3; ++i) {
      see(of_job(xid(31, after(base::hours(static_cast<std::int64_t>(2 * i)))), i + 1,
                 "user" + std::to_string(i), std::string("homework") + gpu),
          gpu);
    }
  }
  for (const char* gpu : {"n:0", "n:1", "n:2"}) {
    EXPECT_EQ(action(after(base::hours(12)), gpu), Action::kCount) << gpu;
  }
}

TEST_F(Judge, ExceptionsInTheSameUnitTwice) {
  const std::string unit = "Graphics SM Warp Exception on (GPC 3, TPC 1, SM 0): Illegal Address";
  see(saying(xid(13), unit));
  see(saying(xid(13, after(base::hours(1))), unit), "n:0");
  see(xid(13, after(base::hours(1))), "n:1");  // so that "no other GPU" does not speak
  EXPECT_EQ(action(after(base::hours(2))), Action::kDegrade);
  see(saying(xid(13, after(base::hours(1))),
             "Graphics SM Warp Exception on (GPC 0, TPC 4, SM 1): Illegal Address"));
  EXPECT_EQ(action(after(base::hours(2))), Action::kCount) << "different units";
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

TEST_F(Judge, ACheckWithoutAResetClearsWhatOnlyDegrades) {
  see(piece_of(EvidenceKind::kReset, kNoon));
  EXPECT_EQ(judged().rule, "unchecked");
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

TEST_F(Judge, OneComplaintIsShownAndTwoPeopleCount) {
  const auto complain = [&](base::Instant at, const char* user) {
    Evidence piece = saying(piece_of(EvidenceKind::kComplaint, at), "it is bad");
    piece.user = user;
    book.add_to_node("n", piece);
  };
  complain(kNoon, "ann");
  EXPECT_EQ(action(), Action::kCount);
  complain(after(base::hours(24 * 60)), "bob");
  EXPECT_EQ(judged(after(base::hours(24 * 61))).rule, "complaints");
  EXPECT_EQ(action(after(base::hours(24 * 61))), Action::kDegrade);
}

TEST_F(Judge, DifferentJobsThatCannotStart) {
  see(of_job(piece_of(EvidenceKind::kStartFailed, kNoon), 1, "ann", "train"));
  EXPECT_EQ(action(), Action::kCount);
  see(of_job(piece_of(EvidenceKind::kStartFailed, after(base::minutes(1))), 2, "bob", "infer"));
  EXPECT_EQ(judged(after(base::minutes(3))).rule, "failed-starts");
  run(3, "eve", "eval", {"n:0"}, after(base::minutes(4)));
  end(3, 0, after(base::minutes(5)));
  EXPECT_EQ(action(after(base::minutes(6))), Action::kNone) << "one did well";
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

TEST_F(Judge, JobIsInnocentOfAFaultUnderIt) {
  run(1, "ann", "train", {"n:0", "n:1", "m:0"}, kNoon);
  end(1, 1, after(base::hours(1)));
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::hours(1))), FaultClass::kApplication);
  see(xid(79, after(base::minutes(59))), "m:0");
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::hours(1))), FaultClass::kHardware);
}

TEST_F(Judge, ContainedErrorKillsOneProgramAndNoOther) {
  run(1, "ann", "train", {"n:0"}, kNoon);
  run(2, "bob", "infer", {"n:0"}, kNoon);
  see(of_job(xid(94, after(base::minutes(9))), 1, "ann", "train"));
  end(1, 1, after(base::minutes(9)));
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::minutes(9))), FaultClass::kHardware);
  see(piece_of(EvidenceKind::kReset, after(base::hours(1))));
  see(piece_of(EvidenceKind::kCheck, after(base::hours(2))));
  end(2, 1, after(base::hours(5)));
  EXPECT_EQ(fault_of(2, "bob", "infer", kNoon, after(base::hours(5))), FaultClass::kApplication);
}

TEST_F(Judge, JobThatFailsEverywhereIsCharged) {
  run(1, "ann", "train", {"n:0"}, kNoon);
  end(1, 1, after(base::minutes(10)));
  run(2, "ann", "train", {"m:0"}, after(base::minutes(20)));
  end(2, 1, after(base::minutes(30)));
  EXPECT_EQ(fault_of(2, "ann", "train", after(base::minutes(20)), after(base::minutes(30))),
            FaultClass::kApplication);
}

TEST_F(Judge, WordsOfAMistakeChargeTheJob) {
  run(1, "ann", "train", {"n:0"}, kNoon);
  end(1, 1, after(base::minutes(10)), "torch.OutOfMemoryError: CUDA out of memory");
  EXPECT_EQ(fault_of(1, "ann", "train", kNoon, after(base::minutes(10))), FaultClass::kApplication);
  run(2, "ann", "train", {"n:1"}, kNoon);
  end(2, 1, after(base::minutes(10)), "CUDA error: uncorrectable ECC error encountered");
  EXPECT_EQ(fault_of(2, "ann", "train", kNoon, after(base::minutes(10))), FaultClass::kHardware);
}

// 288 nodes of four GPUs, 168,924 XIDs 45, and ten real faults among them.
TEST(Storm, OfSymptomsTakesNothingOut) {
  const Rules rules = *Rules::make(Profile::kNvidia);
  CaseBook book;
  base::Prng random(45);
  std::set<std::string> faulty;
  for (int i = 0; i < 168'924; ++i) {
    const std::string node = "n" + std::to_string(random.below(288));
    const std::string gpu = node + ":" + std::to_string(random.below(4));
    Evidence piece = xid(45, after(base::milliseconds(1'000 * i)));
    book.add({node, gpu, "GB200"}, piece);
    if (i % 16'892 == 8'446) {
      book.add({node, gpu, "GB200"}, xid(i % 33'784 == 8'446 ? 95 : 48, piece.at));
      faulty.insert(gpu);
    }
  }
  EXPECT_EQ(faulty.size(), 10U);
  const std::vector<std::string> touched = book.take_touched();
  std::set<std::string> out;
  for (const std::string& gpu : book.gpus()) {
    if (takes_out(judge_gpu(book, book.key(gpu), rules, after(base::hours(48))).action)) {
      out.insert(gpu);
    }
    EXPECT_LE(book.of_gpu(gpu).size(), kMaxKept);
  }
  EXPECT_EQ(out, faulty);
}

Evidence random_piece(base::Prng& random) {
  constexpr std::uint32_t kXids[] = {13, 31, 43, 45, 48, 63, 74, 79, 94, 109, 119, 162, 163, 777};
  Evidence piece = piece_of(static_cast<EvidenceKind>(random.below(model::kEvidenceKinds)),
                            after(base::seconds(static_cast<std::int64_t>(random.below(90'000)))));
  if (piece.kind == EvidenceKind::kXid) piece.code = kXids[random.below(std::size(kXids))];
  if (piece.kind == EvidenceKind::kReset || piece.kind == EvidenceKind::kCheck ||
      piece.kind == EvidenceKind::kJobEnded || piece.kind == EvidenceKind::kRecoveryAction) {
    piece.code = static_cast<std::uint32_t>(random.below(3));
  }
  piece.value = static_cast<std::int64_t>(random.below(100)) - 10;
  piece.is_over = model::is_level(piece.kind) && random.below(2) == 0;
  if (random.below(2) == 0) {
    const auto job = random.below(6);
    piece = of_job(piece, 1 + job, job < 3 ? "ann" : "bob", job % 2 == 0 ? "train" : "infer");
  }
  if (piece.kind == EvidenceKind::kNodeCondition) piece.text = "NVSwitchFault: SXid";
  return piece;
}

// A book made from what another one has kept.
CaseBook rebuilt(const CaseBook& book) {
  CaseBook copy;
  for (const std::string& gpu : book.gpus()) copy.add_gpu(book.key(gpu));
  for (const std::string& gpu : book.gpus()) {
    for (const Evidence& piece : book.of_gpu(gpu)) copy.add(book.key(gpu), piece);
  }
  for (const char* node : {"n", "m"}) {
    for (const Evidence& piece : book.of_node(node)) copy.add_to_node(node, piece);
  }
  return copy;
}

TEST_F(Judge, VerdictIsAFunctionOfWhatIsKept) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    base::Prng random(seed);
    CaseBook first;
    for (const char* name : kNames) first.add_gpu(key(name));
    for (int i = 0; i < 120; ++i) {
      const char* const gpu = kNames[random.below(std::size(kNames))];
      Evidence piece = random_piece(random);
      if (random.below(12) == 0) {
        first.add_to_node(std::string_view(gpu).substr(0, 1), piece);
      } else {
        first.add(key(gpu), piece);
      }
    }
    const CaseBook second = rebuilt(first);
    for (const char* gpu : kNames) {
      const base::Instant now = after(base::hours(26));
      EXPECT_EQ(judge_gpu(first, key(gpu), rules, now), judge_gpu(second, key(gpu), rules, now))
          << seed << " " << gpu;
    }
  }
}

TEST_F(Judge, OrderInWhichEvidenceComesLeavesNoTrace) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    base::Prng random(seed);
    std::vector<std::pair<const char*, Evidence>> pieces;
    for (int i = 0; i < 40; ++i) {
      pieces.emplace_back(kNames[random.below(std::size(kNames))], random_piece(random));
      // Equal times would leave the order among themselves open.
      pieces.back().second.at = pieces.back().second.last = after(base::seconds(i * 700));
    }
    CaseBook forward;
    CaseBook backward;
    for (const char* name : kNames) {
      forward.add_gpu(key(name));
      backward.add_gpu(key(name));
    }
    for (const auto& [gpu, piece] : pieces) forward.add(key(gpu), piece);
    std::ranges::reverse(pieces);
    for (const auto& [gpu, piece] : pieces) backward.add(key(gpu), piece);
    for (const char* gpu : kNames) {
      const base::Instant now = after(base::hours(26));
      EXPECT_EQ(judge_gpu(forward, key(gpu), rules, now), judge_gpu(backward, key(gpu), rules, now))
          << seed << " " << gpu;
    }
  }
}

TEST(Keep, JoinsEqualPiecesInAnyOrder) {
  std::vector<Evidence> kept;
  EXPECT_FALSE(keep(kept, xid(31)));
  EXPECT_FALSE(keep(kept, xid(31, after(base::seconds(100)))));
  EXPECT_TRUE(keep(kept, xid(31, after(base::seconds(50)))));
  ASSERT_EQ(kept.size(), 1U) << "the one between joins both";
  EXPECT_EQ(kept.front().count, 3U);
  EXPECT_EQ(kept.front().at, kNoon);
  EXPECT_EQ(kept.front().last, after(base::seconds(100)));
}

TEST(Keep, ForgetsWhatTellsLeast) {
  std::vector<Evidence> kept;
  keep(kept, xid(48));
  keep(kept, piece_of(EvidenceKind::kRemapFailed, kNoon));
  for (int i = 1; i < 500; ++i) keep(kept, xid(45, after(base::minutes(2 * i))));
  EXPECT_EQ(kept.size(), kMaxKept);
  EXPECT_EQ(kept[0].code, 48U);
  EXPECT_EQ(kept[1].kind, EvidenceKind::kRemapFailed);
}

}  // namespace
}  // namespace gpu_platform::health
