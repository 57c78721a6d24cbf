#pragma once

#include "base/result.h"
#include "health/rules.h"
#include "model/policy.h"

namespace gpu_platform::health {

// Returns the rules of a policy: its profile with the site's changes. Errors name the key
// ("health.rules[2].rule") and the allowed values.
base::Result<Rules> checked_rules(const model::Policy& policy);

// The same for a policy that was checked when it was made. Another version may have made it:
// changes that this one does not know are left out.
Rules known_rules(const model::Policy& policy);

}  // namespace gpu_platform::health
