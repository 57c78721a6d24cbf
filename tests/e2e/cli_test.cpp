#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <fstream>

#include "harness.h"

// These tests check what a user sees of one daemon through the command line.

namespace gpu_platform::e2e {
namespace {

std::string first_line(const Finished& finished) {
  return finished.out.substr(0, finished.out.find('\n'));
}

class Cli : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }
  std::string submit(std::vector<std::string> arguments) {
    return daemon.submit(std::move(arguments));
  }
  bool reaches(const std::string& id, const std::string& state) {
    return eventually([&] { return daemon.job(id)["state"] == state; });
  }
  Daemon daemon;
};

TEST_F(Cli, SubmitPrintsTheIdAloneAndTheJobRuns) {
  const Finished finished = daemon.cli({"submit", "--gpus", "1", "--", "/bin/true"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_EQ(finished.out.find_first_not_of("0123456789"), finished.out.size() - 1) << finished.out;
  EXPECT_TRUE(reaches(first_line(finished), "COMPLETED"));
}

TEST_F(Cli, CompletesOptionsJobsAndNodesInBash) {
  const std::string id = submit({"--gpus", "0", "--hold", "--", "/bin/true"});
  const std::string script = R"(
    source <(gpu-platform completion bash) || exit 1
    offered() { COMP_WORDS=(gpu-platform "$@") COMP_CWORD=$#; _gpu_platform; echo "${COMPREPLY[*]}"; }
    offered jobs des
    offered jobs list --state = HE
    offered jobs cancel ''
    offered drain --node ''
    offered submit -- python --fo
  )";
  const std::string folder = program("gpu-platform").substr(0, program("gpu-platform").rfind('/'));
  const Finished done = run_command(
      {"/bin/bash", "-c", script},
      {"PATH=" + folder + ":/usr/bin:/bin", "GPU_PLATFORM_SERVER=unix:" + daemon.socket()});
  const std::string node = daemon.json({"nodes"})["nodes"][0]["name"];
  EXPECT_EQ(done.out, "describe\nHELD\n" + id + "\n" + node + "\n\n") << done.err;
}

TEST(SimulateFaults, ExitCodesAreThoseOfTheContract) {
  const auto run = [](std::vector<std::string> options) {
    std::vector<std::string> words = {program("gpu-platform"), "simulate", "faults"};
    words.insert(words.end(), options.begin(), options.end());
    return run_command(words).exit_code;
  };
  EXPECT_EQ(run({"--seeds", "3"}), 0);
  EXPECT_EQ(run({"--seeds", "3", "--json"}), 0);
  EXPECT_EQ(run({"--seeds", "20", "--plant", "half-gang"}), 1);
  EXPECT_EQ(run({"--help"}), 0);
  EXPECT_EQ(run({"--seeds", "many"}), 2);
  EXPECT_EQ(run({"--seeds", "0"}), 2);
  EXPECT_EQ(run({"--plant", "nothing"}), 2);
  EXPECT_EQ(run({"--sedes", "3"}), 2);
}

TEST_F(Cli, ApiCallsTheRestInterface) {
  const std::string id = submit({"--gpus", "0", "--hold", "--", "/bin/true"});
  const Finished job = daemon.cli({"api", "/v1/jobs/" + id});
  EXPECT_EQ(nlohmann::json::parse(job.out)["state"], "HELD") << job.err;
  EXPECT_EQ(daemon.cli({"api", "post", "/v1/jobs/" + id + "/cancel"}).exit_code, 0);
  EXPECT_EQ(daemon.job(id)["state"], "CANCELLED");
  const Finished absent = daemon.cli({"api", "/v1/jobs/99"});
  EXPECT_EQ(absent.exit_code, 3);
  EXPECT_EQ(nlohmann::json::parse(absent.err)["status"], 404) << absent.err;
}

TEST_F(Cli, RunGivesTheProgramsOutputAndExitCode) {
  const Finished finished =
      daemon.cli({"run", "--gpus", "2", "--", "/bin/sh", "-c", "echo out; echo err >&2; exit 3"});
  EXPECT_EQ(finished.exit_code, 3);
  EXPECT_NE(finished.out.find("out\n"), std::string::npos);
}

TEST_F(Cli, RunOfAProgramKilledByASignalExitsWith128PlusIt) {
  EXPECT_EQ(daemon.cli({"run", "--", "/bin/sh", "-c", "kill -9 $$"}).exit_code, 137);
}

TEST_F(Cli, RunSaysWhenItWasRefusedAndWhenThereIsNoDaemon) {
  EXPECT_EQ(daemon.cli({"run", "--gpus", "9", "--", "/bin/true"}).exit_code, 251);
  daemon.terminate();
  EXPECT_EQ(daemon.cli({"run", "--gpus", "1", "--", "/bin/true"}).exit_code, 252);
  EXPECT_EQ(daemon.cli({"status"}).exit_code, 5);
}

// By numbers, which many programs need: the shell reads the last one as such.
TEST_F(Cli, JobSeesItsOwnGpusAndNoMore) {
  ASSERT_EQ(first_line(daemon.cli({"submit", "--gpus", "1", "--", "/bin/sleep", "600"})).empty(),
            false);
  const std::string id =
      submit({"--gpus", "2", "--", "/bin/sh", "-c",
              "echo $CUDA_VISIBLE_DEVICES $GPU_PLATFORM_GPU_UUIDS $CUDA_DEVICE_ORDER; "
              "exit $((${CUDA_VISIBLE_DEVICES#*,} * 0))"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const auto job = daemon.job(id);
  ASSERT_EQ(job["gpus"].size(), 2u);
  std::string indices;
  std::string uuids;
  for (const auto& gpu : job["gpus"]) {
    indices += (indices.empty() ? "" : ",") + gpu["index"].dump();
    uuids += (uuids.empty() ? "" : ",") + gpu["uuid"].get<std::string>();
  }
  const std::string expected = indices + " " + uuids + " PCI_BUS_ID\n";
  EXPECT_EQ(daemon.cli({"jobs", "logs", id}).out, expected);
}

TEST_F(Cli, JobGetsTheCallersDirectoryAndEnvironment) {
  const Finished finished = daemon.cli({"run", "--env", "ADDED=yes", "--workdir", "/usr", "--",
                                        "/bin/sh", "-c", "pwd; echo $KEPT $ADDED"},
                                       {"KEPT=here"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "/usr\nhere yes\n");
}

TEST_F(Cli, EnvironmentValuesAreInNoJournalListOrLog) {
  const std::string secret = "s3cret-value-that-no-user-may-see";
  const Finished submitted =
      daemon.cli({"submit", "--gpus", "1", "--", "/bin/sleep", "60"}, {"TOKEN=" + secret});
  const std::string id = first_line(submitted);
  ASSERT_TRUE(reaches(id, "RUNNING"));
  EXPECT_EQ(daemon.cli({"jobs", "describe", id, "--json"}).out.find(secret), std::string::npos);
  EXPECT_EQ(daemon.cli({"jobs", "list", "--json"}).out.find(secret), std::string::npos);
  EXPECT_EQ(daemon.log().find(secret), std::string::npos);
  const Finished readable = run_command({"/usr/bin/find", daemon.data_dir(), "-type", "f", "-perm",
                                         "/077", "-not", "-path", "*/emulated/*"});
  EXPECT_EQ(readable.out, "") << "files that others may read";
  EXPECT_EQ(daemon.cli({"jobs", "kill", id}).exit_code, 0);
}

TEST_F(Cli, CancelGivesTheJobItsGraceAndKillDoesNot) {
  const std::string polite =
      submit({"--gpus", "1", "--", "/bin/sh", "-c",
              "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.2; done"});
  ASSERT_TRUE(eventually([&] { return daemon.cli({"jobs", "logs", polite}).out == "up\n"; }));
  EXPECT_EQ(daemon.cli({"jobs", "cancel", polite}).exit_code, 0);
  ASSERT_TRUE(reaches(polite, "CANCELLED"));
  EXPECT_TRUE(daemon.cli({"jobs", "logs", polite}).out.ends_with("bye\n"));

  const std::string stubborn = submit(
      {"--gpus", "1", "--", "/bin/sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.2; done"});
  ASSERT_TRUE(eventually([&] { return daemon.cli({"jobs", "logs", stubborn}).out == "up\n"; }));
  EXPECT_EQ(daemon.cli({"jobs", "cancel", stubborn}).exit_code, 0);
  ASSERT_TRUE(reaches(stubborn, "STOPPING"));
  EXPECT_EQ(daemon.cli({"jobs", "kill", stubborn}).exit_code, 0);
  ASSERT_TRUE(reaches(stubborn, "CANCELLED"));
  EXPECT_EQ(daemon.job(stubborn)["signal"], "SIGKILL");
}

TEST_F(Cli, CancelOfAnEndedJobSaysSoAndChangesNothing) {
  const std::string id = submit({"--gpus", "1", "--", "/bin/true"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const auto before = daemon.job(id);
  EXPECT_EQ(daemon.cli({"jobs", "cancel", id}).exit_code, 0);
  EXPECT_EQ(daemon.job(id), before);
}

TEST_F(Cli, AJobPastItsTimeLimitIsTimedOut) {
  const Finished finished =
      daemon.cli({"run", "--gpus", "1", "--time", "1s", "--", "/bin/sleep", "60"});
  EXPECT_EQ(finished.exit_code, 250) << finished.err;
  const auto list = daemon.json({"jobs", "list", "--all"});
  EXPECT_EQ(list["jobs"][0]["state"], "TIMED_OUT");
  EXPECT_EQ(list["jobs"][0]["reason"], "TIME_LIMIT");
}

TEST_F(Cli, AMissingProgramFailsWith127AndIsNotRetried) {
  const Finished finished =
      daemon.cli({"run", "--no-check", "--gpus", "1", "--", "/no/such/program"});
  EXPECT_EQ(finished.exit_code, 127);
  EXPECT_EQ(daemon.json({"jobs", "list", "--all"})["jobs"][0]["attempts"].size(), 1u);
}

TEST_F(Cli, AWaitingJobSaysWhyWithCounts) {
  const std::string big =
      submit({"--gpus", "8", "--cpus", "8", "--memory", "1G", "--", "/bin/sleep", "60"});
  ASSERT_TRUE(reaches(big, "RUNNING"));
  const std::string waiting = submit({"--gpus", "8", "--", "/bin/true"});
  const std::string behind = submit({"--gpus", "0", "--cpus", "100", "--", "/bin/true"});
  const auto reason = daemon.job(waiting)["wait_reason"];
  EXPECT_EQ(reason["code"], "NO_CAPACITY") << reason;
  EXPECT_NE(reason["text"].get<std::string>().find("8 GPUs short"), std::string::npos) << reason;
  EXPECT_EQ(daemon.job(behind)["wait_reason"]["code"], "PRIORITY");
  EXPECT_TRUE(daemon.job(big)["wait_reason"].is_null());
  EXPECT_TRUE(daemon.job(waiting)["estimated_start"].is_string());
  const auto queue = daemon.json({"queue", "--eta"});
  ASSERT_EQ(queue["jobs"].size(), 2u);
  EXPECT_EQ(queue["jobs"][0]["estimated_start"], daemon.job(waiting)["estimated_start"]);
  EXPECT_GT(queue["jobs"][1]["estimated_start"], queue["jobs"][0]["estimated_start"]);
  const Finished table = daemon.cli({"queue", "--eta"});
  EXPECT_NE(table.out.find("STARTS WITHIN"), std::string::npos) << table.out;
  EXPECT_EQ(daemon.cli({"jobs", "kill", big}).exit_code, 0);
  EXPECT_TRUE(reaches(waiting, "COMPLETED"));
  EXPECT_TRUE(reaches(behind, "COMPLETED"));
}

TEST_F(Cli, AShortJobRunsInTheGapBeforeAWaitingOne) {
  const std::string big =
      submit({"--gpus", "7", "--cpus", "8", "--memory", "1G", "--", "/bin/sleep", "600"});
  ASSERT_TRUE(reaches(big, "RUNNING"));
  const std::string waiting = submit({"--gpus", "8", "--", "/bin/true"});
  const std::string quick = submit({"--gpus", "1", "--time", "1m", "--", "/bin/true"});
  ASSERT_TRUE(reaches(quick, "COMPLETED"));
  EXPECT_EQ(daemon.job(quick)["attempts"][0]["why"], "BACKFILL");
  EXPECT_EQ(daemon.job(waiting)["state"], "QUEUED");
  EXPECT_EQ(daemon.cli({"jobs", "kill", big}).exit_code, 0);
  EXPECT_TRUE(reaches(waiting, "COMPLETED"));
}

TEST_F(Cli, ARepeatedRequestIdGivesTheFirstJobAlsoAfterARestart) {
  const std::string first = submit({"--gpus", "1", "--request-id", "once", "--", "/bin/true"});
  ASSERT_TRUE(reaches(first, "COMPLETED"));
  daemon.kill_now();
  ASSERT_TRUE(daemon.start());
  EXPECT_EQ(submit({"--gpus", "1", "--request-id", "once", "--", "/bin/true"}), first);
  EXPECT_EQ(daemon.json({"jobs", "list", "--all"})["jobs"].size(), 1u);
}

TEST_F(Cli, WaitTellsSuccessFailureAndTimeout) {
  const std::string good = submit({"--gpus", "1", "--", "/bin/true"});
  const std::string bad = submit({"--gpus", "1", "--", "/bin/false"});
  EXPECT_EQ(daemon.cli({"jobs", "wait", good}).exit_code, 0);
  EXPECT_EQ(daemon.cli({"jobs", "wait", good, bad}).exit_code, 1);
  const std::string long_one = submit({"--gpus", "1", "--", "/bin/sleep", "60"});
  EXPECT_EQ(daemon.cli({"jobs", "wait", long_one, "--timeout", "1s"}).exit_code, 124);
  EXPECT_EQ(daemon.cli({"jobs", "kill", long_one}).exit_code, 0);
  EXPECT_EQ(daemon.cli({"jobs", "wait", "999999"}).exit_code, 3);
}

TEST_F(Cli, OutputFileOptionIsHonoured) {
  const std::string path = daemon.directory() + "/mine.log";
  EXPECT_EQ(daemon.cli({"run", "--output", path, "--", "/bin/echo", "hello"}).exit_code, 0);
  EXPECT_EQ(read_file(path), "hello\n");
}

TEST_F(Cli, StatusCountsGpusAndMarksThemEmulated) {
  const auto status = daemon.json({"status"});
  EXPECT_EQ(status["total_gpus"], 8);
  EXPECT_EQ(status["available_gpus"], 8);
  EXPECT_EQ(status["gpus"].size(), 8u);
  EXPECT_EQ(status["gpus"][0]["emulated"], true);
  EXPECT_EQ(status["gpus"][0]["type"], "H100-80GB");
  EXPECT_NE(daemon.cli({"status"}).out.find("emulated"), std::string::npos);
}

TEST_F(Cli, ASecondDaemonOnTheSameDataDirectoryIsRefusedWith4) {
  const Finished second =
      run_command({program("gpu-platform"), "serve", "--data-dir", daemon.data_dir(), "--socket",
                   daemon.directory() + "/other", "--emulate", "dgx-h100"});
  EXPECT_EQ(second.exit_code, 4) << second.err;
  EXPECT_EQ(daemon.cli({"status"}).exit_code, 0);
}

// A variable of a script that was never set must not start a daemon on this machine's own GPUs.
TEST(Serve, RefusesAnEmptyBoard) {
  const Finished finished = run_command(
      {program("gpu-platform"), "serve", "--data-dir", "/nonexistent", "--emulate", ""});
  EXPECT_EQ(finished.exit_code, 2);
  EXPECT_NE(finished.err.find("--emulate: the value is empty"), std::string::npos) << finished.err;
}

TEST(ManyNodes, SixteenBoardsAre128GpusAndAllCanWork) {
  Daemon daemon({.emulate = "16xdgx-h100"});
  ASSERT_TRUE(daemon.start()) << daemon.log();
  ASSERT_TRUE(eventually([&] { return daemon.json({"status"})["total_gpus"] == 128; }));
  std::vector<std::string> ids;
  for (int i = 0; i < 16; ++i) {
    ids.push_back(first_line(daemon.cli({"submit", "--gpus", "8", "--", "/bin/sleep", "60"})));
  }
  EXPECT_TRUE(eventually([&] { return daemon.json({"status"})["running_jobs"] == 16; }));
  EXPECT_EQ(daemon.json({"status"})["available_gpus"], 0);
  EXPECT_EQ(daemon.json({"status"})["utilization"], 1.0);
  for (const std::string& id : ids) EXPECT_EQ(daemon.cli({"jobs", "kill", id}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return daemon.json({"status"})["available_gpus"] == 128; }));
}

}  // namespace
}  // namespace gpu_platform::e2e
