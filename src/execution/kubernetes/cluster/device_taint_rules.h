#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "execution/kubernetes/cluster/device_name.h"

// The taints that DeviceTaintRules put on devices. Pure. Thread: one owner.

namespace gpu_platform::execution {

// A rule that keeps pods away from the devices that it selects.
struct TaintRule {
  std::string name;
  std::optional<std::string> driver;  // an unset member selects all
  std::optional<std::string> pool;
  std::optional<std::string> device;
  std::string text;  // "taint KEY=VALUE:EFFECT of rule NAME"

  bool selects(const DeviceName& of) const;
  friend bool operator==(const TaintRule&, const TaintRule&) = default;
};

// Returns nothing if the rule keeps no pods away (effect None), or if it selects by a DeviceClass
// or by CEL expressions, which Kubernetes has had before 1.35 only. A rule without any selector
// selects all devices, as kube-scheduler takes it.
std::optional<TaintRule> view_of_taint_rule(const nlohmann::json& rule);

class DeviceTaintRules {
 public:
  void put(TaintRule rule);
  void remove(std::string_view name);

  // Null: there is no such rule. Good until the next change.
  const TaintRule* find(std::string_view name) const;
  // Returns the taints of the device in words, by the names of their rules; empty: it has none.
  // Cost: linear in the number of rules.
  std::string taints_of(const DeviceName& device) const;
  std::set<std::string> names() const;

 private:
  std::map<std::string, TaintRule, std::less<>> rules_;
};

}  // namespace gpu_platform::execution
