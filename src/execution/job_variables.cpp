#include "execution/job_variables.h"
#include "model/job_spec.h"

#include <iterator>

#include <fmt/format.h>

#include "base/parse.h"

namespace gpu_platform::execution {

namespace {

constexpr std::string_view kOurs = "GPU_PLATFORM_";

// A job submitted from within a member is not one: none of these is passed on by chance.
void set_array(Variables& variables, const StartOrder& order) {
  constexpr const char* kNames[] = {"GPU_PLATFORM_ARRAY_ID",    "GPU_PLATFORM_ARRAY_INDEX",
                                    "GPU_PLATFORM_ARRAY_COUNT", "GPU_PLATFORM_ARRAY_MIN",
                                    "GPU_PLATFORM_ARRAY_MAX",   "GPU_PLATFORM_ARRAY_STEP"};
  for (const char* name : kNames) variables.erase(name);
  if (!order.array_id.valid() || !order.spec->array) return;
  const model::ArraySpec& array = *order.spec->array;
  const std::uint64_t values[] = {order.array_id.value, order.array_index,    member_count(array),
                                  least_index(array),   largest_index(array), index_step(array)};
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    variables[kNames[i]] = fmt::format("{}", values[i]);
  }
}

}  // namespace

Variables parse_variables(std::string_view submitted) {
  Variables variables;
  while (!submitted.empty()) {
    const std::size_t end = submitted.find('\0');
    const std::string_view entry = submitted.substr(0, end);
    submitted.remove_prefix(end == std::string_view::npos ? submitted.size() : end + 1);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    const std::string_view name = entry.substr(0, equals);
    if (name.starts_with(kOurs) && name != "GPU_PLATFORM_SERVER") continue;
    variables.emplace(name, entry.substr(equals + 1));
  }
  return variables;
}

void set_identity(Variables& variables, const StartOrder& order) {
  variables["GPU_PLATFORM_JOB_ID"] = fmt::format("{}", order.attempt.job.value);
  variables["GPU_PLATFORM_ATTEMPT"] = fmt::format("{}", order.attempt.attempt);
  variables["GPU_PLATFORM_JOB_NAME"] = order.spec->name;
  set_array(variables, order);
}

void set_share(Variables& variables, const StartOrder& order) {
  const bool has_one = order.nodes.size() == 1 && order.nodes.front().gpus.size() == 1;
  if (!has_one) return;
  const model::GpuGrant& grant = order.nodes.front().gpus.front().grant;
  if (grant.mode == model::ShareMode::kNone) return;
  variables["GPU_PLATFORM_SHARE"] = base::written_share(grant.share);
  variables["GPU_PLATFORM_SHARE_MODE"] = model::to_string(grant.mode);
  variables["GPU_PLATFORM_GPU_MEMORY"] = fmt::format("{}", grant.memory.value());
  variables["GPU_PLATFORM_ISOLATION"] =
      fmt::format("memory={},compute={}", model::to_string(grant.wall.memory),
                  model::to_string(grant.wall.compute));
}

std::vector<std::uint32_t> indices_of(const std::vector<LaunchGpu>& gpus) {
  std::vector<std::uint32_t> indices;
  indices.reserve(gpus.size());
  for (const LaunchGpu& gpu : gpus) indices.push_back(gpu.grant.gpu_index);
  return indices;
}

std::vector<std::string> uuids_of(const std::vector<LaunchGpu>& gpus) {
  std::vector<std::string> uuids;
  uuids.reserve(gpus.size());
  for (const LaunchGpu& gpu : gpus) uuids.push_back(gpu.info.uuid);
  return uuids;
}

std::uint64_t gang_port(model::AttemptId attempt) {
  constexpr std::uint64_t kFirstPort = 20'000;
  constexpr std::uint64_t kPorts = 10'000;
  return kFirstPort + (attempt.job.value * 7 + attempt.attempt) % kPorts;
}

std::vector<std::string> entries_of(const Variables& variables) {
  std::vector<std::string> entries;
  entries.reserve(variables.size());
  for (const auto& [name, value] : variables) entries.push_back(fmt::format("{}={}", name, value));
  return entries;
}

}  // namespace gpu_platform::execution
