#include "shims/steps/step_variables.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shims/steps/step.h"
#include "shims/steps/step_places.h"
#include "shims/submission/submission.h"
#include "shims/text/file_pattern.h"

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;

Variables platform_variables() {
  return {{"GPU_PLATFORM_JOB_ID", "42"},
          {"GPU_PLATFORM_ATTEMPT", "1"},
          {"GPU_PLATFORM_JOB_NAME", "train"},
          {"GPU_PLATFORM_NODE", "n1"},
          {"GPU_PLATFORM_GPUS", "2,3"},
          {"GPU_PLATFORM_CPUS", "8"},
          {"GPU_PLATFORM_MEMORY_BYTES", "17179869184"}};
}

Variables of_job(const Resources& resources, Variables variables = platform_variables()) {
  for (const auto& [name, value] :
       submission_variables({"/home/ada", "login", "gpu", "", "normal", 3600}, resources)) {
    variables[name] = value;
  }
  add_job_variables(variables, {"ada", 1000, 1000, 77, 1'000'000});
  return variables;
}

TEST(JobVariables, AreTheWholeSet) {
  const Variables got = of_job({.gpus = {2, ""}, .tasks = 2, .counts_tasks = true});
  for (const char* name : {"SLURM_JOB_ID",         "SLURM_JOBID",
                           "SLURM_JOB_NAME",       "SLURM_JOB_NODELIST",
                           "SLURM_NODELIST",       "SLURM_NNODES",
                           "SLURM_JOB_NUM_NODES",  "SLURM_NTASKS",
                           "SLURM_NPROCS",         "SLURM_PROCID",
                           "SLURM_LOCALID",        "SLURM_NODEID",
                           "SLURM_CPUS_ON_NODE",   "SLURM_JOB_CPUS_PER_NODE",
                           "SLURM_MEM_PER_NODE",   "SLURM_GPUS",
                           "SLURM_GPUS_ON_NODE",   "SLURM_JOB_GPUS",
                           "SLURM_SUBMIT_DIR",     "SLURM_SUBMIT_HOST",
                           "SLURM_JOB_PARTITION",  "SLURM_CLUSTER_NAME",
                           "SLURM_JOB_USER",       "SLURM_JOB_ACCOUNT",
                           "SLURM_TASKS_PER_NODE", "SLURMD_NODENAME",
                           "SLURM_TASK_PID",       "SLURM_JOB_START_TIME",
                           "SLURM_JOB_END_TIME",   "SLURM_JOB_UID",
                           "SLURM_JOB_QOS"}) {
    EXPECT_TRUE(got.contains(name)) << name;
  }
  EXPECT_EQ(got.at("SLURM_JOB_ID"), "42");
  EXPECT_EQ(got.at("SLURM_JOB_GPUS"), "2,3");
  EXPECT_EQ(got.at("SLURM_GPUS"), "2");
  EXPECT_EQ(got.at("SLURM_MEM_PER_NODE"), "16384");
  EXPECT_EQ(got.at("SLURM_JOB_END_TIME"), "1003600");
}

TEST(JobVariables, AreThereOnlyWhereAskedFor) {
  const Variables plain = of_job({});
  for (const char* name :
       {"SLURM_CPUS_PER_TASK", "SLURM_NTASKS_PER_NODE", "SLURM_MEM_PER_CPU", "SLURM_CPUS_PER_GPU",
        "SLURM_GPUS_PER_TASK", "SLURM_RESTART_COUNT", "SLURM_NTASKS", "SLURM_NPROCS"}) {
    EXPECT_FALSE(plain.contains(name)) << name;
  }
  const Variables full =
      of_job({.tasks = 4, .tasks_per_node = 4, .cpus_per_task = 2, .memory_per_cpu = base::kGiB});
  EXPECT_EQ(full.at("SLURM_CPUS_PER_TASK"), "2");
  EXPECT_EQ(full.at("SLURM_NTASKS_PER_NODE"), "4");
  EXPECT_EQ(full.at("SLURM_MEM_PER_CPU"), "1024");
  const Variables by_gpu = of_job({.cpus_per_gpu = 6, .gpus_per_task = 1});
  EXPECT_EQ(by_gpu.at("SLURM_CPUS_PER_GPU"), "6");
  EXPECT_EQ(by_gpu.at("SLURM_GPUS_PER_TASK"), "1");
  EXPECT_FALSE(full.contains("SLURM_MEM_PER_NODE"));
}

