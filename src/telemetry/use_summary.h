#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "telemetry/level_use.h"

// What an attempt, or a command, did on its GPUs: a summary of bounded size that outlives the
// history.

namespace gpu_platform::telemetry {

// The levels that a summary has, by the names of the history. The first four are of every summary;
// the order is that of the pages.
inline constexpr std::array<std::string_view, 17> kUseLevels = {
    "utilization_percent",
    "memory_used_bytes",
    "temperature_c",
    "power_watts",
    "memory_utilization_percent",
    "memory_temperature_c",
    "clock_sm_mhz",
    "graphics_active_percent",
    "sm_active_percent",
    "sm_occupancy_percent",
    "tensor_active_percent",
    "dram_active_percent",
    "encoder_percent",
    "decoder_percent",
    "pcie_sent_bytes_per_second",
    "pcie_received_bytes_per_second",
    "fp64_active_percent",
};
// The same of counters.
inline constexpr std::array<std::string_view, 3> kUseCounters = {"energy_mj", "nvlink_sent_bytes",
                                                                 "nvlink_received_bytes"};

// The place of a level in kUseLevels, or of a counter in kUseCounters; it is there.
std::size_t use_level(std::string_view name);
std::size_t use_counter(std::string_view name);

// What it did on one GPU, or on its part of one.
struct GpuUse {
  std::string node;
  std::uint32_t index = 0;  // on the node
  std::string uuid;
  std::string model;  // "NVIDIA H100 80GB HBM3"
  // That it had of the GPU's; 0: not known.
  base::Bytes memory;
  // It had a part: utilization, memory and power are what was found to be its own.
  bool is_part = false;
  std::uint64_t samples = 0;  // readings of the GPU, or of the part
  std::array<LevelUse, kUseLevels.size()> levels = {};
  std::array<CounterUse, kUseCounters.size()> counters = {};
  // In how many of the readings that say why clocks are held down each reason was given, by
  // model::kThrottle… bit.
  std::map<std::uint64_t, std::uint64_t> throttled = {};
  std::uint64_t throttle_samples = 0;
  // Of a part: how it was found (telemetry/attribution.h), and how often so.
  std::map<std::int64_t, std::uint64_t> attributed_by = {};

  const LevelUse& level(std::string_view name) const { return levels[use_level(name)]; }
  const CounterUse& counter(std::string_view name) const { return counters[use_counter(name)]; }
  // Adds what it did on the same GPU later on.
  void add(const GpuUse& later);

  friend bool operator==(const GpuUse&, const GpuUse&) = default;
};

struct UseSummary {
  base::Instant from;       // the begin of the attempt
  base::Instant to;         // its end, or the latest reading so far
  base::Duration interval;  // between readings, as planned
  bool is_over = false;     // nothing is added any more
  std::vector<GpuUse> gpus;

  base::Duration duration() const { return to > from ? to - from : base::Duration(); }
  // The readings of each GPU that are to be expected; at least 1.
  std::uint64_t expected_samples() const;
  // Adds what was recorded of the same attempt later on.
  void add(const UseSummary& later);

  friend bool operator==(const UseSummary&, const UseSummary&) = default;
};

enum class EnergyFrom : std::uint8_t {
  kCounter,  // the GPU's own counter, for most of the time
  kPower,    // the mean of the power readings, times the time
};
std::string_view to_string(EnergyFrom from);  // "counter", "power"

struct Energy {
  std::int64_t millijoules = 0;
  EnergyFrom from = EnergyFrom::kPower;

  friend bool operator==(const Energy&, const Energy&) = default;
};

// Returns the energy that the GPU took in this time, or, of a part, what is counted for it. None
// without readings of power.
std::optional<Energy> energy_of(const GpuUse& gpu, base::Duration time);
// Returns the time in which the GPU's clocks were held down, by reason.
std::map<std::uint64_t, base::Duration> throttle_time_of(const GpuUse& gpu, base::Duration time);
// Returns how much of its memory was used at most, on average, at least: percent. None: not known.
struct MemoryShare {
  double min = 0;
  double mean = 0;
  double max = 0;
};
std::optional<MemoryShare> memory_share_of(const GpuUse& gpu);

// All GPUs of all attempts together. The readings of levels count alike.
struct UseTotals {
  std::size_t attempts = 0;  // that have any reading
  base::Duration gpu_time;   // of all GPUs together
  std::uint64_t samples = 0;
  std::uint64_t expected_samples = 0;
  std::array<LevelUse, kUseLevels.size()> levels = {};
  LevelUse memory_permille = {};      // of what it had of each GPU's memory; of GPUs' means
  std::optional<Energy> energy = {};  // kCounter if that of every GPU is
  std::map<std::uint64_t, base::Duration> throttled = {};
};
UseTotals totals_of(std::span<const UseSummary> attempts);

// An attempt in a few numbers, of all its GPUs together.
struct UseBrief {
  std::uint64_t samples = 0;
  std::optional<double> utilization_percent;  // the mean
  std::optional<double> memory_percent;       // the mean of what it used of what it had
  std::optional<std::int64_t> peak_memory;    // bytes, on one GPU
  std::optional<std::int64_t> mean_memory;    // bytes, on all GPUs together
  std::optional<Energy> energy;

  friend bool operator==(const UseBrief&, const UseBrief&) = default;
};
UseBrief brief_of(const UseSummary& summary);

// As stored; versions can be read by later programs.
std::string encode_use(const UseSummary& summary);
// kDataLoss: the bytes are no summary.
base::Result<UseSummary> decode_use(std::string_view bytes);

}  // namespace gpu_platform::telemetry
