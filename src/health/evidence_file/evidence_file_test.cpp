#include "health/evidence_file/evidence_file.h"

#include <gtest/gtest.h>

#include <string>

#include "health/evidence_file/replay_json.h"
#include "health/evidence_file/rules_file.h"

namespace gpu_platform::health {
namespace {

using model::EvidenceKind;

EvidenceFile read(std::string_view text) {
  auto file = read_evidence(text);
  EXPECT_TRUE(file.has_value()) << file.error().message;
  return file ? *std::move(file) : EvidenceFile();
}

std::string mistake_in(std::string_view text) {
  const auto file = read_evidence(text);
  return file ? std::string() : file.error().message;
}

Replay replayed(std::string_view text) {
  return replay(read(text), *Rules::make(Profile::kNvidia));
}

constexpr std::string_view kLostUnderAJob =
    R"({"at": "2026-07-01T12:00:00Z", "kind": "job_started", "job": 17, "user": "ann", "program": "train.py", "node": "n1", "gpus": [0, 1, 2, 3]}
# a remark, and an empty line

{"at": "2026-07-01T14:03:11Z", "kind": "xid", "xid": 79, "node": "n1", "gpu": 3, "job": 17}
{"at": "2026-07-01T14:03:12Z", "kind": "job_ended", "job": 17, "code": 1}
{"at": "2026-07-01T11:00:00Z", "kind": "job_started", "job": "a-b", "node": "n2", "gpus": ["n2:0"]}
{"at": "2026-07-01T15:00:00Z", "kind": "job_ended", "job": "a-b", "code": 1}
)";

TEST(EvidenceFile, ReadsEachFieldAndSortsByTime) {
  const EvidenceFile file = read(
      R"({"at": 1782907200.25, "last": 1782907201, "kind": "XID", "xid": 74, "count": 3, "node": "n1", "gpu": "0", "uuid": "GPU-1", "registers": ["0x10000", 2], "pid": 7, "instance": 1, "source": "kernel_log", "text": "words", "gpu_type": "H100", "else": {}}
{"at": "2026-07-01T11:00:00+01:00", "kind": "remap_pending", "gpu": "GPU-1", "over": true})");
  ASSERT_EQ(file.lines.size(), 2U);
  EXPECT_EQ(file.lines[0].line, 2U);
  EXPECT_EQ(file.lines[0].gpus.front().gpu, "n1:0") << "one GPU by its index and its UUID";
  EXPECT_TRUE(file.lines[0].piece.is_over);
  const model::Evidence& piece = file.lines[1].piece;
  EXPECT_EQ(piece.code, 74U);
  EXPECT_EQ(piece.count, 3U);
  EXPECT_EQ(piece.at, base::Instant(1'782'907'200'250'000'000));
  EXPECT_EQ(piece.registers, (std::vector<std::uint32_t>{0x10000, 2}));
  EXPECT_EQ(piece.source, model::EvidenceSource::kKernelLog);
  EXPECT_EQ(piece.gpu_instance, 1U);
  EXPECT_EQ(file.lines[1].gpus.front().type, "H100");
}

TEST(EvidenceFile, UnderstandsOtherSpellings) {
  const EvidenceFile file = read(
      R"({"at": 1782907200, "kind": "Row-Remap-Pending", "node": "n", "gpu": 0}
{"at": 1782907200, "kind": "ecc_dbe", "node": "n", "gpu": 0, "value": 2})");
  ASSERT_EQ(file.lines.size(), 2U);
  EXPECT_EQ(file.lines[0].piece.kind, EvidenceKind::kRemapPending);
  EXPECT_EQ(file.lines[1].piece.kind, EvidenceKind::kEccUncorrected);
}

TEST(EvidenceFile, SkipsUnknownKindsAndSaysSoOnce) {
  const EvidenceFile file = read(R"({"kind": "moon", "at": 1}
{"kind": "moon", "at": 2})");
  EXPECT_TRUE(file.lines.empty());
  ASSERT_EQ(file.notes.size(), 1U);
  EXPECT_EQ(file.notes.front(), "line 1: kind \"moon\" is not known, and such lines are skipped");
}

TEST(EvidenceFile, MistakesNameTheLineTheFieldAndWhatIsAllowed) {
  EXPECT_EQ(mistake_in("\n[1]"),
            "line 2: it is not a JSON object: write one event a line, as docs/health-evidence.md "
            "shows");
  EXPECT_EQ(mistake_in(R"({"at": 1782907200})"),
            "line 1: kind: it is missing; write what was seen, such as \"xid\" or \"job_ended\"");
  EXPECT_EQ(mistake_in(R"({"kind": "xid", "xid": 79, "node": "n", "gpu": 0})"),
            "line 1: at: it is missing; write \"2026-07-01T12:00:00Z\" or seconds since 1970");
  EXPECT_EQ(mistake_in(R"({"kind": "xid", "at": "noon", "xid": 79, "node": "n", "gpu": 0})"),
            "line 1: at: \"noon\" is not a time: write \"2026-07-01T12:00:00Z\" or seconds since "
            "1970");
  EXPECT_EQ(mistake_in(R"({"kind": "xid", "at": 1782907200, "xid": 79, "node": "n"})"),
            "line 1: gpu: it is missing; write its index on \"node\", \"node:3\", or its UUID");
  EXPECT_EQ(mistake_in(R"({"kind": "xid", "at": 1782907200, "xid": -1, "node": "n", "gpu": 0})"),
            "line 1: xid: -1 is not a number from 0 to 4294967295");
  EXPECT_EQ(mistake_in(R"({"kind": "job_ended", "at": 1782907200, "job": 1, "ended": "odd"})"),
            "line 1: ended: \"odd\" is none of completed, failed, cancelled, timeout");
  EXPECT_EQ(mistake_in(R"({"kind": "xid", "at": 1782907200, "xid": 1, "gpu": 0})"),
            "line 1: node: it is missing; GPU 0 needs it, or write \"node:0\"");
}

TEST(Replay, TellsWhatIsTakenOutWhenAndWhoseFaultEachJobWas) {
  const Replay result = replayed(kLostUnderAJob);
  ASSERT_EQ(result.gpus.size(), 5U);
  const ReplayedGpu& lost = result.gpus[3];
  EXPECT_EQ(lost.gpu, "n1:3");
  EXPECT_TRUE(lost.taken_out_at.is_set());
  EXPECT_TRUE(lost.is_out);
  EXPECT_EQ(lost.verdict.rule, "xid-79");
  EXPECT_EQ(lost.lines, (std::vector<std::size_t>{1, 4, 5}));
  EXPECT_FALSE(result.gpus[0].taken_out_at.is_set());
  ASSERT_EQ(result.jobs.size(), 2U);
  EXPECT_FALSE(result.jobs[0].is_charged);
  EXPECT_FALSE(result.jobs[0].is_charged_at_once);
  EXPECT_EQ(result.jobs[0].verdict.suspect_gpus, std::vector<std::string>{"n1:3"});
  EXPECT_EQ(result.jobs[1].job, "a-b");
  EXPECT_TRUE(result.jobs[1].is_charged);
}

TEST(Replay, CancelledJobsAreNobodysFault) {
  const Replay result = replayed(
      R"({"at": 1782907200, "kind": "job_started", "job": 1, "node": "n", "gpus": [0]}
{"at": 1782907300, "kind": "job_ended", "job": 1, "code": 143, "ended": "cancelled"})");
  ASSERT_EQ(result.jobs.size(), 1U);
  EXPECT_FALSE(result.jobs[0].failed);
  EXPECT_FALSE(result.jobs[0].is_charged);
}

TEST(Replay, BreakerStopsActsOnlyWhereTheInventoryIsKnown) {
  std::string text;
  for (int gpu = 0; gpu < 3; ++gpu) {
    text += R"({"at": 1782907200, "kind": "xid", "xid": 48, "node": "n", "gpu": )" +
            std::to_string(gpu) + "}\n";
  }
  EXPECT_TRUE(replayed(text).breaker.empty());
  const Replay stopped = replayed(text + R"({"kind": "inventory", "gpus": 8, "nodes": 1})");
  EXPECT_EQ(stopped.breaker.size(), 1U);
  EXPECT_TRUE(stopped.gpus[0].is_out);
  EXPECT_TRUE(stopped.gpus[1].is_out);
  EXPECT_FALSE(stopped.gpus[2].is_out);
  EXPECT_EQ(stopped.gpus[2].verdict.action, Action::kReset) << "judging goes on";
}

// One line for each GPU of a node of eight from `first` on.
std::string lines_of(int first, int gpus, const std::string& fields) {
  std::string text;
  for (int gpu = first; gpu < first + gpus; ++gpu) {
    text +=
        R"({"at": 1782907200, "node": "n", "gpu": )" + std::to_string(gpu) + ", " + fields + "}\n";
  }
  return text;
}

TEST(Replay, TheBreakerCountsAsTheDaemonDoes) {
  const std::string inventory = R"({"kind": "inventory", "gpus": 8, "nodes": 1})";
  const std::string slow = R"("kind": "pcie_replays", "value": 100000)";
  const std::string broken = R"("kind": "xid", "xid": 48)";
  // Two that are degraded hold a third one back, and nothing that is worse.
  const Replay degraded =
      replayed(lines_of(0, 3, slow) + lines_of(3, 2, broken) + lines_of(5, 1, broken) + inventory);
  ASSERT_EQ(degraded.gpus.size(), 6U);
  const std::vector<Outage> expected{Outage::kDegraded, Outage::kDegraded, Outage::kNone,
                                     Outage::kOut,      Outage::kOut,      Outage::kNone};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(degraded.gpus[i].outage, expected[i]) << i;
  }
  EXPECT_EQ(degraded.breaker.size(), 2U);
  // What is lost, and what is only hot, does not ask.
  const Replay others =
      replayed(lines_of(0, 3, R"("kind": "xid", "xid": 48)") + lines_of(3, 1, R"("kind": "lost")") +
               lines_of(4, 1, R"("kind": "heat", "value": 90)") + inventory);
  EXPECT_EQ(others.breaker.size(), 1U);
  EXPECT_EQ(others.gpus[3].outage, Outage::kOut);
  EXPECT_TRUE(others.gpus[4].is_out);
  EXPECT_EQ(others.gpus[4].outage, Outage::kNone);
}

