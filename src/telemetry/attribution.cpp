#include "telemetry/attribution.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace gpu_platform::telemetry {
namespace {

// One for each holder, and one of what is no holder's at the end.
using Weights = std::vector<std::uint64_t>;

// So that the sum of ten thousand times more fits.
constexpr std::uint64_t kMaxWeight = std::uint64_t{1} << 49;

bool is_any(const Weights& weights) {
  return std::ranges::any_of(weights, [](std::uint64_t weight) { return weight > 0; });
}

// Splits a number in proportion to the weights, of which one is not 0, so that the parts add up to
// it: what is left of rounding down goes to the largest remainders, of equal ones to the first.
std::vector<std::int64_t> split(std::int64_t whole, const Weights& weights) {
  __extension__ using Wide = unsigned __int128;
  const auto sum = std::accumulate(weights.begin(), weights.end(), Wide{0});
  CHECK(sum > 0 && whole >= 0);
  std::vector<std::int64_t> parts;
  std::vector<Wide> remainders;
  std::int64_t left = whole;
  for (const std::uint64_t weight : weights) {
    const Wide share = static_cast<Wide>(whole) * weight;
    parts.push_back(static_cast<std::int64_t>(share / sum));
    remainders.push_back(share % sum);
    left -= parts.back();
  }
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return remainders[i]; });
  for (std::size_t i = 0; left > 0; ++i, --left) ++parts[order[i]];
  return parts;
}

// What the processes of a GPU tell of its holders.
struct Told {
  explicit Told(std::size_t holders)
      : sm(holders + 1), memory(holders + 1), counts(holders), withheld(holders + 1) {}

  Weights sm;      // percent
  Weights memory;  // bytes
  std::vector<std::uint32_t> counts;
  std::vector<bool> withheld;  // the memory of one of its processes
};

Told told_by_processes(const SharedGpu& gpu) {
  const std::size_t others = gpu.holders.size();
  Told told(others);
  const auto index_of = [&](const std::optional<model::AttemptId>& attempt) {
    if (!attempt) return others;
    const auto found =
        std::ranges::lower_bound(gpu.holders, *attempt, {}, &SharedGpu::Holder::attempt);
    const bool is_holder = found != gpu.holders.end() && found->attempt == *attempt;
    return is_holder ? static_cast<std::size_t>(found - gpu.holders.begin()) : others;
  };
  for (const SharedGpu::Process& process : *gpu.processes) {
    const std::size_t i = index_of(process.attempt);
    told.sm[i] += std::min<std::uint32_t>(process.sm_percent.value_or(0), 100);
    const bool is_told = process.memory && process.memory->value() >= 0 &&
                         static_cast<std::uint64_t>(process.memory->value()) <= kMaxWeight;
    if (is_told) told.memory[i] += static_cast<std::uint64_t>(process.memory->value());
    if (!is_told) told.withheld[i] = true;
    if (i != others) ++told.counts[i];
  }
  return told;
}

Weights shares_of(const SharedGpu& gpu) {
  Weights weights;
  for (const SharedGpu::Holder& holder : gpu.holders) {
    weights.push_back(static_cast<std::uint64_t>(std::max<std::int64_t>(holder.share.value(), 0)));
  }
  weights.push_back(0);
  return weights;
}

bool take_turns(const SharedGpu& gpu) {
  return std::ranges::all_of(gpu.holders, [](const SharedGpu::Holder& holder) {
    return holder.mode == model::ShareMode::kTimeSlice;
  });
}

// A job without a process does nothing in its turns.
Weights turns_of(const SharedGpu& gpu, const std::optional<Told>& told) {
  Weights weights = shares_of(gpu);
  for (std::size_t i = 0; told && i < gpu.holders.size(); ++i) {
    if (told->counts[i] == 0) weights[i] = 0;
  }
  return weights;
}

struct Split {
  AttributedBy by = AttributedBy::kIdle;
  std::vector<std::int64_t> parts;  // as Weights
};

