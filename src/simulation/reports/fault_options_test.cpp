#include "simulation/reports/fault_options.h"

#include <gtest/gtest.h>

namespace gpu_platform::simulation {
namespace {

TEST(FaultOptionTexts, WithoutAnyTheDefaultsStand) {
  const auto options = read_fault_options({});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->seeds, 100U);
  EXPECT_EQ(options->first_seed, 1U);
  EXPECT_EQ(options->plant, Plant::kNone);
}

TEST(FaultOptionTexts, EachIsTaken) {
  const auto options =
      read_fault_options({.seeds = "7", .first_seed = "17", .plant = "double-start"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->seeds, 7U);
  EXPECT_EQ(options->first_seed, 17U);
  EXPECT_EQ(options->plant, parse_plant("double-start"));
}

TEST(FaultOptionTexts, AMistakeNamesItsOption) {
  for (const char* const text : {"", "0", "-1", "x", "1000000001"}) {
    const auto options = read_fault_options({.seeds = text});
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().field, "--seeds");
  }
  EXPECT_EQ(read_fault_options({.first_seed = "18446744073709551615"}).error().field,
            "--first-seed");
}

TEST(FaultOptionTexts, ADefectIsOneOfThoseThatAreListed) {
  for (const char* const text : {"rust", "none", ""}) {
    const auto options = read_fault_options({.plant = text});
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().field, "--plant");
    EXPECT_NE(options.error().message.find("double-start"), std::string::npos);
    EXPECT_TRUE(options.error().message.ends_with(std::string("not '") + text + "'"));
  }
}

}  // namespace
}  // namespace gpu_platform::simulation
