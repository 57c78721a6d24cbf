// Batch scripts of the kinds that sites and projects publish, run as they are or refused with what
// to use instead. Launchers such as torchrun are stood in for by a script that prints what they
// would read.

#include <filesystem>
#include <regex>
#include <set>

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shims_fixture.h"
#include "terminal.h"

namespace gpu_platform::e2e {
namespace {

using Lines = std::multiset<std::string>;

// Three nodes of eight H100s each.
class Sites : public SlurmCommands {
 protected:
  explicit Sites(std::string emulate = "3xdgx-h100")
      : SlurmCommands({.emulate = std::move(emulate)}) {}

  void SetUp() override {
    SlurmCommands::SetUp();
    program_of("launcher",
               "echo \"rank ${RANK:-$SLURM_PROCID} of ${WORLD_SIZE:-$SLURM_NTASKS} node "
               "$SLURM_NODEID local $SLURM_LOCALID gpus $(tr , '\\n' <<< $CUDA_VISIBLE_DEVICES | "
               "grep -c .) $*\"\n");
  }
  void program_of(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/bash\n" + text);
    std::filesystem::permissions(path(name), std::filesystem::perms::owner_all);
  }
  // Submits the script as a user would and waits for its end; what it printed.
  std::string printed(const std::string& script, const std::string& state = "COMPLETED") {
    write("job.sh", script);
    const Finished submitted = call({"sbatch", "job.sh"});
    said_ = submitted.err;
    const std::regex id("Submitted batch job (\\d+)\n");
    std::smatch found;
    if (!std::regex_match(submitted.out, found, id)) {
      ADD_FAILURE() << submitted.err << submitted.out;
      return {};
    }
    id_ = found[1];
    EXPECT_TRUE(
        eventually([&] { return daemon.job(id_)["state"] == state; }, std::chrono::seconds(60)))
        << daemon.job(id_) << output();
    return output();
  }
  Lines lines(const std::string& script) {
    const auto each = lines_of(printed(script));
    return Lines(each.begin(), each.end());
  }
  // Standard output and error of the last job, where the script does not say another place.
  std::string output() const {
    for (const auto& file : std::filesystem::directory_iterator(files.path())) {
      const std::string name = file.path().filename();
      if (name == "slurm-" + id_ + ".out" || name.ends_with("-" + id_ + ".out"))
        return read_file(file.path());
    }
    return {};
  }
  std::string refused(const std::string& script) const {
    write("job.sh", script);
    const Finished submitted = call({"sbatch", "job.sh"});
    EXPECT_EQ(submitted.exit_code, 1) << submitted.out << submitted.err;
    EXPECT_EQ(daemon.json({"jobs", "list", "--all"})["jobs"].size(), 0U);
    return submitted.err;
  }
  bool has_said(const std::string& text) const { return said_.find(text) != std::string::npos; }

