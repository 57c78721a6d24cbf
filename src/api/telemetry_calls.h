#pragma once

#include "api/peer.h"
#include "api/reading_view.h"
#include "base/result.h"
#include "gpu_platform/v1/telemetry.pb.h"

namespace gpu_platform::api {

struct CallContext;

// The history of GPUs, hosts and jobs, and their latest readings: the calls of TelemetryService.
// Safe from any thread.
class TelemetryCalls {
 public:
  explicit TelemetryCalls(const CallContext& context) : context_(context) {}

  // May take tens of milliseconds of disk.
  base::Result<v1::History> history(const v1::QueryHistoryRequest& request, const Peer& peer) const;
  base::Result<v1::ListReadingsResponse> readings(const v1::ListReadingsRequest& request,
                                                  const Peer& peer) const;

  // What a stream of readings is to show; kUnavailable where nothing is read.
  base::Result<ReadingFilter> filter_of(const v1::WatchReadingsRequest& request,
                                        const Peer& peer) const;

 private:
  base::Status check_read() const;

  const CallContext& context_;
};

}  // namespace gpu_platform::api
