#include "shims/steps/cpu_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

using testing::ElementsAre;

Cpus bound(const char* text, std::uint32_t rank) {
  const auto binding = parse_cpu_binding(text);
  EXPECT_TRUE(binding) << text;
  if (!binding) return {};
  const auto cpus = cpus_of_task(*binding, {8, 9, 10, 11}, 2, rank);
  EXPECT_TRUE(cpus) << text;
  return cpus ? cpus->value_or(Cpus{}) : Cpus{};
}

TEST(CpuBinding, GivesEachTaskCpusOfItsOwn) {
  EXPECT_THAT(bound("cores", 0), ElementsAre(8, 9));
  EXPECT_THAT(bound("verbose,rank", 1), ElementsAre(10, 11));
  EXPECT_THAT(bound("cores", 2), ElementsAre(8, 9)) << "there are no more";
}

TEST(CpuBinding, FollowsMapsAndMasks) {
  EXPECT_THAT(bound("map_cpu:11,0x8", 1), ElementsAre(8));
  EXPECT_THAT(bound("map_cpu:11,8", 2), ElementsAre(11));
  EXPECT_THAT(bound("mask_cpu:0x300*2,c00", 1), ElementsAre(8, 9));
  EXPECT_THAT(bound("mask_cpu:0x300*2,c00", 2), ElementsAre(10, 11));
}

TEST(CpuBinding, LeavesTheTaskAloneWhereItIsToldTo) {
  for (const char* text : {"none", "q", "v", "quiet,none"})
    EXPECT_THAT(bound(text, 0), ElementsAre()) << text;
}

TEST(CpuBinding, RefusesWhatItDoesNotKnowAndCpusOfOthers) {
  for (const char* text : {"sockets", "map_cpu:", "map_cpu:x", "mask_cpu:0", "mask_cpu:0xg",
                           "map_cpu:1*0", "rank_ldom", "map_cpu:1*99999", "map_cpu:0xfffffffff"})
    EXPECT_FALSE(parse_cpu_binding(text)) << text;
  EXPECT_FALSE(cpus_of_task(*parse_cpu_binding("map_cpu:1"), {8, 9}, 1, 0));
}

TEST(CpuBinding, IsToldAsSlurmTellsIt) {
  EXPECT_EQ(cpu_binding_line(*parse_cpu_binding("v,map_cpu:9"), {"n1", 3, 42}, {9}),
            "cpu-bind=MAP  - n1, task  3  3 [42]: mask 0x200 set\n");
}

}  // namespace
}  // namespace gpu_platform::shims
