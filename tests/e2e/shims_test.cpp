#include <sys/stat.h>

#include <fmt/format.h>

#include "shims_fixture.h"

// Slurm's commands, called as the people and programs call them that were written for Slurm.

namespace gpu_platform::e2e {
namespace {

class Shims : public SlurmCommands {
 protected:
  std::size_t jobs() const { return daemon.json({"jobs", "list", "--all"})["jobs"].size(); }
};

TEST_F(Shims, SbatchRunsAScriptWithItsDirectivesAndArguments) {
  write("train.sh",
        "#!/bin/bash\n#SBATCH --job-name=bert\n#SBATCH --gres=gpu:h100:2 -c 4 --mem=8G\n#SBATCH -t "
        "0-1:00\n"
        "#SBATCH -o %x-%j.out -e %x-%j.err\n"
        "echo \"$1,$2,$SLURM_JOB_ID,$SLURM_GPUS,$SLURM_CPUS_PER_TASK,$SLURM_JOB_NAME\"; echo oops "
        ">&2\n");
  const Finished finished = call({"sbatch", "train.sh", "a", "b c"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(finished.out, "Submitted batch job 1\n");
  EXPECT_EQ(finished.err, "");
  ASSERT_TRUE(reaches("1", "COMPLETED"));
  const auto job = daemon.job("1");
  EXPECT_EQ(job["spec"]["name"], "bert");
  EXPECT_EQ(job["gpus"].size(), 2U);
  EXPECT_EQ(job["cpus"], 4);
  EXPECT_EQ(job["memory_bytes"], std::int64_t{8} << 30);
  EXPECT_EQ(job["spec"]["time_limit_seconds"], 3600);
  EXPECT_EQ(read_file(path("bert-1.out")), "a,b c,1,2,4,bert\n");
  EXPECT_EQ(read_file(path("bert-1.err")), "oops\n");
}

TEST_F(Shims, TheJobRunsTheScriptAsItWasAtSubmission) {
  write("job.sh", "#!/bin/sh\necho first\n");
  const std::string hog =
      sbatch({"--gpus=8", "--wrap", "until [ -e go ]; do /bin/sleep 0.2; done"});
  ASSERT_TRUE(reaches(hog, "RUNNING"));
  const std::string id = sbatch({"--gpus=1", "job.sh"});
  write("job.sh", "#!/bin/sh\necho second\n");
  write("go", "");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "first\n");
}

TEST_F(Shims, InterpreterLineAndStandardInputAreHonoured) {
  const std::string id =
      sbatch({}, "#!/usr/bin/env -S bash -u\necho \"${BASH_VERSION:+bash}\" $- | tr -d '\\n'\n");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const std::string said = read_file(path("slurm-" + id + ".out"));
  EXPECT_TRUE(said.starts_with("bash ") && said.find('u') != std::string::npos) << said;
}

TEST_F(Shims, OnlyJobsOfTheShimsHaveSlurmsVariables) {
  const std::string shim = sbatch({"--wrap=env | grep -c ^SLURM_"});
  ASSERT_TRUE(reaches(shim, "COMPLETED"));
  EXPECT_GT(std::stoi(read_file(path("slurm-" + shim + ".out"))), 25);
  const Finished native = daemon.cli({"run", "--gpus", "0", "--", "/usr/bin/env"});
  EXPECT_EQ(native.out.find("SLURM_"), std::string::npos);
  const std::string hidden = sbatch({"--wrap=env | grep SLURM_SHIM; true"});
  ASSERT_TRUE(reaches(hidden, "COMPLETED"));
  EXPECT_EQ(read_file(path("slurm-" + hidden + ".out")), "");
}

TEST_F(Shims, SrunInAJobRunsItsTasksAndGivesTheHighestExitCode) {
  const std::string id = sbatch({"-n3", "--wrap",
                                 "srun -o task-%t.txt sh -c 'echo $SLURM_PROCID of $SLURM_NTASKS; "
                                 "exit $SLURM_PROCID'; echo code $?; srun -n1 echo one"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  for (const char* rank : {"0", "1", "2"}) {
    EXPECT_EQ(read_file(path(std::string("task-") + rank + ".txt")), std::string(rank) + " of 3\n");
  }
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "code 2\none\n");
}

// A step's default is to end by it; the batch shell and what it runs itself are left out.
TEST_F(Shims, TheSignalBeforeTheLimitIsForTheSteps) {
  const std::string script =
      "sleep 600 & srun -n2 sleep 600; echo step $?; kill $!; wait $!; echo child $?";
  const std::string id = sbatch({"-t60", "-e", "err.txt", "--signal=USR1@3590", "--wrap", script});
  ASSERT_TRUE(
      eventually([&] { return daemon.job(id)["state"] == "COMPLETED"; }, std::chrono::seconds(60)));
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "step 138\nchild 143\n");
}

TEST_F(Shims, TheSignalBeforeTheLimitIsForTheBatchShellAloneWhereItSaysSo) {
  const std::string script =
      "trap 'echo shell' USR1; sleep 600 & wait $!; kill $!; wait $!; echo child $?";
  const std::string id =
      sbatch({"-t60", "-e", "err.txt", "--signal=B:USR1@3590", "--wrap", script});
  ASSERT_TRUE(
      eventually([&] { return daemon.job(id)["state"] == "COMPLETED"; }, std::chrono::seconds(60)));
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "shell\nchild 143\n");
}

// The platform opens the files, so it shows them too; what it has no pattern for is opened in the
// job.
TEST_F(Shims, OutputGoesWhereJobsLogsFindsIt) {
  write("old.txt", "old\n");
  const std::string id =
      sbatch({"-J", "a%b", "-o", "%x-%A-%3s.txt", "--wrap=echo out; echo err >&2"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(daemon.job(id)["output"], path("a%b-" + id + "-000.txt"));
  EXPECT_EQ(read_file(path("a%b-" + id + "-000.txt")), "out\nerr\n");
  EXPECT_EQ(daemon.cli({"jobs", "logs", id}).out, "out\nerr\n");
  const std::string modes =
      sbatch({"-o", "old.txt", "-e", "%5j.err", "--wrap=echo out; echo err >&2"});
  ASSERT_TRUE(reaches(modes, "COMPLETED"));
  EXPECT_EQ(read_file(path("old.txt")), "out\n");
  EXPECT_EQ(read_file(path("0000" + modes + ".err")), "err\n");
  const std::string again = sbatch({"-o", "old.txt", "--open-mode=append", "--wrap=echo more"});
  ASSERT_TRUE(reaches(again, "COMPLETED"));
  EXPECT_EQ(read_file(path("old.txt")), "out\nmore\n");
  const std::string silent = sbatch({"-o", "silent.txt", "--wrap=true"});
  ASSERT_TRUE(reaches(silent, "COMPLETED"));
  EXPECT_NE(daemon.cli({"jobs", "logs", silent}).err.find(path("silent.txt")), std::string::npos);
  EXPECT_EQ(
      call({"srun", "-o", "mine.txt", "-e", "mine.err", "sh", "-c", "echo out; echo err >&2"}).out,
      "");
  EXPECT_EQ(read_file(path("mine.txt")), "out\n");
  EXPECT_EQ(read_file(path("mine.err")), "err\n");
}

TEST_F(Shims, TasksShareAFileThatBeginsEmpty) {
  const std::string id = sbatch(
      {"-n3", "--wrap", "for i in 1 2; do srun -o all.txt sh -c 'echo $SLURM_PROCID'; done"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  auto lines = lines_of(read_file(path("all.txt")));
  std::ranges::sort(lines);
  EXPECT_EQ(lines, (std::vector<std::string>{"0", "1", "2"}));
}

TEST_F(Shims, SrunOutsideAJobBindsAndEndsItsTasksAsItIsTold) {
  const Finished bound = call({"srun", "-n2", "--gpus=2", "--gpu-bind=single:1", "-o", "t-%t.txt",
                               "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"});
  ASSERT_EQ(bound.exit_code, 0) << bound.err;
  const std::string zero = read_file(path("t-0.txt"));
  const std::string one = read_file(path("t-1.txt"));
  EXPECT_EQ(zero.find(','), std::string::npos) << zero;
  EXPECT_NE(zero, one);
  EXPECT_EQ(
      call({"srun", "-n2", "-K", "sh", "-c", "test $SLURM_PROCID = 1 && exit 3; exec sleep 600"})
          .exit_code,
      143);
  EXPECT_NE(call({"srun", "--gpu-bind=odd", "true"}).err.find("--gpu-bind"), std::string::npos);
}

TEST_F(Shims, SrunOutsideAJobFollowsAJobOfItsOwn) {
  const Finished finished = call({"srun", "--gpus=1", "sh", "-c", "echo gpu $SLURM_GPUS; exit 7"});
  EXPECT_EQ(finished.exit_code, 7) << finished.err;
  EXPECT_EQ(finished.out, "gpu 1\n");
  EXPECT_EQ(call({"srun", "no-such-program"}).exit_code, 127);
}

TEST_F(Shims, WaitGivesTheExitCodeAndOneWhereASignalEndedTheJob) {
  EXPECT_EQ(call({"sbatch", "-W", "--wrap=exit 5"}).exit_code, 5);
  EXPECT_EQ(call({"sbatch", "-W", "--wrap=kill -9 $$"}).exit_code, 1);
}

TEST_F(Shims, SqueueShowsWhatRunsAndWhyOthersWait) {
  const std::string hog = sbatch({"-J", "hog", "--gpus=8", "--wrap=/bin/sleep 600"});
  ASSERT_TRUE(reaches(hog, "RUNNING"));
  const std::string waiting = sbatch({"-J", "waiting", "--gres=gpu:1", "--wrap=true"});
  ASSERT_TRUE(
      eventually([&] { return daemon.job(waiting)["wait_reason"]["code"] == "NO_CAPACITY"; }));
  const auto table = lines_of(call({"squeue"}).out);
  ASSERT_EQ(table.size(), 3U);
  EXPECT_EQ(table[0],
            "             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)");
  EXPECT_TRUE(table[2].ends_with("dgx-h100-1")) << table[2];
  EXPECT_TRUE(table[1].ends_with("(Resources)")) << table[1];
  EXPECT_EQ(call({"squeue", "-h", "-t", "PD", "-o", "%i|%j|%t|%b"}).out,
            waiting + "|waiting|PD|gres/gpu:1\n");
  EXPECT_EQ(call({"squeue", "--noheader", "-O", "JobID:4,State:8", "-j", hog}).out,
            hog + "   RUNNING \n");
  EXPECT_EQ(call({"squeue", "--me", "-h", "-n", "hog", "-o", "%T"}).out, "RUNNING\n");
  EXPECT_EQ(call({"squeue", "-h", "-u", "backup"}).out, "");
  EXPECT_EQ(call({"scancel", "-n", "waiting", "-t", "PENDING"}).exit_code, 0);
  EXPECT_TRUE(reaches(waiting, "CANCELLED"));
  EXPECT_EQ(daemon.job(hog)["state"], "RUNNING");
  EXPECT_EQ(call({"scancel", "--signal=KILL", hog}).exit_code, 0);
  EXPECT_TRUE(reaches(hog, "CANCELLED"));
}

TEST_F(Shims, AHeldJobWaitsForItsRelease) {
  const std::string id = sbatch({"--hold", "--wrap=true"});
  EXPECT_EQ(call({"squeue", "-h", "-j", id, "-o", "%t %r"}).out, "PD JobHeldUser\n");
  EXPECT_EQ(daemon.cli({"jobs", "release", id}).exit_code, 0);
  EXPECT_TRUE(reaches(id, "COMPLETED"));
}

TEST_F(Shims, ScontrolHoldsReleasesAndChangesJobs) {
  const std::string hog = sbatch({"--gpus=8", "-t60", "--wrap=/bin/sleep 600"});
  ASSERT_TRUE(reaches(hog, "RUNNING"));
  const std::string id = sbatch({"--gpus=8", "-t60", "--wrap=true"});
  const std::string second = sbatch({"--gpus=8", "-t60", "--wrap=true"});
  EXPECT_EQ(call({"scontrol", "hold", id + "," + second}).exit_code, 0);
  EXPECT_EQ(daemon.job(id)["state"], "HELD");
  EXPECT_EQ(daemon.job(second)["state"], "HELD");
  EXPECT_EQ(call({"scontrol", "release", "jobid=" + id, second}).exit_code, 0);
  EXPECT_EQ(daemon.job(id)["state"], "QUEUED");
  EXPECT_EQ(daemon.job(second)["state"], "QUEUED");
  EXPECT_EQ(call({"scontrol", "update", "JobId=" + id, "TimeLimit=2:00:00", "JobName=late",
                  "qos=low", "Comment=a b", "Priority=0"})
                .exit_code,
            0);
  EXPECT_EQ(call({"squeue", "-h", "-j", id, "-o", "%k"}).out, "a b\n");
  const auto changed = daemon.job(id);
  EXPECT_EQ(changed["spec"]["time_limit_seconds"], 7200);
  EXPECT_EQ(changed["spec"]["name"], "late");
  EXPECT_EQ(changed["spec"]["priority"], "LOW");
  EXPECT_EQ(changed["spec"]["comment"], "a b");
  EXPECT_EQ(changed["state"], "HELD");
  EXPECT_EQ(call({"scontrol", "update", "job=" + id, "timelimit=-30", "Nice=0"}).exit_code, 0);
  EXPECT_EQ(daemon.job(id)["spec"]["time_limit_seconds"], 5400);
  EXPECT_EQ(daemon.job(id)["spec"]["priority"], "MEDIUM");
  const Finished refused = call({"scontrol", "hold", hog, second});
  EXPECT_EQ(refused.exit_code, 1);
  EXPECT_TRUE(refused.err.starts_with("scontrol: error: job " + hog + ": ")) << refused.err;
  EXPECT_EQ(daemon.job(second)["state"], "HELD");
}

TEST_F(Shims, ScontrolTopRaisesAJob) {
  const std::string hog = sbatch({"--gpus=8", "-t60", "--wrap=/bin/sleep 600"});
  ASSERT_TRUE(reaches(hog, "RUNNING"));
  const std::string first = sbatch({"--gpus=8", "-t60", "--wrap=true"});
  const std::string second = sbatch({"--gpus=8", "-t60", "--wrap=true"});
  EXPECT_EQ(call({"scontrol", "top", second}).exit_code, 0);
  EXPECT_EQ(daemon.job(second)["queue_position"], 1);
  EXPECT_EQ(daemon.job(first)["queue_position"], 2);
  EXPECT_EQ(call({"scontrol", "top", hog}).exit_code, 1);
}

TEST_F(Shims, ScancelSendsASignalWithoutEndingTheJob) {
  const std::string id = sbatch({"--gpus=1", "-n1", "--wrap",
                                 "trap 'echo got >> got.txt' USR1; touch ready.txt; "
                                 "while :; do sleep 0.2; done"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(path("ready.txt")); }));
  ASSERT_TRUE(daemon.reaches(id, "RUNNING"));
  EXPECT_EQ(call({"scancel", "-s", "SIGUSR1", id}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return read_file(path("got.txt")) == "got\n"; }));
  const std::string waits = sbatch({"--gpus=8", "--wrap=true"});
  EXPECT_EQ(call({"scancel", "-s", "USR1", "--me"}).exit_code, 0) << "those that run";
  EXPECT_TRUE(eventually([&] { return read_file(path("got.txt")) == "got\ngot\n"; }));
  EXPECT_EQ(call({"scancel", "-s", "USR1", waits}).exit_code, 1);
  EXPECT_EQ(call({"scancel", "-s", "FOO", id}).exit_code, 1);
  EXPECT_EQ(daemon.job(id)["state"], "RUNNING");
}

TEST_F(Shims, ScancelWithSigtermIsASignalAndNoCancel) {
  const std::string id = sbatch({"--gpus=1", "-n1", "--wrap",
                                 "trap 'echo got >> got.txt' TERM; touch ready.txt; "
                                 "while :; do sleep 0.2; done"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(path("ready.txt")); }));
  ASSERT_TRUE(daemon.reaches(id, "RUNNING"));
  EXPECT_EQ(call({"scancel", "-s", "TERM", id}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return read_file(path("got.txt")) == "got\n"; }));
  EXPECT_EQ(call({"scancel", "--signal=15", id}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return read_file(path("got.txt")) == "got\ngot\n"; }));
  EXPECT_EQ(daemon.job(id)["state"], "RUNNING");
  const std::string waits = sbatch({"--gpus=8", "--wrap=true"});
  EXPECT_EQ(call({"scancel", "-s", "TERM", waits}).exit_code, 1);
  EXPECT_EQ(daemon.job(waits)["state"], "QUEUED");
}

TEST_F(Shims, AJobPutsItselfBackIntoTheQueue) {
  const std::string id = sbatch({"--wrap",
                                 "echo attempt ${SLURM_RESTART_COUNT:-0} >> tries.txt; "
                                 "test -n \"$SLURM_RESTART_COUNT\" && exec sleep 600; trap : TERM; "
                                 "scontrol requeue $SLURM_JOB_ID; echo code $? >> code.txt"});
  ASSERT_TRUE(eventually([&] { return read_file(path("tries.txt")) == "attempt 0\nattempt 1\n"; }));
  EXPECT_EQ(read_file(path("code.txt")), "code 0\n");
  const Finished requeued = call({"scontrol", "requeuehold", id});
  EXPECT_EQ(requeued.exit_code, 0) << requeued.err;
  ASSERT_TRUE(reaches(id, "HELD"));
  EXPECT_EQ(call({"scancel", "--signal=KILL", id}).exit_code, 0);
  ASSERT_TRUE(reaches(id, "CANCELLED"));
}

TEST_F(Shims, SinfoShowsOnePartitionWithItsNodes) {
  EXPECT_EQ(call({"sinfo", "-h"}).out, "gpu*         up 2-00:00:00      1   idle dgx-h100-1\n");
  EXPECT_EQ(call({"sinfo", "-h", "-o", "%P %G"}).out, "gpu* gpu:H100-80GB:8\n");
}

TEST_F(Shims, ScontrolExpandsHostNamesWithoutADaemon) {
  daemon.terminate();
  EXPECT_EQ(call({"scontrol", "show", "hostnames", "n[08-10],m"}).out, "n08\nn09\nn10\nm\n");
  EXPECT_EQ(call({"squeue"}).exit_code, 1);
}

TEST_F(Shims, ScontrolShowsAJobInOneLine) {
  const std::string id = sbatch({"-J", "shown", "--gpus=1", "--wrap=true"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const Finished shown = call({"scontrol", "show", "job", id, "-o"});
  EXPECT_EQ(lines_of(shown.out).size(), 1U);
  EXPECT_TRUE(shown.out.starts_with("JobId=" + id + " JobName=shown ")) << shown.out;
  EXPECT_NE(shown.out.find(" JobState=COMPLETED "), std::string::npos) << shown.out;
}

// An option that cannot be met is refused before anything is submitted, with the reason.
TEST_F(Shims, RefusalsSubmitNothing) {
  write("dos.sh", "#!/bin/sh\r\necho\r\n");
  write("plain.sh", "echo\n");
  write("array.sh", "#!/bin/sh\n#SBATCH --array=3-1\ntrue\n");
  const std::vector<std::vector<std::string>> refused = {
      {"sbatch", "--array=1-3%", "--wrap=true"},
      {"sbatch", "-d", "afterok:999", "--wrap=true"},
      {"sbatch", "-d", "expand:999", "--wrap=true"},
      {"sbatch", "-N2", "--gpus-per-node=1", "--wrap=true"},
      {"sbatch", "-n3", "--ntasks-per-node=1", "--gpus-per-node=1", "--wrap=true"},
      {"sbatch", "-G1", "-C", "h100&ib", "--wrap=true"},
      {"sbatch", "-G1", "-C", "nvme", "--wrap=true"},
      {"sbatch", "-C", "h100", "--wrap=true"},
      {"sbatch", "--time=soon", "--wrap=true"},
      {"sbatch", "--gres=gpu:x:y", "--wrap=true"},
      {"sbatch", "--mem=lots", "--wrap=true"},
      {"sbatch", "--signal=USR9", "--wrap=true"},
      {"srun", "--signal=B:USR1", "true"},
      {"sbatch", "--gpus=9", "--wrap=true"},
      {"sbatch", "--gres=gpu:no_such_gpu:1", "--wrap=true"},
      {"sbatch", "--hlep", "--wrap=true"},
      {"sbatch", "-o", "%Z.out", "--wrap=true"},
      {"sbatch", "dos.sh"},
      {"sbatch", "plain.sh"},
      {"sbatch", "array.sh"},
      {"sbatch", "no-such-file.sh"},
      {"sbatch", "--wrap=true", "plain.sh"},
      {"srun"},
      {"srun", "--bcast", "bash"},
      {"scancel"},
      {"scancel", "999"},
      {"scancel", "-s", "USR1", "1"},
      {"sbatch", "--dependency=", "--wrap=true"},
      {"sbatch", "--array=", "--wrap=true"},
      {"scontrol", "top", "999"},
      {"squeue", "-o", "%!"},
      {"squeue", "-j", "999"},
      {"squeue", "-t", "nonsense"},
      {"sacct", "-o", "Nonsense"},
      {"scontrol", "requeue", "1"},
      {"scontrol", "hold"},
      {"scontrol", "release", "name=x"},
      {"scontrol", "update", "JobId=1"},
      {"scontrol", "update", "TimeLimit=5"},
      {"scontrol", "update", "JobId=1", "TimeLimit=soon"},
      {"scontrol", "update", "JobId=1", "Priority=5"},
      {"scontrol", "update", "JobId=1", "Nice=-5"},
      {"scontrol", "update", "NodeName=n1", "State=DRAIN"},
      {"scontrol", "suspend", "1"},
      {"sacctmgr", "add", "account", "x"},
      {"scontrol", "show", "job", "999"},
  };
  for (const auto& words : refused) {
    const Finished finished = call(words);
    EXPECT_EQ(finished.exit_code, 1) << words[0] << " " << words.back() << ": " << finished.err;
    EXPECT_EQ(finished.out, "") << words[0] << " " << words.back();
    EXPECT_TRUE(finished.err.starts_with(words[0] + ": error: "))
        << words[0] << " " << words.back() << ": " << finished.err;
  }
  EXPECT_EQ(jobs(), 0U);
}

TEST_F(Shims, UnknownDirectivesAreToldAndTheJobRuns) {
  write("odd.sh", "#!/bin/sh\n#SBATCH --new-thing=3\n#SBATCH --mail-type=END\ntrue\n");
  const Finished finished = call({"sbatch", "odd.sh"});
  EXPECT_EQ(finished.out, "Submitted batch job 1\n");
  EXPECT_NE(finished.err.find("line 2: --new-thing is not known here and is ignored"),
            std::string::npos);
  EXPECT_NE(finished.err.find("--mail-type is ignored: no mail is sent"), std::string::npos);
  EXPECT_TRUE(reaches("1", "COMPLETED"));
}

// The batch file that submitit writes, and its calls.
TEST_F(Shims, SubmititsCallsWork) {
  write("submission.sh",
        "#!/bin/bash\n\n# Parameters\n#SBATCH --cpus-per-task=2\n#SBATCH --error=" +
            path("%j_0_log.err") +
            "\n#SBATCH --gpus-per-node=1\n#SBATCH --job-name=submitit\n#SBATCH --mem=4GB\n#SBATCH "
            "--nodes=1\n"
            "#SBATCH --ntasks-per-node=2\n#SBATCH --open-mode=append\n#SBATCH --output=" +
            path("%j_0_log.out") +
            "\n#SBATCH --signal=USR2@90\n#SBATCH --time=5\n#SBATCH --wckey=submitit\n\n# command\n"
            "export SUBMITIT_EXECUTOR=slurm\nsrun --unbuffered --output " +
            path("%j_%t_log.out") + " --error " + path("%j_%t_log.err") +
            " sh -c 'echo $SLURM_JOB_ID $SLURM_PROCID/$SLURM_NTASKS $SLURM_LOCALID'\n");
  const Finished submitted = call({"sbatch", "submission.sh"});
  ASSERT_EQ(submitted.out, "Submitted batch job 1\n") << submitted.err;
  ASSERT_TRUE(reaches("1", "COMPLETED"));
  EXPECT_EQ(read_file(path("1_0_log.out")), "1 0/2 0\n");
  EXPECT_EQ(read_file(path("1_1_log.out")), "1 1/2 1\n");
  EXPECT_EQ(call({"sacct", "-o", "JobID,State,NodeList", "--parsable2", "-j", "1", "-j", "7"}).out,
            "JobID|State|NodeList\n1|COMPLETED|dgx-h100-1\n1.batch|COMPLETED|dgx-h100-1\n"
            "1.0|COMPLETED|dgx-h100-1\n");
  const std::string id = sbatch({"--wrap=/bin/sleep 600"});
  ASSERT_TRUE(reaches(id, "RUNNING"));
  EXPECT_EQ(call({"scancel", id}).exit_code, 0);
  EXPECT_TRUE(eventually([&] {
    return call({"sacct", "-n", "-P", "-o", "State", "-j", id}).out.starts_with("CANCELLED by ");
  }));
}

TEST_F(Shims, NextflowsCallsWork) {
  const std::string user = call({"id", "-un"}).out;
  const Finished submitted = call(
      {"sbatch"}, {},
      "#!/bin/bash\n#SBATCH -J nf-train\n#SBATCH -o " + path(".command.log") +
          "\n#SBATCH --no-requeue\n#SBATCH --signal B:USR2@30\n#SBATCH -c 2\n#SBATCH -t 01:00:00\n"
          "#SBATCH --mem 2048M\n#SBATCH -p gpu\nNXF_CHDIR=" +
          files.path() + "\necho started; exec sleep 600\n");
  ASSERT_EQ(submitted.out, "Submitted batch job 1\n") << submitted.err;
  ASSERT_TRUE(eventually([&] { return read_file(path(".command.log")) == "started\n"; }));
  const auto status = [&] {
    return call({"squeue", "--noheader", "-o", "%i %t", "-t", "all", "-p", "gpu", "-u",
                 user.substr(0, user.find('\n'))})
        .out;
  };
  // The program may be ahead of the news of its start.
  EXPECT_TRUE(eventually([&] { return status() == "1 R\n"; }));
  EXPECT_EQ(call({"scancel", "1"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return status() == "1 CA\n"; }));
}

TEST_F(Shims, SnakemakesCallsWork) {
  const std::string run = "3f2c9f6e-5a1b-4a52-9c32-0d6f0e3b8a11";
  EXPECT_EQ(call({"sinfo", "-o", "%P"}).out, "PARTITION\ngpu*\n");
  const Finished submitted = call({"sbatch",
                                   "--parsable",
                                   "--job-name",
                                   run,
                                   "--output",
                                   path("%j.log"),
                                   "--export=ALL",
                                   "--comment",
                                   "rule_train",
                                   "-A",
                                   "vision",
                                   "-p",
                                   "gpu",
                                   "-t",
                                   "60",
                                   "--mem",
                                   "1000",
                                   "--nodes=1",
                                   "--ntasks=1",
                                   "--cpus-per-task=2",
                                   "-D",
                                   files.path(),
                                   "--wrap=echo done in $PWD"});
  ASSERT_EQ(submitted.out, "1\n") << submitted.err;
  ASSERT_TRUE(reaches("1", "COMPLETED"));
  EXPECT_EQ(read_file(path("1.log")), "done in " + files.path() + "\n");
  EXPECT_EQ(call({"sacct", "-X", "--parsable2", "--clusters", "all", "--noheader",
                  "--format=JobIdRaw,State", "--starttime", "2020-01-01T00:00", "--endtime", "now",
                  "--name", run})
                .out,
            "1|COMPLETED\n");
  EXPECT_EQ(call({"squeue", "--format=%i|%T", "--states=all", "--noheader", "--name", run}).out,
            "1|COMPLETED\n");
  EXPECT_EQ(daemon.job("1")["spec"]["team"], "vision");
  // Before it submits with an account, and after a failure; nothing is known of accounts and steps.
  EXPECT_EQ(call({"sacctmgr", "-n", "-s", "list", "user", "ada", "format=account%256"}).out, "");
  EXPECT_EQ(call({"sshare", "-U", "--format", "Account%256", "--noheader"}).exit_code, 0);
  EXPECT_EQ(call({"sacct", "-j", "1.1", "--format=Reason", "--noheader"}).out, "");
  EXPECT_EQ(call({"sacct", "-j", "1.batch", "--format=State%-20", "-nP"}).out, "COMPLETED\n");
}

// Each step keeps its GPU until it has seen the others'.
TEST_F(Shims, StepsThatRunTogetherHaveGpusOfTheirOwn) {
  const std::string id = sbatch(
      {"--gpus=4", "-c4", "--wrap",
       "for i in 1 2 3 4; do srun -n1 --gpus=1 --exact -o gpu-$i.txt sh -c 'echo "
       "$SLURM_STEP_GPUS $CUDA_VISIBLE_DEVICES; touch on-$SLURM_STEP_GPUS; until [ $(ls on-* "
       "| wc -l) = 4 ]; do sleep 0.2; done' & done; wait"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  std::vector<std::string> seen;
  for (const char* number : {"1", "2", "3", "4"})
    seen.push_back(read_file(path(std::string("gpu-") + number + ".txt")));
  std::ranges::sort(seen);
  for (std::size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], fmt::format("{0} {0}\n", i));
  EXPECT_EQ(std::ranges::unique(seen).size(), 0U);
}

TEST_F(Shims, AStepBeyondTheAllocationWaitsUntilAnotherOneIsKilled) {
  const std::string id =
      sbatch({"--gpus=1", "-e", "err.txt", "--wrap",
              "srun -n1 sh -c 'touch first; exec sleep 600' & first=$!; until [ -e first ]; do "
              "sleep 0.2; done; "
              "srun --immediate true; echo immediate $?; srun --overlap -n1 echo shared; "
              "(srun -n1 echo second) & until grep -q 'step waits' err.txt; do sleep 0.2; done; "
              "kill -9 $first; wait; echo end"});
  ASSERT_TRUE(reaches(id, "COMPLETED")) << read_file(path("err.txt"));
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "immediate 1\nshared\nsecond\nend\n");
}

TEST_F(Shims, TasksHaveTheirOwnGpusWhereThatWasAskedFor) {
  const std::string show = "sh -c 'echo $SLURM_PROCID $CUDA_VISIBLE_DEVICES'";
  const std::string id =
      sbatch({"-n2", "--gpus-per-task=1", "--wrap",
              "srun -o each-%t.txt " + show + "; srun --gpu-bind=none -o all-%t.txt " + show});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const std::string zero = read_file(path("each-0.txt"));
  const std::string one = read_file(path("each-1.txt"));
  EXPECT_EQ(zero.find(','), std::string::npos) << zero;
  EXPECT_EQ(one.find(','), std::string::npos) << one;
  EXPECT_NE(zero.substr(2), one.substr(2));
  EXPECT_NE(read_file(path("all-0.txt")).find(','), std::string::npos);
}

TEST_F(Shims, AStepEndsByAFailureOrTheFirstEndWhereItIsToldTo) {
  const std::string fails = "sh -c 'test $SLURM_PROCID = 1 && exit 3; exec sleep 600'";
  const std::string id =
      sbatch({"-n2", "-e", "err.txt", "--wrap",
              "srun -K " + fails + "; echo killed $?; srun -W1 " + fails + "; echo waited $?"});
  ASSERT_TRUE(
      eventually([&] { return daemon.job(id)["state"] == "COMPLETED"; }, std::chrono::seconds(60)));
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "killed 143\nwaited 137\n");
}

// Snakemake's job takes nearly all variables away before it calls srun.
TEST_F(Shims, AStepKnowsItsJobWithoutSlurmsVariables) {
  const std::string script =
      "env -u SLURM_GPUS -u SLURM_JOB_GPUS -u SLURM_NTASKS -u SLURM_JOB_NODELIST "
      "srun -n1 --cpu-bind=q --cpus-per-task=2 --gpus=2 --nodes=1 "
      "sh -c 'echo $SLURM_GPUS $SLURM_JOB_NODELIST $SLURM_STEP_GPUS $SLURM_NTASKS'";
  const std::string id = sbatch({"--gpus=2", "-c2", "--wrap", script, "-e", "err.txt"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), "2 dgx-h100-1 0,1 1\n");
}

}  // namespace
}  // namespace gpu_platform::e2e
