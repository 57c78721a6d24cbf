#include "telemetry/use_summary.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace gpu_platform::telemetry {

namespace {

template <std::size_t N>
std::size_t place_in(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  CHECK(found != names.end());
  return static_cast<std::size_t>(found - names.begin());
}

double in_seconds(base::Duration time) {
  return static_cast<double>(time.value()) / 1e9;
}

// Stored numbers may be anything: sums of a few of these do not overflow.
constexpr std::int64_t kMaxRounded = 1'000'000'000'000'000'000;

std::int64_t rounded(double value) {
  constexpr auto kMax = static_cast<double>(kMaxRounded);
  return static_cast<std::int64_t>(std::llround(std::clamp(value, -kMax, kMax)));
}

void add_energy(const std::optional<Energy>& energy, std::optional<Energy>& total) {
  if (!energy) return;
  if (!total) {
    total = energy;
    return;
  }
  total->millijoules += energy->millijoules;
  if (energy->from == EnergyFrom::kPower) total->from = EnergyFrom::kPower;
}

void add_gpu(const GpuUse& gpu, const UseSummary& attempt, UseTotals& totals) {
  totals.gpu_time += attempt.duration();
  totals.samples += gpu.samples;
  totals.expected_samples += attempt.expected_samples();
  for (std::size_t i = 0; i < gpu.levels.size(); ++i) totals.levels[i].add(gpu.levels[i]);
  if (const auto share = memory_share_of(gpu))
    totals.memory_permille.add(rounded(share->mean * 10));
  add_energy(energy_of(gpu, attempt.duration()), totals.energy);
  for (const auto& [reason, time] : throttle_time_of(gpu, attempt.duration())) {
    totals.throttled[reason] += time;
  }
}

}  // namespace

std::size_t use_level(std::string_view name) {
  return place_in(kUseLevels, name);
}

std::size_t use_counter(std::string_view name) {
  return place_in(kUseCounters, name);
}

std::string_view to_string(EnergyFrom from) {
  return from == EnergyFrom::kCounter ? "counter" : "power";
}

void GpuUse::add(const GpuUse& later) {
  samples += later.samples;
  throttle_samples += later.throttle_samples;
  for (std::size_t i = 0; i < levels.size(); ++i) levels[i].add(later.levels[i]);
  for (std::size_t i = 0; i < counters.size(); ++i) counters[i].add(later.counters[i]);
  for (const auto& [reason, count] : later.throttled) throttled[reason] += count;
  for (const auto& [way, count] : later.attributed_by) attributed_by[way] += count;
}

std::uint64_t UseSummary::expected_samples() const {
  if (interval.value() <= 0) return 1;
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, duration().value() / interval.value()));
}

void UseSummary::add(const UseSummary& later) {
  if (!from.is_set() || (later.from.is_set() && later.from < from)) from = later.from;
  to = std::max(to, later.to);
  is_over = is_over || later.is_over;
  for (const GpuUse& gpu : later.gpus) {
    const auto same = std::ranges::find(gpus, gpu.uuid, &GpuUse::uuid);
    if (same == gpus.end()) {
      gpus.push_back(gpu);
    } else {
      same->add(gpu);
    }
  }
}

// The counter is read more rarely than the power, so the time at both of its ends, in which nothing
// is known of it, is counted by the mean power. The counter of a GPU knows no parts.
std::optional<Energy> energy_of(const GpuUse& gpu, base::Duration time) {
  const LevelUse& power = gpu.level("power_watts");
  const CounterUse& counter = gpu.counter("energy_mj");
  const base::Duration counted =
      counter.is_known() ? counter.last_at - counter.first_at : base::Duration();
  const bool has_counter =
      !gpu.is_part && counted.value() >= time.value() / 2 && counted > base::Duration();
  if (!has_counter && power.count == 0) return std::nullopt;
  if (!has_counter) return Energy{rounded(power.mean() * in_seconds(time)), EnergyFrom::kPower};
  const base::Duration rest = time > counted ? time - counted : base::Duration();
  const std::int64_t grown = std::clamp(counter.grown, -kMaxRounded, kMaxRounded);
  return Energy{grown + rounded(power.mean() * in_seconds(rest)), EnergyFrom::kCounter};
}

std::map<std::uint64_t, base::Duration> throttle_time_of(const GpuUse& gpu, base::Duration time) {
  std::map<std::uint64_t, base::Duration> times;
  if (gpu.throttle_samples == 0) return times;
  for (const auto& [reason, count] : gpu.throttled) {
    const double share =
        std::min(1.0, static_cast<double>(count) / static_cast<double>(gpu.throttle_samples));
    times[reason] = base::Duration(rounded(share * static_cast<double>(time.value())));
  }
  return times;
}

std::optional<MemoryShare> memory_share_of(const GpuUse& gpu) {
  const LevelUse& used = gpu.level("memory_used_bytes");
  if (used.count == 0 || gpu.memory <= base::Bytes()) return std::nullopt;
  const double percent = 100.0 / static_cast<double>(gpu.memory.value());
  return MemoryShare{static_cast<double>(used.min) * percent, used.mean() * percent,
                     static_cast<double>(used.max) * percent};
}

UseTotals totals_of(std::span<const UseSummary> attempts) {
  UseTotals totals;
  for (const UseSummary& attempt : attempts) {
    const auto has_samples = [](const GpuUse& gpu) { return gpu.samples > 0; };
    if (std::ranges::any_of(attempt.gpus, has_samples)) ++totals.attempts;
    for (const GpuUse& gpu : attempt.gpus) add_gpu(gpu, attempt, totals);
  }
  return totals;
}

UseBrief brief_of(const UseSummary& summary) {
  UseBrief brief;
  double utilization = 0;
  std::uint64_t utilization_samples = 0;
  double memory = 0;
  double memory_had = 0;
  for (const GpuUse& gpu : summary.gpus) {
    brief.samples += gpu.samples;
    const LevelUse& busy = gpu.level("utilization_percent");
    utilization += busy.mean() * static_cast<double>(busy.count);
    utilization_samples += busy.count;
    add_energy(energy_of(gpu, summary.duration()), brief.energy);
    const LevelUse& used = gpu.level("memory_used_bytes");
    if (used.count == 0) continue;
    memory += used.mean();
    brief.peak_memory = std::max(brief.peak_memory.value_or(used.max), used.max);
    brief.mean_memory = rounded(memory);
    if (gpu.memory > base::Bytes()) memory_had += static_cast<double>(gpu.memory.value());
  }
  if (utilization_samples > 0) {
    brief.utilization_percent = utilization / static_cast<double>(utilization_samples);
  }
  if (memory_had > 0) brief.memory_percent = memory / memory_had * 100;
  return brief;
}

}  // namespace gpu_platform::telemetry
