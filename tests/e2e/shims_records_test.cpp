#include <algorithm>
#include <sstream>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "shims_fixture.h"

// The records of steps: what srun tells the daemon, and what sacct, squeue, scontrol and sstat tell
// of it.

namespace gpu_platform::e2e {
namespace {

class Records : public SlurmCommands {
 protected:
  std::string run(std::vector<std::string> options, const std::string& script) const {
    write("job.sh", "#!/bin/bash\n" + script);
    options.emplace_back("job.sh");
    return sbatch(options);
  }
  std::string accounted(const std::string& id, const std::string& columns) const {
    return out({"sacct", "-nP", "-j", id, "-o", columns});
  }
  // A value of one line of sacct.
  std::string value(const std::string& step, const std::string& column) const {
    const std::string text = accounted(step, column);
    return text.substr(0, text.find('\n'));
  }
};

constexpr const char* kUntilOff = "sh -c 'touch on; until [ -e off ]; do sleep 0.2; done'";

TEST_F(Records, EachStepHasALineOfItsOwn) {
  const std::string id = run({"-n2", "--gpus=2"},
                             "srun -n2 --gpus=1 --exact true\n"
                             "srun -n1 sh -c 'exit 7'\n"
                             "srun -n2 sh -c 'kill -9 $$'\n"
                             "srun -n1 sh -c 'kill -9 $$'\n"
                             "exit 0\n");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const std::string cpus = daemon.job(id)["cpus"].dump();
  EXPECT_EQ(accounted(id, "JobID,JobName,State,ExitCode,NTasks,NNodes,AllocCPUS"),
            "1|job.sh|COMPLETED|0:0||1|" + cpus + "\n1.batch|batch|COMPLETED|0:0|1|1|" + cpus +
                "\n1.0|true|COMPLETED|0:0|2|1|2\n1.1|sh|FAILED|7:0|1|1|" + cpus +
                "\n1.2|sh|CANCELLED|0:9|2|1|" + cpus + "\n1.3|sh|CANCELLED|0:9|1|1|" + cpus + "\n");
  EXPECT_NE(value("1.0", "AllocTRES").find("cpu=2,"), std::string::npos);
  EXPECT_TRUE(value("1.0", "AllocTRES").ends_with(",node=1,gres/gpu=1"));
  EXPECT_TRUE(value("1.1", "AllocTRES").ends_with(",node=1,gres/gpu=2"));
  EXPECT_EQ(value("1.0", "NodeList"), "dgx-h100-1");
  EXPECT_EQ(out({"sacct", "-nPX", "-j", id, "-o", "JobID"}), "1\n");
  EXPECT_EQ(accounted("1.1", "JobID"), "1.1\n");
  EXPECT_EQ(accounted("1.1,1.batch", "JobID"), "1.batch\n1.1\n");
  EXPECT_EQ(accounted("1.9", "JobID"), "");
  EXPECT_EQ(out({"sacct", "-nP", "-o", "JobID"}), "1\n1.batch\n1.0\n1.1\n1.2\n1.3\n");
}

TEST_F(Records, AStepTellsItsTimeAndMemory) {
  const std::string id =
      run({"-n2"}, "srun -n2 python3 -c 'b = bytearray(300 << 20); sum(range(9000000))'\n");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  const auto mebibytes = [&](const std::string& column) {
    return std::stod(out({"sacct", "-nP", "--units=M", "-j", "1.0", "-o", column}));
  };
  EXPECT_GE(mebibytes("MaxRSS"), 300);
  EXPECT_LT(mebibytes("MaxRSS"), 420);
  EXPECT_GE(mebibytes("AveRSS"), 300);
  const nlohmann::json step = daemon.job(id)["steps"][0];
  EXPECT_GT(step["user_cpu_seconds"].get<double>(), 0.05);
  EXPECT_GE(step["all_memory_bytes"].get<std::uint64_t>(), 600U << 20);
  EXPECT_GT(step["least_cpu_seconds"].get<double>(), 0);
  EXPECT_NE(value("1.0", "UserCPU"), "00:00:00");
  EXPECT_NE(value("1.0", "TotalCPU"), "00:00:00");
  EXPECT_EQ(value("1.0", "MaxRSSNode"), "dgx-h100-1");
}

TEST_F(Records, RunningStepsAreListed) {
  const std::string id =
      run({"--gpus=1"}, std::string("srun --gpus=1 ") + kUntilOff + "\nsrun true\n");
  ASSERT_TRUE(eventually([&] {
    return out({"squeue", "-h", "-s", "-o", "%i %j %P %N"}) ==
           "1.batch batch gpu dgx-h100-1\n1.0 sh gpu dgx-h100-1\n";
  })) << out({"squeue", "-s"});
  EXPECT_EQ(out({"squeue", "-h", "--steps=1.0", "-o", "%i"}), "1.0\n");
  EXPECT_EQ(value("1.0", "State"), "RUNNING");
  EXPECT_NE(out({"scontrol", "-o", "show", "step", "1.0"}).find("StepId=1.0 "), std::string::npos);
  EXPECT_NE(out({"scontrol", "-o", "show", "step"}).find("StepId=1.batch "), std::string::npos);
  EXPECT_NE(refusal({"scontrol", "show", "step", "1.7"}).find("1.7"), std::string::npos);
  EXPECT_NE(out({program("gpu-platform"), "jobs", "describe", id}).find("Steps:"),
            std::string::npos);
  write("off", "");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(out({"squeue", "-h", "-s"}), "");
  EXPECT_EQ(value("1.0", "State"), "COMPLETED");
}

TEST_F(Records, AKilledSrunLeavesNoRunningStepBehind) {
  const std::string id =
      run({}, std::string("srun ") + kUntilOff +
                  " & until [ -e on ]; do sleep 0.2; done\n"
                  "until squeue -h -s -o %i | grep -q '\\.0'; do sleep 0.1; done\n"
                  "kill -9 $!; wait $!; exit 0\n");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(value("1.0", "State"), "CANCELLED");
  EXPECT_NE(value("1.0", "End"), "Unknown");
}

TEST_F(Records, StepsSurviveTheDaemon) {
  const std::string id = run({}, std::string("srun true\nsrun ") + kUntilOff + "\nsrun true\n");
  ASSERT_TRUE(eventually([&] { return value("1.1", "State") == "RUNNING"; }));
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(value("1.0", "State"), "COMPLETED");
  EXPECT_EQ(value("1.1", "State"), "RUNNING");
  write("off", "");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(accounted(id, "JobID,State"),
            "1|COMPLETED\n1.batch|COMPLETED\n1.0|COMPLETED\n1.1|COMPLETED\n1.2|COMPLETED\n");
  daemon.kill_now();
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_EQ(value("1.2", "State"), "COMPLETED") << "from the archive";
}

// The step goes on, and its end is told when the daemon is there again.
TEST_F(Records, ADaemonThatIsAwayForAMomentDelaysTheRecordAlone) {
  const std::string id = run({}, std::string("srun ") + kUntilOff +
                                     "; echo $? > code; until [ -e end ]; do sleep 0.2; done\n");
  ASSERT_TRUE(eventually([&] { return value("1.0", "State") == "RUNNING"; }));
  daemon.kill_now();
  write("off", "");
  ASSERT_TRUE(eventually([&] { return read_file(path("code")) == "0\n"; }));
  ASSERT_TRUE(daemon.start()) << daemon.log();
  EXPECT_TRUE(eventually([&] { return value("1.0", "State") == "COMPLETED"; }));
  write("end", "");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
}

TEST_F(Records, TheProgramOfSrunIsItsStep0) {
  EXPECT_EQ(call({"srun", "-n2", "sh", "-c", "exit 3"}).exit_code, 3);
  ASSERT_TRUE(reaches("1", "FAILED"));
  EXPECT_EQ(accounted("1", "JobID,JobName,State,ExitCode,NTasks"),
            "1|sh|FAILED|3:0|\n1.0|sh|FAILED|3:0|2\n");
}

TEST_F(Records, SstatTellsOfTheStepsThatRun) {
  // The tasks wait for this lock.
  const int gate = ::open(path("gate").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  ASSERT_EQ(::flock(gate, LOCK_EX), 0);
  const std::string id = run({"-n2"},
                             "srun -n2 python3 -c 'import fcntl, os\n"
                             "b = bytearray(200 << 20)\n"
                             "open(\"on-\" + os.environ[\"SLURM_PROCID\"], \"w\").close()\n"
                             "fcntl.flock(open(\"gate\"), fcntl.LOCK_SH)'\n");
  ASSERT_TRUE(eventually([&] {
    return call({"ls", "on-0", "on-1"}).exit_code == 0 &&
           call({"squeue", "-hs"}).out.find("1.0") != std::string::npos;
  }));
  EXPECT_EQ(out({"sstat", "-nP", "-j", id, "-o", "JobID,NTasks,MaxRSSNode"}), "1.0|2|dgx-h100-1\n");
  const std::string peak = out({"sstat", "-nP", "--noconvert", "-j", "1.0", "-o", "MaxRSS"});
  EXPECT_GE(std::stoll(peak), 200LL << 20);
  EXPECT_EQ(out({"sstat", "-anP", "-j", id, "-o", "jobid"}), "1.batch\n1.0\n");
  EXPECT_EQ(out({"sstat", "-nP", "-j", "1.batch", "-o", "JobID,NTasks"}), "1.batch|1\n");
  EXPECT_EQ(out({"sstat", "-j", id, "-p", "-o", "JobID,AveVMSize"}), "JobID|AveVMSize|\n1.0||\n");
  EXPECT_NE(out({"sstat", "-nP", "-i", "-j", id}).find("1.0|dgx-h100-1|"), std::string::npos);
  EXPECT_NE(out({"sstat", "-e"}).find("MaxRSSTask"), std::string::npos);
  EXPECT_NE(refusal({"sstat"}).find("didn't give me any jobs"), std::string::npos);
  EXPECT_NE(refusal({"sstat", "-j", id, "-o", "nope"}).find("\"nope\""), std::string::npos);
  EXPECT_NE(refusal({"sstat", "-j", "1.7"}).find("no steps running for job 1.7"),
            std::string::npos);
  ::close(gate);
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_NE(refusal({"sstat", "-j", id}).find("no steps running"), std::string::npos);
}

// A task that srun has nothing to do for has its terminal, its signals and its end.
TEST_F(Records, AStepOfOneTaskBehavesAsIfItWereSrun) {
  const std::string id =
      run({},
          "srun sh -c 'trap \"echo caught; exit 5\" TERM; touch on;"
          " while true; do sleep 0.2; done' & "
          "until [ -e on ]; do sleep 0.2; done; kill -TERM $!; wait $!; echo $?\n"
          "srun sh -c 'kill -SEGV $$'; echo $?\n"
          "echo in | srun cat\n");
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  EXPECT_EQ(read_file(path("slurm-1.out")).substr(0, 9), "caught\n5\n");
  EXPECT_NE(read_file(path("slurm-1.out")).find("139\nin\n"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::e2e
