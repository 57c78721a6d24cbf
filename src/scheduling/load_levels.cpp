#include "scheduling/load_levels.h"

#include <algorithm>

#include "scheduling/gpu_layout.h"

namespace gpu_platform::scheduling {

namespace {

constexpr std::uint32_t kStep = 50;  // thousandths of availability
constexpr std::uint8_t kNotIdle = 32;

// By the means of its GPUs; one without processes of others counts as unused.
bool is_idle(const model::Node& node, const model::LoadRules& rules) {
  std::uint64_t utilization = 0;
  std::uint64_t memory = 0;  // percent in use, summed
  for (const model::Gpu& gpu : node.gpus) {
    if (!gpu.load) continue;
    utilization += gpu.load->utilization_percent;
    const std::int64_t all = std::max<std::int64_t>(1, gpu.info.memory.value() >> 20);
    const std::int64_t free = std::clamp<std::int64_t>(gpu.load->memory_free.value() >> 20, 0, all);
    memory += static_cast<std::uint64_t>((all - free) * 100 / all);
  }
  const std::uint64_t count = std::max<std::uint64_t>(1, node.gpus.size());
  return utilization < rules.idle_utilization * count && memory < rules.idle_memory * count;
}

}  // namespace

bool is_of_use(const std::optional<base::Bytes>& memory_free,
               const model::ResourceRequest& request) {
  return !memory_free || (!model::is_part(request) && *memory_free >= request.gpu_memory);
}

LoadLevels load_levels_of(const model::Node& node, const model::LoadRules& rules) {
  const bool is_loaded =
      std::ranges::any_of(node.gpus, [](const model::Gpu& gpu) { return gpu.load.has_value(); });
  if (!is_loaded) return {};
  const std::uint8_t base = is_idle(node, rules) ? 0 : kNotIdle;
  LoadLevels loads(std::min(node.gpus.size(), kMaxGpusPerNode));
  for (std::size_t i = 0; i < loads.size(); ++i) {
    loads[i].level = base;
    const auto& load = node.gpus[i].load;
    if (!load) continue;
    const std::uint32_t score = model::availability(*load, node.gpus[i].info.memory, rules);
    loads[i].level =
        static_cast<std::uint8_t>(base + (1000 - std::min(score, 1000U) + kStep - 1) / kStep);
    loads[i].memory_free = load->memory_free;
  }
  return loads;
}

void encode(base::Encoder& out, const LoadLevels& loads) {
  out.u64(loads.size());
  for (const LoadLevel& load : loads) {
    out.u64(load.level);
    out.boolean(load.memory_free.has_value());
    if (load.memory_free) out.i64(load.memory_free->value());
  }
}

}  // namespace gpu_platform::scheduling
