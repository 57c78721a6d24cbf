#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "hardware/dcgm/dcgm_session.h"
#include "hardware/dcgm/dcgm_source.h"
#include "hardware/readings.h"
#include "node/probe/driver_thread.h"

namespace gpu_platform::node {

// Asks DCGM, where it is installed, for what the driver's library does not say. The daemon is not
// told how long this thread is inside DCGM: while it hangs there, its values grow old and are left
// out, and nothing else waits for it.
class DcgmReader final : public DriverThread {
 public:
  DcgmReader(hardware::DcgmSource source, base::Duration interval);

  // The GPUs of the latest inventory. Call it before resume().
  void set_gpus(std::vector<hardware::DcgmGpu> gpus);

  // Adds to a reading what it lacks. Any thread may call it.
  void complete(const std::string& uuid, hardware::GpuReading& reading) const;

 private:
  base::Duration turn() override;
  void release() override;

  const hardware::DcgmSource source_;
  const base::Duration interval_;
  std::unique_ptr<hardware::DcgmSession> session_;
  std::vector<hardware::DcgmGpu> watched_;  // by the session
  mutable std::mutex mutex_;                // over what follows
  std::vector<hardware::DcgmGpu> gpus_;
  std::map<std::string, model::GpuMetrics> values_;  // by UUID
  std::int64_t read_ns_ = 0;                         // on the boot clock
};

}  // namespace gpu_platform::node
