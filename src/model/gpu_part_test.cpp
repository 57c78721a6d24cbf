#include "model/gpu_part.h"

#include <gtest/gtest.h>

#include <string>

#include "base/units.h"
#include "model/policy.h"
#include "model/spec_checks.h"

namespace gpu_platform::model {
namespace {

TEST(GpuPart, AShareIsWrittenToThousandths) {
  EXPECT_EQ(written(base::kWholeGpu), "1");
  EXPECT_EQ(written(base::GpuShare(3500)), "0.5");
  EXPECT_EQ(written(base::GpuShare(875)), "0.125");
  EXPECT_EQ(written(base::GpuShare(7)), "0.001");
  EXPECT_EQ(written(base::GpuShare(0)), "0");
  EXPECT_EQ(written(base::GpuShare(1000)), "0.142") << "rounded down";
}

TEST(GpuPart, AWallIsOnlyAsStrongAsItsRungs) {
  const Wall mps{Rung::kMpsLimit, Rung::kMpsLimit};
  EXPECT_TRUE(is_enough(mps, Isolation::kNone));
  EXPECT_FALSE(is_enough(mps, Isolation::kMemory));
  EXPECT_TRUE(is_enough({Rung::kDriverLimit, Rung::kFrozen}, Isolation::kMemory));
  EXPECT_FALSE(is_enough({Rung::kHardware, Rung::kFrozen}, Isolation::kHardware));
  EXPECT_TRUE(is_enough(Wall{}, Isolation::kHardware));
}

ResourceRequest part(std::int64_t share) {
  ResourceRequest request;
  request.gpus = 1;
  request.share_per_gpu = base::GpuShare(share);
  return request;
}

std::string field_of_refusal(const ResourceRequest& request) {
  const base::Status status = check_request(request);
  return status ? std::string() : status.error().field;
}

TEST(GpuPart, AreOfOneGpuToThreeDecimals) {
  EXPECT_EQ(field_of_refusal(part(3500)), "");
  EXPECT_EQ(field_of_refusal(part(7)), "");
  for (const std::int64_t bad : {0, -7, 3501, 7007}) {
    EXPECT_EQ(field_of_refusal(part(bad)), "gpu_share") << bad;
  }
  ResourceRequest several = part(3500);
  several.gpus = 2;
  EXPECT_EQ(field_of_refusal(several), "gpu_share");
  ResourceRequest gang = part(3500);
  gang.nodes = 2;
  EXPECT_EQ(field_of_refusal(gang), "gpu_share");
}

TEST(GpuPart, AModeIsForPartsAlone) {
  ResourceRequest request = part(3500);
  request.share_mode = ShareMode::kMps;
  EXPECT_EQ(field_of_refusal(request), "");
  request.share_mode = ShareMode::kNone;
  EXPECT_EQ(field_of_refusal(request), "share_mode");
  request = part(7000);
  EXPECT_EQ(field_of_refusal(request), "");
  request.share_mode = ShareMode::kNone;
  EXPECT_EQ(field_of_refusal(request), "");
  request.share_mode = ShareMode::kTimeSlice;
  EXPECT_EQ(field_of_refusal(request), "share_mode");
}

TEST(GpuPart, ASliceIsForPartsThatTakeTurns) {
  ResourceRequest request = part(3500);
  request.slice = kMinSlice;
  EXPECT_EQ(field_of_refusal(request), "");
  request.slice = kMaxSlice + base::milliseconds(1);
  EXPECT_EQ(field_of_refusal(request), "slice_seconds");
  request.slice = kMinSlice - base::milliseconds(1);
  EXPECT_EQ(field_of_refusal(request), "slice_seconds");
  request.slice = kMinSlice;
  request.share_mode = ShareMode::kMps;
  EXPECT_EQ(field_of_refusal(request), "slice_seconds");
  request = part(7000);
  request.slice = kMinSlice;
  EXPECT_EQ(field_of_refusal(request), "slice_seconds");
}

}  // namespace
}  // namespace gpu_platform::model
