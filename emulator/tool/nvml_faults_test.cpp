#include <chrono>
#include <future>

#include "tool/faults.h"
#include "tool/library_fixture.h"

// Faults of memory, links and driver, as programs read them, and what a reset makes of them.

namespace gpu_emulator {
namespace {

using gpu_platform::base::ErrorCode;

class Faults : public Library {
 protected:
  void SetUp() override { open("hgx-h200"); }
  void open(const char* board) {
    open_board(board);
    initialise();
  }

  std::uint64_t field(unsigned id, unsigned scope = 0) {
    const auto read = find<decltype(nvmlDeviceGetFieldValues)>("nvmlDeviceGetFieldValues");
    FieldValue value{.field_id = id, .scope_id = scope};
    EXPECT_EQ(read(gpu(0), 1, &value), kSuccess);
    EXPECT_EQ(value.nvml_return, kSuccess) << id;
    return value.value_type == kValueUllong ? value.value.ullong_value : value.value.uint_value;
  }

  struct Rows {
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned pending = 0;
    unsigned failed = 0;
    bool operator==(const Rows&) const = default;
  };
  Rows rows() {
    Rows out;
    EXPECT_EQ(find<decltype(nvmlDeviceGetRemappedRows)>("nvmlDeviceGetRemappedRows")(
                  gpu(0), &out.corrected, &out.uncorrected, &out.pending, &out.failed),
              kSuccess);
    return out;
  }

  unsigned width() {
    unsigned lanes = 0;
    EXPECT_EQ(find<decltype(nvmlDeviceGetCurrPcieLinkWidth)>("nvmlDeviceGetCurrPcieLinkWidth")(
                  gpu(0), &lanes),
              kSuccess);
    return lanes;
  }

  unsigned active_links() {
    const auto state_of = find<decltype(nvmlDeviceGetNvLinkState)>("nvmlDeviceGetNvLinkState");
    unsigned active = 0;
    for (unsigned link = 0; link < kMaxNvLinks; ++link) {
      unsigned is_active = 0;
      if (state_of(gpu(0), link, &is_active) != kSuccess) break;
      active += is_active;
    }
    return active;
  }

  // As a program does that starts.
  void open_driver_anew() {
    ASSERT_EQ(find<decltype(nvmlShutdown)>("nvmlShutdown")(), kSuccess);
    initialise();
  }
  unsigned count() {
    unsigned count = 0;
    EXPECT_EQ(find<decltype(nvmlDeviceGetCount_v2)>("nvmlDeviceGetCount_v2")(&count), kSuccess);
    return count;
  }
  std::string uuid_of(unsigned index) {
    char uuid[96] = {};
    EXPECT_EQ(find<decltype(nvmlDeviceGetUUID)>("nvmlDeviceGetUUID")(gpu(index), uuid, sizeof uuid),
              kSuccess);
    return uuid;
  }
  unsigned minor_of(unsigned index) {
    unsigned number = 0;
    EXPECT_EQ(
        find<decltype(nvmlDeviceGetMinorNumber)>("nvmlDeviceGetMinorNumber")(gpu(index), &number),
        kSuccess);
    return number;
  }

