#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/member_count.h"
#include "base/units.h"

// What is measured of a GPU, and the one table of these metrics. The probe's protocol, the report
// of the acceptance test, the page of metrics and the API's conversion use the table. A metric
// without a row does not compile. A new one takes a member and a row here, the driver's answer in
// hardware/nvml, and, if the API shows it, a field in proto/gpu_platform/v1/cluster.proto.

namespace gpu_platform::model {

// Why clocks are lower than they could be, as bits. A set of 0 says that nothing holds them down.
inline constexpr std::uint64_t kThrottleIdle = 0x1;
inline constexpr std::uint64_t kThrottleClockSetting = 0x2;
inline constexpr std::uint64_t kThrottlePowerCap = 0x4;
inline constexpr std::uint64_t kThrottleHardware = 0x8;
inline constexpr std::uint64_t kThrottleSyncBoost = 0x10;
inline constexpr std::uint64_t kThrottleHeatSoftware = 0x20;
inline constexpr std::uint64_t kThrottleHeatHardware = 0x40;
inline constexpr std::uint64_t kThrottlePowerBrake = 0x80;
inline constexpr std::uint64_t kThrottleDisplayClock = 0x100;

// Returns "POWER_CAP", …: the reasons that hold clocks down. Idle clocks are no throttling; a bit
// that we do not know is shown by its number.
std::vector<std::string> throttle_names(std::uint64_t bits);

// The action that the driver asks for about a GPU. A number that we do not know asks for a person.
enum class RecoveryAction : std::uint8_t {
  kNone,
  kGpuReset,
  kNodeReboot,
  kDrainPeerToPeer,
  kDrainAndReset,
  kRecoverImexDomain,
  kBusReset,
  kSystemReboot,
  kUnknown,
};

std::string_view to_string(RecoveryAction action);  // "GPU_RESET"

// Metrics that cost time to get, or change seldom: read more rarely than the rest. A value that the
// driver withholds is absent; zero never means unknown.
struct GpuSlowMetrics {
  std::optional<std::uint64_t> energy_mj;  // millijoules since the driver was loaded
  std::optional<std::uint32_t> pcie_generation;
  std::optional<std::uint32_t> pcie_width;
  std::optional<std::uint64_t> pcie_replays;
  std::optional<std::uint64_t> pcie_sent_bytes_per_second;  // by the GPU, over 20 ms
  std::optional<std::uint64_t> pcie_received_bytes_per_second;
  // Counted over the GPU's whole life.
  std::optional<std::uint64_t> ecc_lifetime_corrected;
  std::optional<std::uint64_t> ecc_lifetime_uncorrected;
  // Rows of memory replaced by spares (Ampere and later).
  std::optional<std::uint32_t> remapped_rows_corrected;
  std::optional<std::uint32_t> remapped_rows_uncorrected;
  std::optional<bool> remap_pending;  // takes a reset
  std::optional<bool> remap_failed;   // no spares left
  // Pages no longer used (before Ampere).
  std::optional<std::uint32_t> retired_pages_corrected;
  std::optional<std::uint32_t> retired_pages_uncorrected;
  std::optional<bool> retirement_pending;
  std::optional<std::uint32_t> nvlinks_active;
  // The count of all links together, since the driver was loaded.
  std::optional<std::uint64_t> nvlink_crc_errors;
  std::optional<std::uint64_t> nvlink_replays;
  std::optional<std::uint64_t> nvlink_recoveries;
  std::optional<base::Bytes> nvlink_sent;
  std::optional<base::Bytes> nvlink_received;

  friend bool operator==(const GpuSlowMetrics&, const GpuSlowMetrics&) = default;
};

// All metrics of a GPU at one moment.
struct GpuMetrics {
  std::optional<std::uint32_t> utilization_percent;  // time in which a kernel ran
  std::optional<std::uint32_t> memory_utilization_percent;
  // Memory used by processes, without the driver's own part where the driver says so.
  std::optional<base::Bytes> memory_used;
  std::optional<base::Bytes> memory_reserved;  // the driver's own part
  std::optional<base::Bytes> memory_total;
  std::optional<std::int32_t> temperature_c;
  std::optional<std::int32_t> memory_temperature_c;
  std::optional<base::Milliwatts> power;
  std::optional<std::uint32_t> clock_sm_mhz;
  std::optional<std::uint32_t> clock_memory_mhz;
  std::optional<std::uint64_t> throttle_reasons;  // kThrottle... bits, newer ones of the driver too
  std::optional<std::uint64_t> ecc_corrected;     // since the driver was loaded
  std::optional<std::uint64_t> ecc_uncorrected;
  std::optional<RecoveryAction> recovery_action;
  std::optional<std::uint32_t> encoder_percent;
  std::optional<std::uint32_t> decoder_percent;
  // Of the time since the last reading, in thousandths: what GPM counts (Hopper and later); of its
  // last interval, what DCGM does.
  std::optional<std::uint32_t> graphics_active;
  std::optional<std::uint32_t> sm_active;
  std::optional<std::uint32_t> sm_occupancy;  // of the warps that it could have
  std::optional<std::uint32_t> tensor_active;
  std::optional<std::uint32_t> dram_active;
  std::optional<std::uint32_t> fp64_active;
  std::optional<std::uint32_t> fp32_active;
  std::optional<std::uint32_t> fp16_active;
  std::optional<GpuSlowMetrics> slow;  // the latest there is

