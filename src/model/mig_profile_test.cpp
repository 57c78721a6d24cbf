#include "model/mig_profile.h"

#include <gtest/gtest.h>

#include <string>

namespace gpu_platform::model {
namespace {

std::string mig_name_of(std::string_view text) {
  const auto request = parse_mig_request(text);
  return request ? to_string(*request) : request.error().message;
}

TEST(MigProfileNames, AreReadAndWritten) {
  for (const std::string name : {"1g.10gb", "1g.10gb+me", "7g.141gb", "1g.24gb+me.all",
                                 "1g.24gb-me", "1g.24gb+gfx", "4g.96gb+gfx+me"}) {
    EXPECT_EQ(mig_name_of(name), name);
    const auto profile = parse_mig_profile(name);
    ASSERT_TRUE(profile.has_value()) << name;
    EXPECT_EQ(to_string(*profile), name);
  }
  const auto named = parse_mig_profile("MIG 3g.40gb");
  ASSERT_TRUE(named.has_value());
  EXPECT_EQ(*named, (MigProfileName{.compute_slices = 3, .memory_gb = 40}));
}

TEST(MigProfileNames, MayBeOfOneTypeOrFamilyOfGpu) {
  EXPECT_EQ(mig_name_of("h100-1g.10gb"), "h100-1g.10gb");
  EXPECT_EQ(mig_name_of("H100-80GB-1G.10GB+ME"), "h100-80gb-1g.10gb+me");
  EXPECT_EQ(mig_name_of("a100_40gb-3g.20gb"), "a100-40gb-3g.20gb");
  const auto request = parse_mig_request("h100-1g.24gb-me");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->gpu_type, "H100");
  EXPECT_EQ(request->profile.attributes, (std::vector<MigAttribute>{{'-', "me"}}));
  EXPECT_FALSE(parse_mig_profile("h100-1g.10gb").has_value());
}

TEST(MigProfileNames, ThatMakeNoSenseAreRefused) {
  for (const std::string_view text :
       {"", "1g", "1g.", "g.10gb", "1g.10", "1g.gb", "0g.10gb", "1g.0gb", "1g.10gb+", "1g.10gb me",
        "1g.10gb+me-", "2x1g.10gb", "x1g.10gb", "-1g.10gb", "h1001g.10gb", "1c.2g.10gb",
        "99999999999999999999g.10gb", "1g.10gb\n", "1g.10tb"}) {
    const auto request = parse_mig_request(text);
    ASSERT_FALSE(request.has_value()) << text;
    EXPECT_EQ(request.error().message, "'" + std::string(text) +
                                           "' is not the name of a MIG profile; names are such as "
                                           "1g.10gb, 1g.10gb+me and h100-1g.10gb");
  }
  EXPECT_EQ(mig_name_of("h900-1g.10gb"),
            "'h900' before the MIG profile 1g.10gb is not a known GPU type");
}

TEST(MigProfileNames, AreOrderedBySize) {
  const auto name = [](std::string_view text) { return *parse_mig_profile(text); };
  EXPECT_LT(name("1g.10gb"), name("1g.10gb+me"));
  EXPECT_LT(name("1g.10gb+me"), name("1g.20gb"));
  EXPECT_LT(name("1g.20gb"), name("2g.10gb"));
  EXPECT_LT(name("2g.10gb"), name("10g.5gb"));
}

}  // namespace
}  // namespace gpu_platform::model
