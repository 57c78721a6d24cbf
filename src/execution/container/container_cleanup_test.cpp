#include "execution/container/container_cleanup.h"

#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

constexpr const char* kBase = "/jobs/gpu-platform-ab12";

Json container_of(const std::string& cluster, const std::string& attempt,
                  const std::string& parent) {
  return {{"Config",
           {{"Labels", {{"gpu-platform.cluster", cluster}, {"gpu-platform.attempt", attempt}}}}},
          {"HostConfig", {{"CgroupParent", parent}}}};
}

TEST(ContainerCleanup, OnlyWhatLiesBelowOurCgroupIsOurs) {
  const std::string base = kBase;
  const std::string ours = "gpu-platform-ab12";
  EXPECT_EQ(attempt_of(container_of(ours, "42-1", base + "/42-1"), kBase), "42-1");
  const Json others[] = {
      container_of(ours, "42-1", ""),
      container_of(ours, "42-1", "/elsewhere/42-1"),
      container_of(ours, "42-1", base + "/42-2"),
      container_of(ours, "42-1", base + "/42-1/x"),
      container_of("gpu-platform-cd34", "42-1", base + "/42-1"),
      container_of(ours, "", base + "/"),
      container_of(ours, "../x", base + "/../x"),
      Json::parse(R"({"Config":{"Labels":[]},"HostConfig":7})"),
      Json("text"),
      Json(),
  };
  for (const Json& other : others) EXPECT_EQ(attempt_of(other, kBase), "") << other.dump();
}

TEST(ContainerCleanup, WithoutCgroupsTheLabelsOfTheUsersOwnEngineCount) {
  const std::string ours = "gpu-platform-ab12";
  EXPECT_EQ(rootless_attempt_of(container_of(ours, "42-1", ""), ours), "42-1");
  EXPECT_EQ(rootless_attempt_of(container_of("gpu-platform-cd34", "42-1", ""), ours), "");
  EXPECT_EQ(rootless_attempt_of(container_of(ours, "../x", ""), ours), "");
  EXPECT_EQ(rootless_attempt_of(Json("text"), ours), "");
}

TEST(ContainerCleanup, TheMountsOfAnAttemptHaveItsName) {
  EXPECT_EQ(mounts_folder_begin("gpu-platform-ab12", "42-1"),
            "/run/gpu-platform-mounts-ab12-42-1-");
  EXPECT_EQ(mounts_folder_begin("gpu-platform-ab12", ""), "/run/gpu-platform-mounts-ab12-");
}

}  // namespace
}  // namespace gpu_platform::execution
