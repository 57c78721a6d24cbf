#include "execution/kubernetes/cluster/device_taint_rules.h"

#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

std::optional<std::string> selected_name(const Json& selector, std::string_view member) {
  if (!at(selector, {member}).is_string()) return std::nullopt;
  return line_at(selector, {member});
}

bool is_selected(const std::optional<std::string>& wanted, const std::string& name) {
  return !wanted || *wanted == name;
}

}  // namespace

bool TaintRule::selects(const DeviceName& of) const {
  return is_selected(driver, of.driver) && is_selected(pool, of.pool) &&
         is_selected(device, of.device);
}

std::optional<TaintRule> view_of_taint_rule(const Json& rule) {
  const Json& taint = map_at(rule, {"spec", "taint"});
  if (!keeps_pods_away(taint)) return std::nullopt;
  const Json& selector = map_at(rule, {"spec", "deviceSelector"});
  const bool is_older =
      at(selector, {"deviceClassName"}).is_string() || !list_at(selector, {"selectors"}).empty();
  if (is_older) return std::nullopt;
  TaintRule view;
  view.name = line_at(rule, {"metadata", "name"});
  view.driver = selected_name(selector, "driver");
  view.pool = selected_name(selector, "pool");
  view.device = selected_name(selector, "device");
  view.text = printable_line(fmt::format("{} of rule {}", taint_text(taint), view.name));
  return view;
}

void DeviceTaintRules::put(TaintRule rule) {
  std::string name = rule.name;
  rules_.insert_or_assign(std::move(name), std::move(rule));
}

void DeviceTaintRules::remove(std::string_view name) {
  if (const auto found = rules_.find(name); found != rules_.end()) rules_.erase(found);
}

const TaintRule* DeviceTaintRules::find(std::string_view name) const {
  const auto found = rules_.find(name);
  return found == rules_.end() ? nullptr : &found->second;
}

std::string DeviceTaintRules::taints_of(const DeviceName& device) const {
  std::vector<std::string_view> texts;
  for (const auto& [name, rule] : rules_) {
    if (rule.selects(device)) texts.push_back(rule.text);
  }
  return printable_line(fmt::format("{}", fmt::join(texts, "; ")));
}

std::set<std::string> DeviceTaintRules::names() const {
  std::set<std::string> names;
  for (const auto& [name, rule] : rules_) names.insert(name);
  return names;
}

}  // namespace gpu_platform::execution
