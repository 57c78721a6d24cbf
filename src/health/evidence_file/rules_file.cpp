#include "health/evidence_file/rules_file.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::health {

namespace {

using RulesJson = nlohmann::json;

base::Result<std::string> word_at(const RulesJson& object, const char* key,
                                  const std::string& field) {
  if (!object.contains(key) || object[key].is_null()) return std::string();
  if (!object[key].is_string()) {
    return base::invalid(field + key, fmt::format("{} must be text", object[key].dump()));
  }
  return object[key].get<std::string>();
}

base::Result<RuleOverride> read_override(const RulesJson& object, const std::string& field) {
  if (!object.is_object()) {
    return base::invalid(field, "it must be an object with rule, and action or mode");
  }
  TRY_ASSIGN(const std::string rule, word_at(object, "rule", field + "."));
  TRY_ASSIGN(const std::string gpu_type, word_at(object, "gpu_type", field + "."));
  TRY_ASSIGN(const std::string action, word_at(object, "action", field + "."));
  TRY_ASSIGN(const std::string mode, word_at(object, "mode", field + "."));
  TRY_ASSIGN(const std::string nodes, word_at(object, "nodes", field + "."));
  return make_override({rule, gpu_type, action, mode, nodes}, field);
}

}  // namespace

base::Result<Rules> read_rules(std::string_view text) {
  const RulesJson document = RulesJson::parse(text, nullptr, false);
  if (!document.is_object()) {
    return base::invalid("", "it is no JSON object with profile and rules");
  }
  TRY_ASSIGN(const std::string name, word_at(document, "profile", ""));
  const auto profile = parse_profile(name.empty() ? "nvidia" : name);
  if (!profile) {
    return base::invalid("profile", fmt::format("\"{}\" is none of nvidia, cloud, strict", name));
  }
  std::vector<RuleOverride> overrides;
  if (document.contains("rules")) {
    const RulesJson& list = document["rules"];
    if (!list.is_array()) return base::invalid("rules", "it must be a list");
    for (std::size_t i = 0; i < list.size(); ++i) {
      TRY_ASSIGN(RuleOverride by, read_override(list[i], fmt::format("rules[{}]", i)));
      overrides.push_back(std::move(by));
    }
  }
  return Rules::make(*profile, overrides);
}

}  // namespace gpu_platform::health
