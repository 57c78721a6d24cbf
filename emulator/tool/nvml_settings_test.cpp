#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "tool/library_fixture.h"

// These tests check settings made through the library: who may make them, which are refused, and
// that each reads back and has its effect.

namespace gpu_emulator {
namespace {

class Settings : public Library {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "settings are root's";
    Library::SetUp();
    initialise();
  }
  void use(const char* board) {
    open_board(board);
    initialise();
  }

  // The number that a getter with one output gives of the first GPU.
  template <class Function>
  unsigned read(const char* name) {
    unsigned value = 9'999;
    EXPECT_EQ(find<Function>(name)(gpu(0), &value), kSuccess) << name;
    return value;
  }
  unsigned clock(unsigned type) {
    unsigned mhz = 0;
    EXPECT_EQ(find<decltype(nvmlDeviceGetClockInfo)>("nvmlDeviceGetClockInfo")(gpu(0), type, &mhz),
              kSuccess);
    return mhz;
  }
  void load(std::uint64_t utilization) {
    ASSERT_TRUE(state().load(0, static_cast<std::uint64_t>(getpid()), 1 << 30, utilization));
  }
};

TEST_F(Settings, PowerLimitReadsBackAndBoundsThePower) {
  load(100);

  EXPECT_EQ(find<decltype(nvmlDeviceSetPowerManagementLimit)>("nvmlDeviceSetPowerManagementLimit")(
                gpu(0), 400'000),
            kSuccess);

  EXPECT_EQ(read<decltype(nvmlDeviceGetPowerManagementLimit)>("nvmlDeviceGetPowerManagementLimit"),
            400'000u);
  EXPECT_EQ(read<decltype(nvmlDeviceGetEnforcedPowerLimit)>("nvmlDeviceGetEnforcedPowerLimit"),
            400'000u);
  EXPECT_EQ(read<decltype(nvmlDeviceGetPowerManagementDefaultLimit)>(
                "nvmlDeviceGetPowerManagementDefaultLimit"),
            700'000u);
  EXPECT_EQ(read<decltype(nvmlDeviceGetPowerUsage)>("nvmlDeviceGetPowerUsage"), 400'000u);
  EXPECT_EQ(find<decltype(nvmlDeviceSetPowerManagementLimit)>("nvmlDeviceSetPowerManagementLimit")(
                gpu(0), 199'000),
            kInvalidArgument);
  EXPECT_EQ(find<decltype(nvmlDeviceSetPowerManagementLimit)>("nvmlDeviceSetPowerManagementLimit")(
                gpu(0), 701'000),
            kInvalidArgument);
  EXPECT_EQ(read<decltype(nvmlDeviceGetPowerManagementLimit)>("nvmlDeviceGetPowerManagementLimit"),
            400'000u);
}

TEST_F(Settings, PowerLimitOfTheSecondKindIsForTheGpuAlone) {
  PowerValueV2 value{version_of<PowerValueV2>(2), 0, 300'000};

  EXPECT_EQ(find<decltype(nvmlDeviceSetPowerManagementLimit_v2)>(
                "nvmlDeviceSetPowerManagementLimit_v2")(gpu(0), &value),
            kSuccess);
  EXPECT_EQ(read<decltype(nvmlDeviceGetPowerManagementLimit)>("nvmlDeviceGetPowerManagementLimit"),
            300'000u);
  value.scope = 1;
  EXPECT_EQ(find<decltype(nvmlDeviceSetPowerManagementLimit_v2)>(
                "nvmlDeviceSetPowerManagementLimit_v2")(gpu(0), &value),
            kNotSupported);
  value.version = 7;
  EXPECT_EQ(find<decltype(nvmlDeviceSetPowerManagementLimit_v2)>(
                "nvmlDeviceSetPowerManagementLimit_v2")(gpu(0), &value),
            kArgumentVersionMismatch);
}

TEST_F(Settings, LockedClocksHoldUntilTheyAreReset) {
  EXPECT_EQ(find<decltype(nvmlDeviceSetGpuLockedClocks)>("nvmlDeviceSetGpuLockedClocks")(
                gpu(0), 900, 1'200),
            kSuccess);
  EXPECT_EQ(clock(1), 900u) << "idle, but not below the lock";
  load(50);
  EXPECT_EQ(clock(1), 1'200u);

  EXPECT_EQ(find<decltype(nvmlDeviceSetGpuLockedClocks)>("nvmlDeviceSetGpuLockedClocks")(
                gpu(0), 1'200, 900),
            kInvalidArgument);
  EXPECT_EQ(find<decltype(nvmlDeviceSetGpuLockedClocks)>("nvmlDeviceSetGpuLockedClocks")(
                gpu(0), 900, 0xffffff01),
            kInvalidArgument);
  EXPECT_EQ(
      find<decltype(nvmlDeviceResetGpuLockedClocks)>("nvmlDeviceResetGpuLockedClocks")(gpu(0)),
      kSuccess);
  EXPECT_EQ(clock(1), 1'980u);
}

TEST_F(Settings, MemoryClocksAreLockedFromAmpereOn) {
  EXPECT_EQ(find<decltype(nvmlDeviceSetMemoryLockedClocks)>("nvmlDeviceSetMemoryLockedClocks")(
                gpu(0), 2'619, 2'619),
            kSuccess);
  use("t4x4");
  EXPECT_EQ(find<decltype(nvmlDeviceSetMemoryLockedClocks)>("nvmlDeviceSetMemoryLockedClocks")(
                gpu(0), 405, 5'001),
            kNotSupported);
  EXPECT_EQ(find<decltype(nvmlDeviceResetMemoryLockedClocks)>("nvmlDeviceResetMemoryLockedClocks")(
                gpu(0)),
            kNotSupported);
}

TEST_F(Settings, ApplicationClocksAreSomeOfTheSupportedOnes) {
  unsigned count = 256;
  unsigned clocks[256];
  ASSERT_EQ(find<decltype(nvmlDeviceGetSupportedGraphicsClocks)>(
                "nvmlDeviceGetSupportedGraphicsClocks")(gpu(0), 2'619, &count, clocks),
            kSuccess);
  load(50);

  EXPECT_EQ(find<decltype(nvmlDeviceSetApplicationsClocks)>("nvmlDeviceSetApplicationsClocks")(
                gpu(0), 2'619, clocks[10]),
            kSuccess);

  unsigned mhz = 0;
  EXPECT_EQ(find<decltype(nvmlDeviceGetApplicationsClock)>("nvmlDeviceGetApplicationsClock")(
                gpu(0), 1, &mhz),
            kSuccess);
  EXPECT_EQ(mhz, clocks[10]);
  EXPECT_EQ(clock(1), clocks[10]);
  unsigned long long reasons = 0;
  EXPECT_EQ(find<decltype(nvmlDeviceGetCurrentClocksEventReasons)>(
                "nvmlDeviceGetCurrentClocksEventReasons")(gpu(0), &reasons),
            kSuccess);
  EXPECT_EQ(reasons, kThrottleApplicationClocks);
  EXPECT_EQ(find<decltype(nvmlDeviceSetApplicationsClocks)>("nvmlDeviceSetApplicationsClocks")(
                gpu(0), 2'619, clocks[10] + 1),
            kInvalidArgument);
  EXPECT_EQ(find<decltype(nvmlDeviceSetApplicationsClocks)>("nvmlDeviceSetApplicationsClocks")(
                gpu(0), 2'000, clocks[10]),
            kInvalidArgument);
  EXPECT_EQ(find<decltype(nvmlDeviceResetApplicationsClocks)>("nvmlDeviceResetApplicationsClocks")(
                gpu(0)),
            kSuccess);
  EXPECT_EQ(clock(1), 1'980u);
}

TEST_F(Settings, ModesReadBack) {
  EXPECT_EQ(find<decltype(nvmlDeviceSetPersistenceMode)>("nvmlDeviceSetPersistenceMode")(gpu(0), 0),
            kSuccess);
  EXPECT_EQ(read<decltype(nvmlDeviceGetPersistenceMode)>("nvmlDeviceGetPersistenceMode"), 0u);
  EXPECT_EQ(find<decltype(nvmlDeviceSetComputeMode)>("nvmlDeviceSetComputeMode")(gpu(0), 3),
            kSuccess);
  EXPECT_EQ(read<decltype(nvmlDeviceGetComputeMode)>("nvmlDeviceGetComputeMode"), 3u);
  EXPECT_EQ(find<decltype(nvmlDeviceSetComputeMode)>("nvmlDeviceSetComputeMode")(gpu(0), 4),
            kInvalidArgument);
  EXPECT_EQ(find<decltype(nvmlDeviceSetPersistenceMode)>("nvmlDeviceSetPersistenceMode")(gpu(0), 2),
            kInvalidArgument);
}

TEST_F(Settings, EccModeWaitsForAReset) {
  unsigned current = 9;
  unsigned pending = 9;

  EXPECT_EQ(find<decltype(nvmlDeviceSetEccMode)>("nvmlDeviceSetEccMode")(gpu(0), 0), kSuccess);
  EXPECT_EQ(
      find<decltype(nvmlDeviceGetEccMode)>("nvmlDeviceGetEccMode")(gpu(0), &current, &pending),
      kSuccess);

  EXPECT_EQ(current, 1u);
  EXPECT_EQ(pending, 0u);
  FieldValue field{.field_id = 2};
  EXPECT_EQ(find<decltype(nvmlDeviceGetFieldValues)>("nvmlDeviceGetFieldValues")(gpu(0), 1, &field),
            kSuccess);
  EXPECT_EQ(field.value.uint_value, 0u);
}

TEST_F(Settings, ClearedEccCountersAreZero) {
  ASSERT_TRUE(state().change(0, [](GpuState& gpu) {
    gpu.ecc_errors[kEccVolatile][kEccCorrected] = 3;
    gpu.ecc_errors[kEccAggregate][kEccCorrected] = 5;
  }));
  unsigned long long count = 9;

  EXPECT_EQ(
      find<decltype(nvmlDeviceClearEccErrorCounts)>("nvmlDeviceClearEccErrorCounts")(gpu(0), 0),
      kSuccess);

  EXPECT_EQ(find<decltype(nvmlDeviceGetTotalEccErrors)>("nvmlDeviceGetTotalEccErrors")(gpu(0), 0, 0,
                                                                                       &count),
            kSuccess);
  EXPECT_EQ(count, 0u);
  EXPECT_EQ(find<decltype(nvmlDeviceGetTotalEccErrors)>("nvmlDeviceGetTotalEccErrors")(gpu(0), 0, 1,
                                                                                       &count),
            kSuccess);
  EXPECT_EQ(count, 5u);
}

TEST_F(Settings, AreSeenByOtherProcesses) {
  EXPECT_EQ(find<decltype(nvmlDeviceSetPowerManagementLimit)>("nvmlDeviceSetPowerManagementLimit")(
                gpu(0), 500'000),
            kSuccess);

  EXPECT_EQ(power_limit_mw(state().state().gpus[0]), 500'000u);
}

// A stranger may write anything into the file; nothing out of the board's bounds counts.
TEST_F(Settings, OutOfBoundsInTheStateAreIgnored) {
  load(100);
  ASSERT_TRUE(state().change(0, [](GpuState& gpu) {
    gpu.settings.power_limit_mw = 4'000'000'000;
    gpu.settings.locked_sm_min_mhz = 5;
    gpu.settings.locked_sm_max_mhz = 4'000'000'000;
    gpu.settings.application_sm_mhz = 1;
    gpu.settings.persistence = 77;
    gpu.settings.compute_mode = 77;
  }));

  EXPECT_EQ(read<decltype(nvmlDeviceGetPowerManagementLimit)>("nvmlDeviceGetPowerManagementLimit"),
            700'000u);
  EXPECT_EQ(clock(1), 1'980u);
  EXPECT_EQ(read<decltype(nvmlDeviceGetPersistenceMode)>("nvmlDeviceGetPersistenceMode"), 1u);
  EXPECT_LE(read<decltype(nvmlDeviceGetComputeMode)>("nvmlDeviceGetComputeMode"), 3u);
}

TEST_F(Settings, AreRefusedToOthersThanRoot) {
  const nvmlDevice_t device = gpu(0);
  const std::vector<std::function<nvmlReturn_t()>> calls{
      [&] {
        return find<decltype(nvmlDeviceSetPowerManagementLimit)>(
            "nvmlDeviceSetPowerManagementLimit")(device, 400'000);
      },
      [&] {
        return find<decltype(nvmlDeviceSetPersistenceMode)>("nvmlDeviceSetPersistenceMode")(device,
                                                                                            0);
      },
      [&] {
        return find<decltype(nvmlDeviceSetComputeMode)>("nvmlDeviceSetComputeMode")(device, 3);
      },
      [&] { return find<decltype(nvmlDeviceSetEccMode)>("nvmlDeviceSetEccMode")(device, 0); },
      [&] {
        return find<decltype(nvmlDeviceSetGpuLockedClocks)>("nvmlDeviceSetGpuLockedClocks")(
            device, 900, 1'200);
      },
      [&] {
        return find<decltype(nvmlDeviceResetGpuLockedClocks)>("nvmlDeviceResetGpuLockedClocks")(
            device);
      },
      [&] {
        return find<decltype(nvmlDeviceSetApplicationsClocks)>("nvmlDeviceSetApplicationsClocks")(
            device, 2'619, 1'980);
      },
      [&] {
        return find<decltype(nvmlDeviceSetAccountingMode)>("nvmlDeviceSetAccountingMode")(device,
                                                                                          1);
      },
      [&] {
        return find<decltype(nvmlDeviceClearEccErrorCounts)>("nvmlDeviceClearEccErrorCounts")(
            device, 0);
      }};
  const auto count_as_nobody = [&](nvmlReturn_t answer) {
    const pid_t child = fork();
    if (child == 0) {
      constexpr uid_t kNobody = 65'534;
      if (setuid(kNobody) != 0) _exit(99);
      int refused = 0;
      for (const auto& call : calls) refused += call() == answer ? 1 : 0;
      _exit(refused);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return static_cast<std::size_t>(WEXITSTATUS(status));
  };

  EXPECT_EQ(count_as_nobody(kNoPermission), calls.size());

  EXPECT_EQ(
      find<decltype(nvmlDeviceSetAPIRestriction)>("nvmlDeviceSetAPIRestriction")(device, 0, 0),
      kSuccess);
  EXPECT_EQ(count_as_nobody(kSuccess), 1u) << "application clocks, now that they are for all";
}

TEST_F(Settings, AccountingRemembersProcessesThatEnded) {
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  AccountingStats stats{};
  const auto pid = static_cast<unsigned>(child);
  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingStats)>("nvmlDeviceGetAccountingStats")(
                gpu(0), pid, &stats),
            kNotSupported)
      << "still off";
  EXPECT_EQ(find<decltype(nvmlDeviceSetAccountingMode)>("nvmlDeviceSetAccountingMode")(gpu(0), 1),
            kSuccess);
  EXPECT_EQ(read<decltype(nvmlDeviceGetAccountingMode)>("nvmlDeviceGetAccountingMode"), 1u);
  ASSERT_TRUE(state().load(0, pid, 3 << 20, 50));

  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingStats)>("nvmlDeviceGetAccountingStats")(
                gpu(0), pid, &stats),
            kSuccess);
  EXPECT_EQ(stats.is_running, 1u);
  EXPECT_EQ(stats.time, 0u);
  EXPECT_EQ(stats.max_memory_usage, 3ull << 20);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingStats)>("nvmlDeviceGetAccountingStats")(
                gpu(0), pid, &stats),
            kSuccess);
  EXPECT_EQ(stats.is_running, 0u);

  unsigned count = 0;
  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingPids)>("nvmlDeviceGetAccountingPids")(
                gpu(0), &count, nullptr),
            kInsufficientSize);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(find<decltype(nvmlDeviceClearAccountingPids)>("nvmlDeviceClearAccountingPids")(gpu(0)),
            kSuccess);
  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingStats)>("nvmlDeviceGetAccountingStats")(
                gpu(0), pid, &stats),
            kNotFound);
}

TEST_F(Settings, AccountingOverwritesTheOldestWhenItIsFull) {
  EXPECT_EQ(find<decltype(nvmlDeviceSetAccountingMode)>("nvmlDeviceSetAccountingMode")(gpu(0), 1),
            kSuccess);
  constexpr std::uint64_t kFirst = 4'000'000;
  for (std::uint64_t i = 0; i < kMaxAccounted + 5; ++i) {
    ASSERT_TRUE(state().load(0, kFirst + i, 1 << 20, 0));
    ASSERT_TRUE(state().clear(0, kFirst + i));
  }
  unsigned count = 0;
  AccountingStats stats{};

  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingPids)>("nvmlDeviceGetAccountingPids")(
                gpu(0), &count, nullptr),
            kInsufficientSize);
  EXPECT_EQ(count, kMaxAccounted);
  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingStats)>("nvmlDeviceGetAccountingStats")(
                gpu(0), kFirst, &stats),
            kNotFound);
  EXPECT_EQ(find<decltype(nvmlDeviceSetAccountingMode)>("nvmlDeviceSetAccountingMode")(gpu(0), 0),
            kSuccess);
  EXPECT_EQ(find<decltype(nvmlDeviceSetAccountingMode)>("nvmlDeviceSetAccountingMode")(gpu(0), 1),
            kSuccess);
  count = 0;
  EXPECT_EQ(find<decltype(nvmlDeviceGetAccountingPids)>("nvmlDeviceGetAccountingPids")(
                gpu(0), &count, nullptr),
            kSuccess);
  EXPECT_EQ(count, 0u) << "switched off, it forgets";
}

TEST_F(Settings, AreNotWaitedForWhenTheStateIsLocked) {
  const int fd = open(state_path().c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(flock(fd, LOCK_EX), 0);

  EXPECT_EQ(find<decltype(nvmlDeviceSetComputeMode)>("nvmlDeviceSetComputeMode")(gpu(0), 3),
            kInUse);

  close(fd);
}

}  // namespace
}  // namespace gpu_emulator
