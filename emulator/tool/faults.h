#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tool/state_file.h"

// The faults of a GPU, put into its state. Each change reaches NVML readings at once, and waiting
// programs as NVML events.

namespace gpu_emulator {

// What NVML answers about a GPU that fell off the bus (nvmlReturn_t NVML_ERROR_GPU_IS_LOST).
inline constexpr std::uint32_t kAnswerOfLostGpu = 15;

// The driver's response to an XID: whether NVML reports it (it does for the critical ones), and the
// recovery action it asks for (nvmlDeviceGpuRecoveryAction_t). The source is NVIDIA's XID catalogue
// of 2025-10-29; an XID that it does not list is critical, asks for nothing, and is reported as
// 999.
struct XidBehaviour {
  bool is_critical = true;
  bool is_known = true;
  std::uint32_t recovery_action = 0;
};
XidBehaviour behaviour_of_xid(std::uint32_t xid);

std::string_view name_of_recovery_action(std::uint32_t action);
// Returns the number of "gpu-reset" and the like; the error names them all.
Result<std::uint32_t> parse_recovery_action(const std::string& name);

// Returns the names of the bits that are set.
std::vector<std::string> names_of_throttle(std::uint64_t reasons);
// Returns the bits of "hw-thermal" and the like ("none": no bit); the error names them all.
Result<std::uint64_t> parse_throttle(const std::vector<std::string>& names);

// Raises the event and sets the recovery action. XIDs 63 and 64 also remap a row (or retire a page)
// or fail to; 79 also loses the GPU, after its event. Returns a note for the user.
// With an instance, the event names it.
Result<std::string> inject_xid(StateFile& file, std::uint32_t gpu, std::uint32_t xid,
                               const InstanceId& instance = {});
// Adds to the counters; uncorrected errors also remap rows (or retire pages), pending a reset.
// Refused if ECC is off or missing.
Status inject_ecc(StateFile& file, std::uint32_t gpu, EccClass kind, std::uint32_t count);
// 0: the load determines it.
Status inject_temperature(StateFile& file, std::uint32_t gpu, std::uint32_t celsius);
Status inject_throttle(StateFile& file, std::uint32_t gpu, std::uint64_t reasons);
Status inject_recovery(StateFile& file, std::uint32_t gpu, std::uint32_t action);
Status inject_replays(StateFile& file, std::uint32_t gpu, std::uint32_t count);
// Rows of memory that wait for a reset, without an event. Refused where pages are retired instead.
Status inject_remap_pending(StateFile& file, std::uint32_t gpu, std::uint32_t rows);
// A row that could not be remapped; refused as above. No reset mends it.
Status inject_remap_failed(StateFile& file, std::uint32_t gpu);
// Pages that are retired, and wait for a reset. Refused where rows are remapped instead.
Status inject_retired(StateFile& file, std::uint32_t gpu, std::uint32_t pages);
// The lanes in use, no more than the GPU has; 0: all of them.
Status inject_pcie_width(StateFile& file, std::uint32_t gpu, std::uint32_t lanes);
// Adds CRC errors and as many replays to the first NVLink. Refused where there is none.
Status inject_nvlink_errors(StateFile& file, std::uint32_t gpu, std::uint32_t count);
// Takes so many links down, the first ones; 0: none is. Refused where there are fewer.
Status inject_nvlink_down(StateFile& file, std::uint32_t gpu, std::uint32_t links);
// The counters since the driver was loaded begin anew at 0.
Status inject_restarted_counters(StateFile& file, std::uint32_t gpu);
// 0: somewhat warmer than the GPU. Refused where the memory tells none.
Status inject_memory_temperature(StateFile& file, std::uint32_t gpu, std::uint32_t celsius);
// Every reset from now on fails, or hangs for an hour.
Status inject_reset_fault(StateFile& file, std::uint32_t gpu, ResetFault fault);
// No call on the GPU is answered before so many seconds are over; 0: they are at once.
Status inject_hang(StateFile& file, std::uint32_t gpu, std::uint32_t seconds);
// So many of the next creations of GPU instances, or of compute instances, fail. Refused without
// MIG.
Status inject_failing_gpu_instances(StateFile& file, std::uint32_t gpu, std::uint32_t count);
Status inject_failing_compute_instances(StateFile& file, std::uint32_t gpu, std::uint32_t count);
// Makes every call on the GPU answer GPU_IS_LOST.
Status inject_lost(StateFile& file, std::uint32_t gpu);
// What programs find that initialise NVML from then on.
Status inject_listing(StateFile& file, std::uint32_t gpu, Listing listing);
// Makes every call on the GPU take so long; 0: no time.
Status inject_slow(StateFile& file, std::uint32_t gpu, std::uint32_t milliseconds);
Status inject_work(StateFile& file, std::uint32_t gpu, std::uint32_t microseconds);
// Removes every fault from a GPU; its processes stay.
Status clear_faults(StateFile& file, std::uint32_t gpu);

}  // namespace gpu_emulator
