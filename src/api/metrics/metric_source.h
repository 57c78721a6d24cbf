#pragma once

namespace gpu_platform::api {

class MetricPage;

// What a part of the program puts on the page of GET /metrics. The composition gives the door those
// of parts that the door does not know (CoreAccess::metric_sources).
//
// Names begin with "gpu_platform_", counters end in "_total", and the unit is in the name
// ("_seconds", "_bytes"). The number of series is bounded: no label has a job's id, a path or
// anything else that users make up without end. Safe from any thread; returns at once.
class MetricSource {
 public:
  virtual ~MetricSource() = default;
  virtual void add_to(MetricPage& page) const = 0;
};

}  // namespace gpu_platform::api
