#include "model/spec_patch.h"

#include <gtest/gtest.h>

namespace gpu_platform::model {
namespace {

TEST(SpecPatch, AJobThatBecomesAPartHasItsUserAndTeamAsTenant) {
  JobSpec whole;
  whole.uid = 1000;
  whole.team = "vision";
  whole.request.gpus = 1;
  SpecPatch to_part;
  to_part.set(&ResourceRequest::share_per_gpu, base::GpuShare(1750));
  const JobSpec part = to_part.applied_to(whole);
  EXPECT_EQ(part.request.tenant, (Tenant{1000, "vision"}));
  SpecPatch to_whole;
  to_whole.set(&ResourceRequest::share_per_gpu, base::kWholeGpu);
  EXPECT_EQ(to_whole.applied_to(part), whole);
}

TEST(SpecPatch, OtherChangesLeaveTheTenant) {
  JobSpec part;
  part.uid = 1000;
  part.request.gpus = 1;
  part.request.share_per_gpu = base::GpuShare(3500);
  part.request.tenant = {1000, ""};
  SpecPatch patch;
  patch.set(&ResourceRequest::cpus, 4U);
  EXPECT_EQ(patch.applied_to(part).request.tenant, part.request.tenant);
}

}  // namespace
}  // namespace gpu_platform::model
