#include "shims/options/batch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shims/submission/resources.h"

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Read {
  Settings settings;
  std::vector<std::string> rest;
  std::vector<std::string> warnings;
  std::string error;
  std::size_t parts = 1;
};

Read read(std::vector<std::string> words) {
  Read result;
  auto rest = read_options({sbatch_options()}, words, result.settings, result.warnings);
  if (rest) {
    result.rest = std::move(*rest);
  } else {
    result.error = rest.error().field + ": " + rest.error().message;
  }
  return result;
}

Read directives(std::string_view script) {
  Read result;
  std::vector<Settings> parts;
  const auto status = read_directives(script, parts, result.warnings);
  result.settings = parts.front();
  result.parts = parts.size();
  if (!status) result.error = status.error().field + ": " + status.error().message;
  return result;
}

TEST(Options, TakeValuesJoinedAndApart) {
  const Read got =
      read({"-n4", "-J", "name", "--mem=4G", "--time", "10", "-WQ", "job.sh", "-x", "--mem"});
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.settings.value("ntasks"), "4");
  EXPECT_EQ(got.settings.value("job-name"), "name");
  EXPECT_EQ(got.settings.value("mem"), "4G");
  EXPECT_EQ(got.settings.value("time"), "10");
  EXPECT_TRUE(got.settings.has("wait"));
  EXPECT_TRUE(got.settings.has("quiet"));
  EXPECT_THAT(got.rest, ElementsAre("job.sh", "-x", "--mem"));
}

TEST(Options, MayBeCutWhereThatIsClear) {
  EXPECT_EQ(read({"--job=x"}).settings.value("job-name"), "x");
  EXPECT_THAT(read({"--gpu=1"}).error, HasSubstr("unknown option"));  // --gpus, --gpus-per-node, …
}

TEST(Options, HaveTheSecondNamesThatSlurmTakes) {
  EXPECT_EQ(read({"--tasks-per-node=3"}).settings.value("ntasks-per-node"), "3");
  EXPECT_EQ(read({"--workdir=/x"}).settings.value("chdir"), "/x");
  EXPECT_EQ(directives("#!/bin/sh\n#SBATCH --tasks-per-node=4\n").settings.value("ntasks-per-node"),
            "4");
}

TEST(Options, ThatNobodyKnowsAreErrorsOnTheCommandLine) {
  EXPECT_THAT(read({"--job-nam3=x"}).error, HasSubstr("did you mean '--job-name'"));
  EXPECT_THAT(read({"-j"}).error, HasSubstr("unknown option"));
}

TEST(Options, WithoutTheirValueAreErrors) {
  EXPECT_THAT(read({"--mem"}).error, HasSubstr("needs a value"));
  EXPECT_THAT(read({"--parsable=yes"}).error, HasSubstr("takes no value"));
}

TEST(Options, ThatAreRefusedSayWhatToDo) {
  for (const char* word : {"--nodefile=n1", "--uid=1"}) {
    EXPECT_GT(read({word}).error.size(), 20U) << word;
  }
}

TEST(Options, ThatAreIgnoredSaySo) {
  const Read got = read({"--wckey=x", "--no-kill", "--overcommit"});
  ASSERT_EQ(got.warnings.size(), 3U);
  EXPECT_THAT(got.warnings[0], HasSubstr("--wckey is ignored"));
  EXPECT_THAT(got.warnings[1], HasSubstr("--no-kill is ignored"));
  EXPECT_THAT(got.warnings[2], HasSubstr("--overcommit is ignored"));
}

TEST(Options, LaterOnesGoOverEarlierOnesAndTheirOpposites) {
  EXPECT_EQ(read({"-t1", "-t2"}).settings.value("time"), "2");
  EXPECT_EQ(read({"--mail-type=BEGIN", "--mail-type=END"}).settings.value("mail-type"), "BEGIN,END")
      << "these add up";
  EXPECT_FALSE(read({"--no-requeue", "--requeue"}).settings.has("no-requeue"));
  EXPECT_TRUE(read({"--requeue", "--no-requeue"}).settings.has("no-requeue"));
}

