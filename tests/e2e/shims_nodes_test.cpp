// Slurm's commands and jobs on several emulated nodes of this host, and the names of the site.

#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shims_fixture.h"

namespace gpu_platform::e2e {
namespace {

using Lines = std::multiset<std::string>;

Lines lines_in(const std::string& text) {
  std::istringstream in(text);
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

class SlurmNodes : public SlurmCommands {
 protected:
  SlurmNodes() : SlurmCommands({.emulate = "3xdgx-h100"}) {}

  // Submits a script and returns what it has printed in the end.
  std::string output_of(std::vector<std::string> options, const std::string& script) {
    write("job.sh", "#!/bin/bash\n" + script);
    options.insert(options.end(), {"-o", "out.txt", "--open-mode=truncate", "job.sh"});
    id_ = sbatch(std::move(options));
    EXPECT_TRUE(!id_.empty() && eventually([&] { return !daemon.job(id_)["ended_at"].is_null(); }))
        << daemon.job(id_);
    return read_file(path("out.txt"));
  }
  Lines lines_of_job(std::vector<std::string> options, const std::string& script) {
    return lines_in(output_of(std::move(options), script));
  }
  std::vector<std::string> nodes() const {
    std::vector<std::string> names;
    const auto status = nlohmann::json::parse(daemon.cli({"status", "--json"}).out);
    for (const auto& node : status["nodes"]) names.push_back(node["name"]);
    std::ranges::sort(names);  // Slurm's order
    return names;
  }

  std::string id_;
};

TEST_F(SlurmNodes, TheScriptRunsOnceAndItsTasksOnAllNodes) {
  const Lines lines = lines_of_job(
      {"-N2", "--ntasks-per-node=2", "--gpus-per-node=4"},
      "echo batch $SLURM_NNODES $SLURM_JOB_NUM_NODES $SLURM_NTASKS $SLURM_TASKS_PER_NODE "
      "$SLURM_NTASKS_PER_NODE $SLURM_NODEID $SLURM_GPUS_ON_NODE\n"
      "srun bash -c 'echo task $SLURM_PROCID node $SLURM_NODEID local $SLURM_LOCALID gtids "
      "$SLURM_GTIDS of $SLURM_STEP_TASKS_PER_NODE $(echo $CUDA_VISIBLE_DEVICES | tr , \"\\n\" | wc "
      "-l)'\n");
  EXPECT_EQ(lines, (Lines{"batch 2 2 4 2(x2) 2 0 4", "task 0 node 0 local 0 gtids 0,1 of 2(x2) 4",
                          "task 1 node 0 local 1 gtids 0,1 of 2(x2) 4",
                          "task 2 node 1 local 0 gtids 2,3 of 2(x2) 4",
                          "task 3 node 1 local 1 gtids 2,3 of 2(x2) 4"}));
  EXPECT_EQ(daemon.job(id_)["state"], "COMPLETED");
}

TEST_F(SlurmNodes, TheNodesOfTheListAreThoseOfTheTasks) {
  const std::string text =
      output_of({"-N3", "-G3"},
                "scontrol show hostnames\necho first $SLURMD_NODENAME\n"
                "srun bash -c 'echo $SLURM_NODEID $SLURMD_NODENAME $GPU_EMULATOR_STATE' | sort\n");
  const std::vector<std::string> lines = e2e::lines_of(text);
  ASSERT_EQ(lines.size(), 7U) << text;
  EXPECT_EQ(lines[3], "first " + lines[0]);
  for (int node = 0; node < 3; ++node) {
    const std::string& line = lines[static_cast<std::size_t>(4 + node)];
    const std::string& name = lines[static_cast<std::size_t>(node)];
    EXPECT_TRUE(line.starts_with(std::to_string(node) + " " + name + " ")) << text;
    EXPECT_NE(line.find("/" + name + "/"), std::string::npos) << "the node's board: " << line;
  }
}

TEST_F(SlurmNodes, TasksOnEachNodeMakeTheNumberOfNodes) {
  EXPECT_EQ(lines_of_job({"-n3", "--ntasks-per-node=1"}, "srun bash -c 'echo $SLURM_NODEID'\n"),
            (Lines{"0", "1", "2"}));
  EXPECT_EQ(
      lines_of_job({"-n3", "--tasks-per-node=2"}, "echo $SLURM_NNODES $SLURM_TASKS_PER_NODE\n"),
      (Lines{"2 2,1"}));
  EXPECT_EQ(lines_of_job({"-N2"}, "echo $SLURM_TASKS_PER_NODE x$SLURM_NTASKS\nsrun echo t\n"),
            (Lines{"1(x2) x", "t", "t"}));
}

TEST_F(SlurmNodes, GpusOfAJobAreSharedOutEqually) {
  EXPECT_EQ(lines_of_job({"-N2", "--gpus=4"}, "echo $SLURM_GPUS_ON_NODE $SLURM_GPUS\n"),
            (Lines{"2 4"}));
  EXPECT_EQ(lines_of_job({"--gpus=16", "--gpus-per-node=8"}, "echo $SLURM_NNODES\n"), (Lines{"2"}));
  EXPECT_EQ(lines_of_job(
                {"-N2", "--ntasks-per-node=2", "--gpus-per-task=1"},
                "srun bash -c 'echo $SLURMD_NODENAME $CUDA_VISIBLE_DEVICES' | sort -u | wc -l\n"),
            (Lines{"4"}));
  EXPECT_NE(refusal({"sbatch", "-N2", "--gpus=3", "--wrap=true"}).find("--gpus: 3 GPUs cannot"),
            std::string::npos);
}

TEST_F(SlurmNodes, StepsTakeNodesOfTheirOwn) {
  const Lines lines = lines_of_job(
      {"-N2", "--gpus-per-node=1"},
      "srun -N1 -n1 --exact bash -c 'echo a > ready; until [ -e done ]; do sleep 0.2; done; echo "
      "$SLURM_NODEID $SLURM_STEP_NODELIST $SLURM_STEP_NUM_NODES' > first &\n"
      "until [ -e ready ]; do sleep 0.2; done\n"
      "srun -N1 -n1 --exact bash -c 'echo $SLURM_NODEID $SLURM_STEP_NODELIST' > second\n"
      "touch done\nwait\n"
      "cut -d' ' -f2 first second | sort -u | wc -l\ncut -d' ' -f1,3 first\n"
      "srun -N5 true\necho $?\nsrun -w $SLURMD_NODENAME bash -c 'echo $SLURM_STEP_NUM_NODES'\n");
  EXPECT_TRUE(lines.contains("2")) << "two nodes for two steps";
  EXPECT_TRUE(lines.contains("0 1"));
  EXPECT_TRUE(lines.contains("srun: error: --nodes: Only allocated 2 nodes asked for 5"))
      << read_file(path("out.txt"));
  EXPECT_TRUE(lines.contains("1"));
}

TEST_F(SlurmNodes, RelativePassesOverTheFirstNodes) {
  const Lines lines = lines_of_job(
      {"-N3", "--gpus-per-node=1"},
      "scontrol show hostnames | sed 's/^/name /'\n"
      "srun -r1 bash -c 'echo two $SLURM_STEP_NUM_NODES'\n"
      "srun -r2 -l -o node-%n-%N.txt bash -c 'echo $SLURMD_NODENAME'; cat node-0-*.txt\n"
      "srun -r3 true\nsrun -r1 -N3 true\nsrun -r1 -w $SLURMD_NODENAME true\n");
  EXPECT_EQ(lines.count("two 2"), 2U) << read_file(path("out.txt"));
  EXPECT_TRUE(lines.contains("0: " + nodes().back())) << read_file(path("out.txt"));
  EXPECT_TRUE(lines.contains("srun: error: --relative: the job has 3 nodes, numbered from 0 on"));
  EXPECT_TRUE(lines.contains("srun: error: --nodes: Only allocated 2 nodes asked for 3"));
  EXPECT_TRUE(lines.contains(
      "srun: error: --relative: it is not for a step that names nodes with -w or -x"));
}

TEST_F(SlurmNodes, AnAllocationHasSeveralNodesAndReadsItsVariables) {
  const Finished finished =
      call({"salloc", "-Q", "-N2", "sh", "-c",
            "echo $SLURM_NNODES $SLURM_GPUS; SLURM_LABELIO=1 srun sh -c 'echo $SLURM_NODEID; test "
            "-e $GPU_EMULATOR_STATE && echo board' | sort; srun -l -N1 -n1 -r1 echo one"},
           {"SALLOC_GPUS_PER_NODE=2", "SALLOC_JOB_NAME=no"});
  EXPECT_EQ(finished.out, "2 4\n0: 0\n0: board\n1: 1\n1: board\n0: one\n") << finished.err;
}

TEST_F(SlurmNodes, TasksAreSpreadAsTheDistributionSays) {
  EXPECT_EQ(lines_of_job({"-N2", "-n4", "-m", "cyclic"},
                         "srun bash -c 'echo $SLURM_PROCID:$SLURM_NODEID'\n"),
            (Lines{"0:0", "1:1", "2:0", "3:1"}));
  EXPECT_EQ(
      lines_of_job({"-N2", "-n4"}, "srun -m plane=2 bash -c 'echo $SLURM_PROCID:$SLURM_NODEID'\n"),
      (Lines{"0:0", "1:0", "2:1", "3:1"}));
  EXPECT_NE(refusal({"sbatch", "-N2", "-m", "arbitrary", "--wrap=true"}).find("--distribution"),
            std::string::npos);
}

TEST_F(SlurmNodes, SrunOfItsOwnRunsOnAllNodes) {
  const Finished finished =
      call({"srun", "-N2", "--ntasks-per-node=1", "-G2", "sh", "-c",
            "echo $SLURM_PROCID $SLURM_NODEID $SLURM_NNODES $SLURM_GPUS_ON_NODE"});
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_EQ(lines_in(finished.out), (Lines{"0 0 2 1", "1 1 2 1"}));
}

TEST_F(SlurmNodes, TheEndOfTheJobEndsItsTasksOnAllNodes) {
  write("job.sh",
        "#!/bin/sh\n#SBATCH -N2 -o out.txt\n"
        "srun sh -c 'echo $$ >> pids; while :; do sleep 0.2; done'\n");
  const std::string id = sbatch({"job.sh"});
  ASSERT_TRUE(eventually([&] { return lines_in(read_file(path("pids"))).size() == 2; }));
  EXPECT_EQ(out({"scancel", id}), "");
  EXPECT_TRUE(reaches(id, "CANCELLED"));
  for (const std::string& pid : lines_in(read_file(path("pids"))))
    EXPECT_TRUE(eventually([&] { return ::access(("/proc/" + pid).c_str(), F_OK) != 0; })) << pid;
}

TEST_F(SlurmNodes, ARangeOfNodesIsItsFewestAndSaysSo) {
  const Finished finished = call({"sbatch", "--nodes=2-3", "--wrap=true"});
  EXPECT_EQ(finished.exit_code, 0);
  EXPECT_NE(finished.err.find("--nodes=2-3: the job gets 2 nodes"), std::string::npos)
      << finished.err;
  const Finished fewer = call({"sbatch", "-N3", "-n2", "--wrap=true"});
  EXPECT_NE(fewer.err.find("can't run 2 processes on 3 nodes, setting nnodes to 2"),
            std::string::npos)
      << fewer.err;
  EXPECT_NE(refusal({"sbatch", "-N4", "--gpus-per-node=1", "--wrap=true"}), "");
}

TEST_F(SlurmNodes, NamedNodesAreAllTheJobs) {
  const auto names = nodes();
  const std::string both = names[0] + "," + names[1];
  EXPECT_EQ(lines_of_job({"-w", both}, "echo $SLURM_NNODES\n"), (Lines{"2"}));
  EXPECT_NE(refusal({"sbatch", "-N1", "-w", both, "--wrap=true"}).find("--nodelist: it names 2"),
            std::string::npos);
}

TEST_F(SlurmNodes, PartsThatAreAlikeAreOneGang) {
  write("het.sh",
        "#!/bin/bash\n#SBATCH -N1 --gpus-per-node=2 -o out.txt\n#SBATCH hetjob\n"
        "#SBATCH -N2 --gpus-per-node=2\n"
        "echo $SLURM_HET_SIZE $SLURM_NNODES $SLURM_JOB_NODELIST_HET_GROUP_1\n"
        "show='echo $1 $SLURM_PROCID/$SLURM_NTASKS $SLURMD_NODENAME $SLURM_GPUS_ON_NODE'\n"
        "srun bash -c \"$show\" - first\n"
        "srun --het-group=0-1 bash -c \"$show\" - all | sort\n"
        "srun bash -c \"$show\" - head : bash -c \"$show\" - worker | sort\n"
        "srun --het-group=2 true 2>&1\n");
  const std::string id = sbatch({"het.sh"});
  ASSERT_TRUE(eventually([&] { return daemon.job(id)["ended_at"].is_string(); }));
  EXPECT_EQ(lines_of(read_file(path("out.txt"))),
            (std::vector<std::string>{"2 1 dgx-h100-[2-3]", "first 0/1 dgx-h100-1 2",
                                      "all 0/3 dgx-h100-1 2", "all 1/3 dgx-h100-2 2",
                                      "all 2/3 dgx-h100-3 2", "head 0/3 dgx-h100-1 2",
                                      "worker 1/3 dgx-h100-2 2", "worker 2/3 dgx-h100-3 2",
                                      "srun: error: --het-group: '2': the job has parts 0 to 1"}));
  EXPECT_EQ(call({"sbatch", "-N1", ":", "-N2", "--wrap=true"}).exit_code, 0);
}

TEST_F(SlurmNodes, PartsThatDifferAreRefusedWithWhatToDo) {
  write("het.sh", "#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2 -c4\ntrue\n");
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"sbatch", "het.sh"},
           {"sbatch", "-N1", ":", "-N2", "--gpus-per-node=1", "--wrap=true"},
           {"srun", "-N1", "true", ":", "-N2", "true"},
           {"srun", "--het-group=0", "true"},
           {"srun", "--pack-group=0", "true"}}) {
    const std::string said = refusal(words);
    EXPECT_NE(said.find("submit one job for each"), std::string::npos) << words[1] << ": " << said;
  }
  EXPECT_EQ(
      nlohmann::json::parse(daemon.cli({"jobs", "list", "--all", "--json"}).out)["jobs"].size(),
      0U);
}

