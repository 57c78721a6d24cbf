#include "telemetry/use_recorder.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::telemetry {

namespace {

constexpr std::size_t kEnergy = 0;
static_assert(kUseCounters[kEnergy] == "energy_mj");

// Later, the GPU may have idled for longer than it takes to notice.
constexpr base::Duration kMaxAfterEnd = base::seconds(1);

// What a metric is to a summary.
struct Role {
  enum class Kind : std::uint8_t { kNone, kLevel, kCounter, kThrottle, kAttributedBy };
  Kind kind = Kind::kNone;
  std::size_t place = 0;   // of a level or counter
  bool is_common = false;  // to all jobs of a GPU
};

bool is_common(std::string_view name) {
  constexpr std::array<std::string_view, 4> kCommon = {"temperature_c", "memory_temperature_c",
                                                       "clock_sm_mhz", "throttle_reasons"};
  return std::ranges::find(kCommon, name) != kCommon.end();
}

Role role_of(const Metric& metric) {
  if (metric.of == Of::kHost) return {};
  const auto place_in = [&](const auto& names) -> std::optional<std::size_t> {
    const auto found = std::ranges::find(names, metric.name);
    if (found == names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.begin());
  };
  const bool common = is_common(metric.name);
  if (const auto level = place_in(kUseLevels)) return {Role::Kind::kLevel, *level, common};
  if (const auto counter = place_in(kUseCounters)) return {Role::Kind::kCounter, *counter, common};
  if (metric.name == "throttle_reasons") return {Role::Kind::kThrottle, 0, common};
  if (metric.name == kUseAttributedBy) return {Role::Kind::kAttributedBy, 0, common};
  return {};
}

// By MetricId, so that a frame costs no look for names.
const std::vector<Role>& roles() {
  static const std::vector<Role> kRoles = [] {
    std::vector<Role> all;
    for (const Metric& metric : metrics()) all.push_back(role_of(metric));
    return all;
  }();
  return kRoles;
}

void take_reasons(std::int64_t value, GpuUse& gpu) {
  ++gpu.throttle_samples;
  for (auto bits = static_cast<std::uint64_t>(value); bits != 0; bits &= bits - 1) {
    ++gpu.throttled[bits & ~(bits - 1)];
  }
}

}  // namespace

UseRecorder::UseRecorder(UseSummary begun, Options options)
    : options_(options), summary_(std::move(begun)), seen_(summary_.gpus.size()) {}

void UseRecorder::take(const Frame& frame) {
  const Subject& subject = frame.subject;
  const bool is_use = subject.of == Of::kUse;
  if (subject.of == Of::kHost) return;
  if (summary_.is_over) return take_last_energy(frame);
  if (is_use && subject.attempt != options_.attempt) return;
  const auto gpu = std::ranges::find(summary_.gpus, subject.uuid, &GpuUse::uuid);
  if (gpu == summary_.gpus.end() || (is_use && !gpu->is_part)) return;
  take_values(frame, *gpu, seen_[static_cast<std::size_t>(gpu - summary_.gpus.begin())]);
  if (is_use == gpu->is_part) ++gpu->samples;
  summary_.to = std::max(summary_.to, frame.at);
}

void UseRecorder::take_values(const Frame& frame, GpuUse& gpu, Seen& seen) {
  const bool is_of_others = gpu.is_part && frame.subject.of == Of::kGpu;
  for (const Value& value : frame.values) {
    const Role& role = roles()[value.metric];
    if (is_of_others && !role.is_common) continue;
    switch (role.kind) {
      case Role::Kind::kNone:
        break;
      case Role::Kind::kLevel:
        gpu.levels[role.place].add(value.value);
        break;
      case Role::Kind::kCounter:
        take_counter(role.place, value.value, frame, gpu, seen);
        break;
      case Role::Kind::kThrottle:
        take_reasons(value.value, gpu);
        break;
      case Role::Kind::kAttributedBy:
        ++gpu.attributed_by[value.value];
        break;
    }
  }
}

void UseRecorder::take_counter(std::size_t place, std::int64_t value, const Frame& frame,
                               GpuUse& gpu, Seen& seen) const {
  const std::optional<std::int64_t> before = std::exchange(seen.counters[place], value);
  const bool is_new = options_.are_counters_fresh || (place == kEnergy && frame.is_energy_new) ||
                      (before && *before != value);
  if (is_new) gpu.counters[place].add(value, frame.at);
}

void UseRecorder::take_last_energy(const Frame& frame) {
  if (!frame.is_energy_new || frame.at > summary_.to + kMaxAfterEnd) return;
  const auto gpu = std::ranges::find(summary_.gpus, frame.subject.uuid, &GpuUse::uuid);
  if (gpu == summary_.gpus.end() || gpu->is_part) return;
  CounterUse& energy = gpu->counters[kEnergy];
  if (energy.last_at >= summary_.to) return;  // it was read at the end already
  for (const Value& value : frame.values) {
    const Role& role = roles()[value.metric];
    const bool is_energy = role.kind == Role::Kind::kCounter && role.place == kEnergy;
    if (is_energy) energy.add(value.value, frame.at);
  }
}

void UseRecorder::end(base::Instant at) {
  if (summary_.is_over) return;
  summary_.is_over = true;
  summary_.to = std::max(summary_.from, at);
}

bool UseRecorder::awaits_energy() const {
  return summary_.is_over && std::ranges::any_of(summary_.gpus, [&](const GpuUse& gpu) {
           const CounterUse& energy = gpu.counters[kEnergy];
           return !gpu.is_part && energy.is_known() && energy.last_at < summary_.to;
         });
}

}  // namespace gpu_platform::telemetry
