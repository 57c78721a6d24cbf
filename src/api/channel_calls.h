#pragma once

#include <functional>

#include "api/channel_source.h"
#include "api/peer.h"
#include "api/resume.h"
#include "base/result.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "model/audit.h"
#include "model/channel.h"

namespace gpu_platform::api {

struct CallContext;

// The calls of JobService that enter a running job. Safe from any thread.
class ChannelCalls {
 public:
  explicit ChannelCalls(const CallContext& context) : context_(context) {}

  // Returns the channel to open, after a check that the caller may open it.
  base::Result<model::ChannelOrder> order(const v1::ExecInJobRequest& request,
                                          const Peer& peer) const;
  base::Result<model::ChannelOrder> order(const v1::ForwardPortRequest& request,
                                          const Peer& peer) const;
  base::Result<model::ChannelOrder> order(const v1::AttachToJobRequest& request,
                                          const Peer& peer) const;
  // Records in the audit trail that the channel is opened. Call it before, so that no user enters a
  // job unseen. `done` is called through `resume`, or at once if no trail is kept.
  void record(model::AuditAction action, const model::ChannelOrder& order, const Peer& peer,
              Resume resume, std::function<void(base::Status)> done) const;
  void open(model::ChannelOrder order, Resume resume, ChannelSource::Opened opened) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
