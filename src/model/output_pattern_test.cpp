#include "model/output_pattern.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

constexpr OutputNames kNames{JobId(42), "train", "ann", "n1"};

TEST(OutputPattern, NamesTheJob) {
  EXPECT_EQ(expand_output("/logs/%u/%x-%j.%N.log", kNames), "/logs/ann/train-42.n1.log");
  EXPECT_EQ(expand_output("100%%-%j%", kNames), "100%-42%");
  EXPECT_EQ(expand_output("", kNames), "");
}

TEST(OutputPattern, MembersOfAnArrayAreNamedApart) {
  OutputNames member = kNames;
  member.array_id = JobId(40);
  member.array_index = 2;
  EXPECT_EQ(expand_output("%A_%a-%j", member), "40_2-42");
  EXPECT_EQ(expand_output("%A_%a-%j", kNames), "%A_%a-42");
}

TEST(OutputPattern, TellsWhetherItContainsTheName) {
  EXPECT_TRUE(names_job("/logs/%x"));
  EXPECT_FALSE(names_job("/logs/%%x-%j"));
}

TEST(OutputPattern, ANameLeadsIntoNoOtherDirectory) {
  EXPECT_EQ(expand_output("%x.log", {JobId(1), "../../etc/passwd", "ann", "n1"}),
            ".._.._etc_passwd.log");
}

TEST(OutputPattern, WhatIsNotKnownIsRefusedAndStays) {
  EXPECT_TRUE(check_output_pattern("%j/%x/%u/%N/%%", "output", PatternOf::kJob));
  EXPECT_TRUE(check_output_pattern("%A_%a.out", "output", PatternOf::kArray));
  for (const char* bad : {"%z", "x%", "%%%", "%a", "%A_%j"}) {
    const base::Status checked = check_output_pattern(bad, "output", PatternOf::kJob);
    ASSERT_FALSE(checked) << bad;
    EXPECT_EQ(checked.error().field, "output");
    EXPECT_NE(checked.error().message.find("%j"), std::string::npos);
  }
  EXPECT_EQ(expand_output("%z%j", kNames), "%z42");
}

}  // namespace
}  // namespace gpu_platform::model