TEST_F(SlurmNodes, ExclusiveJobsHaveWholeNodes) {
  EXPECT_EQ(lines_of_job({"-N2", "--exclusive"}, "echo $SLURM_GPUS_ON_NODE $SLURM_GPUS\n"),
            (Lines{"8 16"}));
  const auto job = daemon.job(id_);
  const auto nodes = nlohmann::json::parse(daemon.cli({"status", "--json"}).out)["nodes"];
  EXPECT_EQ(job["spec"]["cpus"], nodes[0]["cpus"]) << job;
}

// Where jobs have folders of their own, which takes root.
TEST_F(SlurmNodes, TheNamesOfEmulatedNodesAreReachableInTheJob) {
  const Lines lines = lines_of_job(
      {"-N2"},
      "awk '$5 == \"/tmp\" && $4 ~ \"/tmp/[0-9]+-[0-9]+$\" {print \"own\"}' /proc/self/mountinfo\n"
      "getent hosts $(scontrol show hostnames | head -n 1) | awk '{print $1}'\n"
      "srun -n2 sh -c 'getent hosts $SLURMD_NODENAME >/dev/null; echo $?'\n"
      "echo master $MASTER_ADDR\n");
  const bool has_names = lines.contains("own") && ::access("/etc/hosts", F_OK) == 0;
  EXPECT_EQ(lines.count("127.0.0.1"), has_names ? 1U : 0U);
  EXPECT_EQ(lines.count("0"), has_names ? 2U : 0U);
  EXPECT_EQ(lines.count("master 127.0.0.1"), 1U);
}