  std::string id_;    // of the last script
  std::string said_;  // its submission on standard error
};

TEST_F(Sites, ComputingCentreWithAFeatureAndOneGpuForEachTask) {
  const Lines got = lines(R"sh(#!/bin/bash
#SBATCH -A m1234
#SBATCH -C gpu
#SBATCH -q regular
#SBATCH -t 0:10:00
#SBATCH -N 2
#SBATCH --ntasks-per-node=2
#SBATCH -c 32
#SBATCH --gpus-per-task=1

export SLURM_CPU_BIND="cores"
export OMP_PLACES=threads
srun ./launcher
srun --cpu-bind=cores -n 1 ./launcher last
)sh");
  EXPECT_EQ(got.count("rank 0 of 4 node 0 local 0 gpus 1 "), 1U) << output();
  EXPECT_EQ(got.count("rank 3 of 4 node 1 local 1 gpus 1 "), 1U) << output();
  EXPECT_EQ(got.count("rank 0 of 1 node 0 local 0 gpus 1 last"), 1U) << output();
  EXPECT_EQ(daemon.job(id_)["spec"]["team"], "m1234");
  EXPECT_EQ(daemon.job(id_)["spec"]["cpus"], 64);
  EXPECT_TRUE(has_said("regular")) << said_;
}

TEST_F(Sites, StepsSideBySideWithWait) {
  const Lines got = lines(R"sh(#!/bin/bash
#SBATCH --account=m1234_g
#SBATCH --constraint=gpu
#SBATCH --qos=shared
#SBATCH --time=5
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-gpu=2
for i in 1 2 3 4; do
  srun --exact -u -n 1 --gpus-per-task 1 -c 1 --mem-per-gpu=1G \
    bash -c 'touch here.$0; until [ $(ls here.* | wc -l) = 4 ]; do sleep 0.2; done
             echo $CUDA_VISIBLE_DEVICES' $i &
done
wait
)sh");
  EXPECT_EQ(got.size(), 4U) << output();
  EXPECT_EQ(std::set<std::string>(got.begin(), got.end()).size(), 4U) << "each its own GPU";
}

TEST_F(Sites, WholeMemoryOfOneGpuByDaysAndHours) {
  const Lines got = lines(R"sh(#!/bin/bash
#SBATCH --account=def-someprof
#SBATCH --gpus-per-node=h100:1
#SBATCH --cpus-per-task=6
#SBATCH --mem=0
#SBATCH --time=0-03:00
#SBATCH --output=%x-%j.out
nvidia_visible=$CUDA_VISIBLE_DEVICES
echo "cpus $SLURM_CPUS_PER_TASK gpus $SLURM_GPUS_ON_NODE tmp ${SLURM_TMPDIR:-none}"
)sh");
  EXPECT_EQ(got, (Lines{"cpus 6 gpus 1 tmp none"}));
  EXPECT_EQ(daemon.job(id_)["spec"]["time_limit_seconds"], 3 * 3600);
  EXPECT_TRUE(has_said("all memory of a node")) << said_;
  EXPECT_NE(refusal({"sbatch", "--gpus-per-node=a100:1", "--wrap=true"}).find("A100"),
            std::string::npos);
}

// The batch shell is told before the limit and puts the job back into the queue.
TEST_F(Sites, CheckpointAtASignalAndRequeue) {
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH --job-name=resume
#SBATCH --time=00:01:00
#SBATCH --signal=B:USR1@57
#SBATCH --open-mode=append
#SBATCH --requeue
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
  echo "goes on from $(cat checkpoint)"
  exit 0
fi
checkpoint() {
  echo "step 7" > checkpoint
  kill %1
  scontrol requeue $SLURM_JOB_ID
}
trap checkpoint USR1
srun sh -c 'while :; do sleep 0.1; done' &
wait
sleep 30
)sh");
  EXPECT_NE(text.find("goes on from step 7\n"), std::string::npos) << text;
}

TEST_F(Sites, AChainOfAnArrayFromCheckpointToCheckpoint) {
  write("job.sh", R"sh(#!/bin/bash
#SBATCH --account=def-someprof
#SBATCH --cpus-per-task=1
#SBATCH --time=0-10:00
#SBATCH --mem=100M
#SBATCH --array=1-3%1   # Run a 3-job array, one job at a time.
echo "Starting run $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT"
if test -e state.cpt; then
  echo $(($(cat state.cpt) + 1)) > state.cpt
else
  echo 1 > state.cpt
fi
)sh");
  const std::string id = sbatch({"job.sh"});
  ASSERT_TRUE(eventually([&] {
    return out({"squeue", "-h", "-t", "PD,R,CG,CF", "-j", id}).empty() &&
           read_file(path("state.cpt")) == "3\n";
  })) << read_file(path("state.cpt"));
  EXPECT_EQ(read_file(path("slurm-" + id + "_3.out")), "Starting run 3 of 3\n");
}

// One task for each GPU takes the lines of a list in turn.
TEST_F(Sites, AFarmOfCasesInAList) {
  write("list.txt", "case a\ncase b\ncase c\ncase d\ncase e\n");
  program_of("farm",
             "awk -v rank=$SLURM_PROCID -v size=$SLURM_NTASKS '(NR - 1) % size == rank { print "
             "rank, $2 }' $1\n");
  EXPECT_EQ(lines(R"sh(#!/bin/bash
#SBATCH --ntasks=2
#SBATCH --time=00-02:00
#SBATCH --mem-per-cpu=256M
echo "Starting run at: `date`" >/dev/null
srun ./farm list.txt
)sh"),
            (Lines{"0 a", "0 c", "0 e", "1 b", "1 d"}));
}

TEST_F(Sites, UniversityWithMailAndModules) {
  const Lines got = lines(R"sh(#!/bin/bash
#SBATCH --job-name=ddp           # create a short name for your job
#SBATCH --nodes=2                # node count
#SBATCH --ntasks-per-node=2      # total number of tasks per node
#SBATCH --cpus-per-task=1        # cpu-cores per task (>1 if multi-threaded tasks)
#SBATCH --mem-per-cpu=1G         # memory per cpu-core
#SBATCH --gres=gpu:2             # number of gpus per node
#SBATCH --time=00:05:00          # total run time limit (HH:MM:SS)
#SBATCH --mail-type=begin        # send email when job begins
#SBATCH --mail-type=end
#SBATCH --mail-user=someone@example.com
export MASTER_PORT=$(expr 10000 + $(echo -n $SLURM_JOBID | tail -c 4))
export WORLD_SIZE=$(($SLURM_NNODES * $SLURM_NTASKS_PER_NODE))
master_addr=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_ADDR=$master_addr
module purge 2>/dev/null
srun ./launcher $MASTER_PORT
)sh");
  EXPECT_EQ(got.size(), 4U) << output();
  EXPECT_EQ(got.count("rank 3 of 4 node 1 local 1 gpus 2 1000" + id_), 1U) << output();
  EXPECT_TRUE(has_said("--mail-type is ignored: no mail is sent")) << said_;
  EXPECT_EQ(daemon.job(id_)["spec"]["memory_bytes"], std::int64_t{2} << 30);
}

// A node runs one launcher, which starts the ranks; the first node is the one where they meet.
TEST_F(Sites, LargeModelOnWholeNodes) {
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH --job-name=pretrain
#SBATCH --nodes=3
#SBATCH --ntasks-per-node=1      # crucial: one task per node for the launcher
#SBATCH --cpus-per-task=40
#SBATCH --hint=nomultithread
#SBATCH --gres=gpu:8
#SBATCH --time 20:00:00
#SBATCH --output=%x-%j.out
#SBATCH --partition=gpu_p5
#SBATCH --account=six@a100
set -x -e
GPUS_PER_NODE=8
NNODES=$SLURM_NNODES
MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
MASTER_PORT=6000
LAUNCHER="./launcher --nnodes $NNODES --nproc_per_node $GPUS_PER_NODE --rdzv_endpoint $MASTER_ADDR:$MASTER_PORT"
SRUN_ARGS=" \
    --wait=60 \
    --kill-on-bad-exit=1 \
    "
srun $SRUN_ARGS --jobid $SLURM_JOB_ID bash -c "$LAUNCHER --node_rank \$SLURM_PROCID at \$SLURMD_NODENAME" 2>&1 | tee log.txt
)sh");
  const std::string log = read_file(path("log.txt"));
  for (int node = 0; node < 3; ++node) {
    const std::string n = std::to_string(node);
    EXPECT_TRUE(std::regex_search(
        log, std::regex("rank " + n + " of 3 node " + n + " local 0 gpus 8 --nnodes 3 " +
                        "--nproc_per_node 8 --rdzv_endpoint (\\S+):6000 --node_rank " + n + " at " +
                        (node == 0 ? "\\1\n" : "\\S+\n"))))
        << log << text;
  }
}

