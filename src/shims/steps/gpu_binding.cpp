#include "shims/steps/gpu_binding.h"

#include <fmt/format.h>

#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

std::string joined(const std::vector<Gpu>& gpus, std::string Gpu::* part) {
  std::string text;
  for (const Gpu& gpu : gpus) text += (text.empty() ? "" : ",") + gpu.*part;
  return text;
}

}  // namespace

std::vector<Gpu> gpus_of_job(const Variables& variables) {
  const auto indices = comma_separated(variable(variables, "GPU_PLATFORM_GPUS"));
  // Kept apart from CUDA_VISIBLE_DEVICES, which scripts and outer steps change.
  const auto devices = comma_separated(variable(variables, "GPU_PLATFORM_STEP_DEVICES"));
  std::vector<Gpu> gpus;
  for (std::size_t i = 0; i < indices.size(); ++i)
    gpus.push_back({indices[i], devices.size() == indices.size() ? devices[i] : indices[i]});
  return gpus;
}

base::Result<GpuBinding> parse_gpu_binding(std::string_view text) {
  std::string_view rest = text;
  for (const std::string_view prefix : {"verbose,", "v,"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  // Tasks are not bound to CPUs of their own, so each is as close to every GPU.
  if (rest == "none" || rest == "closest") return GpuBinding{};
  const std::size_t colon = rest.find(':');
  const std::string_view kind = rest.substr(0, colon);
  const std::string_view value =
      colon == std::string_view::npos ? std::string_view() : rest.substr(colon + 1);
  GpuBinding binding;
  if (kind == "per_task" || kind == "single") {
    binding.kind = kind == "single" ? GpuBinding::Kind::kSingle : GpuBinding::Kind::kPerTask;
    TRY_ASSIGN(binding.count, parse_number(value, 1));
    return binding;
  }
  if (kind == "map_gpu") {
    binding.kind = GpuBinding::Kind::kMap;
    for (const std::string& place : comma_separated(value)) {
      TRY_ASSIGN(const std::uint32_t number, parse_number(place, 0));
      binding.map.push_back(number);
    }
    if (!binding.map.empty()) return binding;
  }
  return base::invalid(
      {}, fmt::format("'{}' is not supported: write none, closest, per_task:N, single:N or "
                      "map_gpu:N,N,…",
                      text));
}

base::Result<std::vector<Gpu>> gpus_of_task(const GpuBinding& binding, const std::vector<Gpu>& step,
                                            std::uint32_t rank) {
  if (binding.kind == GpuBinding::Kind::kAll || step.empty()) return step;
  if (binding.kind == GpuBinding::Kind::kSingle)
    return std::vector<Gpu>{step[rank / binding.count % step.size()]};
  if (binding.kind == GpuBinding::Kind::kMap) {
    const std::uint32_t place = binding.map[rank % binding.map.size()];
    if (place < step.size()) return std::vector<Gpu>{step[place]};
    return base::invalid({}, fmt::format("map_gpu names GPU {}, and the step has {}, from 0 on",
                                         place, step.size()));
  }
  const std::size_t first = std::size_t{rank} * binding.count;
  if (first + binding.count > step.size()) {
    return base::invalid({}, fmt::format("task {} has no {} GPUs of its own: the step has {}", rank,
                                         binding.count, step.size()));
  }
  const auto begin = step.begin() + static_cast<std::ptrdiff_t>(first);
  return std::vector<Gpu>(begin, begin + binding.count);
}

void add_gpu_variables(Variables& v, const std::vector<Gpu>& step, const std::vector<Gpu>& task) {
  v["SLURM_STEP_GPUS"] = joined(step, &Gpu::index);
  if (step.empty()) v.erase("SLURM_STEP_GPUS");
  v["SLURM_GPUS_ON_NODE"] = fmt::format("{}", step.size());
  v["CUDA_VISIBLE_DEVICES"] = joined(task, &Gpu::device);
}

}  // namespace gpu_platform::shims
