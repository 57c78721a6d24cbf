#include <signal.h>

#include "shims_fixture.h"
#include "terminal.h"

// Allocations, and steps that are started from outside of their job.

namespace gpu_platform::e2e {
namespace {

class Salloc : public SlurmCommands {
 protected:
  std::vector<std::string> on_path(std::vector<std::string> words) const {
    words.insert(words.begin(),
                 {"/usr/bin/env", "-u", "SLURM_JOB_ID", "--chdir=" + files.path(), "SHELL=/bin/sh",
                  "PS1=ready$ ", "PATH=" + program("slurm-shims") + ":/usr/bin:/bin",
                  "GPU_PLATFORM_SERVER=unix:" + daemon.socket()});
    return words;
  }
};

TEST_F(Salloc, ACommandHasTheAllocationAndItsStepsRunInIt) {
  const Finished finished = call(
      {"salloc", "-N1", "--gpus=2", "sh", "-c",
       "export LATE=set; echo $SLURM_JOB_ID $SLURM_JOB_NODELIST $SLURM_GPUS ${SLURM_PROCID-none};"
       "srun -n2 -l --gpus-per-task=1 sh -c 'echo $SLURM_JOB_ID $LATE $SLURM_STEP_GPUS $PWD' | "
       "sort; echo hello | srun cat; srun -n1 sh -c 'exit 7'"});
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  EXPECT_EQ(finished.out, "1 dgx-h100-1 2 none\n0: 1 set 0,1 " + files.path() + "\n1: 1 set 0,1 " +
                              files.path() + "\nhello\n");
  EXPECT_NE(finished.err.find("salloc: Granted job allocation 1\n"), std::string::npos);
  EXPECT_TRUE(finished.err.ends_with("salloc: Relinquishing job allocation 1\n")) << finished.err;
  EXPECT_EQ(daemon.job("1")["state"], "COMPLETED");
}

TEST_F(Salloc, StepsOfAnAllocationShareItOut) {
  const Finished finished =
      call({"salloc", "-Q", "--gpus=2", "-c2", "sh", "-c",
            "for i in 1 2; do srun -n1 --gpus=1 --exact sh -c 'touch on-$SLURM_STEP_GPUS; "
            "until [ -e on-0 ] && [ -e on-1 ]; do sleep 0.2; done' & done; wait; echo both"});
  EXPECT_EQ(finished.out, "both\n") << finished.err;
  EXPECT_EQ(finished.err, "");
}

TEST_F(Salloc, WithoutACommandAShellHasIt) {
  Terminal terminal(on_path({"salloc", "--gpus=1"}));
  ASSERT_TRUE(terminal.shows("Granted job allocation 1")) << terminal.screen();
  terminal.type("srun sh -c 'echo step-$SLURM_JOB_ID-$SLURM_GPUS_ON_NODE'\n");
  EXPECT_TRUE(terminal.shows("step-1-1\r\nready$ ")) << terminal.screen();
  terminal.type("srun --pty sh -c 'test -t 0 && echo has-$((1+1))-terminal'\n");
  EXPECT_TRUE(terminal.shows("has-2-terminal\r\nready$ ")) << terminal.screen();
  terminal.type("exit 3\n");
  EXPECT_EQ(terminal.wait(), 3) << terminal.screen();
  EXPECT_TRUE(reaches("1", "COMPLETED"));
}

TEST_F(Salloc, AnAllocationEndsWithSallocHoweverThatEnds) {
  Terminal terminal(on_path({"salloc", "--gpus=1"}));
  ASSERT_TRUE(terminal.shows("Granted job allocation 1")) << terminal.screen();
  terminal.signal(SIGKILL);
  EXPECT_TRUE(reaches("1", "COMPLETED"));
}

TEST_F(Salloc, ACancelledAllocationEndsTheShell) {
  Terminal terminal(on_path({"salloc", "--gpus=1"}));
  ASSERT_TRUE(terminal.shows("Granted job allocation 1")) << terminal.screen();
  EXPECT_EQ(call({"scancel", "1"}).exit_code, 0);
  EXPECT_TRUE(terminal.shows("Job allocation 1 has been revoked.")) << terminal.screen();
  terminal.wait();
  EXPECT_TRUE(reaches("1", "CANCELLED"));
}

TEST_F(Salloc, ACancelledAllocationThatWaitsIsTold) {
  const std::string hog = sbatch({"--gpus=8", "--wrap=/bin/sleep 600"});
  ASSERT_TRUE(reaches(hog, "RUNNING"));
  Terminal terminal(on_path({"salloc", "--gpus=1", "true"}));
  ASSERT_TRUE(terminal.shows("job 2 queued and waiting for resources")) << terminal.screen();
  EXPECT_EQ(call({"scancel", "2"}).exit_code, 0);
  EXPECT_TRUE(terminal.shows("salloc: error: Job allocation 2 has been revoked."))
      << terminal.screen();
  EXPECT_EQ(terminal.wait(), 1);
}

TEST_F(Salloc, WithoutAShellItLastsUntilItIsCancelled) {
  const Finished finished = call({"salloc", "--no-shell", "--gpus=1"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_NE(finished.err.find("Granted job allocation 1"), std::string::npos);
  EXPECT_EQ(out({"srun", "--jobid=1", "sh", "-c", "echo $SLURM_JOB_ID $SLURM_STEP_ID"}), "1 0\n");
  EXPECT_EQ(out({"srun", "--jobid", "1", "sh", "-c", "echo $SLURM_STEP_ID"}), "1\n");
  EXPECT_EQ(daemon.job("1")["state"], "RUNNING");
  EXPECT_EQ(call({"scancel", "1"}).exit_code, 0);
  EXPECT_TRUE(reaches("1", "CANCELLED"));
  EXPECT_NE(refusal({"srun", "--jobid=99", "true"}).find("99"), std::string::npos);
}

TEST_F(Salloc, AStepJoinsARunningBatchJobFromOutside) {
  const std::string id = sbatch(
      {"--gpus=2", "-J", "base", "--wrap", "srun -n1 true; until [ -e off ]; do sleep 0.2; done"});
  ASSERT_TRUE(reaches(id, "RUNNING"));
  const Finished joined = call({"srun", "--jobid=" + id, "-n1", "--gpus=1", "sh", "-c",
                                "echo $SLURM_JOB_NAME $SLURM_STEP_GPUS; exit 5"});
  EXPECT_EQ(joined.out, "base 0\n") << joined.err;
  EXPECT_EQ(joined.exit_code, 5);
  write("off", "");
  EXPECT_TRUE(reaches(id, "COMPLETED"));
}

TEST_F(Salloc, PtyOfSrunIsATerminalInAJobOfItsOwn) {
  Terminal terminal(on_path({"srun", "--gpus=1", "--pty", "sh"}));
  ASSERT_TRUE(terminal.shows("$")) << terminal.screen();
  terminal.type("test -t 0 && echo $SLURM_GPUS-$((40+2)); exit 4\n");
  EXPECT_TRUE(terminal.shows("1-42")) << terminal.screen();
  EXPECT_EQ(terminal.wait(), 4) << terminal.screen();
}

TEST_F(Salloc, SbcastCopiesAFileWithinTheJob) {
  write("from.txt", "data\n");
  write("job.sh",
        "#!/bin/sh\nsbcast from.txt to.txt; cat to.txt; sbcast from.txt to.txt || echo kept\n"
        "echo new > from.txt; sbcast -f -p from.txt to.txt && cat to.txt; true\n");
  const std::string id = sbatch({"-e", "err.txt", "job.sh"});
  ASSERT_TRUE(reaches(id, "COMPLETED")) << read_file(path("err.txt"));
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "data\nkept\nnew\n");
  EXPECT_NE(read_file(path("err.txt")).find("sbcast: error: to.txt: File exists"),
            std::string::npos);
  EXPECT_EQ(call({"salloc", "-Q", "sbcast", "--compress", "from.txt", "other.txt"}).exit_code, 0);
  EXPECT_EQ(read_file(path("other.txt")), "new\n");
  EXPECT_NE(refusal({"sbcast", "from.txt", "x"}).find("no job"), std::string::npos);
}

TEST_F(Salloc, SattachShowsTheOutputOfAJob) {
  const std::string id = sbatch({"--wrap=echo first; srun echo second"});
  const Finished attached = call({"sattach", id + ".0"});
  EXPECT_EQ(attached.exit_code, 0) << attached.err;
  EXPECT_EQ(attached.out, "first\nsecond\n");
}

TEST_F(Salloc, MistakesSubmitNothing) {
  EXPECT_NE(refusal({"salloc", "--no-shell", "true"}).find("--no-shell"), std::string::npos);
  EXPECT_NE(refusal({"salloc", "-K", "--immediate=x", "true"}).find("--immediate"),
            std::string::npos);
  EXPECT_NE(refusal({"salloc", "--kill-command=ODD", "true"}).find("'ODD' is not a signal"),
            std::string::npos);
  EXPECT_TRUE(daemon.json({"jobs", "list", "--all"})["jobs"].empty());
}

}  // namespace
}  // namespace gpu_platform::e2e