TEST_F(Sites, AFailingRankEndsTheOthers) {
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=1 --gres=gpu:8 -t 10
srun --wait=60 --kill-on-bad-exit=1 bash -c '[ $SLURM_PROCID = 1 ] && exit 3; sleep 600'
)sh",
                                   "FAILED");
  EXPECT_NE(text.find("srun: error: "), std::string::npos) << text;
  EXPECT_NE(daemon.job(id_)["exit_code"], 0);
}

TEST_F(Sites, ContainersOfAStepAndWithoutAnEngineAreRefusedWithWhatToDo) {
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH -N 2 --ntasks-per-node=1 --gpus-per-node=8 -t 10 -o out-%j.out
srun --container-image=nvcr.io/nvidia/nemo:24.07 --container-mounts=/data:/data \
  --no-container-mount-home bash -c 'echo never'
echo "code $?"
)sh");
  EXPECT_NE(text.find("srun: error: --container-image: a step of a job cannot have an image"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("code 1\n"), std::string::npos);
  EXPECT_NE(refusal({"sbatch", "--container-image=x", "--wrap=true"}).find("--container-image"),
            std::string::npos);
  EXPECT_NE(refusal({"srun", "--container-name=x", "true"}).find("--container-name"),
            std::string::npos);
  const std::size_t jobs = daemon.json({"jobs", "list", "--all"})["jobs"].size();
  write("job.sh", "#!/bin/sh\n#SBATCH --container-image=x\n");
  EXPECT_NE(refusal({"sbatch", "job.sh"}).find("no container engine"), std::string::npos);
  write("job.sh", "#!/bin/sh\n#SBATCH --container-name=x\n");
  EXPECT_NE(refusal({"sbatch", "job.sh"}).find("line 2"), std::string::npos);
  EXPECT_EQ(daemon.json({"jobs", "list", "--all"})["jobs"].size(), jobs);
}

