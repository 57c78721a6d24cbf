#include <map>
#include <string>
#include <utility>

#include "api/metrics/gpu_labels.h"
#include "api/metrics/scrape.h"
#include "model/engine_kind.h"
#include "model/states.h"

// Jobs, nodes and GPUs by state.

namespace gpu_platform::api {

namespace {

void add_jobs(const controller::Counts& counts, MetricPage& page) {
  MetricFamily& jobs = page.gauge("gpu_platform_jobs",
                                  "Jobs that have not ended, by state; active: from the order to "
                                  "start until the processes have ended.");
  const std::pair<std::string_view, std::uint64_t> by_state[] = {{"pending", counts.pending},
                                                                 {"queued", counts.queued},
                                                                 {"held", counts.held},
                                                                 {"suspended", counts.suspended},
                                                                 {"active", counts.active}};
  for (const auto& [state, count] : by_state) {
    jobs.add({{"state", state}}, static_cast<double>(count));
  }
}

}  // namespace

void add_states(const Scrape& scrape, MetricPage& page) {
  add_jobs(scrape.snapshot->counts, page);
  std::map<std::string, double> nodes;
  std::map<std::pair<std::string, std::string>, double> engines;
  std::map<std::pair<std::string, std::string>, double> gpus;
  std::map<std::string, double> kept;
  double unmanaged = 0;
  // Each state is there from the start: a rule sees the first node that is lost as a change.
  for (std::size_t state = 0; state < model::kNodeStates; ++state) {
    nodes[label_of(static_cast<model::NodeState>(state))] = 0;
  }
  scrape.snapshot->nodes.for_each([&](std::uint64_t, const model::Node& node) {
    ++nodes[label_of(node.state)];
    ++engines[{std::string(to_string(node.engine)), label_of(node.state)}];
    for (const model::Gpu& gpu : node.gpus) {
      ++gpus[{label_of(gpu.state), gpu.info.type}];
      for (const model::Taint& taint : gpu.taints) ++kept[label_of(taint.source)];
      unmanaged += gpu.unmanaged_processes.empty() ? 0 : 1;
    }
  });
  MetricFamily& node_states = page.gauge("gpu_platform_nodes", "Nodes by state.");
  for (const auto& [state, count] : nodes) node_states.add({{"state", state}}, count);
  MetricFamily& engine_nodes = page.gauge("gpu_platform_engine_nodes",
                                          "Nodes by the engine that runs their jobs, and state.");
  for (const auto& [key, count] : engines) {
    engine_nodes.add({{"engine", key.first}, {"state", key.second}}, count);
  }
  MetricFamily& gpu_states = page.gauge("gpu_platform_gpus", "GPUs by state and type.");
  for (const auto& [key, count] : gpus) {
    gpu_states.add({{"state", key.first}, {"type", key.second}}, count);
  }
  MetricFamily& parties =
      page.gauge("gpu_platform_gpus_kept_from_work",
                 "GPUs that a party keeps from work, by party; a GPU counts for "
                 "each of its parties.");
  for (const auto& [party, count] : kept) parties.add({{"party", party}}, count);
  page.gauge("gpu_platform_gpus_with_unmanaged_processes",
             "GPUs with processes that belong to no job.")
      .add(unmanaged);
}

}  // namespace gpu_platform::api
