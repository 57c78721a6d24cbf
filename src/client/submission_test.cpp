#include "client/submission.h"

#include <gtest/gtest.h>

#include <vector>

#include "client/fake_server_test.h"
#include "client/request_text.h"
#include "model/job_spec.h"

namespace gpu_platform::client {
namespace {

v1::JobSpec a_job() {
  v1::JobSpec job;
  job.add_command("train");
  job.set_gpus(2);
  (*job.mutable_environment())["B"] = "2";
  (*job.mutable_environment())["A"] = "1";
  job.set_request_id("cli-1");
  return job;
}

// A process whose waiting takes no time.
class Submission : public ::testing::Test {
 protected:
  Submission() {
    process_.pause = [](base::Duration, int) {};
  }
  Called<std::string> submit(FakeServer& server, const v1::JobSpec& job) {
    Client client({server.server()});
    return submit_job(console_, client, job);
  }

  ProcessEnvironment process_;
  std::string told_;
  Console console_{process_, told_};
};

TEST_F(Submission, TheBodyHasWhatIsSetInTheMessage) {
  std::string body;
  FakeServer server([&](const FakeServer::Request& request) {
    body = request.body;
    return json_answer(R"({"id":"7"})");
  });
  ASSERT_TRUE(submit(server, a_job()));
  EXPECT_EQ(server.requests(), std::vector<std::string>{"POST /v1/jobs"});
  EXPECT_EQ(body, request_text(a_job()));
  EXPECT_NE(body.find(R"("command":["train"])"), std::string::npos) << body;
  EXPECT_NE(body.find(R"("environment":{"A":"1","B":"2"})"), std::string::npos) << body;
  EXPECT_EQ(body.find("null"), std::string::npos) << body;
}

TEST_F(Submission, AnAnswerThatWasLostIsAskedForAgain) {
  int asked = 0;
  FakeServer server([&](const FakeServer::Request&) {
    return ++asked == 1 ? std::string() : json_answer(R"({"id":"7"})");
  });
  EXPECT_TRUE(submit(server, a_job()));
  EXPECT_EQ(asked, 2);
}

TEST_F(Submission, WithoutARequestIdNothingIsSentTwice) {
  FakeServer server([](const FakeServer::Request&) { return std::string(); });
  v1::JobSpec job = a_job();
  job.clear_request_id();
  const auto answer = submit(server, job);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, Failure::Kind::kBroken);
  EXPECT_NE(answer.error().message.find("whether the job was accepted is not known"),
            std::string::npos);
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST_F(Submission, ARefusalOfALargeJobNamesTheSizeOfItsEnvironment) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(R"({"code":"INVALID_ARGUMENT","detail":"too large"})", 400);
  });
  v1::JobSpec job = a_job();
  (*job.mutable_environment())["A"] = std::string(2'000'000, 'x');
  const auto answer = submit(server, job);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("; 20000"), std::string::npos) << answer.error().message;
  EXPECT_NE(answer.error().message.find(" bytes of it are the environment"), std::string::npos);
}

TEST_F(Submission, TheEnvironmentIsTheCallersWithoutWhatStaysHere) {
  process_.environment = {
      "A=1",    "A=2",  "=x", "odd", "GPU_PLATFORM_TOKEN=secret", "GPU_PLATFORM_SERVER=https://h",
      "B=\xff", "C=a=b"};
  EXPECT_EQ(environment_of(console_),
            (std::map<std::string, std::string>{{"A", "1"}, {"C", "a=b"}}));
  EXPECT_NE(told_.find("variable B is not UTF-8"), std::string::npos) << told_;
}

}  // namespace
}  // namespace gpu_platform::client
