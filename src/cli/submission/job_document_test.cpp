#include "cli/submission/job_document.h"

#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "cli/cli_fixture_test.h"
#include "cli/submission/next_step.h"
#include "cli/text/json_view.h"
#include "model/job_spec.h"

namespace gpu_platform::cli {
namespace {

std::string mistake(std::string_view text) {
  const auto jobs = read_job_documents(text);
  return jobs ? "" : jobs.error().field + ": " + jobs.error().message;
}

TEST(JobDocument, IsTheFieldsOfASpecification) {
  const auto jobs = read_job_documents(
      "command: [sleep, 60]\n"
      "gpus: 2\n"
      "memory_bytes: 64G\n"
      "time_limit_seconds: 2h\n"
      "labels: {run: 7, \"on\": yes}\n"
      "name: 1.10\n"
      "hold: true\n"
      "team: null\n"
      "---\n"
      "{\"command\": [\"true\"], \"kind\": \"TRAINING\"}\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 2U);
  const v1::JobSpec& first = jobs->front();
  EXPECT_EQ(first.command(1), "60");
  EXPECT_EQ(first.gpus(), 2U);
  EXPECT_EQ(first.memory_bytes(), std::uint64_t{64} << 30);
  EXPECT_EQ(first.time_limit_seconds(), 7200);
  EXPECT_EQ(first.labels().at("run"), "7");
  EXPECT_EQ(first.labels().at("on"), "yes");
  EXPECT_EQ(first.name(), "1.10");
  EXPECT_TRUE(first.hold());
  EXPECT_FALSE(first.has_team());
  EXPECT_EQ(jobs->back().kind(), v1::JOB_KIND_TRAINING);
}

TEST(JobDocument, MayAskForAPartOfAGpu) {
  const auto jobs = read_job_documents(
      "command: [x]\n"
      "gpus: 0.5\n"
      "slice_seconds: 100ms\n"
      "share_mode: time_slice\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->front().gpus(), 1U);
  EXPECT_DOUBLE_EQ(jobs->front().gpu_share(), 0.5);
  EXPECT_DOUBLE_EQ(jobs->front().slice_seconds(), 0.1);
  EXPECT_EQ(jobs->front().share_mode(), v1::SHARE_MODE_TIME_SLICE);
}

TEST(JobDocument, IsWhatDescribePrints) {
  const auto jobs = read_job_documents(
      "id: \"42\"\n"
      "state: QUEUED\n"
      "attempts: []\n"
      "spec:\n"
      "  command: [\"true\"]\n"
      "  request_id: cli-7\n"
      "  nodes: null\n");
  ASSERT_TRUE(jobs) << jobs.error().message;
  EXPECT_EQ(jobs->front().command(0), "true");
  EXPECT_FALSE(jobs->front().has_request_id());
}

TEST(JobDocument, NamesTheLineOfAMistake) {
  EXPECT_EQ(mistake("command: [x]\n\ngpu: 2\n"),
            "line 3: unknown field 'gpu'; did you mean 'gpus'?");
  EXPECT_EQ(mistake("spec: {command: [x]}\nstat: X\n"),
            "line 2: unknown field 'stat'; did you mean 'state'?");
  EXPECT_EQ(mistake("command: [x]\n---\ncommand: [x]\ngpus: many\n"),
            "line 4: gpus: must be a whole number");
  EXPECT_EQ(mistake("command: [x]\ngpus: 1.5\n"),
            "line 2: gpus: 1.5 is no part of one GPU: write 0.001 to 0.999 with at most three "
            "decimals, or a whole number");
  EXPECT_EQ(mistake("gpus: 1\n"), "line 1: the job has no command");
  EXPECT_EQ(mistake("command: [x]\ncommand: [y]\n"), "line 2: 'command' is set twice");
  EXPECT_EQ(mistake(""), ": there is no job in it");
  EXPECT_NE(mistake("---\n, x\n"), "");
  EXPECT_NE(mistake("command: [x\n"), "");
}

// ---- the commands

class Documents : public Cli {
 protected:
  void give_input(const std::string& text) {
    around_.in_fd = ::memfd_create("in", MFD_CLOEXEC);
    EXPECT_EQ(::write(around_.in_fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    ::lseek(around_.in_fd, 0, SEEK_SET);
  }
  ~Documents() override {
    if (around_.in_fd > 2) ::close(around_.in_fd);
  }

  std::vector<Json> sent_;
  std::string job_;
  FakeServer server_{[this](const FakeServer::Request& request) {
    if (request.method == "GET") return json_answer(job_);
    sent_.push_back(Json::parse(request.body));
    if (request.target == "/v1/check") return json_answer(R"({"starts_now":true})");
    return json_answer(kJob, 201);
  }};
};

TEST_F(Documents, AreSubmittedOneAfterTheOther) {
  give_input("command: [a]\ngpus: 1\n---\ncommand: [b]\ngpus: 2\nenvironment: {SECRET: own}\n");
  EXPECT_EQ(call(server_, {"submit", "-f", "-", "--time", "1h"}), 0) << err();
  EXPECT_EQ(out(), "42\n42\n");
  ASSERT_EQ(sent_.size(), 2U);
  EXPECT_EQ(sent_[0]["command"], Json::array({"a"}));
  EXPECT_EQ(sent_[0]["environment"]["SECRET"], "hunter2");
  EXPECT_EQ(sent_[0]["workdir"], "/home/ada");
  EXPECT_EQ(sent_[1]["time_limit_seconds"], 3600);
  EXPECT_EQ(sent_[1]["environment"]["SECRET"], "own");
  EXPECT_NE(sent_[0]["request_id"], sent_[1]["request_id"]);
}

TEST_F(Documents, AreLookedAtBeforeTheFirstIsSent) {
  give_input("command: [a]\ngpus: 1\n---\ncommand: [b]\nnodez: 2\n");
  EXPECT_EQ(call(server_, {"submit", "-f", "-"}), 2);
  EXPECT_TRUE(has(err(), "standard input: line 5: unknown field 'nodez'")) << err();
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(call(server_, {"submit", "-f", "/nonexistent"}), 2);
  EXPECT_TRUE(has(err(), "--file: '/nonexistent': it cannot be read")) << err();
  EXPECT_EQ(call(server_, {"submit", "-f", "x", "--", "true"}), 2);
}

TEST_F(Documents, ArePrintedByADryRunWithoutTheEnvironment) {
  EXPECT_EQ(call(server_, {"submit", "--gpus", "1", "--dry-run", "-o", "yaml", "--", "x"}), 0)
      << err();
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(sent_[0]["spec"]["gpus"], 1);
  EXPECT_TRUE(has(out(), "gpus: 1\n")) << out();
  EXPECT_FALSE(has(out(), "hunter2")) << out();
  const std::size_t before = out().size();
  give_input(out());
  EXPECT_EQ(call(server_, {"submit", "--dry-run", "-f", "-"}), 0) << err();
  EXPECT_EQ(out().substr(before), "starts now\n");
}

TEST_F(Documents, MaySayTheTimeOnTheGpu) {
  give_input("command: [a]\ngpus: 0.5\ngpu_time_seconds: 1h\n");
  EXPECT_EQ(call(server_, {"submit", "--dry-run", "-o", "yaml", "-f", "-"}), 0) << err();
  EXPECT_TRUE(has(out(), "time_limit_seconds: 7200")) << out();
  EXPECT_FALSE(has(out(), "gpu_time")) << out();
  EXPECT_TRUE(has(err(), "the time limit that follows from the time on the GPU is 2h")) << err();
  give_input("command: [a]\ngpus: 0.5\ngpu_time_seconds: 1h\n");
  EXPECT_EQ(call(server_, {"submit", "-f", "-", "--time", "90m"}), 0) << err();
  EXPECT_EQ(sent_.back()["time_limit_seconds"], 5400);
  EXPECT_FALSE(sent_.back().contains("gpu_time_seconds"));
  const std::size_t sent = sent_.size();
  give_input("command: [a]\ngpus: 0.5\ngpu_time_seconds: 1h\ntime_limit_seconds: 1h\n");
  EXPECT_EQ(call(server_, {"submit", "-f", "-"}), 2);
  EXPECT_TRUE(has(err(), "gpu_time_seconds: the time limit follows from it")) << err();
  EXPECT_EQ(sent_.size(), sent);
}

TEST_F(Documents, OfAnEarlierJobAreSubmittedAgainWithChanges) {
  job_ =
      R"({"id":"17","array_id":"15","array_index":2,"state":"FAILED","time_limit_default_of":"site",)"
      R"("spec":{"command":["x"],"gpus":2,"user":"ada","array":"0-9","time_limit_seconds":60,)"
      R"("priority":"MEDIUM","priority_number":5,"workdir":"/data","deadline":"2026-01-01T00:00:00Z",)"
      R"("request_id":"cli-1","labels":{"run":"7"}}})";
  around_.uid = 1000;
  EXPECT_EQ(call(server_, {"jobs", "rerun", "15_2", "--priority", "low", "--label", "try=2"}), 0)
      << err();
  EXPECT_EQ(out(), "42\n");
  EXPECT_EQ(server_.requests().front(), "GET /v1/jobs/15_2");
  ASSERT_EQ(sent_.size(), 1U);
  const Json& spec = sent_.front();
  EXPECT_EQ(spec["command"], Json::array({"x"}));
  EXPECT_EQ(spec["array"], "2");
  EXPECT_EQ(spec["workdir"], "/data");
  EXPECT_EQ(spec["priority"], "low");
  EXPECT_EQ(spec["labels"], (Json{{"run", "7"}, {"try", "2"}}));
  EXPECT_EQ(spec["environment"]["SECRET"], "hunter2");
  EXPECT_NE(spec["request_id"], "cli-1");
  for (const char* const field : {"user", "deadline", "time_limit_seconds", "priority_number"}) {
    EXPECT_FALSE(spec.contains(field)) << field;
  }
  EXPECT_EQ(call(server_, {"jobs", "rerun", "15", "--time", "1h"}), 0) << err();
  EXPECT_EQ(sent_.back()["array"], "0-9");
  EXPECT_EQ(sent_.back()["time_limit_seconds"], 3600);
  EXPECT_EQ(call(server_, {"jobs", "rerun", "15", "--gpu-time", "30m"}), 0) << err();
  EXPECT_EQ(sent_.back()["time_limit_seconds"], 1800);
}

TEST_F(Documents, OfSlurmsJobsAreNotSubmittedAgain) {
  job_ = R"({"id":"17","spec":{"command":["/bin/gpu-platform-slurm","batch-step","x"]}})";
  EXPECT_EQ(call(server_, {"jobs", "rerun", "17"}), 4);
  EXPECT_TRUE(has(err(), "job 17 came from sbatch or srun")) << err();
  EXPECT_TRUE(sent_.empty());
}

// ---- what happens next

TEST(NextStep, IsTheCheapestChangeThatStartsTheJob) {
  const base::Instant now = *base::parse_rfc3339("2026-07-01T12:00:00Z");
  v1::Explanation explanation;
  v1::Job& job = *explanation.mutable_job();
  job.set_id("88");
  job.set_state(v1::JOB_STATE_QUEUED);
  EXPECT_EQ(next_step_text(explanation, now), "") << "not known yet";
  job.mutable_wait_reason()->set_text("1 node is 1 GPU short");
  EXPECT_EQ(next_step_text(explanation, now), "it waits: 1 node is 1 GPU short");
  explanation.mutable_planned_start()->mutable_start()->set_seconds(now.unix_ns() / 1'000'000'000 +
                                                                    7200);
  EXPECT_EQ(next_step_text(explanation, now),
            "it waits: 1 node is 1 GPU short; planned start in 2h00m");
  explanation.add_counterfactuals()->set_option("--time 4h");
  EXPECT_EQ(next_step_text(explanation, now),
            "it waits: 1 node is 1 GPU short; with --time 4h it starts now");
  job.set_state(v1::JOB_STATE_HELD);
  EXPECT_EQ(next_step_text(explanation, now),
            "it is held; 'gpu-platform jobs release 88' releases it");
}

TEST_F(Cli, SaysOneNameOfAFieldInARefusal) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(
        R"({"detail":"gpu_types[0]: no GPU type 'RTX9'","status":400,"code":"INVALID_ARGUMENT","field":"gpu_types[0]"})",
        400);
  });
  EXPECT_EQ(call(server, {"submit", "--gpu-type", "RTX9", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "error: --gpu-type: no GPU type 'RTX9'")) << err();
}

TEST_F(Cli, SaysHowToAskForMoreGpusThanANodeHas) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(
        R"({"detail":"gpus 9: the largest node has 8 GPUs","status":409,"code":"FAILED_PRECONDITION","field":"gpus"})",
        409);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus", "9", "--", "true"}), 4);
  EXPECT_TRUE(has(err(), "--gpus 9: the largest node has 8 GPUs; use --nodes 3 or --allow-"))
      << err();
}

TEST_F(Cli, TellsTheLimitsOfATimeAsPeopleWriteThem) {
  EXPECT_EQ(call({"submit", "--server", "unix:/nonexistent", "--time", "0", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "--time: '0' is not a time: write 90s, 15m")) << err();
  EXPECT_EQ(call({"submit", "--server", "unix:/nonexistent", "--time", "9999d", "--", "true"}), 2);
  EXPECT_TRUE(has(err(), "--time: '9999d' is too long: at most 3650d")) << err();
}

TEST_F(Cli, NamesTheOptionThatWasTyped) {
  FakeServer server([](const FakeServer::Request&) {
    return json_answer(
        R"({"detail":"gpus: 9 asked","status":409,"code":"FAILED_PRECONDITION","field":"gpus"})",
        409);
  });
  EXPECT_EQ(call(server, {"submit", "--gpus-per-node", "9", "--", "true"}), 4);
  EXPECT_TRUE(has(err(), "error: --gpus-per-node: 9 asked")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