TEST_F(SlurmNodes, TestOnlySaysWhenAndWhereTheJobWouldStart) {
  const auto said = [&](const std::vector<std::string>& words, int code = 0) {
    const Finished finished = call(words);
    EXPECT_EQ(finished.exit_code, code) << finished.err;
    EXPECT_EQ(finished.out, "");
    return finished.err;
  };
  const std::string now = said({"srun", "--test-only", "-N2", "--gpus-per-node=2", "true"});
  EXPECT_TRUE(now.starts_with("srun: Job 1 to start at 20")) << now;
  EXPECT_NE(now.find(" processors on nodes dgx-h100-["), std::string::npos) << now;
  const std::string batch = said({"sbatch", "--test-only", "-n2", "-c3", "--wrap=true"});
  EXPECT_NE(batch.find(" using 6 processors on nodes dgx-h100-"), std::string::npos) << batch;
  const std::string never = said({"sbatch", "--test-only", "--gpus-per-node=9", "--wrap=true"}, 1);
  EXPECT_TRUE(
      never.ends_with("allocation failure: Requested node configuration is not available\n"))
      << never;
  EXPECT_TRUE(
      nlohmann::json::parse(daemon.cli({"jobs", "list", "--all", "--json"}).out)["jobs"].empty());
}

TEST_F(SlurmNodes, GpusOfSocketsAndFrequencies) {
  const Finished given =
      call({"srun", "--gpus-per-socket=2", "--sockets-per-node=2", "--gpu-freq=high", "sh", "-c",
            "echo $SLURM_GPUS_ON_NODE $SLURM_GPUS_PER_SOCKET"});
  EXPECT_EQ(given.out, "4 2\n") << given.err;
  EXPECT_NE(given.err.find("warning: --gpu-freq is ignored"), std::string::npos) << given.err;
  EXPECT_EQ(refusal({"sbatch", "--gpus-per-socket=1", "--wrap=true"}),
            "sbatch: error: --gpus-per-socket option requires --sockets-per-node specification\n");
}

