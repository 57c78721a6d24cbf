#include <gtest/gtest.h>

#include "config/yaml/reader.h"

namespace gpu_platform::config {
namespace {

std::string first_error_of(std::string_view yaml) {
  const Checked checked = parse_configuration(yaml);
  return checked ? "" : describe(checked.error().front(), "f");
}

TEST(PowerLimits, AreReadForTypesAndNodes) {
  const auto checked = parse_configuration("health: {power_limits: {h100: 500, dgx-2: 400}}\n");
  ASSERT_TRUE(checked.has_value()) << describe(checked.error().front(), "f");
  EXPECT_EQ(checked->power_limits, (std::vector<PowerLimit>{{"H100", 500}, {"dgx-2", 400}}));
}

TEST(PowerLimits, NamesTheFieldThatIsWrong) {
  const std::string watts =
      "'H100' in 'health.power_limits' must be a number of watts, a whole number from 1 to 10000";
  for (const char* value : {"0", "10001", "500 W", "'500'", "[500]", "-1"}) {
    const std::string error =
        first_error_of(std::string("health:\n  power_limits:\n    H100: ") + value + "\n");
    EXPECT_TRUE(error.starts_with("f:3:")) << error;
    EXPECT_NE(error.find(watts), std::string::npos) << error;
  }
  const std::string twice =
      first_error_of("health:\n  power_limits:\n    H100: 500\n    h100: 400\n");
  EXPECT_NE(twice.find("'H100' has a power limit already: each once"), std::string::npos) << twice;
}

}  // namespace
}  // namespace gpu_platform::config
