#pragma once

#include <string>

#include "gpu_platform/v1/statistics.pb.h"
#include "model/caller.h"

namespace gpu_platform::api {

struct CallContext;

// What the daemon counts of its own work: the calls of StatisticsService. Safe from any thread.
class StatisticsCalls {
 public:
  explicit StatisticsCalls(const CallContext& context) : context_(context) {}

  v1::Statistics statistics() const;
  // The page of GET /metrics, as the caller may see it.
  std::string metrics(const model::Caller& caller) const;

 private:
  const CallContext& context_;
};

}  // namespace gpu_platform::api