TEST(Options, OfSrunAreThoseOfSbatchAndItsOwn) {
  const auto read_by_srun = [](std::vector<std::string> words) {
    Settings settings;
    std::vector<std::string> warnings;
    return read_options({srun_options()}, words, settings, warnings).has_value();
  };
  EXPECT_TRUE(read_by_srun({"--gpus=1", "--reservation=x", "--label", "--exclusive", "true"}));
  EXPECT_FALSE(read_by_srun({"--array=1-3", "true"}));
  EXPECT_FALSE(read_by_srun({"--bcast", "true"}));
  EXPECT_EQ(read({"--label"}).error, "--label: unknown option");
}

TEST(Options, ComeFromTheEnvironmentToo) {
  Settings settings;
  std::vector<std::string> warnings;
  constexpr Option kTable[] = {{"time", 't', Take::kValue, Rule::kHonoured, "", "LIST_TIME"},
                               {"wait", 'W', Take::kNothing, Rule::kHonoured, "", "LIST_WAIT"}};
  const std::vector<std::string> environment{"LIST_TIME=5", "LIST_WAIT=1", "HOME=/"};
  ASSERT_TRUE(read_variables(kTable, environment, settings, warnings));
  EXPECT_EQ(settings.value("time"), "5");
  EXPECT_TRUE(settings.has("wait"));
}

TEST(Directives, EndAtTheFirstCommand) {
  const Read got = directives(
      "#!/bin/sh\n#SBATCH -n 2\n\n# words\n##SBATCH -n 9\n#SBATCHED\n  #SBATCH -n 8\n#SBATCH "
      "--mem=1G -c 3 # why\n"
      "echo\n#SBATCH -n 7\n");
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.settings.value("ntasks"), "2");
  EXPECT_EQ(got.settings.value("mem"), "1G");
  EXPECT_EQ(got.settings.value("cpus-per-task"), "3");
}

TEST(Directives, ThatNobodyKnowsAreToldWithTheirLine) {
  const Read got = directives("#!/bin/sh\n#SBATCH --new-thing 3 -n 2\n#SBATCH word\n");
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.settings.value("ntasks"), "2");
  EXPECT_THAT(got.warnings, ElementsAre(HasSubstr("line 2: --new-thing 3 is not known"),
                                        HasSubstr("line 3: 'word'")));
}

TEST(Directives, ThatAreRefusedNameTheirLine) {
  EXPECT_THAT(directives("#!/bin/sh\n#SBATCH --uid 3\n").error, HasSubstr("line 2: "));
}

TEST(Directives, OfSeveralPartsAreApart) {
  const Read got = directives("#!/bin/sh\n#SBATCH -N1\n#SBATCH hetjob\n#SBATCH -N2\n");
  EXPECT_EQ(got.error, "");
  EXPECT_EQ(got.parts, 2U);
  EXPECT_EQ(got.settings.value("nodes"), "1");
}

TEST(Script, NeedsAnInterpreterAndUnixLineEnds) {
  EXPECT_TRUE(check_script("#!/bin/sh\n"));
  EXPECT_FALSE(check_script("echo\n"));
  EXPECT_FALSE(check_script(""));
  EXPECT_FALSE(check_script("#!/bin/sh\r\necho\r\n"));
  EXPECT_FALSE(check_script("#!/bin/sh\n#SBATCH -n 2\r\necho\n"));
  EXPECT_FALSE(check_script(std::string("#!/bin/sh\n\0", 11)));
  EXPECT_FALSE(check_script("#! \n"));
}

base::Result<Resources> resources(std::vector<std::string> words) {
  std::vector<std::string> warnings;
  const Read got = read(std::move(words));
  EXPECT_EQ(got.error, "");
  return resources_of(got.settings, warnings);
}

TEST(Resources, OfNothingAreOneCpu) {
  const auto got = resources({});
  EXPECT_EQ(got->gpus.count, 0U);
  EXPECT_EQ(got->cpus, 1U);
  EXPECT_EQ(got->tasks, 1U);
  EXPECT_FALSE(got->memory.has_value());
}