constexpr const char* kNames = R"(slurm:
  partitions:
    batch: {max_time: 1d, default_time: 1h}
    h100: {gpu_types: [H100], priority: low, max_gpus: 4, max_nodes: 1}
    l40s: {gpu_types: [L40S], default: true}
  qos:
    normal: {}
    urgent: {priority: high, max_time: 2h}
)";

class SlurmPartitions : public SlurmCommands {
 protected:
  SlurmPartitions() : SlurmCommands({.emulate = "dgx-h100,l40s-x8", .config = kNames}) {}
};

// The nodes are unlike: each is whole by what it has itself.
TEST_F(SlurmPartitions, ExclusiveJobsHaveTheNodeThatIsFreeFirst) {
  const auto nodes = nlohmann::json::parse(daemon.cli({"status", "--json"}).out)["nodes"];
  ASSERT_NE(nodes[0]["cpus"], nodes[1]["cpus"]);
  std::set<nlohmann::json> cpus;
  for (int i = 0; i < 2; ++i) {
    const std::string id = sbatch({"-p", "batch", "--exclusive", "--wrap=sleep 600"});
    ASSERT_TRUE(reaches(id, "RUNNING")) << daemon.job(id);
    cpus.insert(daemon.job(id)["cpus"]);
  }
  EXPECT_EQ(cpus, (std::set<nlohmann::json>{nodes[0]["cpus"], nodes[1]["cpus"]}));
  EXPECT_NE(refusal({"sbatch", "-p", "batch", "-N2", "--exclusive", "--wrap=true"})
                .find("--exclusive: the nodes differ"),
            std::string::npos);
}

