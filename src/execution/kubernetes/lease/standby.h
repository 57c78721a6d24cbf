#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "base/units.h"
#include "execution/kubernetes/lease/lease.h"
#include "execution/kubernetes/settings.h"
#include "kubernetes/kubeconfig.h"

// How the lease of a cluster goes from one controller to the next.

namespace gpu_platform::execution {

// Says whether another holder still renews a lease. Its renewals are compared with each other and
// counted by the own clock, because clocks of machines may differ.
class LeaseWatch {
 public:
  explicit LeaseWatch(LeaseTerms terms) : terms_(std::move(terms)) {}

  // Returns whether the lease may be taken: it has no holder, it is ours, or its holder has not
  // renewed it for its whole duration. `now_ns`: monotonic.
  bool is_free(const LeaseState& state, std::int64_t now_ns);

 private:
  LeaseTerms terms_;
  std::string seen_;  // the holder and its renewal
  std::int64_t seen_ns_ = 0;
};

struct StandbyOptions {
  kubernetes::ClusterAccess access;
  KubernetesSettings settings;
  LeaseTerms lease;
  // Waits for that time; false: the process was told to end.
  std::function<bool(base::Duration)> wait;
  // Whether it is to end now: no answer is waited for any more. May be empty.
  std::function<bool()> must_end = {};
  // Who has the lease, and troubles: one line each, when they change.
  std::function<void(const std::string& line)> tell;
};

// Waits until the lease is ours. Returns false if the process was told to end before. An error
// if it can never be: a missing right, a wrong credential. A server that does not answer is waited
// for. The lease must be renewed within its duration from then on (LeaseKeeper).
base::Result<bool> stand_by(const StandbyOptions& options);

// Empties the lease if it is ours, so that the next controller has it at once. Call it when nothing
// of this controller works any more. Waits at most `timeout`; without an answer the lease expires.
base::Status release_lease(const kubernetes::ClusterAccess& access, const LeaseTerms& terms,
                           base::Duration timeout);

}  // namespace gpu_platform::execution
