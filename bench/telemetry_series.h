#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/prng.h"
#include "base/units.h"
#include "telemetry/frame.h"
#include "telemetry/metric.h"

// Made-up readings of an H200 and its host at 1 Hz, from a seeded model: ranges, noise and paces as
// such GPUs have them, but not recorded from one. All metrics of GPUs and hosts, of which most do
// not change; those that the driver tells slowly come each 30 s.

namespace gpu_platform::bench {

enum class Load { kIdle, kTraining, kInference };

class MadeUpGpu {
 public:
  MadeUpGpu(Load load, std::uint64_t seed) : load_(load), random_(seed) {}

  // The next second's reading.
  telemetry::Frame next() {
    ++second_;
    telemetry::Frame frame;
    frame.subject = {.of = telemetry::Of::kGpu, .node = "n1", .uuid = "GPU-1", .attempt = {}};
    const std::int64_t late_ns = static_cast<std::int64_t>(random_.below(2'000'000));
    frame.at = kBegin + base::seconds(second_) + base::nanoseconds(late_ns);
    const std::int64_t busy = busy_permille();
    heat_ += (busy - heat_) / 40;
    const std::int64_t power = 74'500 + busy * 560 + noise(250 + busy * 18);
    energy_ += power;
    sent_ += busy * 40'000'000 + noise(busy * 1'000'000);
    const auto all = telemetry::metrics();
    for (std::size_t id = 0; id < all.size(); ++id) {
      if (all[id].of == telemetry::Of::kUse || (is_slow(all[id].name) && second_ % 30 != 0))
        continue;
      frame.values.push_back(
          {static_cast<telemetry::MetricId>(id), value_of(all[id].name, busy, power)});
    }
    return frame;
  }

 private:
  static constexpr base::Instant kBegin{1'760'000'400'000'000'000};

  static bool is_slow(std::string_view name) {
    constexpr std::array kFast = {"ecc_corrected", "ecc_uncorrected"};
    if (std::ranges::find(kFast, name) != kFast.end()) return false;
    constexpr std::array kSlow = {"pcie", "ecc_lifetime", "remap", "retire", "nvlink", "energy"};
    return std::ranges::any_of(kSlow, [&](std::string_view s) { return name.starts_with(s); });
  }

  // How much of the GPU is at work in this second.
  std::int64_t busy_permille() {
    switch (load_) {
      case Load::kIdle:
        return 0;
      case Load::kTraining: {
        constexpr std::int64_t kCheckpointEach = 900;
        constexpr std::int64_t kCheckpointTakes = 35;
        if (second_ % kCheckpointEach < kCheckpointTakes) return 20 + noise(10);
        return std::clamp<std::int64_t>(950 + noise(25), 0, 1000);
      }
      case Load::kInference:
        if (random_.chance(1, 20)) level_ = static_cast<std::int64_t>(random_.below(900));
        if (random_.chance(1, 25)) level_ = 0;
        return level_ == 0 ? 0 : std::clamp<std::int64_t>(level_ + noise(60), 0, 1000);
    }
    return 0;
  }

  std::int64_t value_of(std::string_view name, std::int64_t busy, std::int64_t power) {
    const auto active = [&](std::int64_t share) {
      return busy == 0 ? 0 : std::max<std::int64_t>(busy * share / 1000 + noise(share / 50 + 1), 0);
    };
    if (name == "utilization_percent") return busy == 0 ? 0 : std::min<std::int64_t>(busy / 9, 100);
    if (name == "memory_utilization_percent") return active(400) / 10;
    if (name == "memory_used_bytes") return memory_used();
    if (name == "memory_total_bytes") return std::int64_t{143'771} << 20;
    if (name == "memory_reserved_bytes") return std::int64_t{626} << 20;
    if (name == "temperature_c") return 31 + heat_ / 28;
    if (name == "memory_temperature_c") return 36 + heat_ / 24;
    if (name == "power_watts") return power;
    if (name == "energy_mj") return energy_;
    if (name == "clock_sm_mhz")
      return load_ == Load::kIdle ? 345 : 1980 - 15 * std::abs(noise(busy / 700));
    if (name == "clock_memory_mhz") return 3201;
    if (name == "throttle_reasons") return busy == 0 ? 1 : busy > 980 ? 4 : 0;
    if (name == "graphics_active_percent") return active(980);
    if (name == "sm_active_percent") return active(820);
    if (name == "sm_occupancy_percent") return active(310);
    if (name == "tensor_active_percent") return active(450);
    if (name == "dram_active_percent") return active(380);
    if (name == "fp32_active_percent") return active(60);
    if (name == "fp16_active_percent") return active(15);
    if (name.starts_with("pcie_") && name.ends_with("_per_second")) return active(700) * 1'024'000;
    if (name.starts_with("nvlink_") && name.ends_with("bytes")) return sent_;
    if (name == "cpu_percent") return 3 + busy / 40 + noise(2);
    if (name == "load_thousandths") return 8'000 + busy * 20 + noise(400);
    if (name == "memory_available_bytes") return (std::int64_t{1} << 40) - (noise(5'000) << 12);
    if (name.starts_with("network_") || name == "disk_written_bytes") {
      return network_ += 20'000 + static_cast<std::int64_t>(random_.below(60'000));
    }
    return 0;
  }

  std::int64_t memory_used() const {
    if (load_ == Load::kIdle) return std::int64_t{4} << 20;
    const std::int64_t pages = load_ == Load::kTraining ? 62'000 : 48'000 + level_ / 10;
    return pages << 21;
  }

  // Of about a normal distribution around 0.
  std::int64_t noise(std::int64_t deviation) {
    if (deviation <= 0) return 0;
    std::int64_t sum = 0;
    const auto width = static_cast<std::uint64_t>(deviation * 2 + 1);
    for (int i = 0; i < 3; ++i) sum += static_cast<std::int64_t>(random_.below(width)) - deviation;
    return sum;
  }

  Load load_;
  base::Prng random_;
  std::int64_t second_ = 0;
  std::int64_t heat_ = 0;
  std::int64_t level_ = 0;
  std::int64_t energy_ = 1'000'000'000'000;
  std::int64_t sent_ = 900'000'000'000'000;
  std::int64_t network_ = 70'000'000'000;
};

}  // namespace gpu_platform::bench
