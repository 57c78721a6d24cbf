#include "execution/container/create_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpu_platform::execution {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view text_with_nul(const char* text) {
  return {text, std::char_traits<char>::length(text) + 1};
}

struct Asked {
  explicit Asked(bool has_annotations) {
    request.command = {text_with_nul("true")};
    request.container.image = text_with_nul("localhost/a:1");
    request.container.annotations = {text_with_nul("org.example/purpose=a=b"),
                                     text_with_nul("gpu-platform.attempt=9-9")};
    plan.request = &request;
    plan.rules = &rules;
    plan.attempt = "1-1";
    plan.has_annotations = has_annotations;
    body = create_body(plan).value_or(nlohmann::json());
  }

  node::LaunchRequest request;
  ContainerRules rules;
  ContainerPlan plan;
  nlohmann::json body;
};

TEST(CreateBody, AnnotationsAreLabelsAndNeverOurs) {
  const Asked it(false);
  EXPECT_EQ(it.body["Labels"]["org.example/purpose"], "a=b");
  EXPECT_EQ(it.body["Labels"]["gpu-platform.attempt"], "1-1");
  EXPECT_FALSE(it.body["HostConfig"].contains("Annotations"));
}

TEST(CreateBody, AnEngineThatKnowsAnnotationsGetsThemAndKeepsThem) {
  const Asked it(true);
  EXPECT_EQ(it.body["HostConfig"]["Annotations"]["org.example/purpose"], "a=b");
  nlohmann::json made = it.body;
  made["Mounts"] = nlohmann::json::array();
  EXPECT_EQ(difference(it.body, made), "");
  made["HostConfig"]["Annotations"].erase("org.example/purpose");
  EXPECT_THAT(difference(it.body, made), HasSubstr("dropped the annotation org.example/purpose"));
  made["HostConfig"]["Annotations"] = nullptr;
  EXPECT_THAT(difference(it.body, made), HasSubstr("dropped the annotation"));
}

TEST(CreateBody, ARootlessContainerKeepsItsUserAndAsksForNoLimits) {
  Asked it(false);
  it.request.memory_bytes = 64 << 20;
  it.request.max_processes = 10;
  it.request.near_cpus = "0-3";
  it.request.container.shm_bytes = 4096;
  const auto rootless = create_body(it.plan);
  ASSERT_TRUE(rootless);
  const nlohmann::json& host = (*rootless)["HostConfig"];
  EXPECT_EQ(host["UsernsMode"], "keep-id");
  EXPECT_EQ(host["ShmSize"], 4096);
  for (const char* const name : {"CgroupParent", "Memory", "MemorySwap", "PidsLimit", "CpusetCpus"})
    EXPECT_FALSE(host.contains(name)) << name;
  it.plan.cgroup = "/gp/1-1";
  const auto in_cgroup = create_body(it.plan);
  ASSERT_TRUE(in_cgroup);
  EXPECT_EQ((*in_cgroup)["HostConfig"]["CgroupParent"], "/gp/1-1");
  EXPECT_EQ((*in_cgroup)["HostConfig"]["Memory"], 64 << 20);
  EXPECT_FALSE((*in_cgroup)["HostConfig"].contains("UsernsMode"));
}

}  // namespace
}  // namespace gpu_platform::execution
