#include "doctor/report.h"

#include <gtest/gtest.h>

namespace gpu_platform::doctor {
namespace {

std::vector<Finding> some_findings() {
  return {{"disk", Verdict::kGood, "ext4", ""},
          {"kernel.clock", Verdict::kWarning, "not synchronised", "start chrony"},
          {"service", Verdict::kBad, "no daemon", "start it"}};
}

TEST(DoctorReport, TheDocumentHasEachFindingAndTheWorstVerdict) {
  EXPECT_EQ(findings_json(some_findings()),
            R"({"verdict":"bad","findings":[)"
            R"({"check":"disk","verdict":"ok","text":"ext4","advice":""},)"
            R"({"check":"kernel.clock","verdict":"warning","text":"not synchronised",)"
            R"("advice":"start chrony"},)"
            R"({"check":"service","verdict":"bad","text":"no daemon","advice":"start it"}]})");
}

TEST(DoctorReport, TheDocumentOfNoFindingsHasAnEmptyList) {
  EXPECT_EQ(findings_json({}), R"({"verdict":"ok","findings":[]})");
}

TEST(DoctorReport, TheDocumentIsUtf8WhateverTheHostSays) {
  EXPECT_EQ(findings_json({{"disk", Verdict::kGood, "a\xff", ""}}),
            "{\"verdict\":\"ok\",\"findings\":[{\"check\":\"disk\",\"verdict\":\"ok\","
            "\"text\":\"a\xef\xbf\xbd\",\"advice\":\"\"}]}");
}

TEST(DoctorReport, AdviceHasAHeadingAndALineForEachThatNeedsSome) {
  EXPECT_EQ(advice_text(some_findings()),
            "\nWhat to do\n  kernel.clock: start chrony\n  service: start it\n");
  EXPECT_EQ(advice_text({some_findings()[0]}), "");
}

}  // namespace
}  // namespace gpu_platform::doctor