std::optional<Split> split_utilization(const SharedGpu& gpu, const std::optional<Told>& told) {
  if (!gpu.utilization_percent) return std::nullopt;
  const std::int64_t whole = *gpu.utilization_percent;
  if (whole == 0)
    return Split{.by = AttributedBy::kIdle,
                 .parts = std::vector<std::int64_t>(gpu.holders.size() + 1)};
  const auto by = [&](AttributedBy basis, const Weights& weights) {
    return Split{basis, split(whole, weights)};
  };
  if (told && is_any(told->sm)) return by(AttributedBy::kProcesses, told->sm);
  if (take_turns(gpu)) {
    const Weights turns = turns_of(gpu, told);
    if (is_any(turns)) return by(AttributedBy::kTurns, turns);
  }
  const bool is_whole =
      told && std::ranges::none_of(told->withheld, [](bool is_withheld) { return is_withheld; });
  if (is_whole && is_any(told->memory)) return by(AttributedBy::kMemory, told->memory);
  return std::nullopt;
}

// Empty: not known.
std::vector<std::int64_t> split_power(const SharedGpu& gpu, const Split& utilization) {
  const Weights shares = shares_of(gpu);
  if (!gpu.power || gpu.power->value() < 0 || !is_any(shares)) return {};
  const bool is_idle = utilization.by == AttributedBy::kIdle;
  const std::int64_t idle =
      is_idle ? gpu.power->value()
              : std::clamp<std::int64_t>(gpu.idle_power.value_or(base::Milliwatts()).value(), 0,
                                         gpu.power->value());
  std::vector<std::int64_t> parts = split(idle, shares);
  if (is_idle) return parts;
  const Weights weights(utilization.parts.begin(), utilization.parts.end());
  const auto working = split(gpu.power->value() - idle, weights);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i] += working[i];
  return parts;
}

}  // namespace

std::string_view to_string(AttributedBy by) {
  switch (by) {
    case AttributedBy::kIdle:
      return "IDLE";
    case AttributedBy::kProcesses:
      return "PROCESSES";
    case AttributedBy::kTurns:
      return "TURNS";
    case AttributedBy::kMemory:
      return "MEMORY";
  }
  return "UNKNOWN";
}

std::vector<Use> attribute(const SharedGpu& gpu) {
  std::optional<Told> told;
  if (gpu.processes) told = told_by_processes(gpu);
  const auto utilization = split_utilization(gpu, told);
  const auto power = utilization ? split_power(gpu, *utilization) : std::vector<std::int64_t>();
  std::vector<Use> uses;
  for (std::size_t i = 0; i < gpu.holders.size(); ++i) {
    Use use{.attempt = gpu.holders[i].attempt};
    if (utilization) {
      use.utilization_percent = static_cast<std::uint32_t>(utilization->parts[i]);
      use.attributed_by = utilization->by;
    }
    if (told && !told->withheld[i]) {
      use.memory = base::Bytes(static_cast<std::int64_t>(told->memory[i]));
    }
    if (!power.empty()) use.power = base::Milliwatts(power[i]);
    uses.push_back(use);
  }
  return uses;
}

std::vector<Value> values_of(const Use& use) {
  static const MetricId kUtilization = metric_named(Of::kUse, kUseUtilization).value();
  static const MetricId kMemory = metric_named(Of::kUse, kUseMemory).value();
  static const MetricId kPower = metric_named(Of::kUse, kUsePower).value();
  static const MetricId kBy = metric_named(Of::kUse, kUseAttributedBy).value();
  std::vector<Value> values;
  if (use.utilization_percent) values.push_back({kUtilization, *use.utilization_percent});
  if (use.memory) values.push_back({kMemory, use.memory->value()});
  if (use.power) values.push_back({kPower, use.power->value()});
  if (use.attributed_by) values.push_back({kBy, static_cast<std::int64_t>(*use.attributed_by)});
  return values;
}

}  // namespace gpu_platform::telemetry
