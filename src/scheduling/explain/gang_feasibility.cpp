#include "scheduling/explain/gang_feasibility.h"

#include <string>

#include <fmt/format.h>

#include "scheduling/explain/gpu_offer.h"
#include "scheduling/gang/split.h"
#include "scheduling/placement/place.h"
#include "scheduling/trial.h"

namespace gpu_platform::scheduling {

namespace {

std::unexpected<base::Error> refusal(std::string_view field, std::string why) {
  return base::fail(base::ErrorCode::kFailedPrecondition, fmt::format("{}: {}", field, why),
                    std::string(field));
}

std::string where(const model::ResourceRequest& request) {
  std::string text;
  if (!request.nodelist.empty() || !request.exclude.empty()) text += " of those it may use";
  if (request.within != model::NetworkLevel::kAnywhere) {
    text += fmt::format(" in one {}", to_string(request.within));
  }
  return text;
}

std::string part_text(const model::ResourceRequest& request) {
  return request.gpus == 0 ? std::string("take such a part")
                           : fmt::format("give {} GPU{} of one type each", request.gpus,
                                         request.gpus == 1 ? "" : "s");
}

}  // namespace

void EmptyCluster::add(const model::Node& node) {
  model::Node empty = node;
  empty.state = model::NodeState::kUp;
  empty.cpus_used = 0;
  empty.memory_used = {};
  for (model::Gpu& gpu : empty.gpus) {
    gpu.state = model::GpuState::kAvailable;
    gpu.holders.clear();
    gpu.avoids_unmanaged_processes = false;
  }
  cluster_.update(empty);
}

bool EmptyCluster::fits(const model::ResourceRequest& request) {
  Trial trial(cluster_);
  return place(trial, request).has_value();
}

// More parts only ever need more.
std::uint32_t EmptyCluster::max_parts(const model::ResourceRequest& request) {
  model::ResourceRequest smaller = request;
  std::uint32_t fit = 0;
  std::uint32_t too_many = request.nodes;
  while (too_many - fit > 1) {
    smaller.nodes = fit + (too_many - fit) / 2;
    (fits(smaller) ? fit : too_many) = smaller.nodes;
  }
  return fit;
}

base::Status EmptyCluster::could_ever_fit(const model::ResourceRequest& request) {
  if (fits(request)) return {};
  if (!request.cross_node) {
    const std::uint32_t most = max_parts(request);
    return refusal("nodes",
                   fmt::format("{} asked, at most {} node{}{} could {}", request.nodes, most,
                               most == 1 ? "" : "s", where(request), part_text(request)));
  }
  // The largest number of GPUs that can be had in equal parts.
  model::ResourceRequest smaller = request;
  while (smaller.gpus > 1) {
    --smaller.gpus;
    if (!fits(smaller)) continue;
    return refusal("gpus", fmt::format("{} asked in equal parts on several nodes, the most below "
                                       "that is {}{}",
                                       request.gpus, smaller.gpus, where(request)));
  }
  return refusal("gpus",
                 fmt::format("{} asked, no node{} has such a GPU", request.gpus, where(request)));
}

}  // namespace gpu_platform::scheduling
