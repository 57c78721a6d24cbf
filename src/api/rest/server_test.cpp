#include "api/rest/server.h"

#include <mutex>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "api/rest/server_fixture_test.h"

namespace gpu_platform::api {
namespace {

TEST_F(ServerTest, AnswersASubmissionWithTheJob) {
  start();
  const RawResponse created =
      ask("POST", "/v1/jobs", R"({"command":["true"],"gpus":2,"name":"x"})");
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.headers.at("location"), "/v1/jobs/1");
  EXPECT_EQ(created.headers.at("content-type"), "application/json");
  const auto job = parsed(created);
  EXPECT_EQ(job["id"], "1");
  EXPECT_EQ(job["state"], "QUEUED");
  EXPECT_EQ(job["spec"]["user"], user_);
  EXPECT_EQ(job["wait_reason"]["code"], "NOT_EVALUATED");
  const auto command = core_.commands().at(0);
  EXPECT_EQ(command.caller.uid, uid_);
  EXPECT_EQ(command.caller.role, uid_ == 0 ? model::Role::kAdmin : model::Role::kUser);
  EXPECT_EQ(std::get<model::SubmitJob>(command.body).spec.request.gpus, 2U);
  EXPECT_EQ(parsed(ask("GET", "/v1/jobs/1"))["spec"]["name"], "x");
}

TEST_F(ServerTest, AnswersARepeatedSubmissionWithTheFirstJob) {
  start();
  const std::string body = R"({"command":["true"],"request_id":"once"})";
  EXPECT_EQ(ask("POST", "/v1/jobs", body).status, 201);
  const RawResponse repeated = ask("POST", "/v1/jobs", body);
  EXPECT_EQ(repeated.status, 200);
  EXPECT_EQ(parsed(repeated)["id"], "1");
}

TEST_F(ServerTest, PassesOnTheCoresRefusal) {
  start();
  const RawResponse refused = ask("POST", "/v1/jobs", R"({"command":["true"],"gpus":9})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.headers.at("content-type"), "application/problem+json");
  const auto problem = parsed(refused);
  EXPECT_EQ(problem["field"], "gpus");
  EXPECT_EQ(problem["code"], "FAILED_PRECONDITION");
  EXPECT_FALSE(problem["request_id"].get<std::string>().empty());
}

TEST_F(ServerTest, TellsOfARefusedCallWithTheIdThatItsAnswerHas) {
  std::mutex mutex;
  std::vector<std::string> told;
  options_.notable = [&](const Peer& peer, const NotableCall& call) {
    const std::lock_guard lock(mutex);
    told.push_back(fmt::format("{} {} {} {}", call.request_id, call.call, call.status,
                               peer.caller.uid == uid_));
  };
  start();
  EXPECT_EQ(ask("GET", "/v1/jobs").status, 200);
  const RawResponse refused = ask("POST", "/v1/jobs", R"({"command":["true"],"gpus":9})");
  const RawResponse unknown = ask("GET", "/v1/nothing");
  const std::string first = parsed(refused)["request_id"];
  const std::string second = parsed(unknown)["request_id"];
  const std::lock_guard lock(mutex);
  EXPECT_THAT(
      told, testing::ElementsAre(first + " JobService.SubmitJob 409 true", second + "  404 true"));
}

TEST_F(ServerTest, AnswersWithTheFieldsThatAClientNames) {
  const std::string one = std::to_string(core_.add_job(user_, uid_).value);
  const std::string two = std::to_string(core_.add_job(user_, uid_).value);
  start();
  EXPECT_EQ(ask("GET", "/v1/jobs/" + one + "?fields=state,id").body,
            R"({"id":")" + one + R"(","state":"QUEUED"})");
  EXPECT_EQ(ask("GET", "/v1/jobs?fields=jobs.id").body,
            R"({"jobs":[{"id":")" + two + R"("},{"id":")" + one + R"("}],"next_page":null})");
  EXPECT_EQ(ask("GET", "/v1/version?fields=version").body, R"({"version":"1.2.3"})");
  const auto refused = [&](const std::string& target) {
    const RawResponse response = ask("GET", target);
    EXPECT_EQ(response.status, 400) << target;
    EXPECT_EQ(parsed(response)["field"], "fields") << target;
    return parsed(response)["detail"].get<std::string>();
  };
  EXPECT_THAT(refused("/v1/jobs/" + one + "?fields=stat"),
              testing::HasSubstr("did you mean 'state'?"));
  EXPECT_THAT(refused("/v1/jobs/" + one + "?fields=id&fields=state"),
              testing::HasSubstr("given twice"));
  EXPECT_THAT(refused("/v1/jobs?fields=next_page"), testing::HasSubstr("jobs.id"));
  refused("/v1/jobs/" + one + "?fields=");
  refused("/v1/queue?fields=jobs");
}

TEST_F(ServerTest, SaysThatAnEndedJobCannotBeStopped) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job);
  core_.end_job(job, 0);
  start();
  const RawResponse answer = ask("POST", "/v1/jobs/1/cancel");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(parsed(answer)["changed"], false);
  EXPECT_EQ(parsed(answer)["job"]["state"], "COMPLETED");
  EXPECT_TRUE(core_.commands().empty());
}

