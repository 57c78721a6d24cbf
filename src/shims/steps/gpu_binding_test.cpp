#include "shims/steps/gpu_binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::shims {
namespace {

const std::vector<Gpu> kFour{{"4", "a"}, {"5", "b"}, {"6", "c"}, {"7", "d"}};

// What task 0, 1, … sees, by its variables.
std::string seen(std::string_view text, std::uint32_t rank, const std::vector<Gpu>& step = kFour) {
  const auto binding = parse_gpu_binding(text);
  if (!binding) return "refused";
  const auto gpus = gpus_of_task(*binding, step, rank);
  if (!gpus) return "refused";
  Variables variables;
  add_gpu_variables(variables, step, *gpus);
  return variables["CUDA_VISIBLE_DEVICES"];
}

TEST(GpuBinding, GivesEachTaskWhatItSays) {
  EXPECT_EQ(seen("none", 1), "a,b,c,d");
  EXPECT_EQ(seen("closest", 1), "a,b,c,d");
  EXPECT_EQ(seen("per_task:1", 2), "c");
  EXPECT_EQ(seen("verbose,per_task:2", 1), "c,d");
  EXPECT_EQ(seen("single:2", 3), "b");
  EXPECT_EQ(seen("single:1", 5), "b");
  EXPECT_EQ(seen("map_gpu:3,1", 0), "d");
  EXPECT_EQ(seen("map_gpu:3,1", 3), "b");
  EXPECT_EQ(seen("single:1", 0, {}), "") << "of a step without GPUs a task sees none";
}

TEST(GpuBinding, RefusesWhatTheStepDoesNotHave) {
  EXPECT_EQ(seen("per_task:3", 1), "refused");
  EXPECT_EQ(seen("map_gpu:4", 0), "refused");
  for (const char* text : {"", "mask_gpu:0x1", "map_gpu:", "single", "per_task:0", "near"})
    EXPECT_EQ(seen(text, 0), "refused") << text;
}

TEST(GpuBinding, TakesTheGpusOfTheJobWhateverAScriptMakesVisible) {
  const auto gpus = gpus_of_job({{"GPU_PLATFORM_GPUS", "2,3"},
                                 {"GPU_PLATFORM_STEP_DEVICES", "GPU-x,GPU-y"},
                                 {"CUDA_VISIBLE_DEVICES", "0"}});
  ASSERT_EQ(gpus.size(), 2U);
  EXPECT_EQ(gpus[1].index, "3");
  EXPECT_EQ(gpus[1].device, "GPU-y");
}

}  // namespace
}  // namespace gpu_platform::shims