TEST_F(SlurmPartitions, AreShownWithTheirNodesAndLimits) {
  const std::string text = out({"sinfo", "-h", "-o", "%P %l %D %G"});
  EXPECT_EQ(lines_in(text),
            (Lines{"batch 1-00:00:00 1 gpu:H100-80GB:8", "batch 1-00:00:00 1 gpu:L40S-48GB:8",
                   "h100 2-00:00:00 1 gpu:H100-80GB:8", "l40s* 2-00:00:00 1 gpu:L40S-48GB:8"}))
      << text;
  EXPECT_NE(out({"scontrol", "show", "partition", "h100"}).find("MaxNodes=1"), std::string::npos);
  EXPECT_NE(out({"sacctmgr", "-n", "-P", "show", "qos", "format=name"}).find("urgent"),
            std::string::npos);
}

TEST_F(SlurmPartitions, StandForTypesPriorityAndTime) {
  const auto h100 = daemon.job(sbatch({"-p", "h100", "-q", "urgent", "-G1", "--wrap=true"}));
  EXPECT_EQ(h100["spec"]["gpu_types"], nlohmann::json::array({"H100"})) << h100;
  EXPECT_EQ(h100["spec"]["priority"], "HIGH");
  EXPECT_EQ(h100["spec"]["time_limit_seconds"], 7200);
  const auto low = daemon.job(sbatch({"-p", "h100", "-G1", "--wrap=true"}));
  EXPECT_EQ(low["spec"]["priority"], "LOW");
  const std::string id = sbatch({"-H", "-p", "batch", "--wrap=true"});
  EXPECT_EQ(daemon.job(id)["spec"]["time_limit_seconds"], 3600);
  EXPECT_EQ(out({"squeue", "-h", "-j", id, "-o", "%P %q"}), "batch normal\n");
  EXPECT_NE(out({"scontrol", "show", "job", id}).find("Partition=batch"), std::string::npos);
  // Without GPUs it is the names of the nodes that keep it to its partition.
  const auto none = daemon.job(sbatch({"--wrap=true"}));
  EXPECT_EQ(none["spec"]["nodelist"].size(), 1U) << none;
}

