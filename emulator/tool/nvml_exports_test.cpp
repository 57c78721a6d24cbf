#include <gtest/gtest.h>

#include <thread>

#include "tool/library_fixture.h"

// The library as a stranger's program meets it: symbols by dlsym, NVML's return codes.

namespace gpu_emulator {
namespace {

TEST_F(Library, AnswersNothingBeforeItIsInitialised) {
  const auto count = find<decltype(nvmlDeviceGetCount_v2)>("nvmlDeviceGetCount_v2");
  const auto shutdown = find<decltype(nvmlShutdown)>("nvmlShutdown");
  unsigned gpus = 0;

  EXPECT_EQ(count(&gpus), kUninitialized);
  EXPECT_EQ(shutdown(), kUninitialized);
  initialise();
  EXPECT_EQ(count(&gpus), kSuccess);
  EXPECT_EQ(gpus, 8u);
  EXPECT_EQ(shutdown(), kSuccess);
  EXPECT_EQ(count(&gpus), kUninitialized);
}

TEST_F(Library, CountsItsInitialisations) {
  const auto count = find<decltype(nvmlDeviceGetCount_v2)>("nvmlDeviceGetCount_v2");
  unsigned gpus = 0;
  initialise();
  initialise();

  find<decltype(nvmlShutdown)>("nvmlShutdown")();

  EXPECT_EQ(count(&gpus), kSuccess);
}

TEST_F(Library, FindsGpusByEveryName) {
  initialise();
  const auto by_bus =
      find<decltype(nvmlDeviceGetHandleByPciBusId_v2)>("nvmlDeviceGetHandleByPciBusId_v2");
  const auto by_uuid = find<decltype(nvmlDeviceGetHandleByUUID)>("nvmlDeviceGetHandleByUUID");
  const StateFile file = state();

  for (const char* name : {"00000000:9D:00.0", "0000:9d:00.0", "9d:00.0"}) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(by_bus(name, &device), kSuccess) << name;
    EXPECT_EQ(device, gpu(4)) << name;
  }
  nvmlDevice_t device = nullptr;
  EXPECT_EQ(by_bus("00000000:9E:00.0", &device), kNotFound);
  EXPECT_EQ(by_bus("nonsense", &device), kInvalidArgument);
  EXPECT_EQ(by_uuid(file.state().gpus[6].uuid, &device), kSuccess);
  EXPECT_EQ(device, gpu(6));
  EXPECT_EQ(by_uuid("GPU-none", &device), kNotFound);
}

TEST_F(Library, RefusesHandlesThatItNeverGave) {
  initialise();
  const auto power = find<decltype(nvmlDeviceGetPowerUsage)>("nvmlDeviceGetPowerUsage");
  const auto by_index =
      find<decltype(nvmlDeviceGetHandleByIndex_v2)>("nvmlDeviceGetHandleByIndex_v2");
  unsigned milliwatts = 0;
  nvmlDevice_t device = nullptr;

  EXPECT_EQ(power(nullptr, &milliwatts), kInvalidArgument);
  EXPECT_EQ(power(reinterpret_cast<nvmlDevice_t>(0x1234), &milliwatts), kInvalidArgument);
  EXPECT_EQ(power(gpu(0), nullptr), kInvalidArgument);
  EXPECT_EQ(by_index(8, &device), kInvalidArgument);
}

TEST_F(Library, SaysHowLargeABufferMustBe) {
  initialise();
  const auto name = find<decltype(nvmlDeviceGetName)>("nvmlDeviceGetName");
  char buffer[96];

  EXPECT_EQ(name(gpu(0), buffer, 5), kInsufficientSize);
  EXPECT_EQ(name(gpu(0), buffer, sizeof buffer), kSuccess);
  EXPECT_STREQ(buffer, "NVIDIA H100 80GB HBM3");
}

TEST_F(Library, ListsProcessesInNvmlsTwoSteps) {
  initialise();
  StateFile file = state();
  ASSERT_TRUE(file.load(1, 4'194'303, std::uint64_t{1} << 30, 10));
  const auto list = find<decltype(nvmlDeviceGetComputeRunningProcesses_v3)>(
      "nvmlDeviceGetComputeRunningProcesses_v3");
  unsigned count = 0;
  ProcessInfo processes[2] = {};

  EXPECT_EQ(list(gpu(0), &count, nullptr), kSuccess) << "none: no second call is needed";
  EXPECT_EQ(list(gpu(1), &count, nullptr), kInsufficientSize);
  EXPECT_EQ(count, 1u);
  count = 2;
  EXPECT_EQ(list(gpu(1), &count, processes), kSuccess);
  EXPECT_EQ(count, 1u);
  EXPECT_EQ(processes[0].pid, 4'194'303u);
  EXPECT_EQ(processes[0].used_gpu_memory, 1ull << 30);
  EXPECT_EQ(processes[0].gpu_instance_id, 0xffffffffu);
}

TEST_F(Library, CountsReservedMemoryAsUsedInTheOldCallOnly) {
  initialise();
  const auto v1 = find<decltype(nvmlDeviceGetMemoryInfo)>("nvmlDeviceGetMemoryInfo");
  const auto v2 = find<decltype(nvmlDeviceGetMemoryInfo_v2)>("nvmlDeviceGetMemoryInfo_v2");
  Memory old{};
  MemoryV2 now{};

  EXPECT_EQ(v2(gpu(0), &now), kArgumentVersionMismatch);
  now.version = kMemoryV2Version;
  EXPECT_EQ(v2(gpu(0), &now), kSuccess);
  EXPECT_EQ(v1(gpu(0), &old), kSuccess);
  EXPECT_EQ(now.used, 0u);
  EXPECT_EQ(now.total, now.reserved + now.free + now.used);
  EXPECT_EQ(old.used, now.reserved);
  EXPECT_EQ(old.total, old.free + old.used);
}

TEST_F(Library, ShowsNvLinksToTheSwitchesAndNoOthers) {
  initialise();
  const auto link = find<decltype(nvmlDeviceGetNvLinkState)>("nvmlDeviceGetNvLinkState");
  const auto remote =
      find<decltype(nvmlDeviceGetNvLinkRemotePciInfo_v2)>("nvmlDeviceGetNvLinkRemotePciInfo_v2");
  const auto type =
      find<decltype(nvmlDeviceGetNvLinkRemoteDeviceType)>("nvmlDeviceGetNvLinkRemoteDeviceType");
  unsigned value = 0;
  PciInfo pci{};

  EXPECT_EQ(link(gpu(0), 17, &value), kSuccess);
  EXPECT_EQ(value, 1u);
  EXPECT_EQ(link(gpu(0), 18, &value), kInvalidArgument);
  EXPECT_EQ(remote(gpu(0), 4, &pci), kSuccess);
  EXPECT_STREQ(pci.bus_id, "00000000:08:00.0");
  EXPECT_STREQ(pci.bus_id_legacy, "0000:08:00.0");
  EXPECT_EQ(type(gpu(0), 4, &value), kSuccess);
  EXPECT_EQ(value, 2u) << "a switch";
}

TEST_F(Library, SaysNotSupportedWhereTheBoardDoes) {
  initialise();
  const auto fan = find<decltype(nvmlDeviceGetFanSpeed)>("nvmlDeviceGetFanSpeed");
  unsigned percent = 0;

  EXPECT_EQ(fan(gpu(0), &percent), kNotSupported);
}

TEST_F(Library, AnswersAsTheStateForces) {
  initialise();
  const nvmlDevice_t device = gpu(3);
  const auto power = find<decltype(nvmlDeviceGetPowerUsage)>("nvmlDeviceGetPowerUsage");
  const auto by_index =
      find<decltype(nvmlDeviceGetHandleByIndex_v2)>("nvmlDeviceGetHandleByIndex_v2");
  unsigned milliwatts = 0;
  nvmlDevice_t again = nullptr;

  ASSERT_TRUE(state().set_answer(3, kGpuIsLost, 0));
  EXPECT_EQ(power(device, &milliwatts), kGpuIsLost);
  EXPECT_EQ(by_index(3, &again), kGpuIsLost);
  EXPECT_EQ(power(gpu(2), &milliwatts), kSuccess);
  ASSERT_TRUE(state().set_answer(3, kSuccess, 0));
  EXPECT_EQ(power(device, &milliwatts), kSuccess);
}

TEST_F(Library, ExportsOldAndNewNamesOfWhatHasVersions) {
  for (const char* name :
       {"nvmlInit", "nvmlInit_v2", "nvmlDeviceGetCount", "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex", "nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetPciInfo",
        "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo_v3", "nvmlSystemGetCudaDriverVersion",
        "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses_v2"}) {
    EXPECT_NE(dlsym(library_, name), nullptr) << name;
  }
  EXPECT_EQ(dlsym(library_, "_ZN12gpu_emulator6attachEv"), nullptr)
      << "only NVML's names are exported";
}

// nvtop looks these up (src/extract_gpuinfo_nvidia.c, 2026). It gives up when one of most is
// missing.
TEST_F(Library, ExportsWhatNvtopLooksUp) {
  for (const char* name : {"nvmlInit_v2",
                           "nvmlShutdown",
                           "nvmlErrorString",
                           "nvmlDeviceGetCount_v2",
                           "nvmlDeviceGetHandleByIndex_v2",
                           "nvmlDeviceGetName",
                           "nvmlDeviceGetArchitecture",
                           "nvmlDeviceGetPciInfo_v3",
                           "nvmlDeviceGetMaxPcieLinkGeneration",
                           "nvmlDeviceGetMaxPcieLinkWidth",
                           "nvmlDeviceGetTemperatureThreshold",
                           "nvmlDeviceGetClockInfo",
                           "nvmlDeviceGetMaxClockInfo",
                           "nvmlDeviceGetUtilizationRates",
                           "nvmlDeviceGetMemoryInfo",
                           "nvmlDeviceGetMemoryInfo_v2",
                           "nvmlDeviceGetCurrPcieLinkGeneration",
                           "nvmlDeviceGetCurrPcieLinkWidth",
                           "nvmlDeviceGetBusType",
                           "nvmlDeviceGetPcieThroughput",
                           "nvmlDeviceGetFanSpeed",
                           "nvmlDeviceGetTemperature",
                           "nvmlDeviceGetPowerUsage",
                           "nvmlDeviceGetEnforcedPowerLimit",
                           "nvmlDeviceGetEncoderUtilization",
                           "nvmlDeviceGetDecoderUtilization",
                           "nvmlDeviceGetGraphicsRunningProcesses_v3",
                           "nvmlDeviceGetComputeRunningProcesses_v3",
                           "nvmlDeviceGetMPSComputeRunningProcesses_v3",
                           "nvmlDeviceGetTotalEccErrors",
                           "nvmlDeviceGetProcessUtilization",
                           "nvmlDeviceGetMigMode",
                           "nvmlDeviceGetNvLinkState",
                           "nvmlDeviceGetNvLinkVersion",
                           "nvmlDeviceGetFieldValues"}) {
    EXPECT_NE(dlsym(library_, name), nullptr) << name;
  }
}

TEST_F(Library, IsSafeToCallFromManyThreads) {
  initialise();
  const auto init = find<decltype(nvmlInit_v2)>("nvmlInit_v2");
  const auto shutdown = find<decltype(nvmlShutdown)>("nvmlShutdown");
  const auto power = find<decltype(nvmlDeviceGetPowerUsage)>("nvmlDeviceGetPowerUsage");
  const nvmlDevice_t device = gpu(0);
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 500; ++k) {
        unsigned milliwatts = 0;
        if (init() != kSuccess || power(device, &milliwatts) != kSuccess ||
            shutdown() != kSuccess) {
          ++failures;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace gpu_emulator
