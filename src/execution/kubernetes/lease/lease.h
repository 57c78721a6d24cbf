#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "base/units.h"
#include "execution/kubernetes/cluster/preflight.h"

// A Lease of coordination.k8s.io/v1, as client-go's leader election uses it. Pure.

namespace gpu_platform::execution {

struct LeaseState {
  std::string holder;    // empty: none
  std::string acquired;  // the text of acquireTime
  std::string renewed;   // the text of renewTime: compared for equality alone, clocks may differ
  std::string resource_version;
  std::int64_t transitions = 0;
};
LeaseState state_of_lease(const nlohmann::json& lease);

std::string lease_path(const LeaseTerms& terms);  // of the lease itself
std::string leases_path(const LeaseTerms& terms);
// The lease as it is written: of terms.identity, renewed now; without an identity it has no holder.
// `before`: what it was; its version guards the write.
nlohmann::json lease_manifest(const LeaseTerms& terms, const LeaseState& before, base::Instant now);
// The request that writes it. `is_there`: the lease exists.
kubernetes::Request lease_write(const LeaseTerms& terms, const LeaseState& before, bool is_there,
                                base::Instant now);

}  // namespace gpu_platform::execution