TEST_F(Sites, SeveralCommandsWithAFileForEachNode) {
  printed(R"sh(#!/bin/bash
#SBATCH -A team -p batch -N 2 -t 0:10:00 --ntasks-per-node=2 --gpus-per-node=2
#SBATCH --exclusive --mem=0 --overcommit --dependency=singleton -J team:train
DIR=`pwd`
mkdir -p $DIR/logs
run_cmd="./launcher --save"
srun -l -o "$DIR/logs/log_%j_%n.out" sh -c "${run_cmd}"
srun -o $DIR/logs/%x_%j_$(date +%Y).log sh -c "${run_cmd} again"
)sh");
  EXPECT_NE(read_file(path("logs/log_" + id_ + "_0.out")).find("0: rank 0 of 4"), std::string::npos)
      << said_ << output();
  EXPECT_NE(read_file(path("logs/log_" + id_ + "_1.out")).find("3: rank 3 of 4"),
            std::string::npos);
}

// A head on the first node, workers on all others, and a driver beside them.
TEST_F(Sites, AClusterWithAHeadAndWorkers) {
  program_of("node",
             "echo $* > joined.$1.$SLURMD_NODENAME\nuntil [ -e done ]; do sleep 0.2; done\n");
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH --job-name=cluster
#SBATCH --nodes=3
#SBATCH --exclusive
#SBATCH --tasks-per-node=1
#SBATCH --time=00:10:00
nodes=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
nodes_array=($nodes)
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address | awk '{print $1}')
getent ahosts "$head_node_ip" >/dev/null || exit 9
port=6379
srun --nodes=1 --ntasks=1 -w "$head_node" ./node head --port=$port --num-gpus "${SLURM_GPUS_PER_NODE}" --block &
until [ -e joined.head.$head_node ]; do sleep 0.2; done
worker_num=$((SLURM_JOB_NUM_NODES - 1))
srun --nodes=$worker_num --ntasks=$worker_num --ntasks-per-node=1 --exclude="$head_node" \
  ./node worker --address $head_node_ip:$port --block &
until [ $(ls joined.worker.* | wc -l) = $worker_num ]; do sleep 0.2; done
ls joined.worker.* | sed "s/.*worker[.]//" | grep -c "^$head_node$"
cat joined.head.$head_node
touch done
wait
)sh");
  EXPECT_NE(text.find("head --port=6379 --num-gpus 8 --block\n"), std::string::npos) << text;
  EXPECT_NE(text.find("0\nhead"), std::string::npos) << "no worker on the head: " << text;
}

