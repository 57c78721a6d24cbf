#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "execution/engine.h"
#include "hardware/kernel_log.h"
#include "monitoring/gpu_monitor.h"
#include "monitoring/mps_faults.h"
#include "os/clock.h"

namespace gpu_platform::monitoring {

// Completes the ends of attempts that are clients of an MPS server with the fault of another client
// that ended them, or the loss of the server. It learns of failures before the gate holds them, of
// the culprits from the kernel's log, and which attempts are clients from the published state. What
// it knows is lost with it.
class MpsFaultObserver {
 public:
  // Returns the attempt with this process on the GPU, if that is known.
  using OwnerOf =
      std::function<std::optional<model::AttemptId>(const std::string& uuid, std::uint32_t pid)>;
  // Returns whether a program causes such an XID, and not the GPU or its driver.
  using IsOfPrograms = std::function<bool(std::uint32_t xid)>;
  using Clock = std::function<base::Instant()>;  // the time of day

  MpsFaultObserver(SnapshotNow snapshot, OwnerOf owner_of, IsOfPrograms is_of_programs,
                   Clock clock = os::wall_now)
      : snapshot_(std::move(snapshot)),
        owner_of_(std::move(owner_of)),
        is_of_programs_(std::move(is_of_programs)),
        clock_(std::move(clock)) {}

  // A line of the kernel's log about this GPU, also where NVML has told of the XID: only the log
  // has the process. The probe runner's thread.
  void take_kernel_line(const std::string& uuid, const hardware::KernelLine& line);
  // The MPS server of this user on the GPU is gone, or its control daemon. Any thread.
  void take_server_loss(const std::string& gpu, std::uint32_t uid);
  // The attempt has failed of itself (has_failed_of_itself). Any thread.
  void take_failure(const execution::Ended& ended);

  // Adds what is known to an end. Any thread.
  void complete(execution::Ended& ended);

 private:
  const SnapshotNow snapshot_;
  const OwnerOf owner_of_;
  const IsOfPrograms is_of_programs_;
  const Clock clock_;
  std::mutex mutex_;
  MpsFaults faults_;  // guarded by mutex_
};

}  // namespace gpu_platform::monitoring
