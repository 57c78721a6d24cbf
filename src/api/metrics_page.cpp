#include "api/metrics_page.h"

#include <array>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <prometheus/text_serializer.h>

#include "base/letters.h"
#include "model/gpu_metrics.h"
#include "model/states.h"

namespace gpu_platform::api {

namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

constexpr double kMib = 1024.0 * 1024.0;

void gauge(MetricFamily& family, Labels labels, double value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.gauge.value = value;
}

void counter(MetricFamily& family, Labels labels, std::uint64_t value) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.counter.value = static_cast<double>(value);
}

void histogram(MetricFamily& family, Labels labels, const base::Histogram& values) {
  ClientMetric& metric = family.metric.emplace_back();
  metric.label = std::move(labels);
  metric.histogram.sample_count = values.count();
  metric.histogram.sample_sum = values.sum();
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < values.counts().size(); ++i) {
    below += values.counts()[i];
    const bool has_bound = i < values.bounds().size();
    metric.histogram.bucket.push_back(
        {below, has_bound ? values.bounds()[i] : std::numeric_limits<double>::infinity()});
  }
}

template <class State>
std::string label_of(State state) {
  return base::to_lower(to_string(state));
}

double scaled(double value, model::GpuUnit unit) {
  switch (unit) {
    case model::GpuUnit::kBytes:
      return value / kMib;
    case model::GpuUnit::kPermille:
    case model::GpuUnit::kBytesPerSecond:
    case model::GpuUnit::kMilliwatts:
      return value / 1000;
    default:
      return value;
  }
}

template <class Value>
double number(Value value) {
  if constexpr (requires { value.value(); }) {
    return static_cast<double>(value.value());
  } else {
    return static_cast<double>(value);
  }
}

// A family of the page with a value for each GPU.
struct GpuFamily {
  model::ExportedAs exported;
  std::function<std::optional<double>(const model::GpuReading&, const model::GpuInfo&)> value;
  bool is_of_driver = true;  // a GPU that does not answer has none
};

std::optional<double> free_memory(const model::GpuReading& reading, const model::GpuInfo& gpu) {
  if (!reading.memory_used) return std::nullopt;
  const auto taken = *reading.memory_used + reading.memory_reserved.value_or(base::Bytes());
  return scaled(number(gpu.memory - taken), model::GpuUnit::kBytes);
}

// A GPU that does not answer mostly had one just before.
std::optional<double> last_xid(const model::GpuReading& reading, const model::GpuInfo&) {
  if (!reading.xids.empty()) return static_cast<double>(reading.xids.front().xid);
  return reading.problem.empty() ? std::optional(0.0) : std::nullopt;
}

// What the table exports, and two that are no metrics of the driver's.
std::vector<GpuFamily> gpu_families() {
  std::vector<GpuFamily> families;
  model::for_each_gpu_metric([&](const auto& row) {
    if (!row.exported.name.empty()) {
      families.push_back(
          {row.exported,
           [&row](const model::GpuReading& gpu, const model::GpuInfo&) -> std::optional<double> {
             const auto value = row.of(gpu);
             if (!value) return std::nullopt;
             return scaled(number(*value), row.unit);
           }});
    }
    if (row.name == "memory_reserved_bytes") {
      families.push_back({{"DCGM_FI_DEV_FB_FREE", "GPU memory free (in MiB)."}, free_memory});
    }
  });
  families.push_back(
      {.exported = {"DCGM_FI_DEV_XID_ERRORS", "The last XID since the daemon began; 0: none."},
       .value = last_xid,
       .is_of_driver = false});
  return families;
}

Labels labels_of(const model::Node& node, std::uint32_t index) {
  const model::GpuInfo& gpu = node.gpus[index].info;
  return {{"gpu", fmt::to_string(index)},
          {"UUID", gpu.uuid},
          {"pci_bus_id", gpu.pci_address},
          {"device", gpu.minor == model::kUnknownMinor ? "" : fmt::format("nvidia{}", gpu.minor)},
          {"model", gpu.type},
          {"Hostname", node.name}};
}

}  // namespace