TEST_F(SlurmPartitions, OfAWaitingJobAreChanged) {
  const std::string id = sbatch({"-H", "-G1", "-p", "batch", "--wrap=true"});
  EXPECT_EQ(out({"scontrol", "update", "JobId=" + id, "Partition=h100", "QOS=urgent"}), "");
  const auto job = daemon.job(id);
  EXPECT_EQ(job["spec"]["gpu_types"], nlohmann::json::array({"H100"})) << job;
  EXPECT_EQ(job["spec"]["priority"], "HIGH");
  EXPECT_EQ(out({"squeue", "-h", "-j", id, "-o", "%P %q"}), "h100 urgent\n");
  const std::string none = sbatch({"-H", "--wrap=true"});
  const auto l40s = daemon.job(none)["spec"]["nodelist"];
  out({"scontrol", "update", "JobId=" + none, "Partition=h100"});
  EXPECT_NE(daemon.job(none)["spec"]["nodelist"], l40s);
  out({"scontrol", "update", "JobId=" + none, "Partition=batch"});
  EXPECT_EQ(daemon.job(none)["spec"]["nodelist"].size(), 0U);
  EXPECT_NE(refusal({"scontrol", "update", "JobId=" + id, "Partition=x"}).find("batch, h100"),
            std::string::npos);
  EXPECT_NE(refusal({"scontrol", "update", "JobId=" + id, "QOS=high"}).find("normal, urgent"),
            std::string::npos);
}