TEST(Resources, OfGpusAloneAreTheNodesShare) {
  const auto got = resources({"--gres=gpu:h100:2"});
  EXPECT_EQ(got->gpus, (GpuCount{2, "h100"}));
  EXPECT_FALSE(got->cpus.has_value());
}

TEST(Resources, CountByTaskAndByGpu) {
  EXPECT_EQ(resources({"-n4", "-c2"})->cpus, 8U);
  EXPECT_EQ(resources({"-n4", "--gpus-per-task=2"})->gpus.count, 8U);
  EXPECT_EQ(resources({"-G8", "--gpus-per-task=2"})->tasks, 4U);
  EXPECT_EQ(resources({"-G2", "--cpus-per-gpu=6"})->cpus, 12U);
  EXPECT_EQ(resources({"-G2", "--ntasks-per-gpu=2"})->tasks, 4U);
  EXPECT_EQ(resources({"--ntasks-per-node=3"})->tasks, 3U);
  EXPECT_EQ(resources({"-G2", "--mem-per-gpu=10G"})->memory, base::kGiB * 20);
  EXPECT_EQ(resources({"-n2", "-c3", "--mem-per-cpu=100"})->memory, base::kMiB * 600);
  EXPECT_FALSE(resources({"--mem=0"})->memory.has_value());
}

TEST(Resources, OfEachSocketAreThoseOfItsNode) {
  const auto got = resources({"-N2", "--gpus-per-socket=h100:2", "--sockets-per-node=2"});
  EXPECT_EQ(got->gpus, (GpuCount{4, "h100"}));
  EXPECT_EQ(got->gpus_per_socket, 2U);
  const auto alone = resources({"--gpus-per-socket=2"});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().message,
            "--gpus-per-socket option requires --sockets-per-node specification");
  EXPECT_FALSE(resources({"--gpus-per-socket=2", "--sockets-per-node=2", "--gpus-per-node=2"}));
}

TEST(Resources, MustAgree) {
  EXPECT_TRUE(resources({"--gres=gpu:2", "--gpus=2"}));
  EXPECT_FALSE(resources({"-N1", "--gres=gpu:2", "--gpus=4"}));
  EXPECT_FALSE(resources({"--gres=gpu:4", "--gpus=2"}));
  EXPECT_FALSE(resources({"--mem=1G", "--mem-per-cpu=1G"}));
  EXPECT_FALSE(resources({"--mem-per-gpu=1G"}));
}

TEST(Resources, AreOnAsManyNodesAsIsAskedFor) {
  EXPECT_EQ(resources({"-N2"})->nodes, 2U);
  EXPECT_EQ(resources({"-N2"})->tasks, 2U);
  EXPECT_EQ(resources({"-N2", "--gpus-per-node=4"})->gpus.count, 4U);
  EXPECT_EQ(resources({"-N2", "--gpus=4"})->gpus.count, 2U);
  EXPECT_EQ(resources({"-N2", "--ntasks-per-node=4", "--gpus-per-task=1"})->gpus.count, 4U);
  EXPECT_EQ(resources({"-N2", "-n5", "-c2"})->cpus, 6U);
  EXPECT_EQ(resources({"-N2", "--mem=4G"})->memory, base::kGiB * 4);
  EXPECT_EQ(resources({"-N2", "-G4", "--mem-per-gpu=1G"})->memory, base::kGiB * 2);
  EXPECT_EQ(resources({"-N2", "--gres=gpu:2", "--ntasks-per-gpu=1"})->tasks, 4U);
}

TEST(Resources, TakeAsManyNodesAsTasksGpusOrNamesNeed) {
  EXPECT_EQ(resources({"-n3", "--ntasks-per-node=1"})->nodes, 3U);
  EXPECT_EQ(resources({"-n3", "--tasks-per-node=2"})->nodes, 2U);
  EXPECT_EQ(resources({"-n2", "--ntasks-per-node=4"})->nodes, 1U);
  EXPECT_EQ(resources({"-G16", "--gpus-per-node=8"})->nodes, 2U);
  EXPECT_EQ(resources({"-n16", "--gpus-per-task=1", "--gpus-per-node=8"})->nodes, 2U);
  EXPECT_EQ(resources({"-w", "n[1-3]"})->nodes, 3U);
  EXPECT_EQ(resources({"-N2", "-w", "n[1-3]"}).error().field, "--nodelist");
  EXPECT_EQ(resources({"-N2", "-w", "n1"}).error().field, "--nodelist");
}

