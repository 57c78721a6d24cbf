#include <map>
#include <string>
#include <utility>

#include "api/metrics/gpu_labels.h"
#include "api/metrics/scrape.h"
#include "model/capacity.h"
#include "model/engine_kind.h"
#include "model/job_spec.h"
#include "model/states.h"

// Each GPU from the platform's view, and all GPUs together: what is held, beside what is used.

namespace gpu_platform::api {

namespace {

// A GPU that is held and whose kernels run less than this counts as idle.
constexpr std::uint32_t kIdlePercent = 5;

struct Sum {
  double in_service = 0;
  double held = 0;
};

// Of the GPUs of a type that answer.
struct Use {
  double gpus = 0;
  double percent = 0;
  double held_and_idle = 0;
};

void add_sums(const std::map<std::pair<std::string, std::string>, Sum>& sums, MetricPage& page) {
  MetricFamily& in_service =
      page.gauge("gpu_platform_gpus_in_service",
                 "GPUs that take work, by type and the capacity of their node.");
  MetricFamily& held = page.gauge("gpu_platform_gpus_held",
                                  "GPUs that jobs hold, a part as a fraction, by type and the "
                                  "capacity of their node.");
  std::map<std::string, Sum> types;
  for (const auto& [key, sum] : sums) {
    const MetricLabels labels{{"type", key.first}, {"capacity", key.second}};
    in_service.add(labels, sum.in_service);
    held.add(labels, sum.held);
    types[key.first].in_service += sum.in_service;
    types[key.first].held += sum.held;
  }
  MetricFamily& ratio = page.gauge("gpu_platform_gpu_allocation_ratio",
                                   "The share of the GPUs in service that jobs hold, by type.");
  for (const auto& [type, sum] : types) {
    if (sum.in_service > 0) ratio.add({{"type", type}}, sum.held / sum.in_service);
  }
}

void add_uses(const std::map<std::string, Use>& uses, MetricPage& page) {
  MetricFamily& ratio = page.gauge(
      "gpu_platform_gpu_utilization_ratio",
      "The mean share of time in which a kernel runs, of all GPUs that answer, by type.");
  MetricFamily& idle = page.gauge("gpu_platform_gpus_held_and_idle",
                                  "GPUs that jobs hold and that are used less than 5 % at this "
                                  "moment, by type.");
  for (const auto& [type, use] : uses) {
    ratio.add({{"type", type}}, use.percent / use.gpus / 100);
    idle.add({{"type", type}}, use.held_and_idle);
  }
}

// The GPUs that are shared in one way.
struct SharedGpus {
  double gpus = 0;
  double parts = 0;
  double held = 0;
};

}  // namespace

void add_gpu_states(const Scrape& scrape, MetricPage& page) {
  const bool lower_hostname = scrape.core.metrics.lower_hostname;
  MetricFamily& info = page.gauge("gpu_platform_gpu_info", "A GPU of the inventory; always 1.");
  MetricFamily& states =
      page.gauge("gpu_platform_gpu_state", "The state of a GPU, in the label; always 1.");
  MetricFamily& held =
      page.gauge("gpu_platform_gpu_held_ratio", "The share of the GPU that jobs hold (0 to 1).");
  std::map<std::pair<std::string, std::string>, Sum> sums;
  std::map<std::string, Use> uses;
  for_each_gpu(*scrape.snapshot, [&](const model::Node& node, std::uint32_t i,
                                     const model::Gpu& gpu) {
    const MetricLabels labels = labels_of(node, i, lower_hostname);
    const std::string capacity(to_string(node.capacity));
    info.add(MetricLabels(labels).add("capacity", capacity).add("engine", to_string(node.engine)),
             1);
    states.add(labels.with("state", label_of(gpu.state)), 1);
    const double share = in_gpus(held_of(gpu));
    held.add(labels, share);
    Sum& sum = sums[{gpu.info.type, capacity}];
    sum.in_service += model::is_in_service(gpu) ? 1 : 0;
    sum.held += share;
    if (scrape.core.readings == nullptr) return;
    const auto reading = scrape.core.readings->latest(gpu.info.uuid);
    if (reading == nullptr || !reading->problem.empty() || !reading->utilization_percent) return;
    Use& use = uses[gpu.info.type];
    use.gpus += 1;
    use.percent += *reading->utilization_percent;
    use.held_and_idle += share > 0 && *reading->utilization_percent < kIdlePercent ? 1 : 0;
  });
  add_sums(sums, page);
  add_uses(uses, page);
}

void add_gpu_parts(const Scrape& scrape, MetricPage& page) {
  std::map<std::string, SharedGpus> modes;
  for (const model::ShareMode mode : {model::ShareMode::kTimeSlice, model::ShareMode::kMps}) {
    modes[label_of(mode)] = {};
  }
  for_each_gpu(*scrape.snapshot, [&](const model::Node&, std::uint32_t, const model::Gpu& gpu) {
    if (gpu.holders.empty() || gpu.holders.front().share >= base::kWholeGpu) return;
    SharedGpus& parts = modes[label_of(gpu.holders.front().mode)];
    parts.gpus += 1;
    parts.parts += static_cast<double>(gpu.holders.size());
    parts.held += in_gpus(held_of(gpu));
  });
  MetricFamily& gpus =
      page.gauge("gpu_platform_shared_gpus", "GPUs that jobs share, by the way of sharing.");
  MetricFamily& parts =
      page.gauge("gpu_platform_gpu_parts", "Parts of GPUs that jobs hold, by the way of sharing.");
  MetricFamily& held =
      page.gauge("gpu_platform_gpu_parts_held", "The same parts together, in GPUs.");
  for (const auto& [mode, sum] : modes) {
    gpus.add({{"mode", mode}}, sum.gpus);
    parts.add({{"mode", mode}}, sum.parts);
    held.add({{"mode", mode}}, sum.held);
  }
}

void add_gpu_jobs(const Scrape& scrape, MetricPage& page) {
  const config::MetricJobs which = scrape.core.metrics.jobs;
  if (which == config::MetricJobs::kNone) return;
  // Not "job": Prometheus gives that label to each target, and renames the one of the page.
  MetricFamily& family = page.gauge("gpu_platform_gpu_job_info",
                                    "A GPU, or a part of it, that a job holds; always 1.");
  const model::View view = scrape.reader.view_of(scrape.caller);
  for_each_gpu(
      *scrape.snapshot, [&](const model::Node& node, std::uint32_t i, const model::Gpu& gpu) {
        for (const model::GpuHolder& holder : gpu.holders) {
          const model::Job* const job = scrape.snapshot->jobs.find(holder.attempt.job.value);
          if (job == nullptr) continue;
          const model::JobSpec& spec = *job->spec;
          if (which == config::MetricJobs::kVisible && !view.sees(model::Sight::kJobs, spec))
            continue;
          family.add({{"gpu", std::to_string(i)},
                      {"UUID", gpu.info.uuid},
                      {"Hostname", node.name},
                      {"job_id", model::name_of(*job)},
                      {"job_name", spec.name},
                      {"user", spec.user},
                      {"team", spec.team},
                      {"sharing", label_of(holder.mode)}},
                     1);
        }
      });
}

}  // namespace gpu_platform::api
