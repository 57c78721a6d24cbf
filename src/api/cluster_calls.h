#pragma once

#include "api/changing_call.h"
#include "gpu_platform/v1/cluster.pb.h"
#include "model/command.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of ClusterService about nodes and GPUs. Safe from any thread.
class ClusterCalls {
 public:
  explicit ClusterCalls(const CallContext& context) : context_(context) {}

  v1::Status status(const v1::GetStatusRequest& request, const Peer& peer) const;
  base::Result<v1::ListNodesResponse> nodes(const v1::ListNodesRequest& request) const;
  base::Result<v1::GpuHealth> gpu_health(const v1::GetGpuHealthRequest& request,
                                         const Peer& peer) const;
  base::Result<v1::ListGpusResponse> gpus(const v1::ListGpusRequest& request,
                                          const Peer& peer) const;
  base::Result<v1::EvidenceList> evidence(const v1::ListEvidenceRequest& request,
                                          const Peer& peer) const;
  base::Result<v1::GetTopologyResponse> topology(const v1::GetTopologyRequest& request) const;

  void change_gpus(const v1::ChangeGpusRequest& request, model::GpuAction action, const Peer& peer,
                   Resume resume, Done<v1::ChangeGpusResponse> done) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