TEST(Replay, AResetAndItsCheckAreOneEvent) {
  const std::string reset = R"({"at": 1782907200, "kind": "reset", "node": "n", "gpu": 0})";
  const std::string check =
      R"({"at": 1782907200, "kind": "check", "node": "n", "gpu": 0, "code": )";
  EXPECT_FALSE(replayed(reset + "\n" + check + "0}").gpus[0].taken_out_at.is_set());
  EXPECT_TRUE(replayed(reset + "\n" + check + "1}").gpus[0].is_out);
}

TEST(Replay, WhatIsNotOverAtTheEndLastsOn) {
  const Replay result = replayed(
      R"({"at": 1782907200, "kind": "slowdown", "node": "n", "gpu": 0, "text": "HW thermal"})");
  EXPECT_EQ(result.gpus[0].verdict.action, Action::kDegrade);
}

TEST(Replay, IsOneDocument) {
  const std::string text = replay_json(replayed(kLostUnderAJob));
  for (const char* part : {"\"taken_out\": true", "\"taken_out_rule\": \"xid-79\"",
                           "\"charged\": false", "\"charged_at_once\": false", "\"notes\": ["}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  }
}

TEST(RulesFile, ReadsAProfileAndChanges) {
  const auto rules = read_rules(
      R"({"profile": "cloud", "rules": [{"rule": "xid-31", "mode": "shadow"}, {"rule": "xid-94", "gpu_type": "A100", "action": "count"}]})");
  ASSERT_TRUE(rules.has_value()) << rules.error().message;
  EXPECT_EQ(rules->of_xid(31).mode, RuleMode::kShadow);
  EXPECT_EQ(rules->of_xid(94, "A100").action, Action::kCount);
  EXPECT_EQ(rules->profile(), Profile::kCloud);
}

TEST(RulesFile, MistakesNameTheField) {
  EXPECT_EQ(read_rules(R"({"profile": "mild"})").error().field, "profile");
  EXPECT_EQ(read_rules(R"({"rules": [{"rule": "xid-31", "action": "kill"}]})").error().field,
            "rules[0].action");
}

}  // namespace
}  // namespace gpu_platform::health
