#include "shims/views/step_view.h"

#include <gtest/gtest.h>

#include "cli/text/json_view.h"
#include "client/answer.h"
#include "shims/steps/live_usage.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {
namespace {

using cli::Json;

v1::Job job_with_steps(const std::string& kind, const std::string& steps) {
  return *client::message_of<v1::Job>(
      R"({"id":"7","state":"COMPLETED","attempt":2,"exit_code":0,"cpus":8,"memory_bytes":4294967296,)"
      R"("started_at":"2026-07-01T12:00:00Z","ended_at":"2026-07-01T13:00:00Z",)"
      R"("attempts":[{"attempt":1,"nodes":["n1"]},{"attempt":2,"nodes":["n1"],"cpu_time_seconds":9.5,"peak_memory_bytes":2048}],)"
      R"("spec":{"name":"train","gpus":2,"command":["/opt/gpu-platform-slurm",")" +
      kind + R"("]},"steps":[)" + steps + "]}");
}

std::vector<std::string> ids_of(const std::vector<StepView>& steps) {
  std::vector<std::string> ids;
  for (const StepView& step : steps) ids.push_back(step.id);
  return ids;
}

constexpr const char* kStep0 =
    R"({"attempt":2,"number":0,"name":"a","tasks":4,"nodes":["n1","n2"],"cpus":4,"gpus":1,"memory_bytes":1048576,)"
    R"("started_at":"2026-07-01T12:00:00Z","ended_at":"2026-07-01T12:10:00Z","exit_code":3,)"
    R"("user_cpu_seconds":1.25,"system_cpu_seconds":0.5,"peak_memory_bytes":4096,"all_memory_bytes":8192})";

TEST(StepView, HasTheBatchScriptAndTheStepsOfTheLatestAttempt) {
  const auto steps =
      steps_of(job_with_steps("batch-step", std::string(R"({"attempt":1,"number":9},)") + kStep0));
  ASSERT_EQ(ids_of(steps), (std::vector<std::string>{"batch", "0"}));
  EXPECT_EQ(steps[0].cpu_ms, 9500);
  EXPECT_EQ(steps[0].state.code, "CD");
  const StepView& step = steps[1];
  EXPECT_EQ(step.state.code, "F");
  EXPECT_EQ(step.exit, "3:0");
  EXPECT_EQ(step.cpu_ms, 1750);
  EXPECT_EQ(step.average_bytes, 2048);
  EXPECT_EQ(trackable(step), "cpu=4,mem=1M,node=2,gres/gpu=1");
  EXPECT_EQ(node_of_task(step, 0), "") << "which of its nodes is not known";
}

TEST(StepView, TheProgramOfSrunIsStep0OnRecordOrNot) {
  EXPECT_EQ(ids_of(steps_of(job_with_steps("job-step", ""))), (std::vector<std::string>{"0"}));
  const auto recorded = steps_of(job_with_steps("job-step", kStep0));
  ASSERT_EQ(ids_of(recorded), (std::vector<std::string>{"0"}));
  EXPECT_EQ(recorded[0].tasks, 4);
}

TEST(StepView, StatesAreThoseOfSlurm) {
  const auto state = [](const std::string& end) {
    return steps_of(
               job_with_steps(
                   "batch-step",
                   R"({"attempt":2,"number":0,"started_at":"2026-07-01T12:00:00Z")" + end + "}"))
        .at(1)
        .state.name;
  };
  const std::string ended = R"(,"ended_at":"2026-07-01T12:00:00Z",)";
  EXPECT_EQ(state(""), "RUNNING");
  EXPECT_EQ(state(ended + R"("exit_code":0)"), "COMPLETED");
  EXPECT_EQ(state(ended + R"("exit_code":1)"), "FAILED");
  EXPECT_EQ(state(ended + R"("signal":"SIGTERM")"), "CANCELLED");
  EXPECT_EQ(state(ended + R"("lost":"UNKNOWN")"), "CANCELLED");
}

// As in Slurm: the job's line tells of no end of its own, the batch script's does.
TEST(StepView, AJobThatWasStoppedHasTheEndOfItsScript) {
  const auto stopped = [](const std::string& state, const std::string& end) {
    v1::Job job = job_with_steps("batch-step", kStep0);
    job.clear_exit_code();
    job.MergeFrom(*client::message_of<v1::Job>(R"({"state":")" + state + R"(",)" + end + "}"));
    const StepView batch = steps_of(job).at(0);
    return recorded_exit_of(job) + " " + std::string(batch.state.name) + " " + batch.exit;
  };
  EXPECT_EQ(stopped("TIMED_OUT", R"("signal":"SIGTERM")"), "0:0 CANCELLED 0:15");
  EXPECT_EQ(stopped("TIMED_OUT", R"("exit_code":0)"), "0:0 COMPLETED 0:0");
  EXPECT_EQ(stopped("TIMED_OUT", R"("exit_code":3)"), "0:0 FAILED 3:0");
  EXPECT_EQ(stopped("CANCELLED", R"("signal":"SIGKILL")"), "0:0 CANCELLED 0:9");
  EXPECT_EQ(stopped("FAILED", R"("exit_code":3)"), "3:0 FAILED 3:0");
  EXPECT_EQ(derived_exit_of(job_with_steps("batch-step", kStep0)), "3:0");
  EXPECT_EQ(derived_exit_of(job_with_steps("batch-step", "")), "0:0");
}

TEST(StepView, AStepThatItsLimitHasEndedIsTimedOut) {
  v1::Job job = job_with_steps("batch-step", kStep0);
  std::string& label = (*job.mutable_spec()->mutable_labels())["slurm.timed_out.0"];
  label = "1";
  EXPECT_EQ(steps_of(job).at(1).state.code, "F") << "that was in another attempt";
  label = "2";
  EXPECT_EQ(steps_of(job).at(1).state.name, "TIMEOUT");
}

TEST(StepView, AJobThatHasNotStartedHasNone) {
  EXPECT_TRUE(steps_of(*client::message_of<v1::Job>(R"({"id":"1","state":"QUEUED"})")).empty());
}

TEST(StepView, ANameMayHaveAStep) {
  EXPECT_EQ(step_name_of("40_3.batch").job, "40_3");
  EXPECT_EQ(step_name_of("40_3.batch").step, "batch");
  EXPECT_EQ(step_name_of("7").step, "");
}

TEST(LiveUsage, ProcessesAreThoseOfTheirTask) {
  const std::vector<JobProcess> processes = {{10, "", 0, "n1", 100, 50, 40},
                                             {11, "0", 1, "n1", 200, 500, 400},
                                             {12, "0", 0, "n1", 300, 600, 100},
                                             {13, "0", 1, "n1", 7, 900, 800}};
  const auto again = processes_of(Json::parse(live_document(processes).dump()));
  const auto steps = tasks_by_step(again);
  ASSERT_EQ(steps.size(), 2U);
  const LiveTask& batch = steps.at("batch").at(0);
  EXPECT_EQ(batch.cpu_ms, 607);
  EXPECT_EQ(batch.peak_bytes, 1340) << "what all have at the moment";
  const std::vector<LiveTask>& tasks = steps.at("0");
  ASSERT_EQ(tasks.size(), 2U);
  EXPECT_EQ(tasks[1].task, 1);
  EXPECT_EQ(tasks[1].cpu_ms, 207);
  EXPECT_EQ(tasks[1].peak_bytes, 900);
  EXPECT_EQ(tasks[1].pids, (std::vector<std::int64_t>{11, 13}));
  EXPECT_TRUE(tasks_by_step({}).empty());
}

}  // namespace
}  // namespace gpu_platform::shims
