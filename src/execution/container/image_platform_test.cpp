#include "execution/container/image_platform.h"

#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

TEST(ImagePlatform, TheEnginesAnswerSaysIt) {
  EXPECT_EQ(platform_of_image({{"Os", "linux"}, {"Architecture", "amd64"}}), "linux/amd64");
  EXPECT_EQ(platform_of_image({{"Os", "linux"}, {"Architecture", "arm64"}, {"Variant", "v8"}}),
            "linux/arm64/v8");
  EXPECT_EQ(platform_of_image({{"Os", "linux"}, {"Architecture", ""}}), "");
  EXPECT_EQ(platform_of_image({{"Os", 1}, {"Architecture", "amd64"}}), "");
  EXPECT_EQ(platform_of_image("garbage"), "");
}

TEST(ImagePlatform, AHostHasTheNameThatRegistriesHave) {
  EXPECT_EQ(platform_of_machine("x86_64"), "linux/amd64");
  EXPECT_EQ(platform_of_machine("aarch64"), "linux/arm64");
  EXPECT_EQ(platform_of_machine("ppc64le"), "linux/ppc64le");
}

TEST(ImagePlatform, AVariantThatIsLeftOutIsNoDifference) {
  EXPECT_TRUE(is_of_platform("linux/arm64/v8", "linux/arm64"));
  EXPECT_TRUE(is_of_platform("linux/arm64", "linux/arm64/v8"));
  EXPECT_FALSE(is_of_platform("linux/arm/v6", "linux/arm/v7"));
  EXPECT_FALSE(is_of_platform("linux/amd64", "linux/arm64"));
  EXPECT_FALSE(is_of_platform("windows/amd64", "linux/amd64"));
}

TEST(ImagePlatform, AHostExecutesItsOwnArchitectureAndTheOneBeforeIt) {
  EXPECT_TRUE(can_execute("linux/amd64", "linux/amd64/v3"));
  EXPECT_TRUE(can_execute("linux/amd64", "linux/386"));
  EXPECT_FALSE(can_execute("linux/386", "linux/amd64"));
  EXPECT_FALSE(can_execute("linux/amd64", "linux/arm64"));
  EXPECT_FALSE(can_execute("linux/amd64", "windows/amd64"));
}

}  // namespace
}  // namespace gpu_platform::execution
