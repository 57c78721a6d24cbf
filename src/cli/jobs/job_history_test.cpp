#include "cli/jobs/job_history.h"

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "client/answer.h"

namespace gpu_platform::cli {
namespace {

constexpr std::string_view kRequeuedJob = R"({
  "id":"42","state":"COMPLETED","attempt":2,"submitted_at":"2026-07-01T10:00:00Z",
  "started_at":"2026-07-01T11:00:00Z","ended_at":"2026-07-01T11:30:00Z","exit_code":0,
  "spec":{"user":"ada"},
  "attempts":[
    {"attempt":1,"state":"RELEASED","why":"BACKFILL","passed":"7","nodes":["dgx-1"],
     "gpus":[{"node":"dgx-1","index":0},{"node":"dgx-1","index":1}],
     "requested_at":"2026-07-01T10:04:59Z","started_at":"2026-07-01T10:05:00Z",
     "ended_at":"2026-07-01T10:50:00Z","signal":"SIGTERM","reason":"PREEMPTED","ended_by":"9"},
    {"attempt":2,"state":"RELEASED","why":"PREEMPTED","preempted_jobs":["10","11"],"nodes":["dgx-2"],
     "gpus":[{"node":"dgx-2","index":4}],"started_at":"2026-07-01T11:00:00Z",
     "ended_at":"2026-07-01T11:30:00Z","exit_code":0}]})";

v1::Job job_from(std::string_view text) {
  return client::message_of<v1::Job>(text).value();
}

v1::AuditEntry audited(std::string_view action, std::string_view at, std::string_view more = "") {
  return client::message_of<v1::AuditEntry>(
             fmt::format(R"({{"action":"{}","at":"{}","user":"root","outcome":"OK"{}}})", action,
                         at, more))
      .value();
}

std::vector<std::string> lines_of(const v1::Job& job, std::vector<v1::AuditEntry> calls = {}) {
  std::vector<std::string> lines;
  for (const HistoryEntry& entry :
       history_of(job, calls, *base::parse_rfc3339("2026-07-01T12:00:00Z"))) {
    lines.push_back(
        fmt::format("{} {} {}|{}", entry.event, entry.attempt.value_or(0), entry.by, entry.detail));
  }
  return lines;
}

TEST(JobHistory, TellsStartsPreemptionsAndTheEndInOrder) {
  EXPECT_EQ(lines_of(job_from(kRequeuedJob)), (std::vector<std::string>{
                                                  "SUBMITTED 0 ada|",
                                                  "STARTED 1 |on dgx-1:0-1; backfill, before job 7",
                                                  "PREEMPTED 1 |signal SIGTERM, PREEMPTED for 9",
                                                  "STARTED 2 |on dgx-2:4; 10 and 11 made room",
                                                  "COMPLETED 0 |exit code 0",
                                              }));
}

TEST(JobHistory, TellsThePartOfAGpuWithWhatKeepsTheJobToIt) {
  const auto lines = lines_of(job_from(
      R"({"id":"42","state":"RUNNING","attempt":1,"submitted_at":"2026-07-01T10:00:00Z",)"
      R"("spec":{"user":"ada"},"attempts":[{"attempt":1,"started_at":"2026-07-01T10:05:00Z",)"
      R"("gpus":[{"node":"dgx-1","index":3,"share":0.5,"memory_bytes":42949672960,)"
      R"("mode":"TIME_SLICE","memory_rung":"WATCHDOG","compute_rung":"TIME_SLICE"}]}]})"));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1],
            "STARTED 1 |on 0.5 of dgx-1:3 (40 GiB, time-slice; memory: watchdog, compute: "
            "time-slice)");
}

TEST(JobHistory, PutsCallsAmongThemAndLeavesOutRefusedOnes) {
  const auto lines =
      lines_of(job_from(kRequeuedJob),
               {audited("UPDATE", "2026-07-01T10:02:00Z"), audited("HOLD", "2026-07-01T10:01:00Z"),
                audited("SUBMIT", "2026-07-01T10:00:00Z"),
                audited("KILL", "2026-07-01T10:03:00Z",
                        R"(,"outcome":"REFUSED","code":"PERMISSION_DENIED")")});
  ASSERT_EQ(lines.size(), 7U);
  EXPECT_EQ(lines[1], "HELD 0 root|");
  EXPECT_EQ(lines[2], "CHANGED 0 root|the request was changed (jobs update)");
}

TEST(JobHistory, JoinsWhatIsRepeated) {
  const auto lines = lines_of(job_from(kRequeuedJob), {audited("EXEC", "2026-07-01T11:02:00Z"),
                                                       audited("EXEC", "2026-07-01T11:03:00Z")});
  ASSERT_EQ(lines.size(), 6U);
  EXPECT_EQ(lines[4], "ENTERED 0 root|a command was run in the job (jobs exec) (2 times)");
}

TEST(JobHistory, LeavesOutWhatHasNotHappenedYet) {
  EXPECT_EQ(lines_of(job_from(R"({"id":"42","state":"PENDING","attempt":0,
    "submitted_at":"2026-07-01T10:00:00Z","eligible_at":"2026-07-02T10:00:00Z",
    "spec":{"user":"ada"}})")),
            (std::vector<std::string>{"SUBMITTED 0 ada|"}));
}

TEST_F(Cli, EventsShowATableInLocalTimeAndADocument) {
  const InUtc utc;
  FakeServer server([](const FakeServer::Request& request) {
    if (!has(request.target, "/v1/audit")) return json_answer(kRequeuedJob);
    EXPECT_TRUE(has(request.target, "job=42")) << request.target;
    return json_answer(
        R"({"entries":[{"action":"SIGNAL","at":"2026-07-01T11:10:00Z","user":"ada","outcome":"OK"}]})");
  });
  EXPECT_EQ(call(server, {"jobs", "events", "42"}), 0);
  EXPECT_TRUE(has(out(), "2026-07-01 10:05:00 +0000  STARTED")) << out();
  EXPECT_TRUE(has(out(), "2026-07-01 11:10:00 +0000  SIGNALLED")) << out();
  EXPECT_EQ(call(server, {"jobs", "events", "42", "--json"}), 0);
  EXPECT_TRUE(has(
      out(),
      R"({"job":"42","state":"COMPLETED","events":[{"at":"2026-07-01T10:00:00.000Z","event":"SUBMITTED","attempt":null,"by":"ada","detail":null})"))
      << out();
}

TEST_F(Cli, EventsOfAJobWhoseCallsMayNotBeSeenAreThoseOfTheJob) {
  FakeServer server([](const FakeServer::Request& request) {
    if (!has(request.target, "/v1/audit")) return json_answer(kJob);
    return json_answer(R"({"detail":"no entry","code":"NOT_FOUND"})", 404);
  });
  EXPECT_EQ(call(server, {"jobs", "events", "42"}), 0);
  EXPECT_TRUE(has(out(), "SUBMITTED")) << out();
  EXPECT_EQ(err(), "gpu-platform: job 42 is QUEUED: 1 node is 4 GPUs short\n");
}

}  // namespace
}  // namespace gpu_platform::cli
