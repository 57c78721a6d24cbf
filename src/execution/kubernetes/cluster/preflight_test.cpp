#include "execution/kubernetes/cluster/preflight.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Preflight, SaysHowToGetAnotherTokenWhereTheServerDoesNotKnowTheOldOne) {
  kubernetes::Answer answer;
  answer.status = 401;
  answer.body = R"({"kind":"Status","message":"Unauthorized"})";
  const base::Status status = failure_of(answer, "asking for the server's version");
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, base::ErrorCode::kUnauthenticated);
  EXPECT_THAT(status.error().message, AllOf(HasSubstr("version: Unauthorized; the API server"),
                                            HasSubstr("kubectl create token")));
}

TEST(Preflight, SaysWhatBringsGpusIntoAClusterWithoutAny) {
  KubernetesSettings settings;
  settings.driver = "gpu.example.org";
  EXPECT_THAT(words_for_no_gpus(settings, 0), HasSubstr("no node;"));
  settings.node_selector = {{"gpu", "yes"}};
  EXPECT_THAT(words_for_no_gpus(settings, 0), HasSubstr("engines.kubernetes.node_selector"));
  EXPECT_THAT(words_for_no_gpus(settings, 3),
              AllOf(HasSubstr("no ResourceSlice of the driver gpu.example.org"),
                    HasSubstr("engines.kubernetes.devices: counts")));
  settings.devices = DeviceMode::kCounts;
  EXPECT_THAT(words_for_no_gpus(settings, 3), HasSubstr("no nvidia.com/gpu"));
}

TEST(Preflight, NeedsNoRightToWriteInAllNamespaces) {
  KubernetesSettings settings;
  settings.namespace_name = "jobs";
  settings.admits_workloads = true;
  for (const DeviceMode mode : {DeviceMode::kPinned, DeviceMode::kOwned, DeviceMode::kCounts}) {
    settings.devices = mode;
    for (const Right& right : needed_rights(settings)) {
      // Kubernetes asks for this one in all namespaces; by itself it writes nothing.
      const bool is_part = right.resource == "resourceclaims" && right.subresource == "binding";
      if (right.where != Right::Where::kEverywhere || is_part) continue;
      EXPECT_THAT(right.verb, ::testing::AnyOf("get", "list", "watch")) << right.resource;
    }
  }
}

}  // namespace
}  // namespace gpu_platform::execution
