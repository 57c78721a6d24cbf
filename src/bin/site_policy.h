#pragma once

#include <cstdint>
#include <optional>

#include "api/identity/identity_authenticator.h"
#include "api/rest/budget.h"
#include "config/configuration.h"
#include "model/policy.h"

// What a configuration means for the core and for the API.

namespace gpu_platform::bin {

// Whether the site names a cluster.
bool has_kubernetes(const config::Configuration& configuration);

// Returns the policy of the configuration, with the facts of the site that it leads to. `own_uid`:
// the daemon's.
model::Policy policy_of(const config::Configuration& configuration, std::uint32_t own_uid);

// Returns what is wrong with health.rules, of which the configuration knows the words alone; it
// would not be a policy.
std::optional<config::Problem> problem_in_rules(const config::Configuration& configuration);

api::BudgetLimits budgets_of(const config::Configuration& configuration);

// Returns whose signatures of credentials count here.
api::TrustedSigners signers_of(const config::Configuration& configuration);

}  // namespace gpu_platform::bin