TEST(JobVariables, OfSeveralTasksHaveAMasterThatTheUserMayChoose) {
  EXPECT_FALSE(of_job({.tasks = 1, .counts_tasks = true}).contains("MASTER_ADDR"));
  const Variables two = of_job({.tasks = 2, .counts_tasks = true});
  EXPECT_EQ(two.at("MASTER_ADDR"), "127.0.0.1");
  EXPECT_EQ(two.at("MASTER_PORT"), "20295");
  Variables chosen = platform_variables();
  chosen["MASTER_PORT"] = "1234";
  EXPECT_EQ(of_job({.tasks = 2, .counts_tasks = true}, chosen).at("MASTER_PORT"), "1234");
  Variables step = of_job({});
  add_task_variables(step, {0, 2, 99});
  EXPECT_EQ(step.at("MASTER_PORT"), "20295") << "a step may have more tasks than its job";
}

Variables variables_of_two_nodes() {
  Variables v = platform_variables();
  for (const auto& [name, value] :
       {std::pair{"GPU_PLATFORM_NODE", "n1"}, std::pair{"GPU_PLATFORM_GPUS", "2,3"},
        std::pair{"CUDA_VISIBLE_DEVICES", "GPU-a,GPU-b"}, std::pair{"GPU_PLATFORM_CPUS", "8"},
        std::pair{"GPU_EMULATOR_STATE", "/boards/n1"}}) {
    v[fmt::format("GPU_PLATFORM_NODE_0_{}", name)] = value;
  }
  for (const auto& [name, value] :
       {std::pair{"GPU_PLATFORM_NODE", "n2"}, std::pair{"GPU_PLATFORM_GPUS", "0,7"},
        std::pair{"CUDA_VISIBLE_DEVICES", "GPU-c,GPU-d"}, std::pair{"GPU_PLATFORM_CPUS", "8"},
        std::pair{"GPU_EMULATOR_STATE", "/boards/n2"}}) {
    v[fmt::format("GPU_PLATFORM_NODE_1_{}", name)] = value;
  }
  return v;
}

TEST(JobVariables, OfSeveralNodesTellOfAll) {
  const Variables got = of_job({.nodes = 2, .gpus = {2, ""}, .tasks = 3, .counts_tasks = true},
                               variables_of_two_nodes());
  EXPECT_EQ(got.at("SLURM_JOB_NODELIST"), "n[1-2]");
  EXPECT_EQ(got.at("SLURM_JOB_NUM_NODES"), "2");
  EXPECT_EQ(got.at("SLURM_NNODES"), "2");
  EXPECT_EQ(got.at("SLURM_NTASKS"), "3");
  EXPECT_EQ(got.at("SLURM_TASKS_PER_NODE"), "2,1");
  EXPECT_EQ(got.at("SLURM_JOB_CPUS_PER_NODE"), "8(x2)");
  EXPECT_EQ(got.at("SLURMD_NODENAME"), "n1");
  EXPECT_EQ(got.at("SLURM_GPUS"), "4");
  EXPECT_EQ(got.at("SLURM_GPUS_ON_NODE"), "2");
  EXPECT_EQ(got.at("SLURM_NODEID"), "0");
}

// The platform's order is that of the network.
TEST(JobVariables, NodesHaveTheNumbersOfTheirNames) {
  const std::vector<std::string> environment = {"GPU_PLATFORM_NODE=n10",
                                                "GPU_PLATFORM_GPUS=0,1",
                                                "NODE_RANK=0",
                                                "GPU_PLATFORM_NODE_0_GPU_PLATFORM_NODE=n10",
                                                "GPU_PLATFORM_NODE_0_GPU_PLATFORM_GPUS=0,1",
                                                "GPU_PLATFORM_NODE_0_NODE_RANK=0",
                                                "GPU_PLATFORM_NODE_1_GPU_PLATFORM_NODE=n9",
                                                "GPU_PLATFORM_NODE_1_GPU_PLATFORM_GPUS=4,5",
                                                "GPU_PLATFORM_NODE_1_NODE_RANK=1"};
  const Variables v = variables_of(environment);
  EXPECT_EQ(node_names(v), (std::vector<std::string>{"n9", "n10"}));
  EXPECT_EQ(part_of_node(v, 0, "GPU_PLATFORM_GPUS"), "4,5");
  EXPECT_EQ(part_of_node(v, 1, "NODE_RANK"), "1");
  EXPECT_EQ(variable(v, "GPU_PLATFORM_NODE"), "n9");
  EXPECT_EQ(variable(v, "GPU_PLATFORM_GPUS"), "4,5");
  EXPECT_EQ(variable(v, "NODE_RANK"), "0");
  Variables of_task = v;
  of_task["GPU_PLATFORM_NODE"] = "n10";
  EXPECT_EQ(variables_of(environment_of(of_task)), of_task) << "numbered already";
}

