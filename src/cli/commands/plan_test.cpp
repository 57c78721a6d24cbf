#include <cstdlib>
#include <ctime>
#include <sstream>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/text/json_view.h"

// What the commands say that ask what would be.

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kWaits =
    R"({"starts_now":false,"estimated_start":"2026-07-01T14:05:12.000Z","never":false,"reasons":["1 node is 2 GPUs short"],"counterfactuals":[{"change":"gpus","option":"--gpus 2"},{"change":"time_limit","option":"--time 40m"}],"nodes":["dgx-1"],"gpus":[{"node":"dgx-1","index":0},{"node":"dgx-1","index":1}],"after_jobs":["7","9"]})";
constexpr std::string_view kStarts =
    R"({"starts_now":true,"estimated_start":null,"never":false,"reasons":[],"counterfactuals":[],"nodes":["dgx-1"],"gpus":[{"node":"dgx-1","index":3}]})";
constexpr std::string_view kNever =
    R"({"starts_now":false,"estimated_start":null,"never":true,"reasons":["gpus 64: the largest node has 8 GPUs"],"counterfactuals":[]})";

class Plan : public Cli {
 protected:
  const InUtc zone_;
};

TEST_F(Plan, CheckSendsTheJobAndNoEnvironment) {
  Json body;
  FakeServer server([&](const Request& request) {
    body = Json::parse(request.body);
    return json_answer(std::string(kStarts));
  });
  EXPECT_EQ(call(server, {"check", "--gpus", "2", "--time", "2h"}), 0);
  EXPECT_EQ(body["spec"]["gpus"], 2);
  EXPECT_EQ(body["spec"]["time_limit_seconds"], 7200);
  EXPECT_FALSE(body["spec"].contains("environment"));
  EXPECT_FALSE(body["spec"].contains("request_id"));
  EXPECT_EQ(out(), "starts now on dgx-1:3\n");
}

TEST_F(Plan, CheckOfAJobThatWouldWaitIsRefusedWithWhatWouldHelp) {
  FakeServer server([](const Request&) { return json_answer(std::string(kWaits)); });
  EXPECT_EQ(call(server, {"check", "--gpus", "4"}), 4);
  EXPECT_EQ(out(),
            "would wait\n"
            "Why              1 node is 2 GPUs short\n"
            "Planned start    about 2026-07-01 14:05:12 +0000 (in 2h02m) on dgx-1:0-1, when jobs 7 "
            "and 9 have ended\n"
            "May be later     if a job gets a place before it, or one ahead of it starts early on "
            "GPUs that it needs\n"
            "Starts now with  --gpus 2\n"
            "  or             --time 40m\n");
}

TEST_F(Plan, CheckOfAJobThatCouldNeverRunSaysSo) {
  FakeServer server([](const Request&) { return json_answer(std::string(kNever)); });
  EXPECT_EQ(call(server, {"check", "--gpus", "64"}), 4);
  EXPECT_EQ(out(),
            "would never run\n"
            "Why              --gpus 64: the largest node has 8 GPUs\n");
}

TEST_F(Plan, WaitGpusEndsWhenTheyAreThere) {
  int asked = 0;
  FakeServer server([&](const Request& request) {
    EXPECT_EQ(Json::parse(request.body)["timeout_seconds"], 60);
    return json_answer(std::string(++asked == 1 ? kWaits : kStarts));
  });
  EXPECT_EQ(call(server, {"jobs", "wait-gpus", "--gpus", "1", "--timeout", "10m"}), 0);
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(out(), "starts now on dgx-1:3\n");
}

TEST_F(Plan, WaitGpusGivesUpWhenTheTimeIsUp) {
  FakeServer server([](const Request& request) {
    EXPECT_EQ(Json::parse(request.body)["timeout_seconds"], 0);
    return json_answer(std::string(kWaits));
  });
  EXPECT_EQ(call(server, {"jobs", "wait-gpus", "--gpus", "4", "--timeout", "0s"}), 124);
  EXPECT_EQ(call(server, {"jobs", "wait-gpus", "--gpus", "4", "--timeout", "x"}), 2);
}

