#include "shims/views/job_gres.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "shims/text/host_list.h"
#include "shims/text/shared_gres.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

std::string type_on(const std::string& name, const std::vector<NodeView>& nodes) {
  const auto node = std::ranges::find(nodes, name, &NodeView::name);
  const bool has_one = node != nodes.end() && node->gpus.size() == 1;
  return has_one ? node->gpus.front().type : std::string();
}

std::string counted_gpus(const std::string& type, std::size_t count) {
  return type.empty() ? fmt::format("gpu:{}", count) : fmt::format("gpu:{}:{}", type, count);
}

}  // namespace

std::vector<JobPart> parts_of(const v1::Job& job, const std::vector<NodeView>& nodes) {
  const std::vector<std::string> names = node_names(job);
  const auto count = std::max<std::int64_t>(1, std::ssize(names));
  // Of a job that has ended the latest attempt says it.
  const v1::Attempt* attempt = latest_attempt(job);
  const auto& gpus = job.gpus().empty() && attempt != nullptr ? attempt->gpus() : job.gpus();
  std::vector<JobPart> parts;
  for (const std::size_t place : host_order(names)) {
    JobPart part{names[place],
                 cpus_of(job).value_or(0) / count,
                 memory_of(job).value_or(0) / count / base::kMiB.value(),
                 "",
                 {}};
    for (const v1::GpuUse& gpu : gpus) {
      if (gpu.node() == part.node) part.gpus.push_back(gpu.index());
    }
    if (!part.gpus.empty()) {
      part.gpu_type = type_on(part.node, nodes);
      part.shared = shared_gres_of(job.spec());
    }
    parts.push_back(std::move(part));
  }
  return parts;
}

std::string gres_of(const JobPart& part) {
  if (part.gpus.empty()) return {};
  if (!part.shared.empty()) {
    return fmt::format("{}(IDX:{})", part.shared, cli::ranges_of(part.gpus));
  }
  return fmt::format("{}(IDX:{})", counted_gpus(part.gpu_type, part.gpus.size()),
                     cli::ranges_of(part.gpus));
}

std::string gres_of_job(const std::vector<JobPart>& parts) {
  std::map<std::string, std::size_t> by_type;
  for (const JobPart& part : parts) {
    if (!part.shared.empty()) return part.shared;
    if (!part.gpus.empty()) by_type[part.gpu_type] += part.gpus.size();
  }
  std::string text;
  for (const auto& [type, count] : by_type)
    text += (text.empty() ? "" : ",") + counted_gpus(type, count);
  return text.empty() ? "(null)" : text;
}

std::vector<GresLine> gres_lines(const std::vector<JobPart>& parts) {
  std::vector<GresLine> lines;
  const auto key_of = [](const JobPart& part) {
    return std::tuple(part.cpus, part.memory_mib, gres_of(part));
  };
  for (std::size_t i = 0; i < parts.size();) {
    std::vector<std::string> alike;
    const std::size_t first = i;
    for (; i < parts.size() && key_of(parts[i]) == key_of(parts[first]); ++i)
      alike.push_back(parts[i].node);
    const std::int64_t cpus = parts[first].cpus;
    lines.push_back({host_list(std::move(alike)),
                     cpus > 1 ? fmt::format("0-{}", cpus - 1) : std::string("0"),
                     parts[first].memory_mib, gres_of(parts[first])});
  }
  return lines;
}

}  // namespace gpu_platform::shims
