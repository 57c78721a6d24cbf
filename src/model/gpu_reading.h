#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

// The readings of a GPU at one moment, as people see them. They are never part of the core's state
// and never journalled: the core gets only their consequences. A value that the driver withholds is
// absent; zero never means unknown.

namespace gpu_platform::model {

struct GpuProcess {
  std::uint32_t pid = 0;
  std::string user;                   // empty: it has ended, or is of another PID namespace
  std::string command;                // its name, likewise
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

struct GpuReading {
  base::Instant at;
  std::string problem;  // why the GPU does not answer ("GPU is lost"); empty: it answers
  std::optional<std::uint32_t> utilization_percent;  // time in which a kernel ran
  std::optional<std::uint32_t> memory_utilization_percent;
  std::optional<base::Bytes> memory_used;  // by processes
  std::optional<base::Bytes> memory_reserved;
  std::optional<std::int32_t> temperature_c;
  std::optional<base::Milliwatts> power;
  std::optional<base::Milliwatts> power_limit;
  std::optional<std::uint32_t> clock_sm_mhz;
  std::optional<std::uint32_t> clock_memory_mhz;
  std::optional<std::uint64_t> ecc_corrected;  // since the driver was loaded
  std::optional<std::uint64_t> ecc_uncorrected;
  std::optional<std::uint32_t> remapped_rows_corrected;
  std::optional<std::uint32_t> remapped_rows_uncorrected;
  std::optional<bool> remap_pending;
  std::optional<bool> remap_failed;
  std::optional<std::uint64_t> pcie_sent_bytes_per_second;
  std::optional<std::uint64_t> pcie_received_bytes_per_second;
  std::optional<std::uint32_t> pcie_generation;
  std::optional<std::uint32_t> pcie_width;
  std::optional<std::uint64_t> pcie_replays;
  std::optional<std::uint32_t> nvlinks_active;
  std::optional<std::string> recovery_action;  // the driver's wish: "NONE", "GPU_RESET", …
  std::optional<std::vector<std::string>> throttle_reasons;  // "POWER_CAP", …; empty list: none
  std::vector<GpuProcess> processes;
  std::vector<SeenXid> xids;  // since the daemon started, newest first, a few

  friend bool operator==(const GpuReading&, const GpuReading&) = default;
};

}  // namespace gpu_platform::model
