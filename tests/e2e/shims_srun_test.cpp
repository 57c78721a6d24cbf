#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "shims_fixture.h"

// srun outside of a job: its streams and signals are those of the tasks, and its end is that of the
// job.

namespace gpu_platform::e2e {
namespace {

class Srun : public SlurmCommands {
 protected:
  using Lines = std::vector<std::string>;

  Finished shell(const std::string& script, const std::string& input = {}) const {
    return call({"bash", "-c", script}, {}, input);
  }
  static std::vector<std::string> sorted_lines(const std::string& text) {
    auto lines = lines_of(text);
    std::ranges::sort(lines);
    return lines;
  }
};

TEST_F(Srun, StandardInputGoesToTheTasks) {
  EXPECT_EQ(call({"srun", "cat"}, {}, "x\n").out, "x\n");
  EXPECT_EQ(sorted_lines(call({"srun", "-n3", "-l", "cat"}, {}, "x\n").out),
            (Lines{"0: x", "1: x", "2: x"}));
  EXPECT_EQ(call({"srun", "-n3", "--input=1", "-l", "cat"}, {}, "x\n").out, "1: x\n");
  EXPECT_EQ(call({"srun", "-n2", "-i", "none", "cat"}, {}, "x\n").out, "");
  write("in.txt", "file\n");
  EXPECT_EQ(call({"srun", "-i", "in.txt", "cat"}, {}, "x\n").out, "file\n");
  const Finished all = shell("seq 200000 | srun -n2 sha1sum | sort -u; seq 200000 | sha1sum");
  ASSERT_EQ(lines_of(all.out).size(), 2U) << all.out << all.err;
  EXPECT_EQ(lines_of(all.out)[0], lines_of(all.out)[1]);
  // As in Slurm, srun reads what is there for the loop, too.
  EXPECT_EQ(shell("printf 'a\\nb\\n' | while read line; do echo $line; srun cat; done").out,
            "a\nb\n");
}

TEST_F(Srun, StandardErrorStaysApart) {
  const Finished finished = call({"srun", "sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(finished.out, "out\n");
  EXPECT_EQ(finished.err, "err\n");
  const Finished labelled = call({"srun", "-n2", "-l", "sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(sorted_lines(labelled.out), (Lines{"0: out", "1: out"}));
  EXPECT_EQ(sorted_lines(labelled.err), (Lines{"0: err", "1: err"}));
  const Finished apart = call({"srun", "-e", "err.txt", "sh", "-c", "echo out; echo err >&2"});
  EXPECT_EQ(apart.out + apart.err, "out\n");
  EXPECT_EQ(read_file(path("err.txt")), "err\n");
  const Finished missing = call({"srun", "/no/such/program"});
  EXPECT_EQ(missing.out, "");
  EXPECT_NE(missing.err.find("/no/such/program"), std::string::npos) << missing.err;
}

TEST_F(Srun, TasksHaveThreeDescriptorsAlone) {
  const std::string list = "echo /proc/self/fd/*";
  const std::string outside = call({"srun", "bash", "-c", list}).out;
  const std::string id = sbatch(
      {"-n2", "--wrap",
       "exec 7</dev/null; srun -n2 bash -c '" + list + "'; srun -n1 bash -c '" + list + "'"});
  ASSERT_TRUE(reaches(id, "COMPLETED"));
  // The shell opens the folder as a fourth one to read it.
  const std::string three = "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3\n";
  EXPECT_EQ(outside, three);
  EXPECT_EQ(read_file(path("slurm-" + id + ".out")), three + three + three);
}

TEST_F(Srun, EndsOfTasksThatFailAreToldByNode) {
  const Finished codes =
      call({"srun", "-n3", "sh", "-c", "sleep 0.$SLURM_PROCID; exit $SLURM_PROCID"});
  EXPECT_EQ(codes.exit_code, 2);
  EXPECT_EQ(codes.err,
            "srun: error: dgx-h100-1: task 1: Exited with exit code 1\n"
            "srun: error: dgx-h100-1: task 2: Exited with exit code 2\n");
  const Finished killed = call({"srun", "sh", "-c", "kill -KILL $$"});
  EXPECT_EQ(killed.exit_code, 137);
  EXPECT_EQ(killed.err, "srun: error: dgx-h100-1: task 0: Killed\n");
  EXPECT_EQ(daemon.job("2")["signal"], "SIGKILL");
}

// Each case: the signals to srun, its exit code, what the tasks saw.
TEST_F(Srun, SignalsGoOnToTheTasksAndNoJobIsLeft) {
  write("task.sh",
        "trap 'echo got USR1' USR1\ntrap 'echo got INT' INT\ntrap 'echo got TERM' TERM\n"
        "touch on-$SLURM_PROCID\nuntil [ -e off ]; do sleep 0.2; done\ntrue\n");
  const auto signalled = [&](const std::string& options, const std::string& kills) {
    return shell("rm -f on-* off out err; srun -n2 " + options +
                 " sh task.sh >out 2>err & p=$!\n"
                 "said() { until grep -q \"$1\" out err; do sleep 0.2; done; }\n"
                 "until [ -e on-0 ] && [ -e on-1 ]; do sleep 0.2; done\n" +
                 kills + "\nwait $p; echo $?; sort -u out; grep ^srun err");
  };
  EXPECT_EQ(signalled("", "kill -USR1 $p; said USR1; touch off").out, "0\ngot USR1\n");
  EXPECT_EQ(signalled("", "kill -INT $p; said running; touch off").out,
            "0\nsrun: interrupt (one more within 1 sec to abort)\n"
            "srun: StepId=2.0 tasks 0-1: running\n");
  EXPECT_EQ(signalled("-X", "kill -INT $p; said INT; touch off").out,
            "0\ngot INT\nsrun: sending Ctrl-C to StepId=3.0\n");
  const std::string ended = signalled("", "kill -TERM $p").out;
  EXPECT_TRUE(ended.starts_with("137\nsrun: forcing job termination\n")) << ended;
  EXPECT_TRUE(signalled("", "kill -HUP $p").out.starts_with("137\n"));
  EXPECT_TRUE(signalled("", "kill -KILL $p").out.starts_with("137\n"));
  const std::string quit = signalled("--quit-on-interrupt", "kill -INT $p").out;
  EXPECT_TRUE(quit.starts_with("137\n")) << quit;
  EXPECT_TRUE(eventually([&] { return out({"squeue", "-h"}).empty(); }));
}

TEST_F(Srun, TwoCtrlCEndTheTasks) {
  const std::string said =
      shell(
          "srun sh -c 'touch on; exec sleep 600' 2>err & p=$!\n"
          "until [ -e on ]; do sleep 0.2; done\n"
          "until grep -q sending err; do kill -INT $p; sleep 0.1; done; wait $p; echo $?")
          .out;
  EXPECT_EQ(said, "130\n");
  EXPECT_TRUE(eventually([&] { return out({"squeue", "-h"}).empty(); }));
}

TEST_F(Srun, AJobThatWaitsGoesWithItsSrun) {
  const std::string hog = sbatch({"--gpus=8", "--wrap=sleep 600"});
  ASSERT_TRUE(reaches(hog, "RUNNING"));
  for (const char* signal : {"INT", "TERM", "USR1", "HUP"}) {
    const Finished finished =
        shell(std::string("rm -f err; srun --gpus=1 true 2>err & p=$!\n"
                          "until grep -q queued err; do sleep 0.2; done; kill -") +
              signal + " $p; wait $p; echo $?; cat err");
    const std::string id = out({"squeue", "-ho", "%A", "-t", "CA"});
    EXPECT_TRUE(finished.out.starts_with("1\nsrun: job ")) << finished.out;
    EXPECT_NE(finished.out.find(" has been revoked\n"), std::string::npos) << finished.out;
  }
  EXPECT_EQ(out({"squeue", "-ho", "%A"}), hog + "\n");
}

TEST_F(Srun, ImmediateGivesUpInTime) {
  const std::string hog = sbatch({"--gpus=8", "--wrap=sleep 600"});
  ASSERT_TRUE(reaches(hog, "RUNNING"));
  const std::string busy = "error: Unable to allocate resources: Requested nodes are busy\n";
  EXPECT_EQ(refusal({"srun", "--gpus=1", "--immediate", "true"}), "srun: " + busy);
  EXPECT_EQ(refusal({"srun", "--gpus=1", "-I2", "true"}),
            "srun: job 3 queued and waiting for resources\nsrun: " + busy);
  EXPECT_EQ(refusal({"salloc", "--gpus=1", "-I", "true"}),
            "salloc: " + busy + "salloc: Job allocation 4 has been revoked.\n");
  EXPECT_EQ(out({"squeue", "-ho", "%A"}), hog + "\n");
  const Finished fits = call({"srun", "--gpus=0", "--immediate", "echo", "yes"});
  EXPECT_EQ(fits.out + fits.err, "yes\n");
}

// The daemon is no part of the way between srun and its tasks.
TEST_F(Srun, ARestartOfTheDaemonLosesNothing) {
  const std::string begin =
      "mkfifo pipe; srun cat <pipe >out 2>err & p=$!; exec 5>pipe; echo one >&5\n"
      "until grep -q one out; do sleep 0.2; done; touch killed-now\n"
      "until [ -e goes-on ]; do sleep 0.2; done; echo two >&5; exec 5>&-; wait $p; echo $?\n";
  std::string said;
  std::thread caller([&] { said = shell(begin).out; });
  ASSERT_TRUE(eventually([&] { return call({"test", "-e", "killed-now"}).exit_code == 0; }));
  daemon.kill_now();
  ASSERT_TRUE(daemon.start());
  write("goes-on", "");
  caller.join();
  EXPECT_EQ(said, "0\n") << read_file(path("err"));
  EXPECT_EQ(read_file(path("out")), "one\ntwo\n");
}

}  // namespace
}  // namespace gpu_platform::e2e
