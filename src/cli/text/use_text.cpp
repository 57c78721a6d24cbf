#include "cli/text/use_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cli/text/monitor_json.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {

namespace {

// "87.3 (78-95)".
std::string mean_and_bounds(bool is_known, const v1::MetricUse& metric, int digits) {
  if (!is_known) return {};
  return fmt::format("{:.{}f} ({:.0f}-{:.0f})", metric.mean(), digits, metric.min(), metric.max());
}

std::string memory_cell(const v1::UseOnGpu& gpu) {
  if (!gpu.has_memory_used_bytes()) return {};
  const v1::MetricUse& used = gpu.memory_used_bytes();
  std::string text = readable_size(static_cast<std::int64_t>(used.mean()));
  if (gpu.has_memory_percent()) text += fmt::format(" ({:.0f} %)", gpu.memory_percent().mean());
  return text;
}

std::string active_cell(bool is_known, const v1::MetricUse& metric) {
  return is_known ? fmt::format("{:.1f}", metric.mean()) : std::string();
}

std::string title_of(const v1::AttemptUse& use) {
  std::uint64_t samples = 0;
  for (const v1::UseOnGpu& gpu : use.gpus()) {
    samples = std::max<std::uint64_t>(samples, gpu.samples());
  }
  const std::string until = use.over() ? "" : " so far";
  return fmt::format("{:.1f} s{}, {}, one each {:g} s\n", use.duration_seconds(), until,
                     counted(samples, "reading"), use.interval_seconds());
}

void append_notes(const v1::UseOnGpu& gpu, std::string_view name, std::string& page) {
  std::vector<std::string> held;
  for (const v1::ThrottleTime& time : gpu.throttled()) {
    held.push_back(fmt::format("{} {:.1f} s", time.reason(), time.seconds()));
  }
  if (!held.empty()) {
    page += fmt::format("GPU {}: its clocks were held down: {}\n", name, joined(held, ", "));
  }
  // The first reading may come late, and the last one early.
  const bool lacks_some = gpu.samples() + 2 < gpu.expected_samples();
  if (lacks_some) {
    page += fmt::format("GPU {}: {} of {} readings came\n", name, gpu.samples(),
                        gpu.expected_samples());
  }
  if (gpu.has_attributed_by()) {
    page += fmt::format("GPU {}: the job shares it; its part is found by {}\n", name,
                        as_word(gpu.attributed_by()));
  }
}

// One metric of a document, over all its GPUs.
struct Sample {
  double weight = 0;  // samples
  double sum = 0;
  double variance = 0;  // of the sum
  bool has_noise = true;

