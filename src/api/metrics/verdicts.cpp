#include <map>
#include <utility>

#include "api/metrics/gpu_labels.h"
#include "api/metrics/scrape.h"
#include "os/clock.h"
#include "views/health_records.h"

namespace gpu_platform::api {

void add_verdicts(const Scrape& scrape, MetricPage& page) {
  if (!scrape.core.judge_gpu) return;
  const controller::Snapshot& snapshot = *scrape.snapshot;
  const views::HealthRecords records(snapshot);
  const base::Instant now = os::wall_now();
  std::map<std::pair<health::Action, health::FaultClass>, std::uint64_t> verdicts;
  for_each_gpu(snapshot, [&](const model::Node& node, std::uint32_t, const model::Gpu& gpu) {
    if (gpu.evidence->empty() && node.evidence->empty()) return;
    const health::GpuKey key{node.name, gpu.info.uuid, gpu.info.type};
    const health::GpuVerdict verdict = scrape.core.judge_gpu(snapshot, records, key, now);
    ++verdicts[{verdict.action, verdict.fault}];
  });
  MetricFamily& gpus =
      page.gauge("gpu_platform_gpu_verdicts",
                 "GPUs with evidence, by what they need and where the cause lies.");
  for (const auto& [verdict, count] : verdicts) {
    gpus.add({{"action", label_of(verdict.first)}, {"fault", label_of(verdict.second)}},
             static_cast<double>(count));
  }
}

}  // namespace gpu_platform::api
