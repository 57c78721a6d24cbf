#include "shims/text/slurm_values.h"

#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

std::int64_t seconds_of(std::string_view text) {
  const auto limit = parse_time_limit(text);
  return limit && limit->has_value() ? base::whole_milliseconds(**limit) / 1000 : -1;
}

TEST(SlurmTime, HasSixForms) {
  EXPECT_EQ(seconds_of("90"), 90 * 60);
  EXPECT_EQ(seconds_of("90:00"), 90 * 60);
  EXPECT_EQ(seconds_of("2:01:00"), 7260);
  EXPECT_EQ(seconds_of("1-"), 24 * 3600);
  EXPECT_EQ(seconds_of("1-2"), 26 * 3600);
  EXPECT_EQ(seconds_of("1-2:03"), 26 * 3600 + 180);
  EXPECT_EQ(seconds_of("1-02:03:00"), 26 * 3600 + 180);
}

TEST(SlurmTime, IsRoundedUpToWholeMinutes) {
  EXPECT_EQ(seconds_of("0:01"), 60);
  EXPECT_EQ(seconds_of("1:00"), 60);
  EXPECT_EQ(seconds_of("1:01"), 120);
  EXPECT_EQ(seconds_of("0-0:0:1"), 60);
  EXPECT_EQ(seconds_of("2:01:05"), 7320);
}

TEST(SlurmTime, WithoutALimitIsNoNumber) {
  for (const char* text : {"UNLIMITED", "infinite", "-1", "0", "00:00:00"}) {
    const auto limit = parse_time_limit(text);
    ASSERT_TRUE(limit) << text;
    EXPECT_FALSE(limit->has_value()) << text;
  }
}

TEST(SlurmTime, RefusesWhatIsNone) {
  for (const char* text : {"", "1h", "1:2:3:4", "-5", "a-1", "1-1:1:1:1", ":",
                           "1:", "9999-00:00:00", "99999999999999999999", "3651-0"}) {
    EXPECT_FALSE(parse_time_limit(text)) << text;
  }
}

TEST(SlurmMemory, IsInMebibytesAndBinary) {
  EXPECT_EQ(parse_memory("4000")->value(), 4000 * base::kMiB.value());
  EXPECT_EQ(parse_memory("16G")->value(), 16 * base::kGiB.value());
  EXPECT_EQ(parse_memory("16GB")->value(), 16 * base::kGiB.value());
  EXPECT_EQ(parse_memory("512mb")->value(), 512 * base::kMiB.value());
  EXPECT_EQ(parse_memory("2048k")->value(), 2 * base::kMiB.value());
  EXPECT_EQ(parse_memory("1T")->value(), 1024 * base::kGiB.value());
  EXPECT_EQ(parse_memory("0")->value(), 0);
}

TEST(SlurmMemory, RefusesWhatIsNone) {
  for (const char* text :
       {"", "G", "B", "-1", "1.5G", "16X", "99999999T", "9223372036854775807K"}) {
    EXPECT_FALSE(parse_memory(text)) << text;
  }
}

TEST(SlurmGpus, AreANumberWithOrWithoutAType) {
  EXPECT_EQ(*parse_gpus("2"), (GpuCount{2, ""}));
  EXPECT_EQ(*parse_gpus("a100:4"), (GpuCount{4, "a100"}));
  for (const char* text : {"", "a100", ":2", "a100:", "a:b:2", "a100:1,h100:1", "-1"}) {
    EXPECT_FALSE(parse_gpus(text)) << text;
  }
}

TEST(SlurmGres, IsReadInEveryForm) {
  std::vector<std::string> others;
  EXPECT_EQ(*parse_gres("gpu", others), (GpuCount{1, ""}));
  EXPECT_EQ(*parse_gres("gpu:2", others), (GpuCount{2, ""}));
  EXPECT_EQ(*parse_gres("gpu:a100:2", others), (GpuCount{2, "a100"}));
  EXPECT_EQ(*parse_gres("gpu:a100", others), (GpuCount{1, "a100"}));
  EXPECT_EQ(*parse_gres("gres/gpu=3", others), (GpuCount{3, ""}));
  EXPECT_EQ(*parse_gres("none", others), (GpuCount{}));
  EXPECT_TRUE(others.empty());
}

TEST(SlurmGres, NamesWhatItDoesNotCount) {
  std::vector<std::string> others;
  EXPECT_EQ(parse_gres("nvme:1,gpu:2", others)->count, 2U);
  EXPECT_EQ(others, std::vector<std::string>{"nvme:1"});
}

TEST(SlurmGres, RefusesTwoTypesAndNonsense) {
  std::vector<std::string> others;
  for (const char* text : {"gpu:a100:1,gpu:v100:1", "gpu:a100:x", "gpu:", "gpu:a:b:1"}) {
    EXPECT_FALSE(parse_gres(text, others)) << text;
  }
}

TEST(SlurmNodes, AreTheLeastOfARange) {
  EXPECT_EQ(*parse_nodes("1"), (NodeCount{1, 1}));
  EXPECT_EQ(*parse_nodes("2-4"), (NodeCount{2, 4}));
  EXPECT_EQ(*parse_nodes("1k"), (NodeCount{1000, 1000}));
  for (const char* text : {"", "0", "n1", "-2", "2-", "4-2", "2-x", "1-2-3", "9999k"})
    EXPECT_FALSE(parse_nodes(text)) << text;
}

TEST(Elapsed, LooksAsInSqueueAndSacct) {
  EXPECT_EQ(short_elapsed(base::seconds(65)), "1:05");
  EXPECT_EQ(short_elapsed(base::seconds(7265)), "2:01:05");
  EXPECT_EQ(short_elapsed(base::seconds(90'061)), "1-01:01:01");
  EXPECT_EQ(short_elapsed(base::seconds(-5)), "0:00");
  EXPECT_EQ(long_elapsed(base::seconds(65)), "00:01:05");
  EXPECT_EQ(long_elapsed(base::seconds(90'061)), "1-01:01:01");
}

}  // namespace
}  // namespace gpu_platform::shims
