#include "execution/cuda_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LaunchGpu gpu(std::uint32_t driver_index, std::string uuid, std::string pci_address) {
  LaunchGpu gpu;
  gpu.info.uuid = std::move(uuid);
  gpu.info.pci_address = std::move(pci_address);
  gpu.grant.gpu_index = driver_index;
  gpu.driver_index = driver_index;
  return gpu;
}

const std::vector<LaunchGpu> kTwo = {gpu(3, "GPU-a", "00000000:3b:00.0"),
                                     gpu(6, "GPU-b", "00000000:ba:00.0")};

TEST(CudaDevices, AreNumbersFromZeroWhereTheJobSeesItsOwnGpusAlone) {
  EXPECT_THAT(cuda_devices(kTwo, CudaNames::kAuto, false), ElementsAre("0", "1"));
  EXPECT_THAT(cuda_devices(kTwo, CudaNames::kIndex, false), ElementsAre("0", "1"));
}

TEST(CudaDevices, AreTheDriversNumbersWhereTheJobSeesAllGpus) {
  EXPECT_THAT(cuda_devices(kTwo, CudaNames::kAuto, true), ElementsAre("3", "6"));
}

TEST(CudaDevices, KeepTheOrderOfTheGrantsWithTheNumbersOfPciOrder) {
  EXPECT_THAT(cuda_devices({kTwo[1], kTwo[0]}, CudaNames::kAuto, false), ElementsAre("1", "0"));
}

TEST(CudaDevices, AreUuidsIfTheSiteWantsThem) {
  EXPECT_THAT(cuda_devices(kTwo, CudaNames::kUuid, false), ElementsAre("GPU-a", "GPU-b"));
}

TEST(CudaDevices, AreUuidsForMigDevicesUnlessTheSiteWantsNumbers) {
  const std::vector<LaunchGpu> mig = {gpu(0, "MIG-a", "00000000:3b:00.0")};
  EXPECT_THAT(cuda_devices(mig, CudaNames::kAuto, false), ElementsAre("MIG-a"));
  EXPECT_THAT(cuda_devices(mig, CudaNames::kIndex, false), ElementsAre("0"));
}

TEST(CudaDevices, AreNoneForAJobWithoutGpus) {
  EXPECT_THAT(cuda_devices({}, CudaNames::kAuto, false), IsEmpty());
}

}  // namespace
}  // namespace gpu_platform::execution
