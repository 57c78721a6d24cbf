#include "execution/kubernetes/cluster/device_claims.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/prng.h"
#include "execution/kubernetes/cluster/cluster_fixture.h"
#include "execution/kubernetes/cluster/device_configs.h"
#include "execution/kubernetes/job_namespace.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/pod_view.h"

namespace gpu_platform::execution {
namespace {

using Json = nlohmann::json;

// What the engine makes of a claim, as text.
std::string all_said_of(const Json& claim) {
  const auto text_of = [](const std::optional<OwnClaim>& own) {
    if (!own) return std::string("-");
    return fmt::format("{} {}/{}/{}", own->namespace_name, own->attempt.job.value,
                       own->attempt.attempt, own->rank);
  };
  const auto held = view_of_claim(claim);
  std::string said = held ? held->key + ": " + held->text : "-";
  for (const DeviceName& device : held ? held->devices : std::vector<DeviceName>()) {
    said += fmt::format(" {}/{}/{}", device.driver, device.pool, device.device);
  }
  KubernetesSettings settings;
  settings.cluster = "lab";
  settings.namespace_name = "ml";
  DeviceConfigs configs;
  configs.put(DeviceConfigs::Source::kClaim, claim);
  const Json requests = Json::array({{{"name", "gpu-0"}}});
  return fmt::format("{}\n{} {}\n{} {}\n{}", said, key_of(claim), is_of_platform(claim, settings),
                     text_of(own_claim_of(claim, "lab")), text_of(adopted_claim_of(claim, "lab")),
                     configs.of_allocation(key_of(claim), requests)
                         .dump(-1, ' ', false, Json::error_handler_t::replace));
}

TEST(DeviceClaims, ClaimsSayTheSameWithoutWhatIsNotRead) {
  base::Prng prng(5);
  for (const std::string_view label : {kClusterLabel, kAdoptedLabel, std::string_view("app")}) {
    Json whole = claim_object(object_name("lab", {model::JobId(7), 1}, 0), "n1", "gpu-0");
    whole["metadata"]["labels"] = {
        {label, "lab"}, {kJobLabel, "7"}, {kAttemptLabel, "1"}, {kRankLabel, "0"}};
    whole["metadata"]["managedFields"] = Json::array({{{"manager", "m"}}});
    whole["spec"]["devices"] = Json::parse(R"({"requests":[{"name":"gpu-0"}],"config":
      [{"requests":["gpu-0"],"opaque":{"driver":"gpu.nvidia.com","parameters":{"a":[1,"b"]}}}]})");
    for (int i = 0; i < 1'500; ++i) {
      Json claim = whole;
      for (std::uint64_t n = prng.below(4); n > 0; --n) spoil(claim, prng);
      const std::string text = claim.dump(-1, ' ', false, Json::error_handler_t::replace);
      EXPECT_EQ(all_said_of(kubernetes::read_json(text, fields_of_claims(DeviceMode::kOwned))),
                all_said_of(kubernetes::read_json(text)))
          << text;
    }
  }
}

}  // namespace
}  // namespace gpu_platform::execution