TEST(TaskVariables, TellOfTheTasksNode) {
  Variables task = of_job({.tasks = 3, .counts_tasks = true}, variables_of_two_nodes());
  const StepPlaces places{nodes_of_job(task), layout_of(3, 2)};
  add_task_variables(task, {2, 3, 99});
  const TaskPlace place = place_of(places.layout, 2);
  add_place_variables(task, places, place);
  EXPECT_EQ(task.at("SLURM_PROCID"), "2");
  EXPECT_EQ(task.at("SLURM_NODEID"), "1");
  EXPECT_EQ(task.at("SLURM_LOCALID"), "0");
  EXPECT_EQ(task.at("SLURM_GTIDS"), "2");
  EXPECT_EQ(task.at("SLURM_STEP_NODELIST"), "n[1-2]");
  EXPECT_EQ(task.at("SLURM_STEP_TASKS_PER_NODE"), "2,1");
  EXPECT_EQ(task.at("SLURMD_NODENAME"), "n2");
  EXPECT_EQ(task.at("SLURM_JOB_GPUS"), "0,7");
  EXPECT_EQ(task.at("GPU_EMULATOR_STATE"), "/boards/n2");
  EXPECT_EQ(places.nodes[1].gpus[1].device, "GPU-d");
}

TEST(JobVariables, TellOfRestarts) {
  Variables again = platform_variables();
  again["GPU_PLATFORM_ATTEMPT"] = "3";
  EXPECT_EQ(of_job({}, again).at("SLURM_RESTART_COUNT"), "2");
}

TEST(JobVariables, AreOfJobsOnly) {
  EXPECT_FALSE(job_environment({"PATH=/bin"}));
  EXPECT_TRUE(job_environment({"GPU_PLATFORM_JOB_ID=1"}));
}

TEST(JobVariables, AreNotThereForASecondRunThatIsForbidden) {
  const std::vector<std::string> first{"GPU_PLATFORM_JOB_ID=1", "GPU_PLATFORM_ATTEMPT=1",
                                       "SLURM_SHIM_NO_REQUEUE=1"};
  std::vector<std::string> second = first;
  second[1] = "GPU_PLATFORM_ATTEMPT=2";
  EXPECT_TRUE(job_environment(first));
  EXPECT_FALSE(job_environment(second));
}

TEST(JobVariables, LeaveNothingOfTheShims) {
  for (const auto& [name, value] : of_job({}))
    EXPECT_FALSE(name.starts_with("SLURM_SHIM_")) << name;
}

TEST(TaskVariables, DifferByRank) {
  Variables task = of_job({.tasks = 2});
  add_task_variables(task, {1, 2, 99});
  EXPECT_EQ(task.at("SLURM_PROCID"), "1");
  EXPECT_EQ(task.at("SLURM_LOCALID"), "1");
  EXPECT_EQ(task.at("SLURM_NTASKS"), "2");
  EXPECT_EQ(task.at("SLURM_GTIDS"), "0,1");
  EXPECT_EQ(task.at("SLURM_TASK_PID"), "99");
  EXPECT_EQ(task.at("SLURM_STEP_NODELIST"), "n1");
}

TEST(HostNames, AreExpanded) {
  EXPECT_THAT(host_names("n[001-003,7],m"), ElementsAre("n001", "n002", "n003", "n7", "m"));
  EXPECT_THAT(host_names("r[1-2]n[1-2]x"), ElementsAre("r1n1x", "r1n2x", "r2n1x", "r2n2x"));
  EXPECT_THAT(host_names("dgx-1"), ElementsAre("dgx-1"));
  EXPECT_TRUE(host_names("").empty());
}

TEST(HostNames, ThatMakeNoSenseStayAsTheyAre) {
  for (const char* list :
       {"n[1-", "n[3-1]", "n[]", "n[a]", "n[1-99999999999]", "n[0-9999][0-9999]"}) {
    EXPECT_THAT(host_names(list), ElementsAre(list));
  }
}

