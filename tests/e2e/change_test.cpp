#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "harness.h"

// Changing jobs that are there, and what their time limits and output files do, through the real
// program.

namespace gpu_platform::e2e {
namespace {

class Change : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  std::string submit(std::vector<std::string> arguments) {
    return daemon.submit(std::move(arguments));
  }
  // A job that takes the whole board, so that others wait.
  std::string submit_blocker() { return submit({"--gpus", "8", "--", "/bin/sleep", "1000"}); }
  // A shell that notes the signals it and its child get, and runs until it is stopped.
  std::vector<std::string> noting_shell() const {
    const std::string note = "echo $who >> " + notes();
    const std::string ready = "echo ready >> " + notes() + "; ";
    return {"--", "/bin/sh", "-c",
            "who=child; (trap '" + note + "' USR1; " + ready +
                "while :; do sleep 0.2 & wait $!; done) &\n" + "who=shell; trap '" + note +
                "' USR1; " + ready + "while :; do sleep 0.2 & wait $!; done"};
  }
  std::string notes() const { return daemon.directory() + "/notes"; }
  std::size_t count_notes(const std::string& who) const {
    std::size_t count = 0;
    for (const std::string& line : lines_of(read_file(notes()))) count += line == who ? 1 : 0;
    return count;
  }
  bool reaches(const std::string& id, const std::string& state) {
    return eventually([&] { return daemon.job(id)["state"] == state; }, std::chrono::seconds(60));
  }
  int cli(const std::vector<std::string>& words) { return daemon.cli(words).exit_code; }

