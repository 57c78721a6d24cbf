#include "scheduling/explain/job_places.h"

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "model/job_spec.h"
#include "scheduling/explain/gpu_offer.h"
#include "scheduling/placement/demand.h"
#include "scheduling/quota/quota_ledger.h"
#include "scheduling/quota/subjects.h"

namespace gpu_platform::scheduling {

namespace {

using model::JobPlace;

bool may_run_on(const model::ResourceRequest& request, const model::Node& node) {
  return request.engines.contains(node.engine) && may_use(request, node.id) &&
         model::accepts(request.capacity, node.capacity);
}

std::set<std::string> types_on(const model::ResourceRequest& request, const model::Node& node) {
  std::set<std::string> types;
  for (const model::Gpu& gpu : node.gpus) {
    if (gpu.info.memory < request.gpu_memory && !model::is_part(request)) continue;
    if (!model::may_use_gpu(request, gpu.info.uuid)) continue;
    if (accepts_type(request, gpu.info.type)) types.insert(gpu.info.type);
  }
  return types;
}

// Nothing where it does not fit.
std::optional<JobPlace> without_gpus_on(const model::JobSpec& spec, const model::Node& node) {
  const Demand demand =
      demand_on(spec.request, {.cpus = node.cpus, .memory = node.memory, .gpus = 0});
  if (demand.cpus > node.cpus || demand.memory > node.memory) return std::nullopt;
  return JobPlace{.capacity = node.capacity,
                  .node = node.name,
                  .cpus = std::uint64_t{demand.cpus} * spec.request.nodes,
                  .memory = demand.memory * spec.request.nodes,
                  .limit = spec.time_limit};
}

}  // namespace

std::vector<JobPlace> places_of(const base::PersistentMap<model::Node>& nodes,
                                const model::JobSpec& spec) {
  std::vector<JobPlace> places;
  nodes.for_each([&](std::uint64_t, const model::Node& node) {
    if (!may_run_on(spec.request, node)) return;
    if (spec.request.gpus == 0) {
      if (auto place = without_gpus_on(spec, node)) places.push_back(*std::move(place));
      return;
    }
    for (const std::string& type : types_on(spec.request, node)) {
      places.push_back({.gpu_type = type,
                        .capacity = node.capacity,
                        .node = node.name,
                        .share = gpu_share_of(spec.request),
                        .limit = limit_on_type(spec, type)});
    }
  });
  return places;
}

}  // namespace gpu_platform::scheduling