MetricsPage::MetricsPage(const std::string& version) {
  MetricFamily& info =
      family("gpu_platform_build_info", "The version of the daemon; always 1.", MetricType::Gauge);
  gauge(info, {{"version", version}}, 1);
}

MetricFamily& MetricsPage::family(std::string name, std::string help, MetricType type) {
  return families_.emplace_back(
      MetricFamily{.name = std::move(name), .help = std::move(help), .type = type, .metric = {}});
}

void MetricsPage::add_counter(std::string name, std::string help, double value) {
  family(std::move(name), std::move(help), MetricType::Counter)
      .metric.emplace_back()
      .counter.value = value;
}

void MetricsPage::add_histogram(std::string name, std::string help, const base::Histogram& values) {
  histogram(family(std::move(name), std::move(help), MetricType::Histogram), {}, values);
}

void MetricsPage::add(const controller::Snapshot& snapshot) {
  const controller::Counts& counts = snapshot.counts;
  MetricFamily& jobs = family("gpu_platform_jobs",
                              "Jobs that have not ended, by state; active: from the order to start "
                              "until the processes have ended.",
                              MetricType::Gauge);
  const std::pair<const char*, std::uint64_t> by_state[] = {{"pending", counts.pending},
                                                            {"queued", counts.queued},
                                                            {"held", counts.held},
                                                            {"suspended", counts.suspended},
                                                            {"active", counts.active}};
  for (const auto& [state, count] : by_state) {
    gauge(jobs, {{"state", state}}, static_cast<double>(count));
  }
  std::map<std::string, double> nodes;
  std::map<std::pair<std::string, std::string>, double> gpus;
  std::map<std::string, double> kept;
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    ++nodes[label_of(node.state)];
    for (const model::Gpu& gpu : node.gpus) {
      ++gpus[{label_of(gpu.state), gpu.info.type}];
      for (const model::Taint& taint : gpu.taints) ++kept[label_of(taint.source)];
    }
  });
  MetricFamily& node_states = family("gpu_platform_nodes", "Nodes by state.", MetricType::Gauge);
  for (const auto& [state, count] : nodes) gauge(node_states, {{"state", state}}, count);
  MetricFamily& gpu_states =
      family("gpu_platform_gpus", "GPUs by state and type.", MetricType::Gauge);
  for (const auto& [key, count] : gpus) {
    gauge(gpu_states, {{"state", key.first}, {"type", key.second}}, count);
  }
  MetricFamily& parties = family("gpu_platform_gpus_kept_from_work",
                                 "GPUs that a party keeps from work, by party; a GPU counts for "
                                 "each of its parties.",
                                 MetricType::Gauge);
  for (const auto& [party, count] : kept) gauge(parties, {{"party", party}}, count);
}