  double mean() const { return weight > 0 ? sum / weight : 0; }
  // The standard error of the mean.
  double error() const { return weight > 0 ? std::sqrt(variance) / weight : 0; }
};

std::optional<double> number_at(const Json& object, std::string_view key) {
  if (!object.is_object()) return std::nullopt;
  const auto found = object.find(std::string(key));
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

void add(const std::string& name, const Json& metric, double samples,
         std::map<std::string, Sample>& all) {
  const auto mean = number_at(metric, "mean");
  if (!mean || samples <= 0) return;
  Sample& sample = all[name];
  sample.weight += samples;
  sample.sum += *mean * samples;
  const auto deviation = number_at(metric, "deviation");
  sample.variance += deviation.value_or(0) * deviation.value_or(0) * samples;
  sample.has_noise = sample.has_noise && deviation.has_value() && samples > 1;
}

// By metric. A document of another program has gpu_stats alone, of which no deviation is known.
std::map<std::string, Sample> samples_of(const Json& document) {
  std::map<std::string, Sample> all;
  const Json& extra = object_at(object_at(document, "extra"), "gpus");
  for (const auto& [gpu, values] : extra.items()) {
    for (const auto& [name, metric] : object_at(values, "metrics").items()) {
      add(name, metric, number_at(metric, "samples").value_or(0), all);
    }
  }
  if (!all.empty()) return all;
  const double samples = number_at(document, "sample_count").value_or(0);
  for (const auto& [gpu, stats] : object_at(document, "gpu_stats").items()) {
    if (!stats.is_object()) continue;
    for (const auto& [name, metric] : stats.items()) add(name, metric, samples, all);
  }
  return all;
}

struct Difference {
  std::string metric;
  Sample a, b;

  double value() const { return b.mean() - a.mean(); }
  std::optional<double> noise() const {
    if (!a.has_noise || !b.has_noise) return std::nullopt;
    return std::sqrt(a.error() * a.error() + b.error() * b.error());
  }
  // In 19 of 20 cases chance alone makes a smaller difference.
  std::optional<bool> is_within_noise() const {
    const auto error = noise();
    if (!error) return std::nullopt;
    return std::abs(value()) <= 1.96 * *error;
  }
};

std::vector<Difference> differences(const Json& a, const Json& b) {
  const std::map<std::string, Sample> of_a = samples_of(a);
  const std::map<std::string, Sample> of_b = samples_of(b);
  std::vector<Difference> all;
  for (const auto& [metric, sample] : of_a) {
    const auto other = of_b.find(metric);
    if (other != of_b.end()) all.push_back({metric, sample, other->second});
  }
  return all;
}

std::string_view verdict_of(const Difference& difference) {
  const auto is_noise = difference.is_within_noise();
  if (!is_noise) return "not known";
  return *is_noise ? "within noise" : "differs";
}

std::string number_text(double value) {
  return std::abs(value) >= 1e6 ? fmt::format("{:.4g}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

std::string energy_text(double joules) {
  if (joules < 1000) return fmt::format("{:.0f} J", joules);
  return joules < 1e6 ? fmt::format("{:.1f} kJ", joules / 1e3)
                      : fmt::format("{:.1f} MJ", joules / 1e6);
}

std::string use_page(const v1::AttemptUse& use, const TableStyle& style) {
  Table table({{.title = "GPU"},
               {.title = "MODEL", .cut_to = 12, .expendable = 1},
               {"UTIL %", Column::Align::kRight},
               {"MEMORY", Column::Align::kRight},
               {"TEMP C", Column::Align::kRight, std::nullopt, 3},
               {"POWER W", Column::Align::kRight, std::nullopt, 2},
               {"SM %", Column::Align::kRight, std::nullopt, 4},
               {"TENSOR %", Column::Align::kRight, std::nullopt, 5},
               {"ENERGY", Column::Align::kRight, std::nullopt, 6}});
  const std::vector<std::string> names = gpu_names(use);
  std::string notes;
  for (int i = 0; i < use.gpus_size(); ++i) {
    const v1::UseOnGpu& gpu = use.gpus(i);
    const std::string& name = names[static_cast<std::size_t>(i)];
    table.add({name, gpu.model(),
               mean_and_bounds(gpu.has_utilization_percent(), gpu.utilization_percent(), 1),
               memory_cell(gpu), mean_and_bounds(gpu.has_temperature_c(), gpu.temperature_c(), 0),
               mean_and_bounds(gpu.has_power_watts(), gpu.power_watts(), 0),
               active_cell(gpu.has_sm_active_percent(), gpu.sm_active_percent()),
               active_cell(gpu.has_tensor_active_percent(), gpu.tensor_active_percent()),
               gpu.has_energy_joules() ? energy_text(gpu.energy_joules()) : std::string()});
    append_notes(gpu, harmless(name), notes);
  }
  return title_of(use) + table.render(style) + notes;
}

std::string use_page(const v1::JobUse& use, const TableStyle& style) {
  std::string page;
  for (const v1::AttemptUse& attempt : use.attempts()) {
    if (use.attempts_size() > 1) page += fmt::format("attempt {}: ", attempt.attempt());
    page += use_page(attempt, style);
  }
  return page;
}

std::string gpu_use_text(const v1::JobGpuUse& use) {
  std::vector<std::string> parts;
  if (use.has_utilization_percent()) {
    parts.push_back(fmt::format("GPU {:.0f} %", use.utilization_percent()));
  }
  if (use.has_memory_percent()) {
    parts.push_back(fmt::format("GPU memory {:.0f} % ({} at most on one)", use.memory_percent(),
                                readable_size(static_cast<std::int64_t>(use.peak_memory_bytes()))));
  }
  if (use.has_energy_joules()) parts.push_back(energy_text(use.energy_joules()));
  return joined(parts, ", ");
}

std::string diff_page(const Json& a, const Json& b, const TableStyle& style) {
  Table table({{.title = "METRIC"},
               {"A", Column::Align::kRight},
               {"B", Column::Align::kRight},
               {"DIFFERENCE", Column::Align::kRight},
               {"NOISE", Column::Align::kRight},
               {.title = "VERDICT"}});
  for (const Difference& difference : differences(a, b)) {
    const auto noise = difference.noise();
    table.add(
        {difference.metric, number_text(difference.a.mean()), number_text(difference.b.mean()),
         fmt::format("{}{}", difference.value() > 0 ? "+" : "", number_text(difference.value())),
         noise ? fmt::format("+-{}", number_text(1.96 * *noise)) : std::string(),
         std::string(verdict_of(difference))});
  }
  return table.empty() ? std::string() : table.render(style);
}

Json diff_json(const Json& a, const Json& b) {
  Json rows = Json::array();
  for (const Difference& difference : differences(a, b)) {
    const auto noise = difference.noise();
    const auto is_noise = difference.is_within_noise();
    rows.push_back(Json{{"metric", difference.metric},
                        {"a", difference.a.mean()},
                        {"b", difference.b.mean()},
                        {"difference", difference.value()},
                        {"noise", noise ? Json(1.96 * *noise) : Json()},
                        {"within_noise", is_noise ? Json(*is_noise) : Json()}});
  }
  return Json{{"metrics", std::move(rows)}};
}

}  // namespace gpu_platform::cli
