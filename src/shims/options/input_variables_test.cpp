#include "shims/options/input_variables.h"

#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shims/options/batch_options.h"

namespace gpu_platform::shims {
namespace {

using testing::HasSubstr;

Settings read_by(VariablesOf reader, const std::vector<std::string>& environment) {
  const auto table = reader == VariablesOf::kSbatch   ? sbatch_options()
                     : reader == VariablesOf::kSalloc ? salloc_options()
                                                      : srun_options();
  Settings settings;
  std::vector<std::string> warnings;
  const auto read = read_input_variables(reader, table, environment, settings, warnings);
  EXPECT_TRUE(read) << read.error().message;
  return settings;
}

TEST(InputVariables, AreThoseOfTheCommand) {
  const std::vector<std::string> environment = {"SBATCH_PARTITION=a", "SLURM_PARTITION=b",
                                                "SALLOC_PARTITION=c", "SBATCH_PARTITIONS=d"};
  EXPECT_EQ(read_by(VariablesOf::kSbatch, environment).value("partition"), "a");
  EXPECT_EQ(read_by(VariablesOf::kSrun, environment).value("partition"), "b");
  EXPECT_EQ(read_by(VariablesOf::kSalloc, environment).value("partition"), "c");
}

TEST(InputVariables, ThatTellOfTheJobAreNoneInIt) {
  const std::vector<std::string> environment = {"SLURM_NTASKS=4", "SLURM_GPUS=2", "SLURM_OVERLAP=1",
                                                "SRUN_CPUS_PER_TASK=3"};
  const Settings outside = read_by(VariablesOf::kSrun, environment);
  EXPECT_EQ(outside.value("ntasks"), "4");
  EXPECT_EQ(outside.value("gpus"), "2");
  const Settings inside = read_by(VariablesOf::kSrunInJob, environment);
  EXPECT_FALSE(inside.has("ntasks"));
  EXPECT_FALSE(inside.has("gpus"));
  EXPECT_TRUE(inside.has("overlap"));
  EXPECT_EQ(inside.value("cpus-per-task"), "3");
}

TEST(InputVariables, OfSrunGoOverThoseOfTheJob) {
  const Settings got = read_by(VariablesOf::kSrun, {"SRUN_EXPORT_ENV=ALL", "SLURM_EXPORT_ENV=NONE",
                                                    "SLURM_NNODES=2", "SLURM_JOB_NUM_NODES=3"});
  EXPECT_EQ(got.value("export"), "ALL");
  EXPECT_EQ(got.value("nodes"), "3");
}

TEST(InputVariables, ThatAreWrongAreNamed) {
  Settings settings;
  std::vector<std::string> warnings;
  const std::vector<std::string> environment = {"SBATCH_CONTAINER=x"};
  const auto read =
      read_input_variables(VariablesOf::kSbatch, sbatch_options(), environment, settings, warnings);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().field, "--container");
  EXPECT_THAT(read.error().message, HasSubstr("SBATCH_CONTAINER: "));
}

TEST(InputVariables, StandForOptionsThatAreThere) {
  const auto has = [](std::span<const Option> table, std::string_view name) {
    return std::ranges::find(table, name, &Option::name) != table.end();
  };
  for (const InputVariable& variable : input_variables()) {
    if (!variable.sbatch.empty()) {
      EXPECT_TRUE(has(sbatch_options(), variable.option)) << variable.option;
    }
    if (!variable.salloc.empty()) {
      EXPECT_TRUE(has(salloc_options(), variable.option)) << variable.option;
    }
    if (!variable.srun.empty()) {
      EXPECT_TRUE(has(srun_options(), variable.option)) << variable.option;
    }
  }
}

TEST(InputVariables, AreAllInTheDocument) {
  std::ifstream file(GP_SOURCE_DIRECTORY "/docs/slurm-shims.md");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::set<std::string_view> missing;
  for (const InputVariable& variable : input_variables()) {
    for (const std::string_view name : {variable.sbatch, variable.salloc, variable.srun}) {
      if (!name.empty() && text.find("`" + std::string(name) + "`") == std::string::npos)
        missing.insert(name);
    }
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

}  // namespace
}  // namespace gpu_platform::shims
