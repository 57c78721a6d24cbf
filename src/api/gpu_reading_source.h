#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "model/gpu_reading.h"
#include "model/host_metrics.h"
#include "model/node.h"

namespace gpu_platform::api {

// The latest readings of the probes. Safe from any thread; nothing here waits for a driver.
class GpuReadingSource {
 public:
  virtual ~GpuReadingSource() = default;

  // Null: nothing was read of that GPU yet.
  virtual std::shared_ptr<const model::GpuReading> latest(std::string_view uuid) const = 0;

  // Null: nothing was read of the node's host.
  virtual std::shared_ptr<const model::HostMetrics> latest_host(std::string_view /*node*/) const {
    return nullptr;
  }

  // Why there are no readings of the node's GPUs; empty: there are, or they come by themselves.
  virtual std::string why_none(const model::Node& /*node*/) const { return {}; }

  // Asks probes with readings older than this for new ones; a later latest() shows them.
  virtual void ask_for_newer_than(std::chrono::milliseconds age) = 0;
};

}  // namespace gpu_platform::api