TEST_F(Sites, WorkersOneByOneOnNamedNodes) {
  const Lines got = lines(R"sh(#!/bin/bash
#SBATCH -N 3 --ntasks-per-node=1 --gpus-per-task=8 --cpus-per-task=8 -t 10
nodes_array=($(scontrol show hostnames $SLURM_NODELIST))
for ((i = 1; i <= SLURM_JOB_NUM_NODES - 1; i++)); do
  srun --nodes=1 --ntasks=1 -w "${nodes_array[$i]}" ./launcher $i &
  sleep 0.1
done
wait
)sh");
  EXPECT_EQ(got,
            (Lines{"rank 0 of 1 node 0 local 0 gpus 8 1", "rank 0 of 1 node 0 local 0 gpus 8 2"}))
      << output();
}

TEST_F(Sites, AccelerateWithTheRankOfEachMachine) {
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH --job-name=multinode
#SBATCH -D .
#SBATCH --output=O-%x.%j
#SBATCH --error=E-%x.%j
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=16
#SBATCH --time=01:59:00
export GPUS_PER_NODE=4
head_node_ip=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export LAUNCHER="./launcher launch \
    --num_processes $((SLURM_NNODES * GPUS_PER_NODE)) \
    --num_machines $SLURM_NNODES \
    --main_process_ip $head_node_ip \
    --machine_rank \$SLURM_PROCID \
    "
export CMD="$LAUNCHER train.py --output_dir out"
srun bash -c "$CMD"
)sh");
  const std::string got = read_file(path("O-multinode." + id_));
  EXPECT_TRUE(std::regex_search(
      got, std::regex("rank 0 of 2 .*--num_processes 8 --num_machines 2 --main_process_ip (\\S+) "
                      "--machine_rank 0 train.py[^\n]*\n")))
      << got << text << read_file(path("E-multinode." + id_));
  EXPECT_NE(got.find("--machine_rank 1 train.py"), std::string::npos) << got;
}

TEST_F(Sites, TorchrunMeetsAtTheAddressOfTheFirstNode) {
  const Lines got = lines(R"sh(#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=2
#SBATCH --gpus-per-task=4
#SBATCH --cpus-per-task=4
#SBATCH --time=10
nodes=( $( scontrol show hostnames $SLURM_JOB_NODELIST ) )
nodes_array=($nodes)
head_node=${nodes_array[0]}
head_node_ip=$(srun --nodes=1 --ntasks=1 -w "$head_node" hostname --ip-address)
echo Node address has $(getent ahosts ${head_node_ip%% *} | head -n 1 | wc -l) line
export LOGLEVEL=INFO
srun ./launcher --nnodes 2 --nproc_per_node 4 --rdzv_backend c10d
)sh");
  EXPECT_EQ(got, (Lines{"Node address has 1 line",
                        "rank 0 of 2 node 0 local 0 gpus 4 --nnodes 2 --nproc_per_node 4 "
                        "--rdzv_backend c10d",
                        "rank 1 of 2 node 1 local 0 gpus 4 --nnodes 2 --nproc_per_node 4 "
                        "--rdzv_backend c10d"}));
}

TEST_F(Sites, DeepspeedReadsAFileOfHostsAndSlots) {
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH --nodes=2
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-gpu=1
#SBATCH --time=10
scontrol show hostnames $SLURM_JOB_NODELIST | while read host; do
  echo "$host slots=$SLURM_GPUS_PER_NODE"
done > hostfile
cat hostfile
export MASTER_ADDR=$(scontrol show hostnames $SLURM_JOB_NODELIST | head -n 1)
export WORLD_SIZE=$(awk -F= '{ all += $2 } END { print all }' hostfile)
srun bash -c 'RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID ./launcher'
)sh");
  const auto got = lines_of(text);
  ASSERT_EQ(got.size(), 10U) << text;
  EXPECT_TRUE(got[0].ends_with(" slots=4")) << text;
  EXPECT_TRUE(got[1].ends_with(" slots=4")) << text;
  EXPECT_NE(got[0], got[1]) << text;
  EXPECT_NE(text.find("rank 7 of 8 node 1 local 3 gpus"), std::string::npos) << text;
}