TEST(Resources, ThatLeaveTheirNodesOpenTakeTheFewest) {
  const auto nodes_for = [](std::vector<std::string> words) -> std::uint32_t {
    constexpr NodeSize kNodes[] = {{8, 8, 64}, {8, 4, 64}, {8, 8, 64}, {0, 0, 64}};
    const Settings settings = read(std::move(words)).settings;
    std::vector<std::string> warnings;
    const auto resources = resources_of(settings, warnings);
    if (!resources) return 0;
    return leaves_nodes_open(settings, *resources) ? fewest_nodes(*resources, kNodes) : 99;
  };
  EXPECT_EQ(nodes_for({"-G8"}), 1U);
  EXPECT_EQ(nodes_for({"-G16"}), 2U);
  EXPECT_EQ(nodes_for({"-G9"}), 3U) << "in equal parts";
  EXPECT_EQ(nodes_for({"-G24"}), 1U) << "two nodes alone have eight that are alike";
  EXPECT_EQ(nodes_for({"-n12", "--gpus-per-task=1"}), 2U);
  EXPECT_EQ(nodes_for({"-n100"}), 2U);
  EXPECT_EQ(nodes_for({"-n4", "-c40"}), 4U);
  EXPECT_EQ(nodes_for({"-G4", "--cpus-per-gpu=32"}), 2U);
  EXPECT_EQ(nodes_for({"-N1", "-G16"}), 99U);
  EXPECT_EQ(nodes_for({"-G1"}), 99U);
}

TEST(Resources, OfARangeOfNodesAreTheFewestThatDo) {
  std::vector<std::string> warnings;
  const auto range = resources_of(read({"-N2-4"}).settings, warnings);
  EXPECT_EQ(range->nodes, 2U);
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("the job gets 2 nodes and no more")));
  EXPECT_EQ(resources({"-N1-4", "-n6", "--ntasks-per-node=2"})->nodes, 3U);
}

TEST(Resources, ThatCannotBeMetAreToldAsInSlurm) {
  std::vector<std::string> warnings;
  const auto fewer = resources_of(read({"-N4", "-n2"}).settings, warnings);
  EXPECT_EQ(fewer->nodes, 2U);
  const auto more = resources_of(read({"-N1", "-n8", "--ntasks-per-node=2"}).settings, warnings);
  EXPECT_EQ(more->tasks, 8U);
  EXPECT_THAT(warnings, ElementsAre("can't run 2 processes on 4 nodes, setting nnodes to 2",
                                    HasSubstr("can't honor --ntasks-per-node set to 2")));
}

TEST(Resources, OfAJobAreEqualOnItsNodes) {
  EXPECT_TRUE(check_equal_parts(*resources({"-N2", "-G4"})));
  EXPECT_EQ(check_equal_parts(*resources({"-N2", "-G3"})).error().field, "--gpus");
  EXPECT_EQ(check_equal_parts(*resources({"-N2", "-n3", "--gpus-per-task=1"})).error().field,
            "--gpus-per-task");
}

TEST(Resources, OfTasksOnEachGpuAreGpus) {
  EXPECT_EQ(resources({"-n4", "--ntasks-per-gpu=2"})->gpus.count, 2U);
  EXPECT_EQ(resources({"--ntasks-per-gpu=2"}).error().field, "--ntasks-per-gpu");
}

TEST(Resources, NeverOverflow) {
  EXPECT_FALSE(resources({"-n1024", "-c1048576"}));
  EXPECT_FALSE(resources({"-n1000000"}));
  EXPECT_FALSE(resources({"-n2", "--mem-per-cpu=1024T"}));
  EXPECT_FALSE(resources({"-G2000", "--ntasks-per-gpu=1000"}));
}

}  // namespace
}  // namespace gpu_platform::shims