void MetricsPage::add(const controller::Statistics& statistics) {
  add_histogram("gpu_platform_step_inputs", "Commands and news that one step took in together.",
                statistics.inputs);
  add_histogram("gpu_platform_decide_seconds",
                "Time to decide one step, its scheduling cycle included.",
                statistics.decide_seconds);
  add_histogram("gpu_platform_commit_seconds", "Time to make one step durable.",
                statistics.commit_seconds);
  add_histogram("gpu_platform_cycle_seconds",
                "Time of a scheduling cycle that found something changed.",
                statistics.cycle_seconds);
  add_histogram("gpu_platform_cycle_considered_jobs", "Waiting jobs that a cycle looked at.",
                statistics.considered);
  MetricFamily& stages =
      family("gpu_platform_stage_seconds_total",
             "Time spent in each stage of the scheduling cycle.", MetricType::Counter);
  for (const scheduling::Stage stage : scheduling::kStages) {
    ClientMetric& metric = stages.metric.emplace_back();
    metric.label = {{"stage", std::string(to_string(stage))}};
    metric.counter.value = statistics.stage_seconds[static_cast<std::size_t>(stage)];
  }
  add_counter("gpu_platform_jobs_submitted_total",
              "Jobs submitted; the members of an array count one by one.",
              static_cast<double>(statistics.jobs_submitted));
  MetricFamily& started = family("gpu_platform_attempts_started_total",
                                 "Attempts whose start was requested.", MetricType::Counter);
  counter(started, {{"how", "in_order"}}, statistics.attempts_started - statistics.backfilled);
  counter(started, {{"how", "backfill"}}, statistics.backfilled);
  MetricFamily& ended =
      family("gpu_platform_jobs_ended_total", "Jobs that ended, by state.", MetricType::Counter);
  counter(ended, {{"state", "completed"}}, statistics.jobs_completed);
  counter(ended, {{"state", "failed"}}, statistics.jobs_failed);
  counter(ended, {{"state", "cancelled"}}, statistics.jobs_cancelled);
  counter(ended, {{"state", "timed_out"}}, statistics.jobs_timed_out);
  add_counter("gpu_platform_jobs_requeued_total", "Times that a job went back into the queue.",
              static_cast<double>(statistics.jobs_requeued));
  MetricFamily& preemptions =
      family("gpu_platform_preemptions_total", "Decisions to stop jobs for another job, by rule.",
             MetricType::Counter);
  constexpr std::array kRules = {"class", "reclaim", "overdue"};
  static_assert(kRules.size() == model::kPreemptionRules);
  for (std::size_t rule = 0; rule < kRules.size(); ++rule) {
    counter(preemptions, {{"rule", kRules[rule]}}, statistics.preemptions[rule]);
  }
  add_histogram("gpu_platform_job_wait_seconds", "Time from when a job could start to its start.",
                statistics.wait_seconds);
}

void MetricsPage::add(const std::vector<CallMeter::Row>& calls) {
  MetricFamily& answers =
      family("gpu_platform_api_answers_total", "Answers of the interface, by call and HTTP status.",
             MetricType::Counter);
  for (const CallMeter::Row& row : calls) {
    for (const auto& [status, count] : row.answers) {
      counter(answers, {{"call", row.call}, {"status", fmt::to_string(status)}}, count);
    }
  }
  MetricFamily& seconds = family("gpu_platform_api_answer_seconds",
                                 "Time until an answer began, by call.", MetricType::Histogram);
  for (const CallMeter::Row& row : calls) histogram(seconds, {{"call", row.call}}, row.seconds);
}

void MetricsPage::add(const controller::Snapshot& snapshot, const GpuReadingSource& readings) {
  for (const GpuFamily& gpus : gpu_families()) {
    MetricFamily out{.name = std::string(gpus.exported.name),
                     .help = std::string(gpus.exported.help),
                     .type = MetricType::Gauge,
                     .metric = {}};
    snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
      for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
        const auto reading = readings.latest(node.gpus[i].info.uuid);
        if (reading == nullptr || (gpus.is_of_driver && !reading->problem.empty())) continue;
        if (const auto value = gpus.value(*reading, node.gpus[i].info)) {
          gauge(out, labels_of(node, i), *value);
        }
      }
    });
    if (!out.metric.empty()) families_.push_back(std::move(out));
  }
  add_xids(snapshot, readings);
}

void MetricsPage::add_xids(const controller::Snapshot& snapshot, const GpuReadingSource& readings) {
  MetricFamily& xids =
      family("gpu_platform_gpu_xids_total", "XIDs that the driver reported, by GPU and number.",
             MetricType::Counter);
  snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      const auto reading = readings.latest(node.gpus[i].info.uuid);
      if (reading == nullptr) continue;
      for (const auto& [xid, count] : reading->xid_counts) {
        Labels labels = labels_of(node, i);
        labels.push_back({"xid", fmt::to_string(xid)});
        counter(xids, std::move(labels), count);
      }
    }
  });
}

void MetricsPage::add(const Verdicts& verdicts) {
  MetricFamily& gpus =
      family("gpu_platform_gpu_verdicts",
             "GPUs with evidence, by what they need and where the cause lies.", MetricType::Gauge);
  for (const auto& [verdict, count] : verdicts) {
    gauge(gpus, {{"action", label_of(verdict.first)}, {"fault", label_of(verdict.second)}},
          static_cast<double>(count));
  }
}

std::string MetricsPage::text() const {
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families_);
  return std::move(out).str();
}

}  // namespace gpu_platform::api
