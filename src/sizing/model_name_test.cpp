#include "sizing/model_name.h"

#include <gtest/gtest.h>

namespace gpu_platform::sizing {
namespace {

std::optional<std::uint64_t> parameters(std::string_view model) {
  return facts_of_name(model).parameters;
}

std::uint32_t centibits(std::string_view model) {
  const auto precision = facts_of_name(model).precision;
  return precision ? precision->centibits : 0;
}

TEST(ModelName, TellsTheNumberOfParameters) {
  EXPECT_EQ(parameters("Qwen3-30B-A3B"), 30'000'000'000U);
  EXPECT_EQ(parameters("qwen2.5-1.5b"), 1'500'000'000U);
  EXPECT_EQ(parameters("opt-350m"), 350'000'000U);
  EXPECT_EQ(parameters("llama-3"), std::nullopt);
  EXPECT_EQ(parameters("bert"), std::nullopt);
  EXPECT_EQ(parameters(""), std::nullopt);
}

TEST(ModelName, ContextSuffixesAreNoParameters) {
  EXPECT_EQ(facts_of_name("Phi-3-mini-4k"), (NameFacts{.context = 4096}));
  EXPECT_EQ(facts_of_name("foo-7b-128k").context, 131'072U);
  EXPECT_EQ(parameters("foo-7b-128k"), 7'000'000'000U);
  EXPECT_EQ(parameters("foo-7B-1M"), 7'000'000'000U);
  EXPECT_EQ(facts_of_name("foo-7B-1M").context, 1'048'576U);
}

TEST(ModelName, NumbersOfExpertsAreUpperBounds) {
  EXPECT_EQ(parameters("foo-8x7b-v0.1"), 56'000'000'000U);
  EXPECT_TRUE(facts_of_name("foo-8x7b-v0.1").is_upper_bound);
  EXPECT_EQ(parameters("foo-17B-16E"), 272'000'000'000U);
  EXPECT_TRUE(facts_of_name("foo-17B-16E").is_upper_bound);
  EXPECT_FALSE(facts_of_name("foo-70b").is_upper_bound);
  EXPECT_EQ(parameters("foo-1000t-99999999999999999e"), 1'000'000'000'000'000U);
}

TEST(ModelName, TellsThePrecision) {
  EXPECT_EQ(centibits("foo-7b-AWQ"), 416U);
  EXPECT_EQ(centibits("foo-7b-GPTQ-Int8"), 800U);
  EXPECT_EQ(centibits("foo-7b-int8-gptq"), 800U);
  EXPECT_EQ(centibits("foo-7b-FP8-dynamic"), 800U);
  EXPECT_EQ(centibits("foo-7b-quantized.w4a16"), 416U);
  EXPECT_EQ(centibits("foo-7b-NVFP4"), 450U);
  EXPECT_EQ(centibits("foo-7b-bnb-4bit"), 450U);
  EXPECT_EQ(centibits("foo-7b-BF16"), 1600U);
  EXPECT_EQ(centibits("foo-7b"), 0U);
}

TEST(ParameterCount, IsNoOtherText) {
  EXPECT_EQ(parameter_count("70B"), 70'000'000'000U);
  EXPECT_EQ(parameter_count("7000000000"), 7'000'000'000U);
  for (const char* bad :
       {"", "b", "x7b", "7x", "0b", "-1b", "7q", "1.5x7b", "99999999999999999999b"}) {
    EXPECT_EQ(parameter_count(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace gpu_platform::sizing
