#include <unistd.h>

#include <cstddef>
#include <vector>

#include "tool/library_fixture.h"

// GPM, and what a GPU says of itself as a part of a machine.

namespace gpu_emulator {
namespace {

class Modules : public Library {
 protected:
  void use(const char* board) {
    open_board(board);
    initialise();
  }
  std::string inforom(unsigned object) {
    char text[16] = "";
    const auto read = find<decltype(nvmlDeviceGetInforomVersion)>("nvmlDeviceGetInforomVersion");
    return read(gpu(0), object, text, sizeof text) == kSuccess ? text : "not supported";
  }
  unsigned module_of(unsigned index) {
    unsigned id = 99;
    const auto read = find<decltype(nvmlDeviceGetModuleId)>("nvmlDeviceGetModuleId");
    EXPECT_EQ(read(gpu(index), &id), kSuccess);
    return id;
  }
};

TEST_F(Modules, TellTheirInforom) {
  use("dgx-a100");
  char image[16];

  EXPECT_EQ(inforom(0), "2.0");
  EXPECT_EQ(inforom(1), "6.16");
  EXPECT_EQ(inforom(2), "not supported") << "power";
  const auto read =
      find<decltype(nvmlDeviceGetInforomImageVersion)>("nvmlDeviceGetInforomImageVersion");
  EXPECT_EQ(read(gpu(0), image, sizeof image), kSuccess);
  EXPECT_STREQ(image, "G506.0210.00.04");
  EXPECT_EQ(read(gpu(0), image, 4), kInsufficientSize);
}

TEST_F(Modules, HaveNumbersOnABaseboardAndNoneAsCards) {
  use("dgx-h100");
  EXPECT_EQ(module_of(0), 1u);
  EXPECT_EQ(module_of(7), 8u);
  use("l40s-x8");
  EXPECT_EQ(module_of(7), 0u);
}

TEST_F(Modules, TellTheirPlatformFromBlackwellOn) {
  use("b200");
  PlatformInfo info{.version = version_of<PlatformInfo>(2)};
  const auto read = find<decltype(nvmlDeviceGetPlatformInfo)>("nvmlDeviceGetPlatformInfo");

  EXPECT_EQ(read(gpu(2), &info), kSuccess);
  EXPECT_EQ(info.module_id, 3);
  info.version = 9;
  EXPECT_EQ(read(gpu(2), &info), kArgumentVersionMismatch);
  use("hgx-h200");
  info.version = version_of<PlatformInfo>(2);
  EXPECT_EQ(find<decltype(nvmlDeviceGetPlatformInfo)>("nvmlDeviceGetPlatformInfo")(gpu(0), &info),
            kNotSupported);
}

class Gpm : public Modules {
 protected:
  nvmlGpmSample_t sample(unsigned index) {
    nvmlGpmSample_t made = nullptr;
    EXPECT_EQ(find<decltype(nvmlGpmSampleAlloc)>("nvmlGpmSampleAlloc")(&made), kSuccess);
    EXPECT_EQ(find<decltype(nvmlGpmSampleGet)>("nvmlGpmSampleGet")(gpu(index), made), kSuccess);
    return made;
  }
  void free(nvmlGpmSample_t sample) {
    EXPECT_EQ(find<decltype(nvmlGpmSampleFree)>("nvmlGpmSampleFree")(sample), kSuccess);
  }
  // The metric between two samples.
  GpmMetric metric(nvmlGpmSample_t first, nvmlGpmSample_t second, unsigned id) {
    GpmMetricsGet query{1, 1, first, second, {{.metric_id = id}}};
    EXPECT_EQ(find<decltype(nvmlGpmMetricsGet)>("nvmlGpmMetricsGet")(&query), kSuccess);
    return query.metrics[0];
  }
};

// The time of the samples is the machine's; half of it the GPU was busy.
TEST_F(Gpm, MetricsFollowTheLoadBetweenTwoSamples) {
  use("dgx-h100");
  ASSERT_TRUE(state().load(0, static_cast<std::uint64_t>(getpid()), 1 << 30, 50));
  const nvmlGpmSample_t first = sample(0);
  const std::uint64_t begin = now_ns(CLOCK_BOOTTIME);
  while (now_ns(CLOCK_BOOTTIME) - begin < 20'000'000) {
  }
  const nvmlGpmSample_t second = sample(0);

  EXPECT_NEAR(metric(first, second, 1).value, 50, 1) << "graphics utilization";
  EXPECT_NEAR(metric(first, second, 10).value, 25, 1) << "memory bandwidth";
  EXPECT_STREQ(metric(first, second, 1).unit, "%");
  const double all_links = metric(first, second, 61).value;
  EXPECT_NEAR(all_links, 18 * metric(first, second, 63).value, all_links / 100);
  EXPECT_GT(all_links, 0);
  EXPECT_EQ(metric(first, second, 98).nvml_return, kNotSupported) << "none of that number";
  EXPECT_EQ(metric(first, second, 96).nvml_return, kSuccess) << "the last link";
  free(first);
  free(second);
}

TEST_F(Gpm, IsThereFromHopperOn) {
  for (const auto& [board, is_there] :
       {std::pair("t4x4", 0u), std::pair("l40s-x8", 0u), std::pair("dgx-h100", 1u)}) {
    use(board);
    GpmSupport support{1, 9};
    EXPECT_EQ(
        find<decltype(nvmlGpmQueryDeviceSupport)>("nvmlGpmQueryDeviceSupport")(gpu(0), &support),
        kSuccess);
    EXPECT_EQ(support.is_supported, is_there) << board;
  }
}

TEST_F(Gpm, RefusesSamplesThatDoNotGoTogether) {
  use("dgx-h100");
  const auto get = find<decltype(nvmlGpmMetricsGet)>("nvmlGpmMetricsGet");
  const nvmlGpmSample_t first = sample(0);
  const nvmlGpmSample_t other = sample(1);
  nvmlGpmSample_t empty = nullptr;
  EXPECT_EQ(find<decltype(nvmlGpmSampleAlloc)>("nvmlGpmSampleAlloc")(&empty), kSuccess);

  for (GpmMetricsGet query :
       {GpmMetricsGet{1, 1, first, other, {}}, GpmMetricsGet{1, 1, first, empty, {}},
        GpmMetricsGet{1, 1, first, nullptr, {}}}) {
    EXPECT_EQ(get(&query), kInvalidArgument);
  }
  GpmMetricsGet query{2, 1, first, first, {}};
  EXPECT_EQ(get(&query), kArgumentVersionMismatch);
  for (const nvmlGpmSample_t made : {first, other, empty}) free(made);
}

}  // namespace
}  // namespace gpu_emulator
