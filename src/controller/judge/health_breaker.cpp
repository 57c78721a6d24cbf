#include "controller/judge/health_breaker.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace gpu_platform::controller {

namespace {

bool counts(std::optional<model::TaintEffect> effect) {
  return effect && *effect != model::TaintEffect::kAvoided;
}

bool is_out_by_health(const model::Gpu& gpu) {
  const model::Taint* const own = model::find_taint(gpu.taints, model::TaintSource::kHealth);
  return own != nullptr && counts(own->effect);
}

struct Sums {
  std::uint64_t all = 0;
  std::uint64_t out = 0;
};

void add(const model::Gpu& gpu, Sums& sums) {
  ++sums.all;
  sums.out += is_out_by_health(gpu) ? 1 : 0;
}

}  // namespace

std::optional<std::string> refusal_of_breaker(const State& state, model::GpuRef place,
                                              std::optional<model::TaintEffect> effect) {
  const model::Node& own_node = *state.nodes.find(place.node.value);
  const model::Gpu& own = own_node.gpus.at(place.index);
  if (!counts(effect) || is_out_by_health(own)) return std::nullopt;
  Sums of_type;
  Sums of_class;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    const bool is_of_class = node.gpus.size() == own_node.gpus.size();
    for (const model::Gpu& gpu : node.gpus) {
      if (gpu.info.type != own.info.type) continue;
      add(gpu, of_type);
      if (is_of_class) add(gpu, of_class);
    }
  });
  if (of_class.all > 1 && of_class.out + 1 >= of_class.all) {
    return fmt::format("the other {} GPUs of type {} on such nodes are out of service already",
                       of_class.out, own.info.type);
  }
  const std::uint32_t percent = state.policy->health_max_out_percent;
  const bool is_first_of_class = of_class.out == 0;
  if (is_first_of_class || (of_type.out + 1) * 100 <= of_type.all * percent) return std::nullopt;
  return fmt::format(
      "{} of {} GPUs of type {} are out of service already, and health.max_out_percent is {}",
      of_type.out, of_type.all, own.info.type, percent);
}

}  // namespace gpu_platform::controller