TEST_F(SlurmPartitions, ThatAreUnknownAreRefusedAsInSlurm) {
  const std::string partition = refusal({"sbatch", "-p", "nowhere", "--wrap=true"});
  EXPECT_EQ(partition,
            "sbatch: error: invalid partition specified: nowhere; there are: batch, h100, l40s\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified\n");
  const std::string qos = refusal({"srun", "-q", "gold", "true"});
  EXPECT_EQ(qos,
            "srun: error: invalid qos specified: gold; there are: normal, urgent\n"
            "srun: error: Unable to allocate resources: Invalid qos specification\n");
  EXPECT_NE(refusal({"sbatch", "-p", "h100", "-G5", "--wrap=true"}).find("allows 4"),
            std::string::npos);
  EXPECT_NE(
      refusal({"sbatch", "-p", "batch", "-t", "2-0", "--wrap=true"}).find("Requested time limit"),
      std::string::npos);
}

class SlurmInput : public SlurmCommands {
 protected:
  // A submission with these variables, in JSON.
  nlohmann::json submitted(const std::vector<std::string>& words,
                           const std::vector<std::string>& environment) const {
    const Finished finished = call(words, environment);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return daemon.job(finished.out.substr(0, finished.out.find('\n')));
  }
};

TEST_F(SlurmInput, VariablesStandBetweenDirectivesAndTheCommandLine) {
  write("job.sh", "#!/bin/sh\n#SBATCH --job-name=script --time=10 --gpus=1\ntrue\n");
  const std::vector<std::string> variables = {"SBATCH_JOB_NAME=variable", "SBATCH_TIMELIMIT=20",
                                              "SLURM_TIMELIMIT=40", "SBATCH_GPUS=2"};
  const auto job = submitted({"sbatch", "--parsable", "-J", "line", "job.sh"}, variables);
  EXPECT_EQ(job["spec"]["name"], "line");
  EXPECT_EQ(job["spec"]["time_limit_seconds"], 1200);
  EXPECT_EQ(job["spec"]["gpus"], 2);
}

TEST_F(SlurmInput, SrunReadsItsOwnVariablesAndInAJobNotThoseThatTellOfIt) {
  const Finished outside = call({"srun", "sh", "-c", "echo $SLURM_NTASKS $SLURM_JOB_NAME"},
                                {"SLURM_NTASKS=2", "SLURM_JOB_NAME=mine", "SBATCH_JOB_NAME=other"});
  EXPECT_EQ(lines_in(outside.out), (Lines{"2 mine", "2 mine"})) << outside.err;
  write("job.sh",
        "#!/bin/sh\n#SBATCH -n4 -G2 -o out.txt\nexport SLURM_STDOUTMODE=step-%t.txt\n"
        "SLURM_GPUS=1 srun -n2 sh -c 'echo $SLURM_GPUS_ON_NODE'\n");
  EXPECT_TRUE(reaches(sbatch({"job.sh"}), "COMPLETED"));
  EXPECT_EQ(read_file(path("step-0.txt")) + read_file(path("step-1.txt")), "2\n2\n");
}

TEST_F(SlurmInput, TheListsHaveTheirVariablesToo) {
  const std::string id = sbatch({"-H", "-J", "held", "--wrap=true"});
  EXPECT_EQ(call({"squeue", "-h"}, {"SQUEUE_FORMAT=%i %j"}).out, id + " held\n");
  EXPECT_EQ(call({"squeue", "-h", "-o", "%j"}, {"SQUEUE_FORMAT=%i"}).out, "held\n");
  EXPECT_EQ(call({"squeue", "-h", "-o", "%j"}, {"SQUEUE_NAMES=other"}).out, "");
  EXPECT_EQ(call({"sinfo", "-h"}, {"SINFO_FORMAT=%P"}).out, "gpu*\n");
  const std::string at = call({"squeue", "-h", "-o", "%V"}, {"SLURM_TIME_FORMAT=at %H"}).out;
  EXPECT_TRUE(at.starts_with("at ") && at.size() == 6) << at;
  EXPECT_EQ(call({"scancel", id}, {"SCANCEL_HURRY=1"}).exit_code, 0);
}

