#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "mig_names.h"
#include "tool/library_fixture.h"

// A board whose first GPU is in MIG mode, through the library as root's programs meet it.

namespace gpu_emulator {

class MigLibrary : public Library {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "instances are root's";
    use("dgx-a100");
  }
  // Opens a board and switches MIG of its first GPU on.
  void use(const char* board) {
    open_board(board);
    initialise();
    nvmlReturn_t status = kUnknown;
    ASSERT_EQ(set_mode(1, &status), kSuccess);
    ASSERT_EQ(status, kSuccess);
  }

  nvmlReturn_t set_mode(unsigned mode, nvmlReturn_t* status, unsigned index = 0) {
    return find<decltype(nvmlDeviceSetMigMode)>("nvmlDeviceSetMigMode")(gpu(index), mode, status);
  }
  std::pair<unsigned, unsigned> mode(unsigned index = 0) {
    unsigned current = 9;
    unsigned pending = 9;
    EXPECT_EQ(find<decltype(nvmlDeviceGetMigMode)>("nvmlDeviceGetMigMode")(gpu(index), &current,
                                                                           &pending),
              kSuccess);
    return {current, pending};
  }

  // A GPU instance of the profile of this id.
  nvmlReturn_t create(unsigned profile, nvmlGpuInstance_t* made) {
    return find<decltype(nvmlDeviceCreateGpuInstance)>("nvmlDeviceCreateGpuInstance")(
        gpu(0), profile, made);
  }
  nvmlReturn_t create_at(unsigned profile, unsigned start, unsigned size, nvmlGpuInstance_t* made) {
    const GpuInstancePlacement place{start, size};
    return find<decltype(nvmlDeviceCreateGpuInstanceWithPlacement)>(
        "nvmlDeviceCreateGpuInstanceWithPlacement")(gpu(0), profile, &place, made);
  }
  nvmlReturn_t destroy(nvmlGpuInstance_t instance) {
    return find<decltype(nvmlGpuInstanceDestroy)>("nvmlGpuInstanceDestroy")(instance);
  }
  nvmlReturn_t create_compute(nvmlGpuInstance_t owner, unsigned profile,
                              nvmlComputeInstance_t* made) {
    return find<decltype(nvmlGpuInstanceCreateComputeInstance)>(
        "nvmlGpuInstanceCreateComputeInstance")(owner, profile, made);
  }
  nvmlReturn_t destroy(nvmlComputeInstance_t instance) {
    return find<decltype(nvmlComputeInstanceDestroy)>("nvmlComputeInstanceDestroy")(instance);
  }
  GpuInstanceInfo info_of(nvmlGpuInstance_t instance) {
    GpuInstanceInfo info{};
    EXPECT_EQ(find<decltype(nvmlGpuInstanceGetInfo)>("nvmlGpuInstanceGetInfo")(instance, &info),
              kSuccess);
    return info;
  }
  unsigned remaining(unsigned profile) {
    unsigned count = 99;
    EXPECT_EQ(find<decltype(nvmlDeviceGetGpuInstanceRemainingCapacity)>(
                  "nvmlDeviceGetGpuInstanceRemainingCapacity")(gpu(0), profile, &count),
              kSuccess);
    return count;
  }

  // A GPU instance of the profile with a compute instance of its size.
  InstanceId make_device(unsigned profile, unsigned compute_profile) {
    nvmlGpuInstance_t made = nullptr;
    nvmlComputeInstance_t compute = nullptr;
    EXPECT_EQ(create(profile, &made), kSuccess);
    EXPECT_EQ(create_compute(made, compute_profile, &compute), kSuccess);
    return {info_of(made).id, 0};
  }
  nvmlDevice_t mig_device(unsigned index) {
    nvmlDevice_t device = nullptr;
    EXPECT_EQ(find<decltype(nvmlDeviceGetMigDeviceHandleByIndex)>(
                  "nvmlDeviceGetMigDeviceHandleByIndex")(gpu(0), index, &device),
              kSuccess);
    return device;
  }
  std::string text_of(const char* function, nvmlDevice_t device) {
    char text[128] = "";
    EXPECT_EQ(find<decltype(nvmlDeviceGetName)>(function)(device, text, sizeof text), kSuccess);
    return text;
  }
};

}  // namespace gpu_emulator
