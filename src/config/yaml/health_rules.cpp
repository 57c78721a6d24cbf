#include "config/yaml/health_rules.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "model/gpu_catalogue.h"

namespace gpu_platform::config {

namespace {

constexpr std::array<std::string_view, 5> kHealthRuleKeys = {"rule", "gpu_type", "nodes", "action",
                                                             "mode"};

}  // namespace

void HealthRulesReader::read_rule(const YAML::Node& map) {
  if (!map.IsMap()) {
    report(map,
           fmt::format("an entry of '{}' must begin with '- rule: …', not {}", key_, kind_of(map)));
    return;
  }
  model::HealthRule rule;
  for_each_entry(map, [&](const YAML::Node& name, const YAML::Node& value) {
    const std::string& key = name.Scalar();
    if (key == "rule") {
      rule.rule = word(value, key).value_or("");
    } else if (key == "gpu_type") {
      // A type that is not in the catalogue is named as the driver names its model.
      const std::string type = word(value, key).value_or("");
      rule.gpu_type = model::canonical_gpu_type(type).value_or(type);
    } else if (key == "nodes") {
      rule.nodes = word(value, key).value_or("");
    } else if (key == "action") {
      rule.action = word(value, key).value_or("");
    } else if (key == "mode") {
      rule.mode = word(value, key).value_or("");
    } else {
      report_unknown(name, kHealthRuleKeys);
    }
  });
  if (!map["rule"]) {
    report(map,
           fmt::format("an entry of '{}' without a rule: begin it with '- rule: xid-79'", key_));
  }
  const YAML::Mark mark = map.Mark();
  places_.push_back(
      {fmt::format("{}[{}]", key_, rules_.size()), file_, mark.line + 1, mark.column + 1, {}});
  rules_.push_back(std::move(rule));
}

void HealthRulesReader::read(const std::string& path, const YAML::Node& list) {
  key_ = path;
  if (list.IsNull()) return;
  if (!list.IsSequence()) {
    report(list, fmt::format("'{}' must be a list of changes ('- rule: …'), not {}", key_,
                             kind_of(list)));
    return;
  }
  for (const auto& map : list) read_rule(map);
}

void HealthRulesReader::finish(Configuration& configuration) {
  configuration.policy.health_rules = std::move(rules_);
  std::ranges::move(places_, std::back_inserter(configuration.places));
}

}  // namespace gpu_platform::config
