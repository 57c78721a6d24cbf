#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "config/effective.h"
#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

TEST(Sharing, IsOffWithoutTheSection) {
  for (const std::string_view yaml : {"", "sharing:\n", "cluster: {name: a}\n"}) {
    const Checked checked = parse_configuration(yaml);
    ASSERT_TRUE(checked.has_value()) << yaml;
    EXPECT_EQ(checked->policy.sharing, model::Sharing()) << yaml;
    EXPECT_FALSE(checked->policy.sharing.is_on) << yaml;
  }
}

TEST(Sharing, IsOnForAllGpusWithTheSectionAlone) {
  const Checked checked = parse_configuration("sharing: {}\n");
  ASSERT_TRUE(checked.has_value());
  model::Sharing expected;
  expected.is_on = true;
  EXPECT_EQ(checked->policy.sharing, expected);
}

TEST(Sharing, SaysWhichGpusAreSharedAndHow) {
  const Checked checked = parse_configuration(R"(
sharing:
  gpus: [h100, A100-80GB]
  nodes: [dgx-1, dgx-2]
  between_users: team
  max_jobs: 4
  weakest_rung: mps_limit
  slice: 500ms
  modes: [time-slice]
)");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  const model::Sharing& sharing = checked->policy.sharing;
  EXPECT_TRUE(sharing.is_on);
  EXPECT_EQ(sharing.gpu_types, (std::vector<std::string>{"H100", "A100-80GB"}));
  EXPECT_EQ(sharing.nodes, (std::vector<std::string>{"dgx-1", "dgx-2"}));
  EXPECT_EQ(sharing.between_users, model::SharedBetween::kTeam);
  EXPECT_EQ(sharing.max_jobs, 4U);
  EXPECT_EQ(sharing.weakest_rung, model::Rung::kMpsLimit);
  EXPECT_EQ(sharing.slice, base::milliseconds(500));
  EXPECT_EQ(sharing.modes, (std::vector{model::ShareMode::kTimeSlice}));
}

TEST(Sharing, AChangeOfItTakesEffectAtAReload) {
  const Checked before = parse_configuration("sharing: {max_jobs: 2}\n");
  const Checked after = parse_configuration("sharing: {max_jobs: 3}\n");
  ASSERT_TRUE(before && after);
  const std::vector<Difference> found = differences(*before, *after);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].key, "sharing");
  EXPECT_EQ(found[0].effect, Effect::kAnytime);
  const auto values = effective_values(*after);
  const auto shown = std::ranges::find(values, "sharing", &EffectiveValue::key);
  ASSERT_NE(shown, values.end());
  EXPECT_NE(shown->value.find("max_jobs: 3"), std::string::npos) << shown->value;
}

TEST(Sharing, SaysWhereMpsControlIs) {
  const auto control_of = [](const std::string& value) {
    const Checked checked = parse_configuration("sharing: {mps_control: " + value + "}\n");
    return checked ? std::optional(checked->mps_control) : std::nullopt;
  };
  EXPECT_EQ(control_of("auto"), MpsControl());
  EXPECT_EQ(control_of("off"), (MpsControl{.is_off = true, .path = {}}));
  EXPECT_EQ(control_of("/opt/mps"), (MpsControl{.is_off = false, .path = "/opt/mps"}));
  EXPECT_EQ(parse_configuration("")->mps_control, MpsControl());
}

TEST(Sharing, AChangeOfMpsControlWaitsForAStart) {
  const Checked before = parse_configuration("sharing: {}\n");
  const Checked after = parse_configuration("sharing: {mps_control: off}\n");
  ASSERT_TRUE(before && after);
  const std::vector<Difference> found = differences(*before, *after);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].key, "sharing");
  EXPECT_EQ(found[1], (Difference{"sharing.mps_control", "auto", "off", Effect::kRestart}));
}

TEST(Sharing, IsRefusedWithThePlaceAndWhatIsAllowed) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"sharing: [H100]\n", "site.yaml:1:10: 'sharing' must be names with their values"},
      {"sharing: {gpu: [H100]}\n", "did you mean 'gpus'?"},
      {"sharing: {gpus: H100}\n", ":1:17: 'gpus' in 'sharing' must be a list of names"},
      {"sharing: {gpus: []}\n", "leave it out for all"},
      {"sharing: {between_users: some}\n",
       "'between_users' in 'sharing' must be never, team or all"},
      {"sharing: {max_jobs: 0}\n", "'max_jobs' in 'sharing'"},
      {"sharing: {max_jobs: 49}\n", "'max_jobs' in 'sharing' must be 1 to 48"},
      {"sharing: {weakest_rung: hardware}\n",
       "'weakest_rung' in 'sharing' must be advisory, watchdog, mps-limit or driver-limit"},
      {"sharing: {slice: 99ms}\n", "'slice' in 'sharing' must be a time from 100ms to 60s"},
      {"sharing: {slice: 61s}\n", "'slice' in 'sharing' must be a time from 100ms to 60s"},
      {"sharing: {slice: [1s]}\n", "'slice' in 'sharing' must be a time from 100ms to 60s"},
      {"sharing: {modes: []}\n", "'modes' in 'sharing' must be a list of mps and time-slice"},
      {"sharing: {modes: [mig]}\n", "'modes' in 'sharing' must be mps or time-slice"},
      {"sharing: {mps_control: bin/mps}\n",
       "'mps_control' in 'sharing' must be auto, off or the absolute path"},
      {"sharing: {modes: [mps, mps]}\n", "'mps' is in 'modes' of 'sharing' twice"},
  };
  for (const auto& [yaml, said] : cases) {
    const Checked checked = parse_configuration(yaml);
    ASSERT_FALSE(checked.has_value()) << yaml;
    const std::string problem = describe(checked.error().front(), "site.yaml");
    EXPECT_NE(problem.find(said), std::string::npos) << yaml << "\n -> " << problem;
  }
}

TEST(Sharing, ShardsAreFourOfAGpuUnlessTheSiteSaysOtherwise) {
  EXPECT_EQ(parse_configuration("")->slurm.shards_per_gpu, 4U);
  const Checked checked = parse_configuration("slurm: {shards_per_gpu: 10, qos: {normal: {}}}\n");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "site.yaml");
  EXPECT_EQ(checked->slurm.shards_per_gpu, 10U);
  EXPECT_EQ(checked->slurm.qos.size(), 1U);
  EXPECT_FALSE(parse_configuration("slurm: {shards_per_gpu: 0}\n").has_value());
  EXPECT_FALSE(parse_configuration("slurm: {shards_per_gpu: 1001}\n").has_value());
}

}  // namespace
}  // namespace gpu_platform::config
