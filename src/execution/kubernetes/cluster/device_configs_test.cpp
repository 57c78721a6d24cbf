#include "execution/kubernetes/cluster/device_configs.h"

#include <gtest/gtest.h>

#include "base/prng.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;
using Source = DeviceConfigs::Source;

Json opaque_config(const std::string& parameter) {
  return {{"opaque", {{"driver", "gpu.nvidia.com"}, {"parameters", {{"kind", parameter}}}}}};
}

Json class_with(const std::string& name, const std::vector<std::string>& parameters) {
  Json config = Json::array();
  for (const std::string& parameter : parameters) config.push_back(opaque_config(parameter));
  return {{"metadata", {{"name", name}}}, {"spec", {{"config", config}}}};
}

Json claim_with(const std::vector<Json>& config) {
  return {{"metadata", {{"name", "c"}, {"namespace", "jobs"}}},
          {"spec", {{"devices", {{"config", config}}}}}};
}

Json request_of_class(const std::string& name, const std::string& of_class) {
  return {{"name", name}, {"exactly", {{"deviceClassName", of_class}}}};
}

const Json kThreeRequests =
    Json::array({request_of_class("gpu-0", "gpu"), request_of_class("gpu-1", "mig"),
                 request_of_class("gpu-2", "gpu")});

TEST(DeviceConfigs, AnAllocationHasWhatKubeSchedulerWrites) {
  DeviceConfigs configs;
  configs.put(Source::kClass, class_with("mig", {"M"}));
  configs.put(Source::kClass, class_with("gpu", {"A", "B"}));
  configs.put(Source::kClass, class_with("other", {"C"}));
  Json some = opaque_config("of some");
  some["requests"] = Json::array({"gpu-2", "gpu-1"});
  Json none = opaque_config("of none");
  none["requests"] = Json::array({"gpu-9"});
  configs.put(Source::kClaim, claim_with({opaque_config("of all"), some, none}));
  EXPECT_EQ(configs.of_allocation("jobs/c", kThreeRequests), Json::parse(R"([
    {"source":"FromClass","requests":["gpu-0","gpu-2"],
     "opaque":{"driver":"gpu.nvidia.com","parameters":{"kind":"A"}}},
    {"source":"FromClass","requests":["gpu-0","gpu-2"],
     "opaque":{"driver":"gpu.nvidia.com","parameters":{"kind":"B"}}},
    {"source":"FromClass","requests":["gpu-1"],
     "opaque":{"driver":"gpu.nvidia.com","parameters":{"kind":"M"}}},
    {"source":"FromClaim","requests":[],
     "opaque":{"driver":"gpu.nvidia.com","parameters":{"kind":"of all"}}},
    {"source":"FromClaim","requests":["gpu-2","gpu-1"],
     "opaque":{"driver":"gpu.nvidia.com","parameters":{"kind":"of some"}}}])"));
}

TEST(DeviceConfigs, WhatIsGoneCountsNoMore) {
  DeviceConfigs configs;
  const Json none = Json::array();
  EXPECT_EQ(configs.of_allocation("jobs/c", kThreeRequests), none);
  configs.put(Source::kClass, class_with("gpu", {"A"}));
  EXPECT_EQ(configs.of_allocation("jobs/c", kThreeRequests).size(), 1U);
  configs.put(Source::kClass, class_with("gpu", {}));
  EXPECT_EQ(configs.of_allocation("jobs/c", kThreeRequests), none);
  configs.put(Source::kClass, class_with("gpu", {"A"}));
  configs.remove(Source::kClass, class_with("gpu", {}));
  EXPECT_EQ(configs.of_allocation("jobs/c", kThreeRequests), none);
  configs.put(Source::kClass, class_with("gpu", {"A"}));
  configs.put(Source::kClass, class_with("mig", {"M"}));
  configs.put(Source::kClaim, claim_with({opaque_config("of all")}));
  configs.begin_list(Source::kClass);
  EXPECT_EQ(configs.of_allocation("jobs/c", kThreeRequests).size(), 3U) << "the list is not over";
  configs.put(Source::kClass, class_with("mig", {"M"}));
  configs.end_list(Source::kClass);
  EXPECT_EQ(configs.of_allocation("jobs/c", kThreeRequests).size(), 2U);
  EXPECT_EQ(configs.of_allocation("jobs/d", kThreeRequests).size(), 1U) << "it is another claim";
}

TEST(DeviceConfigs, NoJsonEndsTheProgram) {
  base::Prng prng(3);
  DeviceConfigs configs;
  Json some = opaque_config("of some");
  some["requests"] = Json::array({"gpu-2"});
  std::size_t entries = 0;
  for (int i = 0; i < 2'000; ++i) {
    Json device_class = class_with("gpu", {"A"});
    Json claim = claim_with({some});
    Json requests = kThreeRequests;
    for (Json* object : {&device_class, &claim, &requests}) {
      if (prng.chance(1, 2)) spoil(*object, prng);
    }
    configs.put(Source::kClass, device_class);
    configs.put(Source::kClaim, claim);
    entries += configs.of_allocation("jobs/c", requests).size();
    if (prng.chance(1, 5)) configs.remove(Source::kClaim, claim);
  }
  EXPECT_GT(entries, 1'000U);
}

}  // namespace
}  // namespace gpu_platform::execution