TEST_F(Sites, FunctionsOfAProgramWithItsOwnLogs) {
  const std::string folder = path("logs");
  std::filesystem::create_directory(folder);
  std::string script = R"sh(#!/bin/bash

# Parameters
#SBATCH --array=0-1%1
#SBATCH --cpus-per-task=2
#SBATCH --error=FOLDER/%A_%a_0_log.err
#SBATCH --gpus-per-node=1
#SBATCH --job-name=functions
#SBATCH --mem=1GB
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --open-mode=append
#SBATCH --output=FOLDER/%A_%a_0_log.out
#SBATCH --signal=USR2@90
#SBATCH --time=5
#SBATCH --wckey=functions

# command
export FUNCTIONS_EXECUTOR=slurm
srun --unbuffered --output FOLDER/%A_%a_%t_log.out --error FOLDER/%A_%a_%t_log.err ./launcher _submit
)sh";
  write("job.sh", std::regex_replace(script, std::regex("FOLDER"), folder));
  const Finished submitted = call({"sbatch", "--parsable", "job.sh"});
  EXPECT_NE(submitted.err.find("--wckey is ignored"), std::string::npos) << submitted.err;
  const std::string id = submitted.out.substr(0, submitted.out.find('\n'));
  for (const char* index : {"0", "1"}) {
    const std::string file = folder + "/" + id + "_" + index + "_0_log.out";
    EXPECT_TRUE(eventually([&] {
      return read_file(file) == "rank 0 of 1 node 0 local 0 gpus 1 _submit\n";
    })) << file
        << ": " << read_file(file);
  }
}

TEST_F(Sites, ChainsOfJobs) {
  write("first.sh", "#!/bin/bash\n#SBATCH -t 5\necho model > model\n");
  write("second.sh", "#!/bin/bash\n#SBATCH -t 5\ncat model > result\n");
  write("chain.sh", R"sh(#!/bin/bash
second=$(sbatch --parsable --dependency=afterok:$(sbatch --parsable first.sh) second.sh)
sbatch --dependency=afterany:$second --wrap="echo end >> result"
failing=$(sbatch --parsable --wrap "exit 1")
sbatch -d afternotok:$failing --wrap "touch mended" | awk '{ print $NF }' > last
)sh");
  ASSERT_EQ(call({"bash", "chain.sh"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return read_file(path("result")) == "model\nend\n"; }));
  EXPECT_TRUE(eventually([&] { return std::filesystem::exists(path("mended")); }));
}

TEST_F(Sites, SubmissionsInALoopWithoutAFile) {
  write("sweep.sh", R"sh(#!/bin/bash
for rate in 0.1 0.2; do
sbatch <<EOT
#!/bin/bash
#SBATCH --job-name=rate_$rate
#SBATCH --output=rate_$rate.out
#SBATCH --gres=gpu:1
#SBATCH -t 5
echo rate $rate job \$SLURM_JOB_NAME gpus \$SLURM_GPUS_ON_NODE
EOT
done
sbatch -G 1 -t 5 --output=wrapped.out --wrap="srun ./launcher wrapped"
)sh");
  const Finished swept = call({"bash", "sweep.sh"});
  EXPECT_EQ(swept.exit_code, 0) << swept.err;
  EXPECT_TRUE(eventually([&] {
    return read_file(path("rate_0.1.out")) == "rate 0.1 job rate_0.1 gpus 1\n" &&
           read_file(path("rate_0.2.out")) == "rate 0.2 job rate_0.2 gpus 1\n" &&
           read_file(path("wrapped.out")) == "rank 0 of 1 node 0 local 0 gpus 1 wrapped\n";
  })) << read_file(path("wrapped.out"));
}