  Daemon daemon{{.config = "execution:\n  output_limit: 64K\n  output_rotate_bytes: 64K\n"
                           "fault_tolerance:\n  retry_backoff: 0s\n"}};
};

TEST_F(Change, AHeldJobWaitsUntilItIsReleased) {
  const std::string id = submit({"--gpus", "1", "--hold", "--", "/bin/true"});
  EXPECT_EQ(daemon.job(id)["state"], "HELD");
  EXPECT_EQ(daemon.job(id)["wait_reason"]["code"], "HELD_BY_USER");
  EXPECT_EQ(daemon.json({"jobs", "hold", id})["changed"], false);
  ASSERT_EQ(daemon.terminate(), 0);
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(daemon.job(id)["state"], "HELD");
  EXPECT_EQ(daemon.json({"jobs", "release", id})["changed"], true);
  EXPECT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(cli({"jobs", "hold", id}), 4);
  EXPECT_EQ(cli({"jobs", "requeue", id}), 4);
  EXPECT_EQ(cli({"jobs", "update", id, "--name", "late"}), 4);
  EXPECT_EQ(cli({"jobs", "cancel", id}), 0);
}

TEST_F(Change, ARequeuedJobRunsAgainAndCountsNoFailure) {
  const std::string id = submit({"--gpus", "1", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(reaches(id, "RUNNING"));
  EXPECT_EQ(cli({"jobs", "hold", id}), 4);
  EXPECT_EQ(cli({"jobs", "requeue", id}), 0);
  ASSERT_TRUE(eventually([&] {
    const auto job = daemon.job(id);
    return job["state"] == "RUNNING" && job["attempt"] == 2;
  }));
  const auto job = daemon.job(id);
  EXPECT_EQ(job["failures"], 0);
  EXPECT_EQ(job["losses"], 0);
  EXPECT_EQ(job["attempts"][0]["reason"], "REQUEUED_BY");
  EXPECT_EQ(cli({"jobs", "requeue", "--hold", id}), 0);
  EXPECT_TRUE(reaches(id, "HELD"));
  EXPECT_EQ(cli({"jobs", "cancel", id}), 0);
  EXPECT_EQ(daemon.job(id)["state"], "CANCELLED");
}

// Each puts itself back and exits with 0 at once: its end and the requeue cross each other.
TEST_F(Change, JobsThatPutThemselvesBackAndExitRunAgain) {
  const std::string script =
      "echo $GPU_PLATFORM_ATTEMPT >> \"$1.$GPU_PLATFORM_JOB_ID\"; "
      "if [ \"$GPU_PLATFORM_ATTEMPT\" = 1 ]; then "
      "trap : TERM; \"$0\" jobs requeue $GPU_PLATFORM_JOB_ID && exit 0; exit 9; fi";
  const std::string notes = daemon.directory() + "/attempts";
  const std::string server = "GPU_PLATFORM_SERVER=unix:" + daemon.socket();
  const auto start = [&](std::vector<std::string> words) {
    for (const char* word : {"--cpus", "1", "--env"}) words.emplace_back(word);
    words.insert(words.end(),
                 {server, "--", "/bin/sh", "-c", script, program("gpu-platform"), notes});
    return submit(std::move(words));
  };
  std::vector<std::string> ids;
  for (int i = 0; i < 8; ++i) ids.push_back(start({}));
  for (const std::string& id : ids) {
    ASSERT_TRUE(reaches(id, "COMPLETED")) << daemon.job(id).dump(2);
    EXPECT_EQ(read_file(notes + "." + id), "1\n2\n") << daemon.job(id).dump(2);
  }
  const std::string done = start({"--complete-on-exit-zero"});
  ASSERT_TRUE(reaches(done, "COMPLETED")) << daemon.job(done).dump(2);
  EXPECT_EQ(read_file(notes + "." + done), "1\n");
  EXPECT_EQ(daemon.job(done)["spec"]["complete_on_exit_zero"], true);
  EXPECT_EQ(daemon.job(ids[0])["spec"]["complete_on_exit_zero"], false);
  EXPECT_NE(daemon.cli({"jobs", "describe", done}).out.find("exit code 0 always completes it"),
            std::string::npos);
}

TEST_F(Change, ACommentIsShownChangedAndKept) {
  const std::string blocker = submit_blocker();
  const std::string id = submit({"--gpus", "1", "--comment", "first try", "--", "/bin/true"});
  const auto page = [&] { return daemon.cli({"jobs", "describe", id}).out; };
  EXPECT_NE(page().find("Comment:        first try\n"), std::string::npos) << page();
  EXPECT_NE(daemon.cli({"jobs", "list", "-o", "wide"}).out.find("first try"), std::string::npos);
  EXPECT_EQ(daemon.cli({"jobs", "list"}).out.find("first try"), std::string::npos);
  EXPECT_EQ(cli({"jobs", "update", id, "--comment", "none"}), 0);
  EXPECT_TRUE(daemon.job(id)["spec"]["comment"].is_null());
  EXPECT_EQ(cli({"jobs", "update", id, "--comment", "second try"}), 0);
  EXPECT_EQ(cli({"jobs", "cancel", blocker}), 0);
  EXPECT_EQ(cli({"jobs", "wait", id}), 0);
  EXPECT_EQ(daemon.job(id)["spec"]["comment"], "second try") << "in the archive too";
}

TEST_F(Change, AWaitingJobTakesOtherSettings) {
  const std::string blocker = submit_blocker();
  const std::string id = submit({"--gpus", "1", "--label", "old=1", "--", "/bin/true"});
  const auto changed =
      daemon.json({"jobs", "update", id, "--priority", "high", "--time", "90s", "--name", "final",
                   "--label", "run=8", "--remove-label", "old"});
  EXPECT_EQ(changed["changed"], true);
  const auto job = daemon.job(id);
  EXPECT_EQ(job["spec"]["priority"], "HIGH");
  EXPECT_EQ(job["spec"]["time_limit_seconds"], 90);
  EXPECT_EQ(job["spec"]["name"], "final");
  EXPECT_EQ(job["spec"]["labels"], nlohmann::json({{"run", "8"}}));
  EXPECT_EQ(daemon.json({"jobs", "update", id, "--name", "final"})["changed"], false);
  EXPECT_EQ(cli({"jobs", "cancel", blocker, id}), 0);
}

TEST_F(Change, ManyAtOnceByFilter) {
  const std::string blocker = submit_blocker();
  ASSERT_TRUE(reaches(blocker, "RUNNING"));
  std::vector<std::string> ids;
  for (const char* name : {"sweep-1", "sweep-2", "other"}) {
    ids.push_back(submit({"--gpus", "1", "--name", name, "--label", "run=7", "--", "/bin/true"}));
  }
  const Finished unasked = daemon.cli({"jobs", "hold", "--name", "sweep-*"});
  EXPECT_EQ(unasked.exit_code, 2);
  EXPECT_NE(unasked.err.find("--yes"), std::string::npos) << unasked.err;
  EXPECT_EQ(daemon.job(ids[0])["state"], "QUEUED");
  const auto held = daemon.json({"jobs", "hold", "--name", "sweep-*", "--yes"});
  EXPECT_EQ(held["changed"], 2);
  EXPECT_EQ(daemon.job(ids[2])["state"], "QUEUED");
  // A job that cannot be held is named, and the others are held.
  const Finished some = daemon.cli({"jobs", "hold", "--all", "--yes"});
  EXPECT_EQ(some.exit_code, 4);
  EXPECT_NE(some.err.find("job " + blocker + " is RUNNING"), std::string::npos) << some.err;
  EXPECT_EQ(daemon.job(ids[2])["state"], "HELD");
  const Finished cancelled =
      daemon.cli({"jobs", "cancel", "--label", "run=7", "--state", "held", "--yes"});
  EXPECT_EQ(cancelled.exit_code, 0) << cancelled.err;
  EXPECT_NE(cancelled.err.find("3 jobs cancelled"), std::string::npos) << cancelled.err;
  for (const std::string& id : ids) EXPECT_EQ(daemon.job(id)["state"], "CANCELLED");
  EXPECT_EQ(daemon.job(blocker)["state"], "RUNNING");
  const Finished none = daemon.cli({"jobs", "cancel", "--label", "run=7", "--yes"});
  EXPECT_EQ(none.exit_code, 0);
  EXPECT_NE(none.err.find("no such jobs"), std::string::npos) << none.err;
}

TEST_F(Change, AShorterLimitReachesTheRunningJobAlsoOverACrash) {
  const std::string id =
      submit({"--gpus", "1", "--time", "1h", "--", "/bin/sh", "-c", "sleep 1000"});
  ASSERT_TRUE(reaches(id, "RUNNING"));
  EXPECT_EQ(cli({"jobs", "update", id, "--time", "2s"}), 0);
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  ASSERT_TRUE(reaches(id, "TIMED_OUT"));
  EXPECT_EQ(daemon.job(id)["spec"]["time_limit_seconds"], 2);
}

TEST_F(Change, TheSignalBeforeTheLimitReachesAllProcessesWithoutTheDaemon) {
  std::vector<std::string> words = {"--time", "1h", "--signal", "USR1@3590"};
  for (const std::string& word : noting_shell()) words.push_back(word);
  const std::string id = submit(words);
  ASSERT_TRUE(reaches(id, "RUNNING"));
  daemon.kill_now();
  EXPECT_TRUE(eventually([&] { return count_notes("shell") == 1 && count_notes("child") == 1; },
                         std::chrono::seconds(60)));
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(daemon.job(id)["spec"]["limit_signal"], "USR1@3590");
  // Once more before the end of a job that got more time, for it the signal is due at once.
  EXPECT_EQ(cli({"jobs", "update", id, "--time", "3601s"}), 0);
  EXPECT_TRUE(eventually([&] { return count_notes("shell") == 2 && count_notes("child") == 2; },
                         std::chrono::seconds(60)));
  EXPECT_EQ(daemon.job(id)["state"], "RUNNING");
}

// The child has no trap: a signal to all would end it.
TEST_F(Change, ASignalReachesAllProcessesOfARunningJobAndEndsNone) {
  std::vector<std::string> words{"--gpus", "1"};
  for (const std::string& word : noting_shell()) words.push_back(word);
  const std::string id = submit(words);
  // A shell that has not set its trap yet would be ended by the signal, and the daemon takes one
  // only once it has heard that the job runs, which may be later than the job's first words.
  ASSERT_TRUE(eventually([&] { return count_notes("ready") == 2; }));
  ASSERT_TRUE(reaches(id, "RUNNING"));
  std::size_t times = 0;
  for (const char* name : {"USR1", "sigusr1", "10"}) {
    ++times;
    ASSERT_EQ(cli({"jobs", "signal", id, "--signal", name}), 0) << name;
    ASSERT_TRUE(eventually([&] {
      return count_notes("shell") == times && count_notes("child") == times;
    })) << name
        << ": " << read_file(notes());
  }
  // One that is stopped is still there, and goes on. A daemon that is killed may lose a signal that
  // it has accepted: what follows SIGCONT shows that it was sent.
  for (const char* name : {"STOP", "CONT", "USR1"}) {
    ASSERT_EQ(cli({"jobs", "signal", id, "-s", name}), 0) << name;
  }
  ++times;
  ASSERT_TRUE(eventually([&] {
    return count_notes("shell") == times && count_notes("child") == times;
  })) << read_file(notes());
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(daemon.job(id)["state"], "RUNNING");
  EXPECT_EQ(daemon.job(id)["attempt"], 1);
  EXPECT_EQ(count_notes("shell"), times);
  ASSERT_EQ(cli({"jobs", "signal", id, "-s", "USR1"}), 0);
  EXPECT_TRUE(eventually([&] { return count_notes("shell") == times + 1; }));

  const std::string waits = submit({"--gpus", "8", "--", "/bin/true"});
  EXPECT_EQ(cli({"jobs", "signal", waits, "-s", "USR1"}), 4);
  EXPECT_EQ(cli({"jobs", "signal", id, "-s", "KILL"}), 2);
  EXPECT_EQ(cli({"jobs", "signal", id}), 2);
  // What the job does with it is its own matter: here it ends by it.
  EXPECT_EQ(cli({"jobs", "signal", id, "-s", "TERM"}), 0);
  ASSERT_TRUE(reaches(id, "FAILED"));
  EXPECT_EQ(daemon.job(id)["signal"], "SIGTERM");
  EXPECT_EQ(cli({"jobs", "signal", id, "-s", "USR1"}), 4);
}

TEST_F(Change, ARaisedJobGoesFirstAmongItsUsersAlsoAfterARestart) {
  const std::string blocker = submit_blocker();
  ASSERT_TRUE(reaches(blocker, "RUNNING"));
  const auto wait = [&] { return submit({"--gpus", "8", "--", "/bin/sleep", "1000"}); };
  const std::string a = wait();
  const std::string b = wait();
  const std::string c = wait();
  const auto queue = [&] {
    std::vector<std::string> ids;
    const auto answer = daemon.json({"queue"});
    for (const auto& job : answer["jobs"]) ids.push_back(job["id"]);
    return ids;
  };
  ASSERT_EQ(queue(), (std::vector{a, b, c}));
  EXPECT_EQ(cli({"jobs", "top", c, b}), 0);
  EXPECT_EQ(queue(), (std::vector{c, b, a}));
  EXPECT_EQ(daemon.job(c)["turn_of"], a);
  EXPECT_NE(daemon.cli({"jobs", "describe", c}).out.find("that of job " + a), std::string::npos);
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(queue(), (std::vector{c, b, a}));
  EXPECT_EQ(cli({"jobs", "top", blocker}), 4);
  EXPECT_EQ(cli({"jobs", "cancel", blocker}), 0);
  EXPECT_TRUE(reaches(c, "RUNNING"));
  EXPECT_EQ(daemon.json({"audit", "list", "--action", "top", "--outcome", "ok"})["entries"].size(),
            2U);
}

TEST_F(Change, TheSignalForTheFirstProcessReachesNoOther) {
  const std::string warned = daemon.directory() + "/warned";
  const std::string child = daemon.directory() + "/child";
  const std::string id = submit(
      {"--time", "1h", "--signal", "B:USR1@3590", "--", "/bin/sh", "-c",
       "trap 'echo > \"$0\"' USR1; trap : TERM; (trap : TERM; sleep 1000; echo $? > \"$1\") & "
       "while kill -0 $!; do wait $!; done",
       warned, child});
  ASSERT_TRUE(reaches(id, "RUNNING"));
  EXPECT_EQ(daemon.job(id)["spec"]["limit_signal"], "B:USR1@3590");
  ASSERT_TRUE(
      eventually([&] { return std::filesystem::exists(warned); }, std::chrono::seconds(60)));
  EXPECT_EQ(cli({"jobs", "cancel", id}), 0);
  ASSERT_TRUE(reaches(id, "CANCELLED"));
  EXPECT_EQ(read_file(child), "143\n");
}

TEST_F(Change, OutputFilesAreNamedByPatternAndStderrMayBeApart) {
  const std::string logs = daemon.directory() + "/100%";
  std::filesystem::create_directory(logs);
  const std::vector<std::string> words = {"--workdir", logs,           "--name",  "a/b",
                                          "--output",  "%x-%j.%N.log", "--error", "%u%%.err"};
  const auto run = [&](const std::string& mode) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--open-mode", mode, "--", "/bin/sh", "-c", "echo out; echo err >&2"});
    const std::string id = submit(all);
    EXPECT_TRUE(reaches(id, "COMPLETED"));
    return id;
  };
  const std::string id = run("append");
  const auto job = daemon.job(id);
  EXPECT_EQ(job["output"], logs + "/a_b-" + id + ".dgx-h100-1.log");
  EXPECT_EQ(read_file(job["output"]), "out\n");
  const Finished shown = daemon.cli({"jobs", "logs", id});
  EXPECT_EQ(shown.out, "out\n");
  EXPECT_NE(shown.err.find("its standard error is in " + logs), std::string::npos) << shown.err;
  const std::string errors = job["error"];
  EXPECT_EQ(errors, logs + "/" + job["spec"]["user"].get<std::string>() + "%.err");
  EXPECT_EQ(read_file(errors), "err\n");
  run("append");
  EXPECT_EQ(read_file(errors), "err\nerr\n");
  run("truncate");
  EXPECT_EQ(read_file(errors), "err\n");
}

TEST_F(Change, AJobThatPrintsWithoutEndRunsOnAndItsLogSaysWhatIsMissing) {
  const std::string id = submit({"--", "/bin/sh", "-c", "head -c 1000000 /dev/zero; exit 7"});
  ASSERT_TRUE(reaches(id, "FAILED"));
  EXPECT_EQ(daemon.job(id)["exit_code"], 7);
  const std::string log = daemon.cli({"jobs", "logs", id}).out;
  EXPECT_LT(log.size(), 2u * 64 * 1024);
  EXPECT_NE(log.find("more than 65536 bytes of output; the rest is not kept"), std::string::npos);
  EXPECT_NE(daemon.job(id)["detail"].dump().find("execution.output_limit"), std::string::npos);
  const std::filesystem::path output = daemon.job(id)["output"].get<std::string>();
  const std::uintmax_t kept = bytes_below(output.parent_path());
  EXPECT_GT(kept, 0u);
  EXPECT_LT(kept, 2u * 64 * 1024);
}

TEST_F(Change, AFailingProgramIsTriedAgainAsOftenAsAskedFor) {
  const std::string flag = daemon.directory() + "/flag";
  const std::string id =
      submit({"--retries", "3", "--", "/bin/sh", "-c",
              "if [ -e " + flag + " ]; then exit 0; fi; touch " + flag + "; exit 3"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const auto job = daemon.job(id);
  EXPECT_EQ(job["attempts"].size(), 2u);
  EXPECT_EQ(job["attempts"][0]["exit_code"], 3);
  EXPECT_EQ(job["failures"], 1);
  const std::string hopeless = submit({"--retries", "2", "--", "/bin/false"});
  ASSERT_TRUE(reaches(hopeless, "FAILED"));
  EXPECT_EQ(daemon.job(hopeless)["attempts"].size(), 3u);
}

}  // namespace
}  // namespace gpu_platform::e2e
