#pragma once

#include <chrono>

#include "api/peer.h"
#include "base/result.h"
#include "gpu_platform/v1/access.pb.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/configuration.pb.h"
#include "gpu_platform/v1/slurm.pb.h"

namespace gpu_platform::api {

struct CallContext;

// What the daemon is and how it is set up: the calls of AccessService, ConfigurationService and
// SlurmService, and those of ClusterService about the daemon itself. Safe from any thread.
class SiteCalls {
 public:
  explicit SiteCalls(const CallContext& context) : context_(context) {}

  v1::Identity who_am_i(const v1::WhoAmIRequest& request, const Peer& peer) const;
  v1::Health health() const;
  base::Result<v1::Readiness> readiness() const;
  v1::Version version() const;
  v1::Configuration configuration() const;
  v1::SlurmNames slurm_names() const;

 private:
  const CallContext& context_;
  std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
};

}  // namespace gpu_platform::api
