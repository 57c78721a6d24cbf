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

TEST(CreateBody, AContainerStartsWithThePlatformsProgramAndNothingOfTheImageElse) {
  Asked it(false);
  it.request.container.workdir = text_with_nul("/work");
  it.request.container.tmpfs = {text_with_nul("/scratch:1M")};
  it.plan.start = {"/dev/gpu-platform-start", "go", "/work"};
  it.plan.entrypoint = {"/entry", "-c"};
  const auto body = create_body(it.plan);
  ASSERT_TRUE(body);
  EXPECT_EQ((*body)["Entrypoint"], nlohmann::json(it.plan.start));
  EXPECT_EQ((*body)["Cmd"], nlohmann::json({"/entry", "-c", "true"}));
  EXPECT_EQ((*body)["WorkingDir"], "/") << "an engine makes it, as root";
  EXPECT_EQ((*body)["Healthcheck"]["Test"], nlohmann::json({"NONE"}));
  EXPECT_FALSE((*body)["HostConfig"].contains("Tmpfs"));
  it.request.container.entrypoint = text_with_nul("/own");
  EXPECT_EQ((*create_body(it.plan))["Cmd"], nlohmann::json({"/own", "true"}));
}

// What a process of the plan's user is, as the kernel writes it.
struct Status {
  std::string uid = "1000\t1000\t1000\t1000";
  std::string gid = "100\t100\t100\t100";
  std::string groups = "27 2106 ";
  std::string permitted = "0000000000000000";

  std::string error_of(const std::string& cgroup = "/gp/1-1") const {
    ContainerRules rules;
    ContainerPlan plan;
    plan.rules = &rules;
    plan.cgroup = cgroup;
    plan.uid = 1000;
    plan.gid = 100;
    plan.groups = {"2106", "27"};
    return error_in_process("Name:\tstart\nUid:\t" + uid + "\nGid:\t" + gid + "\nGroups:\t" +
                                groups + "\nCapPrm:\t" + permitted +
                                "\nCapEff:\t0000000000000000\nCapAmb:\t0000000000000000"
                                "\nNoNewPrivs:\t1\nSeccomp:\t2\n",
                            plan);
  }
};

TEST(ErrorInProcess, ItHasExactlyTheIdsOfItsUser) {
  EXPECT_EQ(Status().error_of(), "");
  EXPECT_EQ(Status{.groups = "27 100 2106"}.error_of(), "") << "some engines add the group itself";
  for (const char* const ids : {"0\t1000\t1000\t1000", "1000\t0\t1000\t1000", "1000\t1000\t0\t1000",
                                "1000\t1000\t1000\t0"}) {
    EXPECT_THAT(Status{.uid = ids}.error_of(), HasSubstr("as user 0 and not 1000")) << ids;
  }
  EXPECT_THAT(Status{.gid = "100\t100\t100\t0"}.error_of(), HasSubstr("as group 0 and not 100"));
  EXPECT_THAT(Status{.gid = "100\t100"}.error_of(), HasSubstr("cannot be read"));
  EXPECT_THAT(Status{.groups = "0 27 2106 "}.error_of(), HasSubstr("in group 0"));
  EXPECT_THAT(Status{.groups = "27 "}.error_of(), HasSubstr("without group 2106"));
  EXPECT_THAT(Status{.groups = "27 x"}.error_of(), HasSubstr("cannot be read"));
  EXPECT_THAT(Status{.permitted = "0000000000000001"}.error_of(), HasSubstr("capabilities"));
}

TEST(ErrorInProcess, OfARootlessEngineTheGroupsAreItsOwnNumbers) {
  EXPECT_EQ(Status{.groups = "265533 "}.error_of(""), "");
  EXPECT_THAT((Status{.uid = "0\t0\t0\t0", .groups = ""}.error_of("")), HasSubstr("as user 0"));
}

}  // namespace
}  // namespace gpu_platform::execution
