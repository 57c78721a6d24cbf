#include "shims/views/job_amounts.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/units.h"
#include "model/job_spec.h"
#include "shims/text/shared_gres.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

// What the job has on all its nodes, else what it asks for: the request is that of one node.
template <class Amount>
std::optional<std::int64_t> on_all_nodes(const v1::Job& job, Amount held, Amount each) {
  if (held) return static_cast<std::int64_t>(*held);
  if (!each) return std::nullopt;
  return static_cast<std::int64_t>(*each) * node_count(job);
}

}  // namespace

std::string gpus_asked(const v1::Job& job, GpusPer per) {
  constexpr std::string_view kNames[] = {"job", "node", "task", "socket"};
  const std::int64_t total = gpus_of_request(job);
  if (total == 0) return {};
  if (std::string part = shared_gres_of(job.spec()); !part.empty()) {
    return per == GpusPer::kNode ? part : std::string();
  }
  std::string label = label_of(job, "slurm.gpus_per");
  if (label.empty()) label = "node";
  for (const std::string& item : comma_separated(label)) {
    const std::size_t dot = item.find('.');
    if (item.substr(0, dot) != kNames[static_cast<std::size_t>(per)]) continue;
    std::string count = dot == std::string::npos ? std::string() : item.substr(dot + 1);
    if (count.empty())
      count = fmt::format("{}", per == GpusPer::kJob ? total : total / node_count(job));
    const auto& types = job.spec().gpu_types();
    return types.size() == 1 ? fmt::format("gpu:{}:{}", types[0], count)
                             : fmt::format("gpu:{}", count);
  }
  return {};
}

std::int64_t gpus_of_request(const v1::Job& job) {
  const v1::JobSpec& spec = job.spec();
  return std::int64_t{spec.gpus()} * (spec.has_nodes() ? spec.nodes() : 1);
}

std::optional<std::int64_t> cpus_of(const v1::Job& job) {
  return on_all_nodes(job, job.has_cpus() ? std::optional(job.cpus()) : std::nullopt,
                      job.spec().has_cpus() ? std::optional(job.spec().cpus()) : std::nullopt);
}

std::optional<std::int64_t> memory_of(const v1::Job& job) {
  return on_all_nodes(
      job, job.has_memory_bytes() ? std::optional(job.memory_bytes()) : std::nullopt,
      job.spec().has_memory_bytes() ? std::optional(job.spec().memory_bytes()) : std::nullopt);
}

std::int64_t cpus_of_each_node(const v1::Job& job) {
  return std::max<std::int64_t>(1, cpus_of(job).value_or(1) / node_count(job));
}

std::int64_t cpus_of_each_task(const v1::Job& job) {
  return std::max<std::int64_t>(1, cpus_of(job).value_or(1) / task_count(job));
}

std::optional<MemoryShare> memory_share_of(const v1::Job& job) {
  const auto bytes = memory_of(job);
  if (!bytes) return std::nullopt;
  const auto cpus = cpus_of(job);
  if (cpus && label_of(job, "slurm.memory_per") == "cpu") return MemoryShare{*bytes / *cpus, true};
  return MemoryShare{*bytes / node_count(job), false};
}

std::string trackable(const v1::Job& job, std::int64_t billing) {
  std::string text;
  if (const auto cpus = cpus_of(job)) text += fmt::format("cpu={},", *cpus);
  if (const auto memory = memory_of(job)) text += fmt::format("mem={},", slurm_memory(*memory));
  text += fmt::format("node={},billing={}", node_count(job), billing);
  if (std::string part = shared_gres_of(job.spec()); !part.empty()) {
    std::ranges::replace(part, ':', '=');
    text += ",gres/" + part;
  } else if (const auto gpus = gpus_of_request(job); gpus > 0) {
    text += fmt::format(",gres/gpu={}", gpus);
  }
  return text;
}

std::string slurm_memory(std::int64_t bytes) {
  constexpr std::string_view kUnits = "MGTPE";
  auto count = static_cast<double>(bytes / base::kMiB.value());
  std::int64_t whole = bytes / base::kMiB.value();
  std::size_t unit = 0;
  // A larger unit where the number has at most one half in it.
  while (whole >= 1024 && whole % 512 == 0 && unit + 1 < kUnits.size()) {
    count /= 1024;
    ++unit;
    if (whole % 1024 != 0) break;
    whole /= 1024;
  }
  const bool is_whole = count == static_cast<double>(static_cast<std::int64_t>(count));
  return is_whole ? fmt::format("{:.0f}{}", count, kUnits[unit])
                  : fmt::format("{:.2f}{}", count, kUnits[unit]);
}

}  // namespace gpu_platform::shims