TEST_F(SlurmInput, WrongVariablesAreNamed) {
  const Finished finished = call({"sbatch", "--wrap=true"}, {"SBATCH_CONTAINER=image"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_NE(finished.err.find("SBATCH_CONTAINER"), std::string::npos) << finished.err;
}

TEST_F(SlurmInput, ValuesOfEveryWrongKindAreRefusedByTheNameOfTheirOption) {
  const std::vector<std::vector<std::string>> wrong = {{"--nodes", "0"},
                                                       {"--nodes", "x"},
                                                       {"--nodes", "4-2"},
                                                       {"--nodes", ""},
                                                       {"--ntasks", "0"},
                                                       {"--ntasks", "-3"},
                                                       {"--ntasks", "99999999999"},
                                                       {"--cpus-per-task", "x"},
                                                       {"--mem", "-1"},
                                                       {"--mem", "1Q"},
                                                       {"--time", "1:2:3:4"},
                                                       {"--time", "-5"},
                                                       {"--gres", "gpu:x:y"},
                                                       {"--gpus", "-1"},
                                                       {"--gpus-per-node", "x"},
                                                       {"--gpus-per-task", "x"},
                                                       {"--ntasks-per-node", "0"},
                                                       {"--ntasks-per-gpu", "x"},
                                                       {"--cpus-per-gpu", "x"},
                                                       {"--array", "3-1"},
                                                       {"--dependency", "afterok:x"},
                                                       {"--constraint", "nope"},
                                                       {"--nodelist", "nope"},
                                                       {"--nodelist", "n[1-"},
                                                       {"--exclude", "nope"},
                                                       {"--signal", "NOPE"},
                                                       {"--begin", "nope"},
                                                       {"--deadline", "nope"},
                                                       {"--open-mode", "x"},
                                                       {"--distribution", "nope"},
                                                       {"--gpu-bind", "nope"},
                                                       {"--reservation", "nope"},
                                                       {"--output", "%Z"},
                                                       {"--nodes", "9"},
                                                       {"--gpus", "99"},
                                                       {"--time", "9-0"}};
  for (const auto& words : wrong) {
    const std::string said =
        refusal({"sbatch", fmt::format("{}={}", words[0], words[1]), "--wrap=true"});
    const std::string option = "sbatch: error: " + words[0];
    EXPECT_TRUE(said.starts_with(option + ": ") || said.starts_with(option + " "))
        << words[1] << " " << said;
  }
}

TEST_F(SlurmInput, OddScriptsAreRefusedAndLateDirectivesAreNone) {
  write("plain.sh", "echo\n");
  write("dos.sh", "#!/bin/sh\n#SBATCH -n 2\r\necho\r\n");
  write("big.sh", "#!/bin/sh\n" + std::string(5 << 20, '#'));
  write("empty.sh", "");
  for (const auto& [script, why] :
       std::vector<std::pair<std::string, std::string>>{{"plain.sh", "must start with #!"},
                                                        {"dos.sh", "DOS line ends"},
                                                        {"big.sh", "larger than 4 MiB"},
                                                        {"empty.sh", "batch script"}}) {
    const std::string said = refusal({"sbatch", script});
    EXPECT_NE(said.find(script + ": "), std::string::npos) << said;
    EXPECT_NE(said.find(why), std::string::npos) << said;
  }
  write("late.sh", "#!/bin/sh\n#SBATCH -J early\ntrue\n#SBATCH -J late --nodes=99\n");
  EXPECT_EQ(daemon.job(sbatch({"late.sh"}))["spec"]["name"], "early");
}

}  // namespace
}  // namespace gpu_platform::e2e
