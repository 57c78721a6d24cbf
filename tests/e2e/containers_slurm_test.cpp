// Batch scripts and srun lines that were written for pyxis, Slurm's plugin for containers. A real
// engine.

#include <gmock/gmock.h>

#include <sys/stat.h>

#include "containers_fixture.h"
#include "shims_fixture.h"

namespace gpu_platform::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

struct Site {
  Engine engine;
  TemporaryDirectory folder;
  std::string rules() const { return folder.path() + "/rules"; }
};

class SlurmInImages : private Site, public SlurmCommands {
 protected:
  SlurmInImages()
      : SlurmCommands({.config = "execution:\n  containers: " + Site::rules() + "\n"}) {}
  void SetUp() override {
    if (std::string why = engine.start(); !why.empty()) GTEST_SKIP() << why;
    chmod(files.path().c_str(), 0755);
    std::ofstream(rules()) << "socket " << engine.socket()
                           << "\nulimit nofile 1024\nulimit nproc 1024\nimage localhost/*\nmount "
                           << files.path() << "\n";
    chmod(rules().c_str(), 0644);
    SlurmCommands::SetUp();
  }
  std::string output_of(const std::string& id) { return daemon.cli({"jobs", "logs", id}).out; }
};

TEST_F(SlurmInImages, ABatchScriptRunsInItsImage) {
  write("train.sh",
        "#!/bin/sh\n"
        "#SBATCH --gpus=0 --job-name=train\n"
        "#SBATCH --container-image=localhost#gp-test:1\n"
        "#SBATCH --container-mounts=" +
            files.path() +
            ":/data:ro\n"
            "#SBATCH --container-workdir=/data --container-env=SEED\n"
            "cat /etc/motd; pwd; ls train.sh\n"
            "echo \"$0 $1 job=$SLURM_JOB_ID name=$SLURM_JOB_NAME seed=$SEED key=$KEY "
            "nodes=$SLURM_JOB_NUM_NODES shims=${SLURM_SHIM_SCRIPT_0:-none}\"\n"
            "touch /data/new || echo read-only\n"
            "exit 4\n");
  const Finished done =
      call({"sbatch", "--parsable", "--wait", "train.sh", "fast"}, {"SEED=7", "KEY=secret"});
  EXPECT_EQ(done.exit_code, 4) << done.err;
  const std::string id = done.out.substr(0, done.out.find('\n'));
  EXPECT_THAT(output_of(id), AllOf(HasSubstr("from the image\n/data\ntrain.sh\n"),
                                   HasSubstr("train.sh fast job=" + id +
                                             " name=train seed=7 key= nodes=1 shims=none\n"),
                                   HasSubstr("read-only\n")));
  EXPECT_THAT(read_file(path("slurm-" + id + ".out")), HasSubstr("from the image"));
}

TEST_F(SlurmInImages, MembersOfAnArrayKnowTheirIndex) {
  write("each.sh",
        "#!/bin/sh\n#SBATCH --gpus=0 --array=3-4 --container-image=localhost#gp-test:1\n"
        "echo \"$SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT\"\n");
  const Finished done = call({"sbatch", "--parsable", "--wait", "each.sh"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  const std::string id = done.out.substr(0, done.out.find('\n'));
  EXPECT_EQ(read_file(path("slurm-" + id + "_3.out")), "3 of 2\n");
  EXPECT_EQ(read_file(path("slurm-" + id + "_4.out")), "4 of 2\n");
}

TEST_F(SlurmInImages, SrunRunsAProgramInAnImage) {
  const Finished done = call({"srun", "--gpus=0", "--container-image=localhost/gp-test:1", "sh",
                              "-c", "cat /etc/motd; echo $SLURM_PROCID; exit 5"});
  EXPECT_EQ(done.exit_code, 5) << done.err;
  EXPECT_EQ(done.out, "from the image\n0\n");
}

TEST_F(SlurmInImages, WhatAnImageCannotHaveIsRefusedWithWhatToDo) {
  const std::string image = "--container-image=localhost#gp-test:1";
  const std::vector<std::pair<std::vector<std::string>, const char*>> lines = {
      {{"srun", "--gpus=0", "-n2", image, "true"}, "submit an array"},
      {{"srun", "--gpus=0", image, "--container-name=mine", "true"}, "ends with its job"},
      {{"srun", "--gpus=0", image, "--container-remap-root", "true"}, "the job's user"},
      {{"srun", "--gpus=0", "--container-image=/a.sqsh", "true"}, "a file of enroot"},
      {{"srun", "--gpus=0", image, "--container-mounts=/a:/b:x-create=dir", "true"}, "x-create"},
      {{"srun", "--gpus=0", image, "--container-mounts=/a/../b:/c", "true"}, "--container-mounts"},
      {{"sbatch", "--gpus=0", "-N2", image, "--wrap", "true"}, "one node"},
      {{"salloc", "--gpus=0", image, "true"}, "an allocation has no image"},
  };
  for (const auto& [words, text] : lines) EXPECT_THAT(refusal(words), HasSubstr(text)) << text;
  const std::string id = sbatch({"--gpus=0", "--wrap", "srun " + image + " true"});
  EXPECT_TRUE(reaches(id, "FAILED"));
  EXPECT_THAT(output_of(id), HasSubstr("a step of a job cannot have an image of its own"));
}

}  // namespace
}  // namespace gpu_platform::e2e