  friend bool operator==(const GpuMetrics&, const GpuMetrics&) = default;
};

// ---- the table ----

enum class GpuUnit : std::uint8_t {
  kNone,  // a number, a set of bits, a yes or no
  kPercent,
  kPermille,  // the page has shares of 1, the API percent
  kBytes,
  kBytesPerSecond,
  kCelsius,
  kMilliwatts,
  kMillijoules,
  kMegahertz,
};

// A level, or what only grows until the driver is loaded anew.
enum class GpuCount : std::uint8_t { kLevel, kCounter };

// The message of the API that has the metric, in a field of the metric's name.
enum class GpuMessage : std::uint8_t { kNoMessage, kGpu, kGpuHealth };

// A metric as the page of metrics gives it: in dcgm-exporter's name and unit, which the help says.
struct ExportedAs {
  std::string_view name;  // empty: it is not on the page
  std::string_view help;
  GpuCount kind = GpuCount::kLevel;  // of a host's; a GPU's is that of its row
};

// One row. `name` is that of JSON, with its unit there: watts for power.
template <class Owner, class Value>
struct GpuMetric {
  std::string_view name;
  std::optional<Value> Owner::* member = nullptr;
  GpuUnit unit = GpuUnit::kNone;
  GpuMessage message = GpuMessage::kNoMessage;
  ExportedAs exported = {};
  GpuCount count = GpuCount::kLevel;

  static constexpr bool kIsSlow = std::is_same_v<Owner, GpuSlowMetrics>;

