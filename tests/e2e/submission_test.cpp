#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "harness.h"

// Ways to submit a job: scripts with options of their own, documents, and a job again.

namespace gpu_platform::e2e {
namespace {

class Submissions : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = daemon.directory() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string id_of(const Finished& finished) const {
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.out.substr(0, finished.out.find('\n'));
  }
  std::string output_of(const std::string& id) const {
    EXPECT_EQ(daemon.cli({"jobs", "wait", id}).exit_code, 0);
    return daemon.cli({"jobs", "logs", id}).out;
  }

  Daemon daemon;
};

constexpr const char* kScript =
    "#!/bin/bash -e\n"
    "#GPU --gpus 2 --time 10m\n"
    "#SBATCH --job-name=night --cpus-per-task=3\n"
    "trap 'echo bye' EXIT\n"
    "cat <<END\n"
    "$0 $# $1 $GPU_PLATFORM_JOB_NAME\n"
    "END\n";

TEST_F(Submissions, AScriptIsCopiedWithItsOptions) {
  const std::string script = write("job.sh", kScript);
  const std::string id = id_of(daemon.cli({"submit", "--hold", script, "a b", "c"}));
  write("job.sh", "#!/bin/sh\nexit 7\n");
  EXPECT_EQ(daemon.cli({"jobs", "release", id}).exit_code, 0);
  EXPECT_EQ(output_of(id), script + " 2 a b night\nbye\n");
  const auto spec = daemon.job(id)["spec"];
  EXPECT_EQ(spec["gpus"], 2);
  EXPECT_EQ(spec["cpus"], 3);
  EXPECT_EQ(spec["time_limit_seconds"], 600);
  const std::string page = daemon.cli({"jobs", "describe", id}).out;
  EXPECT_NE(page.find(script + " 'a b' c\n"), std::string::npos) << page;
}

TEST_F(Submissions, AScriptComesFromStandardInput) {
  const Finished ran =
      daemon.cli({"run", "--gpus", "0", "-", "x"}, {}, "#!/bin/sh\necho \"<$1>\"\n");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "<x>\n");
}

TEST_F(Submissions, WhatDescribePrintsIsSubmittedAgain) {
  const std::string script = write("job.sh", kScript);
  const std::string id = id_of(daemon.cli({"submit", "--label", "on=yes", "--priority", "low",
                                           "--env", "SECRET=hunter2", script, "7"}));
  EXPECT_EQ(output_of(id), script + " 1 7 night\nbye\n");
  const std::string described = daemon.cli({"jobs", "describe", id, "-o", "yaml"}).out;
  const std::string file = write("job.yaml", described + "---\n" + described);
  const Finished dry = daemon.cli({"submit", "-f", file, "--dry-run"});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_EQ(daemon.json({"jobs", "list", "--all"})["jobs"].size(), 1U);
  const Finished again = daemon.cli({"submit", "-f", file, "--gpus", "1"});
  ASSERT_EQ(again.exit_code, 0) << again.err;
  const auto ids = lines_of(again.out);
  ASSERT_EQ(ids.size(), 2U) << again.out;
  EXPECT_EQ(output_of(ids[1]), script + " 1 7 night\nbye\n");
  auto before = daemon.job(id)["spec"];
  auto after = daemon.job(ids[1])["spec"];
  EXPECT_EQ(after["gpus"], 1);
  for (const char* const field : {"gpus", "request_id"}) {
    before.erase(field);
    after.erase(field);
  }
  EXPECT_EQ(after, before);
  // What a dry run prints can be submitted, too.
  const Finished printed = daemon.cli({"submit", "-f", file, "--dry-run", "-o", "yaml"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.out.find("hunter2"), std::string::npos);
  EXPECT_EQ(daemon.cli({"submit", "--dry-run", "-f", "-"}, {}, printed.out).exit_code, 0);
}

TEST_F(Submissions, AJobRunsAgainWithChanges) {
  const std::string id =
      id_of(daemon.cli({"submit", "--gpus", "1", "--array", "3-4", "--", "/bin/sh", "-c",
                        "echo $GPU_PLATFORM_ARRAY_INDEX $FROM"}));
  EXPECT_EQ(daemon.cli({"jobs", "wait", id}).exit_code, 0);
  const std::string again =
      id_of(daemon.cli({"jobs", "rerun", id + "_4", "--env", "FROM=here", "--gpus", "2"}));
  EXPECT_EQ(output_of(again), "4 here\n");
  EXPECT_EQ(daemon.job(again)["spec"]["gpus"], 2);
  EXPECT_EQ(daemon.job(again)["array_size"], 1);
  const std::string all = id_of(daemon.cli({"jobs", "rerun", id}));
  EXPECT_EQ(daemon.job(all)["array_size"], 2);
  EXPECT_EQ(daemon.cli({"jobs", "rerun", "999"}).exit_code, 3);
}

TEST_F(Submissions, AMissingProgramIsNoticedBeforeTheJobWaits) {
  const Finished refused = daemon.cli({"submit", "--gpus", "1", "--", "/no/such/program"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("there is no program '/no/such/program'"), std::string::npos)
      << refused.err;
  EXPECT_EQ(daemon.json({"jobs", "list", "--all"})["jobs"].size(), 0U);
  id_of(daemon.cli({"submit", "--gpus", "1", "--no-check", "--", "/no/such/program"}));
}

}  // namespace
}  // namespace gpu_platform::e2e
