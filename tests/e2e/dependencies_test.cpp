#include <gtest/gtest.h>

#include <set>

#include "harness.h"

// Job arrays, dependencies, begin times and deadlines through the real program.

namespace gpu_platform::e2e {
namespace {

class Dependencies : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  std::string submit(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--gpus", "0"});
    return daemon.submit(std::move(arguments));
  }
  bool reaches(const std::string& id, const std::string& state) {
    return eventually([&] { return daemon.job(id)["state"] == state; }, std::chrono::seconds(60));
  }

  Daemon daemon;
};

TEST_F(Dependencies, MembersOfAnArrayKnowTheirIndexAndHaveFilesOfTheirOwn) {
  const std::string name = daemon.directory() + "/%A_%a.out";
  const std::string id =
      submit({"--array", "1-5:2%2", "--output", name, "--", "/bin/sh", "-c",
              "echo $GPU_PLATFORM_ARRAY_ID $GPU_PLATFORM_ARRAY_INDEX $GPU_PLATFORM_ARRAY_COUNT "
              "$GPU_PLATFORM_ARRAY_MIN $GPU_PLATFORM_ARRAY_MAX $GPU_PLATFORM_ARRAY_STEP"});
  EXPECT_EQ(daemon.cli({"jobs", "wait", id}).exit_code, 0);
  std::set<std::string> ids;
  for (const int index : {1, 3, 5}) {
    const std::string name_of_member = id + "_" + std::to_string(index);
    const auto member = daemon.job(name_of_member);
    EXPECT_EQ(member["array_id"], id);
    EXPECT_EQ(member["array_index"], index);
    EXPECT_EQ(member["state"], "COMPLETED");
    EXPECT_EQ(member["spec"]["array"], "1-5:2%2");
    ids.insert(member["id"].get<std::string>());
    EXPECT_EQ(read_file(daemon.directory() + "/" + name_of_member + ".out"),
              id + " " + std::to_string(index) + " 3 1 5 2\n");
  }
  EXPECT_EQ(ids.size(), 3U);
  EXPECT_EQ(daemon.cli({"jobs", "describe", id + "_2"}).exit_code, 3);
  EXPECT_EQ(daemon.cli({"jobs", "logs", id}).exit_code, 0);
  EXPECT_EQ(daemon.cli({"jobs", "logs", id + "_3"}).exit_code, 0);
}

TEST_F(Dependencies, AnArrayIsCancelledAsOneAndOutlivesTheDaemon) {
  const std::string id = submit({"--array", "0-9%2", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(reaches(id + "_1", "RUNNING"));
  EXPECT_EQ(daemon.job(id + "_2")["wait_reason"]["code"], "ARRAY_LIMIT");
  const Finished explained = daemon.cli({"explain", id + "_2", "--json"});
  EXPECT_EQ(explained.exit_code, 0) << explained.err;
  EXPECT_EQ(nlohmann::json::parse(explained.out)["job"]["array_index"], 2);
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(daemon.cli({"jobs", "cancel", id + "_0"}).exit_code, 0);
  EXPECT_TRUE(reaches(id + "_2", "RUNNING"));
  EXPECT_EQ(daemon.cli({"jobs", "cancel", id}).exit_code, 0);
  EXPECT_EQ(daemon.cli({"jobs", "wait", id}).exit_code, 1);
  EXPECT_EQ(daemon.job(id + "_9")["state"], "CANCELLED");
  EXPECT_EQ(daemon.job(id + "_9")["attempt"], 0);
}

TEST_F(Dependencies, WhatFollowsStartsOrIsCancelledByTheEndOfWhatWentBefore) {
  const std::string gate = daemon.directory() + "/gate";
  const std::string first =
      submit({"--", "/bin/sh", "-c", "until [ -e " + gate + " ]; do sleep 0.2; done; exit 3"});
  const std::string ok = submit({"--dependency", "afterok:" + first, "--", "/bin/true"});
  const std::string any = submit({"--dependency", "afterany:" + first, "--", "/bin/true"});
  const std::string last = submit({"--dependency", "afterok:" + ok, "--", "/bin/true"});
  ASSERT_TRUE(reaches(first, "RUNNING"));
  EXPECT_EQ(daemon.job(ok)["wait_reason"]["text"],
            "waits for job " + first + " to end COMPLETED; it is RUNNING");
  EXPECT_EQ(daemon.job(ok)["spec"]["dependency"], "afterok:" + first);
  const Finished circle = daemon.cli({"jobs", "update", ok, "--dependency", "afterok:" + last});
  EXPECT_EQ(circle.exit_code, 4);
  EXPECT_NE(circle.err.find(ok + " → " + last + " → " + ok), std::string::npos) << circle.err;
  ASSERT_EQ(std::system(("touch " + gate).c_str()), 0);
  EXPECT_TRUE(reaches(any, "COMPLETED"));
  EXPECT_TRUE(reaches(last, "CANCELLED"));
  EXPECT_EQ(daemon.job(ok)["reason"], "DEPENDENCY_FAILED");
  // Those that have ended long ago are asked of the archive.
  EXPECT_TRUE(
      reaches(submit({"--dependency", "afternotok:" + first, "--", "/bin/true"}), "COMPLETED"));
  EXPECT_TRUE(
      reaches(submit({"--dependency", "afterok:" + first, "--", "/bin/true"}), "CANCELLED"));
  EXPECT_EQ(
      daemon.cli({"submit", "--gpus", "0", "--dependency", "afterok:999999", "--", "/bin/true"})
          .exit_code,
      3);
}

TEST_F(Dependencies, BeginAndDeadlineAreKeptAndChanged) {
  const std::string id =
      submit({"--begin", "now+10h", "--deadline", "now+20h", "--time", "1h", "--", "/bin/true"});
  EXPECT_EQ(daemon.job(id)["state"], "PENDING");
  EXPECT_EQ(daemon.job(id)["wait_reason"]["code"], "BEGIN_TIME");
  EXPECT_EQ(daemon.cli({"jobs", "update", id, "--deadline", "now+30m"}).exit_code, 4);
  EXPECT_EQ(daemon.cli({"jobs", "update", id, "--begin", "now"}).exit_code, 0);
  EXPECT_TRUE(reaches(id, "COMPLETED"));
  const Finished late = daemon.cli(
      {"submit", "--gpus", "0", "--deadline", "now+1h", "--time", "2h", "--", "/bin/true"});
  EXPECT_EQ(late.exit_code, 4);
  EXPECT_NE(late.err.find("2:00:00"), std::string::npos) << late.err;
}

TEST_F(Dependencies, AJobWaitsAsLongAsItIsWillingTo) {
  const std::string blocker = daemon.submit({"--gpus", "8", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(blocker, "RUNNING"));
  const std::string id = daemon.submit({"--gpus", "8", "--wait-timeout", "1s", "--", "true"});
  ASSERT_TRUE(daemon.reaches(id, "CANCELLED"));
  const nlohmann::json job = daemon.job(id);
  EXPECT_EQ(job["reason"], "WAIT_TIMEOUT");
  EXPECT_EQ(job["spec"]["wait_timeout_seconds"], 1);
  EXPECT_EQ(job["detail"], "it had not started within the 1s that it was willing to wait");
}

// check says of a job what would become of it, not only of its GPUs.
TEST_F(Dependencies, CheckKnowsWhatElseKeepsAJobBack) {
  const std::string first = submit({"--", "/bin/sleep", "1000"});
  ASSERT_TRUE(reaches(first, "RUNNING"));
  const auto check = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"check", "--gpus", "1"});
    arguments.insert(arguments.end(), {"--", "/bin/true"});
    return daemon.cli(arguments);
  };
  const Finished later = check({"--begin", "now+2h"});
  EXPECT_EQ(later.exit_code, 4) << later.out;
  EXPECT_NE(later.out.find("starts no earlier than"), std::string::npos) << later.out;
  EXPECT_NE(later.out.find("(in 1h59m)"), std::string::npos) << later.out;

  const Finished after = check({"--dependency", "afterok:" + first});
  EXPECT_EQ(after.exit_code, 4) << after.out;
  EXPECT_NE(after.out.find("waits for job " + first), std::string::npos) << after.out;
  EXPECT_EQ(after.out.find("Starts by"), std::string::npos) << after.out;
  EXPECT_EQ(check({"--dependency", "afterok:77"}).exit_code, 3);

  EXPECT_NE(check({"--hold"}).out.find("until it is released"), std::string::npos);
  const Finished array = check({"--array", "0-99%2"});
  EXPECT_EQ(array.exit_code, 0) << array.out;
  EXPECT_NE(array.out.find("100 jobs, of which this is the first"), std::string::npos);

  EXPECT_EQ(daemon.cli({"jobs", "kill", first}).exit_code, 0);
  ASSERT_TRUE(reaches(first, "CANCELLED"));
  const Finished never = check({"--dependency", "afterok:" + first});
  EXPECT_EQ(never.exit_code, 4) << never.out;
  EXPECT_NE(never.out.find("would never run"), std::string::npos) << never.out;
}

}  // namespace
}  // namespace gpu_platform::e2e