  std::optional<Value> of(const GpuMetrics& gpu) const {
    if constexpr (!kIsSlow) {
      return gpu.*member;
    } else {
      return gpu.slow ? *gpu.slow.*member : std::nullopt;
    }
  }
};

template <class Owner, class Value>
constexpr GpuMetric<Owner, Value> gpu_metric(std::string_view name,
                                             std::optional<Value> Owner::* member,
                                             GpuUnit unit = GpuUnit::kNone,
                                             GpuMessage message = GpuMessage::kNoMessage,
                                             ExportedAs exported = {}) {
  return {name, member, unit, message, exported};
}

// One that only grows.
template <class Owner, class Value>
constexpr GpuMetric<Owner, Value> gpu_counter(std::string_view name,
                                              std::optional<Value> Owner::* member,
                                              GpuUnit unit = GpuUnit::kNone,
                                              GpuMessage message = GpuMessage::kNoMessage,
                                              ExportedAs exported = {}) {
  return {name, member, unit, message, exported, GpuCount::kCounter};
}

// The order is that of the page, and of the members of each struct in the probe's messages.
inline constexpr auto kGpuMetrics = std::tuple{
    gpu_metric("utilization_percent", &GpuMetrics::utilization_percent, GpuUnit::kPercent,
               GpuMessage::kGpu, {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."}),
    gpu_metric("memory_utilization_percent", &GpuMetrics::memory_utilization_percent,
               GpuUnit::kPercent, GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %)."}),
    gpu_metric("memory_used_bytes", &GpuMetrics::memory_used, GpuUnit::kBytes, GpuMessage::kGpu,
               {"DCGM_FI_DEV_FB_USED", "GPU memory used (in MiB)."}),
    gpu_metric("memory_reserved_bytes", &GpuMetrics::memory_reserved, GpuUnit::kBytes,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_FB_RESERVED", "GPU memory reserved by the driver (in MiB)."}),
    // The API shows the memory of the inventory, which is there while the GPU does not answer.
    gpu_metric("memory_total_bytes", &GpuMetrics::memory_total, GpuUnit::kBytes,
               GpuMessage::kNoMessage, {"DCGM_FI_DEV_FB_TOTAL", "GPU memory (in MiB)."}),
    gpu_metric("temperature_c", &GpuMetrics::temperature_c, GpuUnit::kCelsius, GpuMessage::kGpu,
               {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."}),
    gpu_metric("memory_temperature_c", &GpuMetrics::memory_temperature_c, GpuUnit::kCelsius,
               GpuMessage::kGpuHealth, {"DCGM_FI_DEV_MEMORY_TEMP", "Memory temperature (in C)."}),
    gpu_metric("power_watts", &GpuMetrics::power, GpuUnit::kMilliwatts, GpuMessage::kGpu,
               {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."}),
    gpu_counter(
        "energy_mj", &GpuSlowMetrics::energy_mj, GpuUnit::kMillijoules, GpuMessage::kNoMessage,
        {"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy since the driver was loaded (in mJ)."}),
    gpu_metric("clock_sm_mhz", &GpuMetrics::clock_sm_mhz, GpuUnit::kMegahertz,
               GpuMessage::kGpuHealth, {"DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz)."}),
    gpu_metric("clock_memory_mhz", &GpuMetrics::clock_memory_mhz, GpuUnit::kMegahertz,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_MEM_CLOCK", "Memory clock frequency (in MHz)."}),
    gpu_metric("throttle_reasons", &GpuMetrics::throttle_reasons, GpuUnit::kNone,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS",
                "Why clocks are lower than they could be (NVML's bits)."}),
    gpu_metric("pcie_generation", &GpuSlowMetrics::pcie_generation, GpuUnit::kNone,
               GpuMessage::kGpuHealth),
    gpu_metric("pcie_width", &GpuSlowMetrics::pcie_width, GpuUnit::kNone, GpuMessage::kGpuHealth),
    gpu_counter("pcie_replays", &GpuSlowMetrics::pcie_replays, GpuUnit::kNone,
                GpuMessage::kGpuHealth,
                {"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "PCIe retries since the driver was loaded."}),
    gpu_metric("pcie_sent_bytes_per_second", &GpuSlowMetrics::pcie_sent_bytes_per_second,
               GpuUnit::kBytesPerSecond, GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_PCIE_TX_THROUGHPUT", "PCIe traffic sent (in KB/s)."}),
    gpu_metric("pcie_received_bytes_per_second", &GpuSlowMetrics::pcie_received_bytes_per_second,
               GpuUnit::kBytesPerSecond, GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_PCIE_RX_THROUGHPUT", "PCIe traffic received (in KB/s)."}),
    gpu_counter(
        "ecc_corrected", &GpuMetrics::ecc_corrected, GpuUnit::kNone, GpuMessage::kGpuHealth,
        {"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "Corrected ECC errors since the driver was loaded."}),
    gpu_counter(
        "ecc_uncorrected", &GpuMetrics::ecc_uncorrected, GpuUnit::kNone, GpuMessage::kGpuHealth,
        {"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Uncorrected ECC errors since the driver was loaded."}),
    gpu_metric("recovery_action", &GpuMetrics::recovery_action, GpuUnit::kNone,
               GpuMessage::kGpuHealth),
    gpu_counter("ecc_lifetime_corrected", &GpuSlowMetrics::ecc_lifetime_corrected, GpuUnit::kNone,
                GpuMessage::kNoMessage,
                {"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "Corrected ECC errors in the life of the GPU."}),
    gpu_counter(
        "ecc_lifetime_uncorrected", &GpuSlowMetrics::ecc_lifetime_uncorrected, GpuUnit::kNone,
        GpuMessage::kNoMessage,
        {"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "Uncorrected ECC errors in the life of the GPU."}),
    gpu_counter("remapped_rows_corrected", &GpuSlowMetrics::remapped_rows_corrected, GpuUnit::kNone,
                GpuMessage::kGpuHealth,
                {"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", "Rows remapped after corrected errors."}),
    gpu_counter(
        "remapped_rows_uncorrected", &GpuSlowMetrics::remapped_rows_uncorrected, GpuUnit::kNone,
        GpuMessage::kGpuHealth,
        {"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "Rows remapped after uncorrected errors."}),
    gpu_metric("remap_pending", &GpuSlowMetrics::remap_pending, GpuUnit::kNone,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_ROW_REMAP_PENDING", "Whether a row is remapped by a reset (0 or 1)."}),
    gpu_metric("remap_failed", &GpuSlowMetrics::remap_failed, GpuUnit::kNone,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_DEV_ROW_REMAP_FAILURE", "Whether a row could not be remapped (0 or 1)."}),
    gpu_metric("encoder_percent", &GpuMetrics::encoder_percent, GpuUnit::kPercent,
               GpuMessage::kGpuHealth, {"DCGM_FI_DEV_ENC_UTIL", "Encoder utilization (in %)."}),
    gpu_metric("decoder_percent", &GpuMetrics::decoder_percent, GpuUnit::kPercent,
               GpuMessage::kGpuHealth, {"DCGM_FI_DEV_DEC_UTIL", "Decoder utilization (in %)."}),
    gpu_metric("graphics_active_percent", &GpuMetrics::graphics_active, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Time in which an engine was active (0 to 1)."}),
    gpu_metric("sm_active_percent", &GpuMetrics::sm_active, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_SM_ACTIVE", "SMs with a warp, of all (0 to 1)."}),
    gpu_metric("sm_occupancy_percent", &GpuMetrics::sm_occupancy, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_SM_OCCUPANCY", "Resident warps, of the possible (0 to 1)."}),
    gpu_metric("tensor_active_percent", &GpuMetrics::tensor_active, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Cycles of the tensor pipe (0 to 1)."}),
    gpu_metric("dram_active_percent", &GpuMetrics::dram_active, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_DRAM_ACTIVE", "Cycles with memory traffic (0 to 1)."}),
    gpu_metric("fp64_active_percent", &GpuMetrics::fp64_active, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_PIPE_FP64_ACTIVE", "Cycles of the FP64 pipe (0 to 1)."}),
    gpu_metric("fp32_active_percent", &GpuMetrics::fp32_active, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_PIPE_FP32_ACTIVE", "Cycles of the FP32 pipe (0 to 1)."}),
    gpu_metric("fp16_active_percent", &GpuMetrics::fp16_active, GpuUnit::kPermille,
               GpuMessage::kGpuHealth,
               {"DCGM_FI_PROF_PIPE_FP16_ACTIVE", "Cycles of the FP16 pipe (0 to 1)."}),
    gpu_counter("retired_pages_corrected", &GpuSlowMetrics::retired_pages_corrected, GpuUnit::kNone,
                GpuMessage::kNoMessage,
                {"DCGM_FI_DEV_RETIRED_SBE", "Pages retired after corrected errors."}),
    gpu_counter("retired_pages_uncorrected", &GpuSlowMetrics::retired_pages_uncorrected,
                GpuUnit::kNone, GpuMessage::kNoMessage,
                {"DCGM_FI_DEV_RETIRED_DBE", "Pages retired after uncorrected errors."}),
    gpu_metric("retirement_pending", &GpuSlowMetrics::retirement_pending, GpuUnit::kNone,
               GpuMessage::kNoMessage,
               {"DCGM_FI_DEV_RETIRED_PENDING", "Whether a page is retired by a reset (0 or 1)."}),
    gpu_metric("nvlinks_active", &GpuSlowMetrics::nvlinks_active, GpuUnit::kNone,
               GpuMessage::kGpuHealth, {"gpu_platform_gpu_nvlinks_active", "NVLinks that are up."}),
    gpu_counter("nvlink_crc_errors", &GpuSlowMetrics::nvlink_crc_errors),
    gpu_counter("nvlink_replays", &GpuSlowMetrics::nvlink_replays),
    gpu_counter("nvlink_recoveries", &GpuSlowMetrics::nvlink_recoveries),
    gpu_counter("nvlink_sent_bytes", &GpuSlowMetrics::nvlink_sent, GpuUnit::kBytes),
    gpu_counter("nvlink_received_bytes", &GpuSlowMetrics::nvlink_received, GpuUnit::kBytes),
};

inline constexpr std::size_t kGpuMetricCount = std::tuple_size_v<decltype(kGpuMetrics)>;
// All members of both structs but `slow`.
static_assert(base::member_count<GpuMetrics>() - 1 + base::member_count<GpuSlowMetrics>() ==
              kGpuMetricCount);

// Calls visit(row) with every row, in the table's order.
template <class Visit>
constexpr void for_each_gpu_metric(Visit&& visit) {
  std::apply([&](const auto&... row) { (visit(row), ...); }, kGpuMetrics);
}

// Calls visit(row, member) with the metrics that are members of `owner`, a GpuMetrics or a
// GpuSlowMetrics.
template <class Owner, class Visit>
constexpr void for_each_metric_of(Owner& owner, Visit&& visit) {
  constexpr bool kWantsSlow = std::is_same_v<std::remove_const_t<Owner>, GpuSlowMetrics>;
  for_each_gpu_metric([&](const auto& row) {
    if constexpr (std::remove_cvref_t<decltype(row)>::kIsSlow == kWantsSlow) {
      visit(row, owner.*row.member);
    }
  });
}

}  // namespace gpu_platform::model