  void reset() {
    StateFile file = state();
    ASSERT_TRUE(file.change(0, [](GpuState& gpu) { reset_gpu(gpu); }));
  }
};

TEST_F(Faults, AGpuVanishesAndComesBackInAnotherPlace) {
  StateFile file = state();
  const std::string first = uuid_of(0);
  const std::string second = uuid_of(1);
  ASSERT_TRUE(inject_listing(file, 0, Listing::kNot));
  EXPECT_EQ(count(), 8U) << "who has the driver open sees nothing of it";
  open_driver_anew();
  EXPECT_EQ(count(), 7U);
  EXPECT_EQ(uuid_of(0), second);
  EXPECT_EQ(minor_of(0), 0U);

  ASSERT_TRUE(inject_listing(file, 0, Listing::kLast));
  open_driver_anew();
  EXPECT_EQ(count(), 8U);
  EXPECT_EQ(uuid_of(0), second);
  EXPECT_EQ(uuid_of(7), first);
  EXPECT_EQ(minor_of(7), 7U);

  ASSERT_TRUE(clear_faults(file, 0));
  open_driver_anew();
  EXPECT_EQ(uuid_of(0), first);
  EXPECT_EQ(minor_of(0), 0U);
}

TEST_F(Faults, RowsWaitForAReset) {
  StateFile file = state();
  ASSERT_TRUE(inject_remap_pending(file, 0, 2));
  EXPECT_EQ(rows(), (Rows{0, 0, 1, 0}));
  EXPECT_EQ(field(144), 1u);

  reset();

  EXPECT_EQ(rows(), (Rows{0, 2, 0, 0}));
}

TEST_F(Faults, AResetDoesNotMendARemapThatFailed) {
  StateFile file = state();
  ASSERT_TRUE(inject_remap_failed(file, 0));

  reset();

  EXPECT_EQ(rows(), (Rows{0, 0, 0, 1}));
  ASSERT_TRUE(clear_faults(file, 0));
  EXPECT_EQ(rows(), Rows{});
}

TEST_F(Faults, AResetEndsWhatTheDriverAsksForAndRestartsItsCounters) {
  StateFile file = state();
  ASSERT_TRUE(inject_ecc(file, 0, kEccUncorrected, 3));
  ASSERT_TRUE(inject_recovery(file, 0, 1));
  ASSERT_TRUE(inject_replays(file, 0, 4));
  ASSERT_TRUE(file.change(
      0, [](GpuState& gpu) { gpu.settings.power_limit_mw.store(gpu.power_limit_min_mw); }));

  reset();

  EXPECT_EQ(field(230), 0u) << "recovery action";
  EXPECT_EQ(field(4), 0u) << "volatile";
  EXPECT_EQ(field(6), 3u) << "aggregate";
  EXPECT_EQ(field(94), 0u) << "replays";
  EXPECT_EQ(rows(), (Rows{0, 3, 0, 0}));
  EXPECT_EQ(power_limit_mw(file.state().gpus[0]), file.state().gpus[0].power_limit_mw);
}

TEST_F(Faults, CountersCanGoBackwardsWithoutAReset) {
  StateFile file = state();
  ASSERT_TRUE(inject_replays(file, 0, 4));
  ASSERT_TRUE(inject_recovery(file, 0, 1));

  ASSERT_TRUE(inject_restarted_counters(file, 0));

  EXPECT_EQ(field(94), 0u);
  EXPECT_EQ(field(230), 1u);
}

TEST_F(Faults, PagesAreRetiredWhereRowsAreNotRemapped) {
  StateFile rows_file = state();
  EXPECT_EQ(inject_retired(rows_file, 0, 1).error().code, ErrorCode::kFailedPrecondition);
  open("v100x8");
  StateFile file = state();
  EXPECT_EQ(inject_remap_pending(file, 0, 1).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(inject_remap_failed(file, 0).error().code, ErrorCode::kFailedPrecondition);

  ASSERT_TRUE(inject_retired(file, 0, 3));

  EXPECT_EQ(field(30), 3u);
  EXPECT_EQ(field(31), 1u) << "pending";
  reset();
  EXPECT_EQ(field(30), 3u);
  EXPECT_EQ(field(31), 0u);
}

TEST_F(Faults, ThePcieLinkIsNarrowUntilItIsNot) {
  StateFile file = state();
  EXPECT_EQ(inject_pcie_width(file, 0, 32).error().code, ErrorCode::kFailedPrecondition);
  ASSERT_EQ(width(), 16u);

  ASSERT_TRUE(inject_pcie_width(file, 0, 4));

  EXPECT_EQ(width(), 4u);
  reset();
  EXPECT_EQ(width(), 4u) << "its place may be the cause";
  ASSERT_TRUE(clear_faults(file, 0));
  EXPECT_EQ(width(), 16u);
}

TEST_F(Faults, LinksCountErrorsAndGoDown) {
  constexpr unsigned kAllLinks = 0xffffffff;
  StateFile file = state();
  ASSERT_TRUE(inject_nvlink_errors(file, 0, 5));
  EXPECT_EQ(field(38), 5u) << "CRC";
  EXPECT_EQ(field(52), 5u) << "replays";
  EXPECT_EQ(field(59), 0u) << "recoveries";
  unsigned long long replays = 0;
  EXPECT_EQ(find<decltype(nvmlDeviceGetNvLinkErrorCounter)>("nvmlDeviceGetNvLinkErrorCounter")(
                gpu(0), 0, 0, &replays),
            kSuccess);
  EXPECT_EQ(replays, 5u);
  const unsigned all = active_links();
  const std::uint64_t sent = field(138, kAllLinks);

  ASSERT_TRUE(inject_nvlink_down(file, 0, 2));

  EXPECT_EQ(active_links(), all - 2);
  EXPECT_GE(field(138, kAllLinks), sent) << "a count never falls";
  EXPECT_EQ(inject_nvlink_down(file, 0, 36).error().code, ErrorCode::kFailedPrecondition);
  reset();
  EXPECT_EQ(active_links(), all);
}

TEST_F(Faults, OfLinksNeedLinks) {
  open("t4x4");
  StateFile file = state();
  EXPECT_EQ(inject_nvlink_errors(file, 0, 1).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(inject_nvlink_down(file, 0, 1).error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(inject_memory_temperature(file, 0, 90).error().code, ErrorCode::kFailedPrecondition);
}

TEST_F(Faults, TheMemoryHasATemperatureOfItsOwn) {
  StateFile file = state();
  ASSERT_TRUE(inject_memory_temperature(file, 0, 101));
  EXPECT_EQ(field(82), 101u);
  ASSERT_TRUE(inject_memory_temperature(file, 0, 0));
  EXPECT_LT(field(82), 101u);
}

TEST_F(Faults, ACallHangsUntilTheHangIsCleared) {
  StateFile file = state();
  const nvmlDevice_t device = gpu(0);
  ASSERT_TRUE(inject_hang(file, 0, 600));
  unsigned milliwatts = 0;
  const auto power = find<decltype(nvmlDeviceGetPowerUsage)>("nvmlDeviceGetPowerUsage");
  auto call = std::async(std::launch::async, [&] { return power(device, &milliwatts); });
  EXPECT_EQ(call.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);

  ASSERT_TRUE(clear_faults(file, 0));

  EXPECT_EQ(call.get(), kSuccess);
}

}  // namespace
}  // namespace gpu_emulator