TEST_F(Plan, WaitGpusDoesNotWaitForWhatCanNeverBe) {
  FakeServer server([](const Request&) { return json_answer(std::string(kNever)); });
  EXPECT_EQ(call(server, {"jobs", "wait-gpus", "--gpus", "64"}), 4);
}

TEST_F(Plan, ExplainTellsWhyUntilWhenAndWhatWouldHelp) {
  FakeServer server([](const Request& request) {
    EXPECT_EQ(request.target, "/v1/jobs/42/explanation?thorough=true");
    return json_answer(
        R"({"job":{"id":"42","spec":{"name":"train"},"state":"QUEUED","wait_reason":{"code":"NO_CAPACITY","text":"1 node is 4 GPUs short"}},)"
        R"("jobs_ahead":7,"first_ahead":["3","5"],)"
        R"("planned_start":{"start":"2026-07-01T14:05:12.000Z","basis":"hard_limits","nodes":["dgx-1"],"gpus":[],"after_jobs":["5","3","9"]},)"
        R"("counterfactuals":[{"change":"time_limit","option":"--time 40m"}]})");
  });
  EXPECT_EQ(call(server, {"jobs", "explain", "42"}), 0);
  EXPECT_EQ(out(),
            "job 42 (train) is QUEUED\n"
            "Waits            1 node is 4 GPUs short\n"
            "Ahead            3, 5 and 5 more\n"
            "Planned start    about 2026-07-01 14:05:12 +0000 (in 2h02m) on dgx-1, when job 9 has "
            "ended and jobs 5 and 3, which wait ahead, have run\n"
            "May be later     if a job gets a place before it, or one ahead of it starts early on "
            "GPUs that it needs\n"
            "Starts now with  --time 40m\n");
}

TEST_F(Plan, ExplainTellsWhatIsPredictedAndHowGoodThatWas) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"job":{"id":"42","spec":{"name":"train"},"state":"QUEUED","wait_reason":{"code":"NO_CAPACITY","text":"short"}},)"
        R"("jobs_ahead":0,"first_ahead":[],)"
        R"("planned_start":{"start":"2026-07-01T14:05:12.000Z","basis":"hard_limits","nodes":[],"gpus":[],"after_jobs":[],"trust":{"p90":"2026-07-01T15:35:12.000Z","starts":212,"by_then":183}},)"
        R"("predicted_start":{"p50":"2026-07-01T13:05:12.000Z","p90":"2026-07-01T13:35:12.000Z","basis":"history","runs":12},)"
        R"("predicted_run":{"p50_seconds":300,"p90_seconds":540,"basis":"history","runs":3,"level":"name"},)"
        R"("scores":[{"basis":"hard_limits","starts":4,"by_then":4,"p50_seconds":7200,"p90_seconds":7260,"p50_signed_seconds":-7200},)"
        R"({"basis":"history","starts":212,"by_then":191,"p50_seconds":240,"p90_seconds":1860,"p50_signed_seconds":-240}],)"
        R"("counterfactuals":[]})");
  });
  EXPECT_EQ(call(server, {"jobs", "explain", "42"}), 0);
  EXPECT_EQ(
      out(),
      "job 42 (train) is QUEUED\n"
      "Waits            short\n"
      "Planned start    about 2026-07-01 14:05:12 +0000 (in 2h02m)\n"
      "Nine in ten      by 2026-07-01 15:35:12 +0000 (in 3h32m); 183 of the last 212 starts as "
      "deep in the queue were no later than planned\n"
      "May be later     if a job gets a place before it, or one ahead of it starts early on "
      "GPUs that it needs\n"
      "Predicted start  2026-07-01 13:05:12 +0000 (in 1h02m to 1h32m), history p50–p90 of 12 "
      "runs\n"
      "Predicted to run 5m00s to 9m00s, history p50–p90 of 3 runs of this name\n");
  EXPECT_EQ(call(server, {"jobs", "explain", "42", "-o", "wide"}), 0);
  EXPECT_TRUE(has(out(),
                  "Accuracy         hard limits: median error 2h00m, nine in ten within 2h01m, 100 "
                  "% by then (4 starts); history p50–p90: median error 4m00s, nine in ten within "
                  "31m00s, 90 % by then (212 starts)\n"))
      << out();
}

