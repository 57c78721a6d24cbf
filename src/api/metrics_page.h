#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/metric_family.h>

#include "api/call_meter.h"
#include "api/gpu_reading_source.h"
#include "controller/snapshot.h"
#include "controller/statistics.h"
#include "health/verdict.h"

namespace gpu_platform::api {

// Builds the page of GET /metrics, in Prometheus' text format (version 0.0.4). The platform's own
// names begin with "gpu_platform_"; readings of GPUs have the names and units of NVIDIA's
// dcgm-exporter, so that its dashboards and alerts work. The page names no user and no job. A
// reading that the driver withholds has no line. docs/api.md lists the names.
class MetricsPage {
 public:
  explicit MetricsPage(const std::string& version);

  // Jobs, nodes and GPUs by state.
  void add(const controller::Snapshot& snapshot);
  void add(const controller::Statistics& statistics);
  void add(const std::vector<CallMeter::Row>& calls);
  // GPUs by what their evidence says about them.
  using Verdicts = std::map<std::pair<health::Action, health::FaultClass>, std::uint64_t>;
  void add(const Verdicts& verdicts);
  // The readings of all GPUs of the snapshot.
  void add(const controller::Snapshot& snapshot, const GpuReadingSource& readings);

  std::string text() const;

 private:
  prometheus::MetricFamily& family(std::string name, std::string help, prometheus::MetricType type);
  void add_xids(const controller::Snapshot& snapshot, const GpuReadingSource& readings);
  void add_counter(std::string name, std::string help, double value);
  void add_histogram(std::string name, std::string help, const base::Histogram& histogram);

  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace gpu_platform::api