// The script stops its program itself before the limit and asks for another turn.
TEST_F(Sites, RequeueWhenTheTimeIsOver) {
  const std::string text = printed(R"sh(#!/bin/bash
#SBATCH --time=10 --open-mode=append --requeue
timeout $((1 + 60 * ${SLURM_RESTART_COUNT:-0})) srun sh -c '[ -n "$SLURM_RESTART_COUNT" ] || sleep 600'
if [[ $? == 124 ]]; then
  echo "turn ${SLURM_RESTART_COUNT:-0} was too short"
  scontrol requeue $SLURM_JOB_ID
  sleep 30
fi
echo "done in turn $SLURM_RESTART_COUNT"
)sh");
  EXPECT_NE(text.find("turn 0 was too short\n"), std::string::npos) << text;
  EXPECT_NE(text.find("done in turn 1\n"), std::string::npos) << text;
}

TEST_F(Sites, ProgramsOfSeveralKindsInOneStep) {
  write("multi.conf",
        "# rank program\n0 ./launcher master\n1-2 ./launcher worker:%t:%o\n* bash -c 'echo rest "
        "$SLURM_PROCID'\n");
  EXPECT_EQ(lines(R"sh(#!/bin/bash
#SBATCH -N 2 -n 4 -t 5
srun -n4 --multi-prog multi.conf
)sh"),
            (Lines{"rank 0 of 4 node 0 local 0 gpus 0 master",
                   "rank 1 of 4 node 0 local 1 gpus 0 worker:1:0",
                   "rank 2 of 4 node 1 local 0 gpus 0 worker:2:1", "rest 3"}));
}

TEST_F(Sites, AShellOnANode) {
  Terminal terminal({"/usr/bin/env", "--chdir=" + files.path(),
                     "PATH=" + program("slurm-shims") + ":/usr/bin:/bin",
                     "GPU_PLATFORM_SERVER=unix:" + daemon.socket(), "PS1=ready> ", "srun", "-N",
                     "1", "--ntasks=1", "--gres=gpu:2", "--time=1:00:00", "--cpus-per-task=4",
                     "--pty", "bash", "--norc", "-i"});
  ASSERT_TRUE(terminal.shows("ready>")) << terminal.screen();
  terminal.type("./launcher in-$((40+2)); exit 4\n");
  EXPECT_TRUE(terminal.shows("gpus 2 in-42")) << terminal.screen();
  EXPECT_EQ(terminal.wait(), 4) << terminal.screen();
}

TEST_F(Sites, JobsOfUnlikePartsAreRefusedWithWhatToDo) {
  const std::string said = refused(R"sh(#!/bin/bash
#SBATCH --nodes=1 --gpus-per-node=8
#SBATCH hetjob
#SBATCH --nodes=1 --cpus-per-task=16
srun --het-group=0 ./launcher : --het-group=1 ./launcher
)sh");
  EXPECT_NE(said.find("part 2 differs from the first one in its GPUs on each node: submit one job "
                      "for each"),
            std::string::npos)
      << said;
}

TEST_F(Sites, ManyGpusTakeTheFewestNodes) {
  EXPECT_EQ(lines("#!/bin/bash\n#SBATCH -G 16 -t 5\n"
                  "echo $SLURM_NNODES $SLURM_GPUS_ON_NODE $SLURM_GPUS\n"),
            (Lines{"2 8 16"}));
  EXPECT_EQ(lines("#!/bin/bash\n#SBATCH -G 12 -t 5\necho $SLURM_NNODES $SLURM_GPUS_ON_NODE\n"),
            (Lines{"2 6"}));
  EXPECT_EQ(lines("#!/bin/bash\n#SBATCH -n 24 --gpus-per-task=1 -c 2 -t 5\n"
                  "echo $SLURM_NNODES $SLURM_TASKS_PER_NODE\n"),
            (Lines{"3 8(x3)"}));
  EXPECT_EQ(lines("#!/bin/bash\n#SBATCH -n 4 -c 100 -t 5\n"
                  "echo $SLURM_NNODES $SLURM_TASKS_PER_NODE\n"),
            (Lines{"2 2(x2)"}));
  EXPECT_NE(refusal({"sbatch", "-G", "32", "--wrap=true"}).find("--gpus"), std::string::npos);
  EXPECT_NE(refusal({"sbatch", "-N1", "-G", "16", "--wrap=true"}).find("--gpus"),
            std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::e2e
