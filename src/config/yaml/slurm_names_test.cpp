#include <gtest/gtest.h>

#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

TEST(SlurmNames, AreReadInTheirOrder) {
  const Checked checked = parse_configuration(R"(
slurm:
  partitions:
    batch: {max_time: 1d, default_time: 1h}
    big: {default: true, gpu_types: [h100, NVIDIA Foo], priority: low, max_gpus: 64, max_nodes: 8}
  qos:
    normal: {}
    urgent: {priority: high, max_time: 4h, max_gpus: 8}
)");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  const SlurmNames expected{
      .partitions = {{.name = "batch", .max_time = base::hours(24), .default_time = base::hours(1)},
                     {.name = "big",
                      .is_default = true,
                      .gpu_types = {"H100", "NVIDIA Foo"},
                      .priority = model::PriorityClass::kLow,
                      .max_gpus = 64,
                      .max_nodes = 8}},
      .qos = {{.name = "normal"},
              {.name = "urgent",
               .priority = model::PriorityClass::kHigh,
               .max_time = base::hours(4),
               .max_gpus = 8}}};
  EXPECT_EQ(checked->slurm, expected);
}

TEST(SlurmNames, TheFirstPartitionIsTheDefaultWhereNoneSaysSo) {
  const Checked checked = parse_configuration("slurm: {partitions: {b: {}, a: {}}}\n");
  ASSERT_TRUE(checked.has_value());
  EXPECT_TRUE(checked->slurm.partitions[0].is_default);
  EXPECT_FALSE(checked->slurm.partitions[1].is_default);
  EXPECT_TRUE(parse_configuration("")->slurm.partitions.empty());
}

TEST(SlurmNames, AreRefusedWithThePlaceAndWhatIsAllowed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"slurm:\n  partitions: [a]\n", "site.yaml:2:15: 'slurm.partitions' must be names"},
      {"slurm:\n  partitions:\n    a,b: {}\n", ":3:5: the name 'a,b'"},
      {"slurm:\n  partitions:\n    a: {}\n    a: {}\n", "twice"},
      {"slurm:\n  partitions:\n    a: {default: true}\n    b: {default: true}\n",
       "for one partition"},
      {"slurm:\n  partitions:\n    a: {default: 1}\n", "must be true or false"},
      {"slurm:\n  partitions:\n    a: {gpu_types: H100}\n", "must be a list ([H100])"},
      {"slurm:\n  partitions:\n    a: {priority: urgent}\n", "critical, high, medium or low"},
      {"slurm:\n  partitions:\n    a: {max_time: 0s}\n", "must be more than 0"},
      {"slurm:\n  partitions:\n    a: {max_time: 1h, default_time: 2h}\n", "at most max_time"},
      {"slurm:\n  partitions:\n    a: {max_nodes: 0}\n", "whole number from 1"},
      {"slurm:\n  partitions:\n    a: {max_gpu: 4}\n", "did you mean 'max_gpus'?"},
      {"slurm:\n  qos:\n    a: {max_nodes: 4}\n", "unknown key 'max_nodes' in 'slurm.qos'"},
      {"slurm: {partition: {}}\n", "did you mean 'partitions'?"},
  };
  for (const auto& [yaml, said] : cases) {
    const Checked checked = parse_configuration(yaml);
    ASSERT_FALSE(checked.has_value()) << yaml;
    const std::string problem = describe(checked.error().front(), "site.yaml");
    EXPECT_NE(problem.find(said), std::string::npos) << yaml << "\n -> " << problem;
  }
}

}  // namespace
}  // namespace gpu_platform::config
