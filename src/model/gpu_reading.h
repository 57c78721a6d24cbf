#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/gpu_metrics.h"
#include "model/ids.h"

// The readings of a GPU at one moment, as people see them. They are never part of the core's state
// and never journalled: the core gets only their consequences. A value that the driver withholds is
// absent; zero never means unknown.

namespace gpu_platform::model {

struct GpuProcess {
  std::uint32_t pid = 0;
  std::string user;                   // empty: it has ended, or is of another PID namespace
  std::string command;                // its name; empty as `user`
  std::optional<base::Bytes> memory;  // of the GPU
  std::optional<JobId> job;           // none: an unmanaged process
  bool is_unmanaged = false;          // of no job that holds this GPU
  std::optional<std::uint32_t> uid;   // its user; none: it cannot be seen from here

  friend bool operator==(const GpuProcess&, const GpuProcess&) = default;
};

struct SeenXid {
  std::uint64_t xid = 0;
  base::Instant at;

  friend bool operator==(const SeenXid&, const SeenXid&) = default;
};

struct GpuReading : GpuMetrics {
  base::Instant at;
  std::string problem;  // why the GPU does not answer ("GPU is lost"); empty: it answers
  std::optional<base::Milliwatts> power_limit;
  std::optional<std::int32_t> slowdown_c;  // from this temperature on it lowers its clocks
  std::vector<GpuProcess> processes;
  std::vector<SeenXid> xids;  // since the daemon started, newest first, a few
  std::map<std::uint64_t, std::uint64_t> xid_counts;  // by XID, all since the daemon started

  friend bool operator==(const GpuReading&, const GpuReading&) = default;
};

}  // namespace gpu_platform::model
