#include "health/breaker.h"

#include <algorithm>

#include <fmt/format.h>

namespace gpu_platform::health {

namespace {

constexpr std::string_view kAdvice =
    "nothing more is done by itself; look at 'gpu-platform health', then drain what is sick";

}  // namespace

Outage outage_of(Action action) {
  return action >= Action::kDrain     ? Outage::kOut
         : action == Action::kDegrade ? Outage::kDegraded
                                      : Outage::kNone;
}

bool is_silent(std::span<const model::Evidence> evidence) {
  const auto lasts = [&](model::EvidenceKind kind) {
    const auto latest =
        std::find_if(evidence.rbegin(), evidence.rend(),
                     [&](const model::Evidence& piece) { return piece.kind == kind; });
    return latest != evidence.rend() && !latest->is_over;
  };
  return lasts(model::EvidenceKind::kLost) || lasts(model::EvidenceKind::kNotAnswering);
}

bool is_proven(std::span<const model::Evidence> evidence) {
  if (is_silent(evidence)) return true;
  const auto is_trial = [](const model::Evidence& piece) {
    if (piece.kind == model::EvidenceKind::kCleared) return true;
    const bool is_of_kind =
        piece.kind == model::EvidenceKind::kReset || piece.kind == model::EvidenceKind::kCheck;
    return is_of_kind && !model::is_refused_trial(piece);
  };
  const auto latest = std::find_if(evidence.rbegin(), evidence.rend(), is_trial);
  return latest != evidence.rend() && model::is_failed_trial(*latest);
}

bool needs_breaker(const BreakerGpu& gpu, Outage wanted) {
  if (wanted <= gpu.outage) return false;
  return wanted != Outage::kOut || !gpu.is_proven;
}

void count(const BreakerGpu& gpu, Outage wanted, BreakerCounts& counts) {
  ++counts.of_type;
  if (gpu.is_of_class) ++counts.of_class;
  if (gpu.outage == Outage::kNone || gpu.is_proven) return;
  if (gpu.outage >= wanted) ++counts.out_of_type;
  if (gpu.is_of_class) ++counts.out_of_class;
}

std::size_t max_out(const BreakerLimits& limits, std::size_t of_type) {
  const std::size_t least = of_type >= limits.many ? limits.at_least_of_many : limits.at_least;
  const std::size_t most = std::max(least, of_type * limits.percent / 100);
  return limits.at_most != 0 ? std::min(most, limits.at_most) : most;
}

BreakerAnswer ask_breaker(const BreakerLimits& limits, const BreakerCounts& counts,
                          std::string_view gpu_type) {
  const std::size_t most = max_out(limits, counts.of_type);
  const std::string_view type = gpu_type.empty() ? std::string_view("GPUs") : gpu_type;
  if (counts.out_of_type + 1 > most) {
    return {false, fmt::format("health keeps {} of {} {} out, and at most {} may be: {}",
                               counts.out_of_type, counts.of_type, type, most, kAdvice)};
  }
  // One GPU alone is the whole of its class: it may go.
  if (counts.of_class > 1 && counts.out_of_class + 1 >= counts.of_class) {
    return {false, fmt::format("it is the last of {} GPUs of its node class: {}", counts.of_class,
                               kAdvice)};
  }
  return {};
}

}  // namespace gpu_platform::health
