#include "shims/submission/het_job.h"

#include <gtest/gtest.h>

#include "shims/options/batch_options.h"

namespace gpu_platform::shims {
namespace {

Settings options(std::vector<std::string> words) {
  Settings settings;
  std::vector<std::string> warnings;
  EXPECT_TRUE(read_options({sbatch_options()}, words, settings, warnings));
  return settings;
}

TEST(HetJob, OfAlikePartsIsOneJobWithAllNodesAndTasks) {
  const auto job = joined_parts({options({"-N1", "-n2", "--gpus-per-node=2", "-t5"}),
                                 options({"-N3", "-n6", "--gpus-per-node=2"})});
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->settings.value("nodes"), "4");
  EXPECT_EQ(job->settings.value("ntasks"), "8");
  EXPECT_EQ(job->settings.value("time"), "5");
  EXPECT_EQ(parts_text(job->parts), "1:2,3:6");
  const auto by_gpus = joined_parts({options({"-G", "h100:2"}), options({"-G", "h100:2"})});
  ASSERT_TRUE(by_gpus) << by_gpus.error().message;
  EXPECT_EQ(by_gpus->settings.value("gpus"), "h100:4");
  EXPECT_TRUE(joined_parts({options({"-N2"})})->parts.empty());
}

TEST(HetJob, OfUnlikePartsIsRefusedWithTheDifference) {
  const Settings first = options({"-N1", "-n2", "-c2", "--gpus-per-node=2"});
  for (const auto& [words, what] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"-N1", "-n2", "-c2"}, "its GPUs"},
           {{"-N1", "-n2", "-c4", "--gpus-per-node=2"}, "its CPUs"},
           {{"-N1", "-n2", "-c2", "--gpus-per-node=2", "--mem=1G"}, "its memory"},
           {{"-N2", "-n2", "-c2", "--gpus-per-node=2"}, "its"},
           {{"-N1", "-n2", "-c2", "--gpus-per-node=2", "-p", "x"}, "--partition"}}) {
    const auto job = joined_parts({first, options(words)});
    ASSERT_FALSE(job) << what;
    EXPECT_NE(job.error().message.find(what), std::string::npos) << job.error().message;
  }
}

Variables gang() {
  return {{"SLURM_JOB_ID", "7"},
          {"GPU_PLATFORM_CPUS", "4"},
          {"SLURM_NTASKS", "6"},
          {"GPU_PLATFORM_NODE_0_GPU_PLATFORM_NODE", "a1"},
          {"GPU_PLATFORM_NODE_1_GPU_PLATFORM_NODE", "a2"},
          {"GPU_PLATFORM_NODE_2_GPU_PLATFORM_NODE", "a3"}};
}

TEST(HetJob, HasTheVariablesOfItsPartsAndThoseOfTheFirst) {
  Variables v = gang();
  add_het_variables(v, parts_in("1:2,2:4"));
  EXPECT_EQ(v.at("SLURM_HET_SIZE"), "2");
  EXPECT_EQ(v.at("SLURM_JOB_NODELIST_HET_GROUP_1"), "a[2-3]");
  EXPECT_EQ(v.at("SLURM_TASKS_PER_NODE_HET_GROUP_1"), "2(x2)");
  EXPECT_EQ(v.at("SLURM_NTASKS"), "2");
  EXPECT_EQ(v.at("SLURM_JOB_NODELIST"), "a1");
  Variables other = gang();
  add_het_variables(other, parts_in("1:2,1:4"));
  EXPECT_FALSE(other.contains("SLURM_HET_SIZE")) << "the job has other nodes";
  EXPECT_TRUE(parts_in("1:2,x").empty());
}

TEST(HetJob, AStepIsInTheFirstPartUnlessItNamesOthers) {
  Variables v = gang();
  add_het_variables(v, parts_in("1:2,2:4"));
  Settings usual;
  ASSERT_TRUE(put_het_group(v, usual));
  EXPECT_EQ(usual.value("nodelist"), "a1");
  EXPECT_EQ(usual.value("ntasks"), "2");
  Settings all;
  all.set(Option{"het-group"}, "0-1");
  ASSERT_TRUE(put_het_group(v, all));
  EXPECT_EQ(all.value("nodelist"), "a1,a2,a3");
  EXPECT_EQ(all.value("ntasks"), "6");
  for (const char* text : {"2", "1-0", "x", "0-9999999999"}) {
    Settings wrong;
    wrong.set(Option{"het-group"}, text);
    EXPECT_FALSE(put_het_group(v, wrong)) << text;
  }
}

TEST(HetJob, PartsOfAStepHaveProgramsOfTheirOwn) {
  Variables v = gang();
  add_het_variables(v, parts_in("1:2,2:4"));
  Settings settings;
  std::vector<std::string> warnings;
  const auto step = joined_step(v, {"a", "x", ":", "b"}, settings, warnings);
  ASSERT_TRUE(step) << step.error().message;
  ASSERT_EQ(step->programs.size(), 6U);
  EXPECT_EQ(step->programs[1], (std::vector<std::string>{"a", "x"}));
  EXPECT_EQ(step->programs[2], (std::vector<std::string>{"b"}));
  EXPECT_EQ(settings.value("het-group"), "0,1");
  EXPECT_FALSE(joined_step({}, {"a", ":", "b"}, settings, warnings));
  EXPECT_EQ(joined_step({}, {"a", "b"}, settings, warnings)->command.size(), 2U);
}

}  // namespace
}  // namespace gpu_platform::shims
