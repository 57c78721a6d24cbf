#include "shims/batch_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shims/resources.h"

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

struct Read {
  Settings settings;
  std::vector<std::string> rest;
  std::vector<std::string> warnings;
  std::string error;
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
  const auto status = read_directives(script, result.settings, result.warnings);
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

TEST(Options, ThatNobodyKnowsAreErrorsOnTheCommandLine) {
  EXPECT_THAT(read({"--job-nam3=x"}).error, HasSubstr("did you mean '--job-name'"));
  EXPECT_THAT(read({"-j"}).error, HasSubstr("unknown option"));
}

TEST(Options, WithoutTheirValueAreErrors) {
  EXPECT_THAT(read({"--mem"}).error, HasSubstr("needs a value"));
  EXPECT_THAT(read({"--parsable=yes"}).error, HasSubstr("takes no value"));
}

TEST(Options, ThatAreRefusedSayWhatToDo) {
  for (const char* word : {"--nodefile=n1", "--test-only", "--uid=1"}) {
    EXPECT_GT(read({word}).error.size(), 20U) << word;
  }
}

TEST(Options, ThatAreIgnoredSaySo) {
  const Read got = read({"--mail-type=END", "--exclusive"});
  ASSERT_EQ(got.warnings.size(), 2U);
  EXPECT_THAT(got.warnings[0], HasSubstr("--mail-type is ignored"));
}

TEST(Options, LaterOnesGoOverEarlierOnesAndTheirOpposites) {
  EXPECT_EQ(read({"-t1", "-t2"}).settings.value("time"), "2");
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
  EXPECT_FALSE(read_by_srun({"--multi-prog", "true"}));
  EXPECT_EQ(read({"--label"}).error, "--label: unknown option");
}

TEST(Options, ComeFromTheEnvironmentToo) {
  Settings settings;
  std::vector<std::string> warnings;
  const std::vector<std::string> environment{"SBATCH_TIMELIMIT=5", "SBATCH_WAIT=1", "HOME=/"};
  ASSERT_TRUE(read_variables(sbatch_options(), environment, settings, warnings));
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

TEST(Directives, HaveQuotesAndBackslashes) {
  EXPECT_THAT(*directive_words(R"( --a="x y" 'b # c' d\ e f#g # h)"),
              ElementsAre("--a=x y", "b # c", "d e", "f#g"));
  EXPECT_FALSE(directive_words(" --a=\"x"));
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
  EXPECT_THAT(directives("#!/bin/sh\n#SBATCH hetjob\n").error, HasSubstr("line 2"));
}

TEST(Script, NeedsAnInterpreterAndUnixLineEnds) {
  EXPECT_TRUE(check_script("#!/bin/sh\n"));
  EXPECT_FALSE(check_script("echo\n"));
  EXPECT_FALSE(check_script(""));
  EXPECT_FALSE(check_script("#!/bin/sh\r\necho\r\n"));
  EXPECT_FALSE(check_script(std::string("#!/bin/sh\n\0", 11)));
  EXPECT_FALSE(check_script("#! \n"));
}

TEST(Script, GivesItsInterpreterOneArgumentAtMost) {
  EXPECT_THAT(interpreter_of("#!/bin/bash\n"), ElementsAre("/bin/bash"));
  EXPECT_THAT(interpreter_of("#! /usr/bin/env  -S python3 -u \nx"),
              ElementsAre("/usr/bin/env", "-S python3 -u"));
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

TEST(Resources, MustAgree) {
  EXPECT_TRUE(resources({"--gres=gpu:2", "--gpus=2"}));
  EXPECT_FALSE(resources({"--gres=gpu:2", "--gpus=4"}));
  EXPECT_FALSE(resources({"--mem=1G", "--mem-per-cpu=1G"}));
  EXPECT_FALSE(resources({"--mem-per-gpu=1G"}));
}

TEST(Resources, AreOnOneNode) {
  EXPECT_TRUE(resources({"-N1"}));
  EXPECT_TRUE(resources({"-N1-4"}));
  const auto two = resources({"-N2"});
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().field, "--nodes");
  EXPECT_THAT(two.error().message, HasSubstr("one node, not 2"));
}

TEST(Resources, NeverOverflow) {
  EXPECT_FALSE(resources({"-n1024", "-c1048576"}));
  EXPECT_FALSE(resources({"-n1000000"}));
  EXPECT_FALSE(resources({"-n2", "--mem-per-cpu=1024T"}));
  EXPECT_FALSE(resources({"-G2000", "--ntasks-per-gpu=1000"}));
}

}  // namespace
}  // namespace gpu_platform::shims