TEST(FilePattern, HasSymbolsWithWidths) {
  const PatternValues values{"42", "train", "ada", "n1", 3, 0};
  EXPECT_EQ(*expanded("%x-%j.out", values), "train-42.out");
  EXPECT_EQ(*expanded("%u/%5j_%t%%", values), "ada/00042_3%");
  EXPECT_EQ(*expanded("slurm-%A.%N", values), "slurm-42.n1");
  EXPECT_EQ(*expanded("\\%j", values), "%j");
  for (const char* pattern : {"%a", "%", "%z", "x%5"})
    EXPECT_FALSE(expanded(pattern, values)) << pattern;
}

TEST(FilePattern, NamesMembersOfAnArrayApart) {
  PatternValues values{"42", "train", "ada", "n1", 3, 0};
  values.array = "40";
  values.index = "2";
  EXPECT_EQ(*expanded("slurm-%A_%a-%j.out", values), "slurm-40_2-42.out");
  EXPECT_EQ(*expanded("%4a", values), "0002");
  EXPECT_EQ(platform_pattern("slurm-%A_%a.out", true, model::PatternOf::kArray), "slurm-%A_%a.out");
  EXPECT_FALSE(platform_pattern("%4a", true, model::PatternOf::kArray));
  EXPECT_FALSE(platform_pattern("%a", true));
}

TEST(JobVariables, OfAMemberNameItsArray) {
  Variables variables = platform_variables();
  variables["GPU_PLATFORM_ARRAY_ID"] = "40";
  variables["GPU_PLATFORM_ARRAY_INDEX"] = "2";
  variables["GPU_PLATFORM_ARRAY_COUNT"] = "10";
  variables["GPU_PLATFORM_ARRAY_MAX"] = "18";
  const Variables got = of_job({}, variables);
  EXPECT_EQ(got.at("SLURM_ARRAY_JOB_ID"), "40");
  EXPECT_EQ(got.at("SLURM_ARRAY_TASK_ID"), "2");
  EXPECT_EQ(got.at("SLURM_ARRAY_TASK_COUNT"), "10");
  EXPECT_EQ(got.at("SLURM_ARRAY_TASK_MAX"), "18");
  EXPECT_FALSE(of_job({}).contains("SLURM_ARRAY_JOB_ID"));
}

TEST(FilePattern, IsThePlatformsWhereThatHasItsSymbols) {
  EXPECT_EQ(platform_pattern("%x-%A_%J.%N.%u%%", true), "%x-%j_%j.%N.%u%%");
  EXPECT_EQ(platform_pattern("%3s%n", true), "0000");
  EXPECT_EQ(platform_pattern("%t", true), "0");
  EXPECT_EQ(platform_pattern("a\\%jb", true), "a%%jb");
  for (const char* pattern : {"%r", "%5j", "%2x"})
    EXPECT_FALSE(platform_pattern(pattern, true)) << pattern;
  EXPECT_FALSE(platform_pattern("%t", false));
}

TEST(Export, LeavesOutWhatBelongsToAnotherJob) {
  const Variables callers{{"SLURM_JOB_ID", "1"}, {"PATH", "/bin"}, {"A", "1"}, {"B", "2"}};
  EXPECT_EQ(exported("", callers), (Variables{{"PATH", "/bin"}, {"A", "1"}, {"B", "2"}}));
  EXPECT_EQ(exported("NONE", callers), (Variables{{"PATH", "/bin"}}));
  EXPECT_EQ(exported("A,C=3", callers), (Variables{{"PATH", "/bin"}, {"A", "1"}, {"C", "3"}}));
  EXPECT_EQ(exported("ALL,B=9", callers), (Variables{{"PATH", "/bin"}, {"A", "1"}, {"B", "9"}}));
}

TEST(CarriedScript, ComesBackByteForByteInPiecesThatFit) {
  std::string script = "#!/bin/sh\n";
  for (int i = 0; i < 200'000; ++i) script.push_back(static_cast<char>(1 + i % 255));
  Variables variables{{"A", "1"}};
  put_script(variables, script);
  EXPECT_GT(variables.size(), 2U);
  for (const auto& [name, value] : variables) EXPECT_LT(name.size() + value.size(), 128U * 1024);
  EXPECT_EQ(taken_script(variables), script);
  EXPECT_EQ(variables, (Variables{{"A", "1"}}));
  EXPECT_FALSE(taken_script(variables).has_value());
}

}  // namespace
}  // namespace gpu_platform::shims
