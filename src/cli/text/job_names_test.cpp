#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"

// Pages name other jobs as people know them.

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;
class NamesOfJobs : public Cli {};

TEST_F(NamesOfJobs, OfMembersOfArraysStandOnThePageOfAJob) {
  FakeServer server([](const Request& request) {
    if (request.target == "/v1/jobs/20?fields=id,array_id,array_index") {
      return json_answer(R"({"id":"20","array_id":"15","array_index":5})");
    }
    if (request.target == "/v1/jobs/7?fields=id,array_id,array_index") {
      return json_answer(R"({"detail":"there is no job 7","code":"NOT_FOUND"})", 404);
    }
    return json_answer(
        R"({"id":"31","array_id":"30","array_index":1,"array_size":2,"state":"RUNNING","spec":{"name":"a"},"attempts":[{"attempt":1,"state":"RELEASED","reason":"PREEMPTED","ended_by":"job 20"},{"attempt":2,"state":"RUNNING","why":"PREEMPTED","preempted_jobs":["20","7"]}],"started_at":"2026-07-01T12:00:00Z"})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "30_1"}), 0) << err();
  EXPECT_TRUE(has(out(), "Job:            30_1 (id 31)\n")) << out();
  EXPECT_TRUE(has(out(), "15_5 and 7 made room")) << out();
  EXPECT_TRUE(has(out(), "PREEMPTED for job 15_5")) << out();
}

TEST_F(NamesOfJobs, AreNotAskedForWherePagesNameNoOtherJob) {
  FakeServer server([](const Request&) { return json_answer(R"({"id":"31","state":"HELD"})"); });
  EXPECT_EQ(call(server, {"jobs", "describe", "31"}), 0);
  EXPECT_EQ(server.requests().size(), 1U);
}

}  // namespace
}  // namespace gpu_platform::cli