TEST_F(Plan, ExplainNamesMembersOfArraysAndCountsHiddenJobs) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"job":{"id":"20","array_id":"15","array_index":5,"spec":{"name":"sweep"},"state":"QUEUED","wait_reason":{"text":"kept until 2026-07-01T23:35:45Z"}},)"
        R"("jobs_ahead":5,"first_ahead":["16","3"],"hidden_ahead":2,"names":{"16":"15_1","17":"15_2"},)"
        R"("planned_start":{"start":"2026-07-01T14:05:12.000Z","nodes":["dgx-1"],"gpus":[],"after_jobs":["17","16"],"hidden_after":1}})");
  });
  EXPECT_EQ(call(server, {"jobs", "explain", "15_5"}), 0);
  EXPECT_EQ(
      out(),
      "job 15_5 (sweep) is QUEUED\n"
      "Waits            kept until 2026-07-01 23:35:45 +0000\n"
      "Ahead            15_1, 3 and 1 more; 2 jobs of other users, which are not shown to you\n"
      "Planned start    about 2026-07-01 14:05:12 +0000 (in 2h02m) on dgx-1, when job 15_2 and 1 "
      "job of other users have ended and job 15_1, which waits ahead, has run\n"
      "May be later     if a job gets a place before it, or one ahead of it starts early on "
      "GPUs that it needs\n");
}

TEST_F(Plan, ExplainOfAnEndedJobSaysWhyItEnded) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"job":{"id":"7","spec":{"name":"infer"},"state":"FAILED","attempt":1,"exit_code":3,"ended_at":"2026-07-01T12:02:12Z","attempts":[{"attempt":1,"gpus":[{"node":"dgx-1","index":0}]}]}})");
  });
  EXPECT_EQ(call(server, {"jobs", "explain", "7"}), 0);
  EXPECT_EQ(out(),
            "job 7 (infer) is FAILED\n"
            "Ended            2026-07-01 12:02:12 +0000 (1m00s ago)\n"
            "Why              exit code 3\n"
            "Output           gpu-platform jobs logs 7\n"
            "Place            dgx-1:0\n");
}

TEST_F(Plan, ExplainWrapsItsLinesAtWords) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"job":{"id":"42","spec":{"name":"train"},"state":"QUEUED","wait_reason":{"text":"short"}},)"
        R"("planned_start":{"start":"2026-07-01T14:05:12.000Z","nodes":["dgx-1"],"gpus":[],"after_jobs":["45","48","50","49"]}})");
  });
  for (const std::size_t width : {80, 120, 160}) {
    around_.width = width;
    const std::size_t before = out().size();
    EXPECT_EQ(call(server, {"jobs", "explain", "42"}), 0);
    const std::string page = out().substr(before);
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), width) << page;
    if (width == 80) {
      EXPECT_TRUE(has(page, "when jobs\n                 45, 48, 50 and 49")) << page;
    }
  }
}

