#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "hardware/kernel_log.h"
#include "hardware/readings.h"
#include "model/host_metrics.h"

// The messages between a probe and the daemon, one message per packet of a SOCK_SEQPACKET pair.
// Bytes are base/codec; a message that is longer than allowed, unknown or not exact is refused.
//
//   probe  -> daemon   ProbeHello first; Inventory once, and when it changes; ProbeReadings at each
//                      interval, also where there is no GPU: they are the sign of life of the
//                      thread that polls, and say how long the other threads have been inside the
//                      driver. Those that were asked for between are of some GPUs only. ProbeEvents
//                      when the driver tells something, and for a while after a ReadNow, to say
//                      until when the driver was listened to. ProbeKernelLog when the kernel's log
//                      tells of a GPU, and once if it may not be read. ProbeError when the machine
//                      cannot be described at all.
//   daemon -> probe    ReadNow. The end of the connection ends the probe.

namespace gpu_platform::node {

inline constexpr std::uint32_t kProbeProtocolVersion = 8;
inline constexpr std::size_t kMaxProbeMessage = 128 * 1024;
inline constexpr std::size_t kMaxProbeRequest = 4096;  // what is longer asks for all
inline constexpr std::size_t kMaxReportedGpus = 64;
// The maximum for one GPU. It is lower if there are more than 16 GPUs; further processes are left
// out.
inline constexpr std::size_t kMaxReportedProcesses = 256;

struct ProbeHello {
  std::uint32_t version = kProbeProtocolVersion;
  friend bool operator==(const ProbeHello&, const ProbeHello&) = default;
};

// The time that a thread beside the polling one has been inside the driver at a stretch. Absent: it
// has nothing to do there.
using ThreadSilence = std::optional<std::uint32_t>;  // milliseconds

struct ProbeReadings {
  std::vector<hardware::GpuReading> gpus;
  std::int64_t began_ns = 0;  // when the first was read, on the clock of CLOCK_BOOTTIME
  ThreadSilence events;
  ThreadSilence slow_reads;
  bool is_partial = false;  // of GPUs that were asked for alone; else of all that the driver lists
  // Of the real host, also where the GPUs are emulated; every few seconds, never of some GPUs only.
  std::optional<model::HostMetrics> host = {};
  // The energy of these GPUs was read with the rest: a ReadNow asked for it. Else it is as old as
  // the other slow metrics.
  bool is_energy_new = false;
  friend bool operator==(const ProbeReadings&, const ProbeReadings&) = default;
};

struct ProbeError {
  std::string message;
  friend bool operator==(const ProbeError&, const ProbeError&) = default;
};

inline constexpr std::int64_t kNoEventsEver = std::numeric_limits<std::int64_t>::max();

struct ProbeEvents {
  std::vector<hardware::GpuEvent> events;  // in the order of the driver
  std::uint64_t dropped = 0;               // before these, because the daemon did not take them
  // What the driver told before this moment, on the clock of CLOCK_BOOTTIME, has been sent; 0: not
  // said. kNoEventsEver: this driver tells nothing, or no thread listens now.
  std::int64_t until_ns = 0;
  friend bool operator==(const ProbeEvents&, const ProbeEvents&) = default;
};

struct ProbeKernelLog {
  std::vector<hardware::KernelLine> lines;  // in the order of the log
  std::uint64_t lost = 0;                   // of all records of the log, before these
  std::string problem;                      // why the log is not read; empty: it is
  friend bool operator==(const ProbeKernelLog&, const ProbeKernelLog&) = default;
};

using ProbeMessage = std::variant<ProbeHello, hardware::Inventory, ProbeReadings, ProbeError,
                                  ProbeEvents, ProbeKernelLog>;

std::string encode(const ProbeMessage& message);
base::Result<ProbeMessage> decode_probe_message(std::string_view bytes);

// Asks for readings at once instead of at the next interval.
struct ReadNow {
  std::vector<std::string> uuids = {};  // of these GPUs; empty: of all
  bool with_energy = false;             // which takes 4 ms for each GPU
  friend bool operator==(const ReadNow&, const ReadNow&) = default;
};

std::string encode(const ReadNow& request);
base::Result<ReadNow> decode_probe_request(std::string_view bytes);

}  // namespace gpu_platform::node
