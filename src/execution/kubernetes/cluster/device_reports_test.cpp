#include "execution/kubernetes/cluster/device_reports.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

Device device(const std::string& name, const std::string& uuid) {
  Device made;
  made.name = {"gpu.nvidia.com", "n1", name};
  made.node = "n1";
  made.uuid = uuid;
  return made;
}

Json resource(const std::string& id, const std::string& health) {
  return {{"resourceID", id}, {"health", health}};
}

// As the kubelet of Kubernetes 1.36 writes it.
Json pod(const Json& resources, const std::string& phase = "Running") {
  const Json status = {{"name", "claim:gpus/one"}, {"resources", resources}};
  const Json container = {{"name", "main"}, {"allocatedResourcesStatus", Json::array({status})}};
  return {{"metadata", {{"name", "p"}, {"namespace", "jobs"}}},
          {"spec", {{"nodeName", "n1"}}},
          {"status", {{"phase", phase}, {"containerStatuses", Json::array({container})}}}};
}

TEST(DeviceReports, AreWhatAKubeletSaysOfTheDevicesOfAPod) {
  const auto reports = reports_of_pod(pod(Json::array(
      {resource("a", "Healthy"), resource("b", "Unhealthy"), resource("c", "Unknown")})));
  ASSERT_TRUE(reports);
  EXPECT_EQ(reports->node, "n1");
  EXPECT_EQ(reports->devices, (std::vector<DeviceReport>{{"a", true}, {"b", false}}));
}

TEST(DeviceReports, AreNoneOfAPodThatIsOverOrSaysNothing) {
  const Json one = Json::array({resource("a", "Unhealthy")});
  EXPECT_FALSE(reports_of_pod(pod(one, "Failed")));
  EXPECT_FALSE(reports_of_pod(pod(one, "Succeeded")));
  EXPECT_FALSE(reports_of_pod(pod(Json::array({resource("a", "Unknown")}))));
  Json unbound = pod(one);
  unbound["spec"].erase("nodeName");
  EXPECT_FALSE(reports_of_pod(unbound));
  for (const char* text : {"null", "[]", R"({"status":{"containerStatuses":[7,{}]}})",
                           R"({"spec":{"nodeName":"n"},"status":{"containerStatuses":[
                             {"allocatedResourcesStatus":{"a":1}}]}})"}) {
    EXPECT_FALSE(reports_of_pod(Json::parse(text))) << text;
  }
}

TEST(DeviceReports, ADeviceIsKnownByTheNamesThatKubeletsAndDriversGiveIt) {
  const Device gpu = device("gpu-1", "GPU-abc");
  for (const char* name :
       {"gpu.nvidia.com/n1/gpu-1", "k8s.gpu.nvidia.com/device=gpu-1", "gpu.nvidia.com/gpu=GPU-abc",
        "k8s.gpu.nvidia.com/claim=0f6b8a2e-1c1d-4e7a-9d3b-6a1f7a6f0a11-gpu-1"}) {
    EXPECT_TRUE(names_device(name, gpu)) << name;
  }
  for (const char* name :
       {"gpu.nvidia.com/n2/gpu-1", "k8s.gpu.nvidia.com/device=gpu-11", "nic.example.com/nic=gpu-1",
        "k8s.gpu.nvidia.com/claim=x-igpu-1", "gpu-1", "", "="}) {
    EXPECT_FALSE(names_device(name, gpu)) << name;
  }
}

class Reported : public ::testing::Test {
 protected:
  std::map<std::string, bool> health() const {
    return reports_.health_of("n1", {&whole_, &part_, &unmade_});
  }
  static PodReports of(const std::string& resource, bool is_healthy) {
    return {"n1", {{resource, is_healthy}}};
  }
  using Health = std::map<std::string, bool>;
  const Device whole_ = device("gpu-0", "GPU-0");
  const Device part_ = device("mig-gpu-0", "MIG-0");
  const Device unmade_ = device("mig-1-gpu-0", "");
  DeviceReports reports_;
};

TEST_F(Reported, OneOfSeveralPodsSaysThatAGpuIsUnhealthy) {
  reports_.put("jobs/a", of("gpu.nvidia.com/n1/gpu-0", true));
  EXPECT_EQ(health(), (Health{{"GPU-0", true}}));
  EXPECT_EQ(reports_.put("jobs/b", of("gpu.nvidia.com/n1/gpu-0", false)),
            std::set<std::string>{"n1"});
  EXPECT_EQ(health(), (Health{{"GPU-0", false}}));
  EXPECT_EQ(reports_.put("jobs/b", of("gpu.nvidia.com/n1/gpu-0", false)), std::set<std::string>{})
      << "the same";
  EXPECT_EQ(reports_.remove("jobs/b"), std::set<std::string>{"n1"});
  EXPECT_EQ(health(), (Health{{"GPU-0", true}}));
  EXPECT_EQ(reports_.remove("jobs/b"), std::set<std::string>{});
  EXPECT_EQ(reports_.pods(), std::set<std::string>{"jobs/a"});
}

TEST_F(Reported, TheLongestNameIsMeantAndWhatIsNotMadeYetIsNoGpu) {
  reports_.put("jobs/a", of("k8s.gpu.nvidia.com/claim=1-mig-gpu-0", false));
  EXPECT_EQ(health(), (Health{{"MIG-0", false}}));
  reports_.put("jobs/a", of("k8s.gpu.nvidia.com/claim=1-mig-1-gpu-0", false));
  EXPECT_EQ(health(), Health{});
}

}  // namespace
}  // namespace gpu_platform::execution