TEST_F(Plan, ExplainSaysWhatARunTimeWasTakenFrom) {
  const auto predicted = [&](const std::string& run) {
    FakeServer server([&](const Request&) {
      return json_answer(R"({"job":{"id":"42","spec":{"name":"train"},"state":"QUEUED",)"
                         R"("wait_reason":{"text":"short"}},"jobs_ahead":0,"predicted_run":)" +
                         run + "}");
    });
    EXPECT_EQ(call(server, {"jobs", "explain", "42"}), 0);
    const std::string page = out();
    return page.substr(page.rfind("Predicted to run ") + 17);
  };
  EXPECT_EQ(predicted(R"({"p50_seconds":3600,"p90_seconds":5400,"basis":"expected_time"})"),
            "1h00m to 1h30m, expected time, and half as long again\n");
  EXPECT_EQ(predicted(R"({"p50_seconds":3600,"p90_seconds":4000,"basis":"expected_time",)"
                      R"("runs":12,"level":"command","measure":"of_expected_time"})"),
            "1h00m to 1h06m, expected time, by how far 12 runs of this command kept to theirs\n");
  EXPECT_EQ(
      predicted(R"({"p50_seconds":3600,"p90_seconds":4000,"basis":"history",)"
                R"("runs":12,"level":"command","measure":"of_limit"})"),
      "1h00m to 1h06m, history p50–p90 of 12 runs of this command, by the share of their time "
      "limits\n");
}

TEST_F(Plan, ExplainOfAJobThatWaitsAgainSaysHowItsLastAttemptEnded) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"job":{"id":"7","spec":{"name":"infer"},"state":"PENDING","wait_reason":{"text":"waits until its next attempt is due"},"attempts":[{"exit_code":3},{"reason":"LAUNCH_FAILED","detail":"no such image"}]}})");
  });
  EXPECT_EQ(call(server, {"jobs", "explain", "7"}), 0);
  EXPECT_EQ(out(),
            "job 7 (infer) is PENDING\n"
            "Waits            waits until its next attempt is due\n"
            "Last attempt     LAUNCH_FAILED: no such image\n");
}

TEST_F(Plan, ExplainOfARunningJobSaysWhichItPassedAndWhatWasPredicted) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"job":{"id":"7","spec":{"name":"infer"},"state":"RUNNING","submitted_at":"2026-07-01T12:00:00.000Z","started_at":"2026-07-01T12:00:05.000Z","attempts":[{"why":"BACKFILL","passed":"5","gpus":[{"node":"dgx-1","index":0}]}],)"
        R"("forecast":{"made_at":"2026-07-01T12:00:00.000Z","by_limits":"2026-07-01T14:00:00.000Z","after_jobs":["3","4"],"predicted_start":{"p50":"2026-07-01T12:30:00.000Z","p90":"2026-07-01T12:30:00.000Z","basis":"expected_time"}}},"jobs_ahead":0,"first_ahead":[],"planned_start":null,"counterfactuals":[]})");
  });
  EXPECT_EQ(call(server, {"jobs", "explain", "7"}), 0);
  EXPECT_EQ(out(),
            "job 7 (infer) is RUNNING\n"
            "Place            dgx-1:0\n"
            "Waited           5s\n"
            "Waited for       3 and 4\n"
            "Started          in a gap before job 5, which it does not delay\n"
            "Predicted        at 2026-07-01 12:00:00 +0000: by 2026-07-01 14:00:00 +0000 (hard "
            "limits), predicted 2026-07-01 12:30:00 +0000 (expected time)\n");
}

TEST_F(Plan, ExplainOfARunningJobTellsWhyThereAndThen) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"job":{"id":"7","spec":{"name":"infer"},"state":"RUNNING","submitted_at":"2026-07-01T12:00:00.000Z","started_at":"2026-07-01T12:00:05.000Z","attempts":[{"why":"BACKFILL","gpus":[{"node":"dgx-1","index":0}]}]},"jobs_ahead":0,"first_ahead":[],"planned_start":null,"counterfactuals":[]})");
  });
  EXPECT_EQ(call(server, {"jobs", "explain", "7"}), 0);
  EXPECT_EQ(out(),
            "job 7 (infer) is RUNNING\n"
            "Place            dgx-1:0\n"
            "Waited           5s\n"
            "Started          in a gap before jobs ahead of it, which it does not delay\n");
}

}  // namespace
}  // namespace gpu_platform::cli
