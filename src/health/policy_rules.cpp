#include "health/policy_rules.h"

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"

namespace gpu_platform::health {

namespace {

Profile profile_of(const model::Policy& policy) {
  constexpr Profile kProfiles[model::kHealthProfiles] = {Profile::kNvidia, Profile::kCloud,
                                                         Profile::kStrict};
  return kProfiles[static_cast<std::size_t>(policy.health_profile)];
}

}  // namespace

base::Result<Rules> checked_rules(const model::Policy& policy) {
  std::vector<RuleOverride> overrides;
  for (std::size_t i = 0; i < policy.health_rules.size(); ++i) {
    const model::HealthRule& words = policy.health_rules[i];
    const std::string field = fmt::format("health.rules[{}]", i);
    TRY_ASSIGN(
        RuleOverride by,
        make_override({words.rule, words.gpu_type, words.action, words.mode, words.nodes}, field));
    overrides.push_back(std::move(by));
  }
  base::Result<Rules> rules = Rules::make(profile_of(policy), overrides);
  if (!rules) rules.error().field.insert(0, "health.");
  return rules;
}

Rules known_rules(const model::Policy& policy) {
  model::Policy known;
  known.health_profile = policy.health_profile;
  if (policy.health_rules.empty()) return *checked_rules(known);
  std::vector<model::HealthRule> kept;
  for (const model::HealthRule& words : policy.health_rules) {
    known.health_rules = {words};
    if (checked_rules(known)) kept.push_back(words);
  }
  known.health_rules = std::move(kept);
  base::Result<Rules> rules = checked_rules(known);
  CHECK(rules);
  return *std::move(rules);
}

}  // namespace gpu_platform::health
