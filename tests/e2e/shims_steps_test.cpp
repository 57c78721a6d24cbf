#include "shims_fixture.h"

// srun in a batch script: the streams, CPUs and room of its tasks.

namespace gpu_platform::e2e {
namespace {

class Steps : public SlurmCommands {
 protected:
  // The output of a batch script that must complete.
  std::string output_of(std::vector<std::string> options, const std::string& script) const {
    write("job.sh", "#!/bin/bash\n" + script);
    options.insert(options.end(), {"-e", "err.txt", "job.sh"});
    const std::string id = sbatch(options);
    EXPECT_TRUE(reaches(id, "COMPLETED")) << read_file(path("err.txt"));
    return read_file(path("slurm-" + id + ".out"));
  }
};

TEST_F(Steps, LabelsBeginEachLineWithTheNumberOfItsTask) {
  const std::string said = output_of(
      {"-n2"},
      "srun -l sh -c 'test $SLURM_PROCID = 0 && { echo a; printf b; } || echo c >&2' 2>&1 | sort\n"
      "srun -l -n11 -o all.txt true; srun -n11 -l -o all.txt echo x; sort all.txt | head -n1\n");
  EXPECT_EQ(said, "0: a\n0: b\n1: c\n 0: x\n");
}

TEST_F(Steps, InputGoesToAllTasksOrToTheOneThatIsNamed) {
  const std::string said =
      output_of({"-n2"},
                "echo hello | srun -l cat | sort\n"
                "echo hello | srun --input=1 -l cat\n"
                "echo hello | srun -i none -l cat\n"
                "echo file-1 > in-1; echo file-0 > in-0; srun -l --input=in-%t cat | sort\n"
                "seq 100000 | srun -n2 sha1sum | sort -u | wc -l\n"
                "yes | srun -n2 true; echo done\n");
  EXPECT_EQ(said, "0: hello\n1: hello\n1: hello\n0: file-0\n1: file-1\n1\ndone\n");
}

TEST_F(Steps, OutputFilesAreNamedByTaskStepAndJob) {
  const std::string said =
      output_of({"-n2"},
                "srun -o s%s-t%t-n%n.txt true\nsrun -o s%s-t%t-%j-%J-%N-n%n.txt echo hi\n"
                "srun --output=0 sh -c 'echo $SLURM_PROCID'\nsrun --output=none echo no\n"
                "ls s*.txt | tr '\\n' ' '\n");
  EXPECT_EQ(said,
            "0\ns0-t0-n0.txt s0-t1-n0.txt s1-t0-1-1.1-dgx-h100-1-n0.txt "
            "s1-t1-1-1.1-dgx-h100-1-n0.txt ");
}

TEST_F(Steps, ALaterStepLeavesTheFilesOfAnEarlierOneAlone) {
  EXPECT_EQ(output_of({"-n2"}, "srun -o s%s.txt echo hi; srun -o s%s.txt true; cat s0.txt\n"),
            "hi\nhi\n");
}

TEST_F(Steps, EachTaskRunsItsProgramOfTheFile) {
  write("parts.conf", "# the first leads\n0 echo lead %t\n* sh -c 'echo \"$0\" $1' work-%o\n");
  EXPECT_EQ(output_of({"-n3"}, "srun -l --multi-prog parts.conf more | sort\n"),
            "0: lead 0 more\n1: work-0 more\n2: work-1 more\n");
  EXPECT_EQ(out({"srun", "-n1", "--multi-prog", "parts.conf"}), "lead 0\n");
  write("bad.conf", "0 echo\n");
  EXPECT_NE(output_of({"-n2"}, "srun --multi-prog bad.conf 2>&1; true\n").find("task 1"),
            std::string::npos);
}

TEST_F(Steps, TasksAreBoundToTheCpusThatAreNamed) {
  const std::string said = output_of(
      {"-n2", "--gpus=1"},
      "first=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')\n"
      "srun --cpu-bind=v,map_cpu:$first sh -c 'taskset -cp $$ | sed \"s/.*: //\"' 2>verbose.txt |"
      " sed \"s/^$first$/bound/\"\n"
      "grep -c 'cpu-bind=MAP  - dgx-h100-1, task ' verbose.txt\n"
      "srun -n1 --cpu-bind=map_cpu:8000 true 2>&1 | sed 's/.*error: //'\n"
      "srun -n1 --cpu_bind=sockets true 2>&1 | grep -o 'error: --cpu-bind'\n");
  EXPECT_EQ(said,
            "bound\nbound\n2\ntask 0: --cpu-bind: CPU 8000 is not one of the job's\n"
            "error: --cpu-bind\n");
}

TEST_F(Steps, MemoryIsSharedOutAmongTheStepsThatAskForIt) {
  const std::string said = output_of(
      {"-n2", "-c1", "--mem=1000"},
      "srun -n1 --exact --mem=600 sh -c 'touch on; until [ -e off ]; do sleep 0.2; done' &\n"
      "until [ -e on ]; do sleep 0.2; done\n"
      "srun -n1 --exact --mem=600 --immediate echo no; echo $?\n"
      "srun -n1 --exact --mem-per-cpu=300 echo yes\n"
      "srun -n1 --exact --mem=0 echo all\n"
      "srun -n1 --exact --mem=1001 true 2>&1 | sed 's/.*error: //'\n"
      "touch off; wait\n");
  EXPECT_EQ(said, "1\nyes\nall\n--mem: the step asks for 1001 MiB and the job has 1000 MiB\n");
}

TEST_F(Steps, AStepWaitsForRoomAsLongAsItIsTold) {
  const std::string said = output_of(
      {"--gpus=1"},
      "srun -n1 sh -c 'touch on; until [ -e off ]; do sleep 0.2; done' &\n"
      "until [ -e on ]; do sleep 0.2; done\n"
      "srun --immediate=1 echo no; echo $?\n"
      "srun --immediate=600 echo yes & until grep -q 'step waits' err.txt; do sleep 0.2; done\n"
      "touch off; wait\n");
  EXPECT_EQ(said, "1\nyes\n");
}

TEST_F(Steps, OneCtrlCTellsOfTheTasksAndTwoEndThem) {
  const std::string said = output_of(
      {"-n3"},
      "tasks='trap \"echo caught; exit 3\" INT; trap \"\" TERM; touch on-$SLURM_PROCID; while "
      "true; do sleep 0.2; "
      "done'\n"
      "begin() { rm -f on-*; srun $1 sh -c \"$tasks\" > out.txt 2> said.txt & srun=$!;"
      " until [ $(ls on-* 2>/dev/null | wc -l) = 3 ]; do sleep 0.2; done; }\n"
      "begin\nkill -INT $srun; until grep -q running said.txt; do sleep 0.2; done\n"
      "cat said.txt; n=1\n"
      "until grep -q sending said.txt; do kill -INT $srun; n=$((n + 1));"
      " until [ $(grep -cE 'interrupt|sending' said.txt) -ge $n ]; do sleep 0.2; done; done\n"
      "wait $srun; grep -c sending said.txt; cat out.txt\n"
      "begin --quit-on-interrupt; kill -INT $srun; wait $srun; grep -c interrupt said.txt\n"
      "tasks='touch on-$SLURM_PROCID; exec sleep 600'\n"
      "begin; kill -TERM $srun; wait $srun; echo $?\n");
  EXPECT_TRUE(
      said.starts_with("srun: interrupt (one more within 1 sec to abort)\n"
                       "srun: StepId=1.0 tasks 0-2: running\n1\ncaught\ncaught\ncaught\n"))
      << said;
  EXPECT_TRUE(said.ends_with("0\n143\n")) << said;
}

// /etc/profile sets PATH anew, and then reads the file of the installation.
TEST_F(Steps, ALoginShellKeepsTheCommands) {
  EXPECT_EQ(
      output_of({"-n2"},
                "PATH=/usr/bin:/bin; . " GP_SOURCE_DIRECTORY
                "/deploy/profile.d/gpu-platform-slurm.sh\n"
                "srun -n1 echo found; echo $MASTER_ADDR ${MASTER_PORT:+port}\n"
                "unset GPU_PLATFORM_SLURM_COMMANDS; PATH=/usr/bin:/bin; . " GP_SOURCE_DIRECTORY
                "/deploy/profile.d/gpu-platform-slurm.sh; echo $PATH\n"),
      "found\n127.0.0.1 port\n/usr/bin:/bin\n");
}

// A program that writes to a pipe keeps what it has written until much of it has come.
TEST_F(Steps, UnbufferedProgramsWriteLineByLine) {
  const std::string said =
      output_of({}, "srun -u sh -c 'test -t 1 && echo terminal; test -t 2 || echo no' | cat\n");
  EXPECT_EQ(said, "terminal\nno\n");
}

TEST_F(Steps, OptionsThatHaveNoMeaningOnOneNodeAreRefused) {
  const std::string said = output_of(
      {}, "srun -r0 echo first; srun --relative=1 true 2>&1; srun --bcast true 2>&1; true\n");
  EXPECT_TRUE(said.starts_with("first\nsrun: error: --relative: the job has one node")) << said;
  EXPECT_NE(said.find("srun: error: --bcast: "), std::string::npos) << said;
}

TEST_F(Steps, OnlyTheVariablesThatExportNamesReachTheTasks) {
  EXPECT_EQ(output_of({},
                      "export A=1 B=2 C=3\n"
                      "srun --export=A,C=9 sh -c 'echo $A.$B.$C.$SLURM_JOB_ID'\n"
                      "srun --export=ALL,A=7 sh -c 'echo $A.$B'\n"
                      "srun --export=NONE sh -c 'echo $A.$B.$SLURM_PROCID'\n"
                      "srun --chdir=/tmp pwd\n"),
            "1..9.1\n7.2\n..0\n/tmp\n");
}

}  // namespace
}  // namespace gpu_platform::e2e