TEST_F(ServerTest, StopsJobsGentlyAndAtOnce) {
  core_.start_job(core_.add_job(user_, uid_));
  core_.start_job(core_.add_job(user_, uid_));
  start();
  EXPECT_EQ(parsed(ask("POST", "/v1/jobs/1/cancel", "{}"))["changed"], true);
  EXPECT_EQ(parsed(ask("POST", "/v1/jobs/2/kill"))["job"]["state"], "STOPPING");
  const auto commands = core_.commands();
  EXPECT_EQ(std::get<model::ActOnJob>(commands.at(0).body).action, model::JobAction::kCancel);
  EXPECT_EQ(std::get<model::ActOnJob>(commands.at(1).body).action, model::JobAction::kKill);
}

TEST_F(ServerTest, ShowsTheCluster) {
  core_.add_job(user_, uid_);
  start();
  const auto status = parsed(ask("GET", "/v1/status"));
  EXPECT_EQ(status["total_gpus"], 8);
  EXPECT_EQ(status["available_gpus"], 8);
  EXPECT_EQ(status["utilization"], 0);
  EXPECT_EQ(status["queued_jobs"], 1);
  EXPECT_EQ(status["gpus"][3]["uuid"], "GPU-3");
  EXPECT_EQ(status["gpus"][3]["emulated"], true);
  EXPECT_EQ(parsed(ask("GET", "/v1/nodes"))["nodes"][0]["name"], "dgx-h100-1");
  EXPECT_EQ(parsed(ask("GET", "/v1/health"))["status"], "ok");
  EXPECT_EQ(parsed(ask("GET", "/v1/version"))["version"], "1.2.3");
  EXPECT_EQ(parsed(ask("GET", "/v1/queue?all=true"))["total"], 1);
}

TEST_F(ServerTest, SaysWhyItIsNotReady) {
  core_.readiness = [] {
    return base::fail(base::ErrorCode::kResourceExhausted, "the disk is full");
  };
  start();
  const RawResponse answer = ask("GET", "/v1/ready");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(parsed(answer)["detail"], "the disk is full");
}

TEST_F(ServerTest, ListsManyJobsInPieces) {
  core_.add_jobs(1'500, user_, uid_);  // less than a page may have bytes
  start();
  RawClient client(options_.socket_path);
  const auto all = client.request("GET", "/v1/jobs?limit=10000");
  ASSERT_TRUE(all.has_value());
  EXPECT_TRUE(all->is_complete);
  EXPECT_EQ(all->headers.at("transfer-encoding"), "chunked");
  EXPECT_EQ(parsed(*all)["jobs"].size(), 1'500U);
  // The connection goes on.
  const auto page = client.request("GET", "/v1/jobs?limit=10");
  EXPECT_EQ(parsed(*page)["next_page"], "1491");
}

// What stands beside variables in a path is no value of one.
TEST_F(ServerTest, PathThatIsWrittenOutIsNoJob) {
  start();
  const RawResponse response = ask("GET", "/v1/jobs/bulk");
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(response.headers.at("allow"), "POST, OPTIONS");
  EXPECT_EQ(ask("GET", "/v1/jobs/bulky").status, 400);
}

}  // namespace
}  // namespace gpu_platform::api
