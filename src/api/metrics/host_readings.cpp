#include <array>

#include "api/metrics/scrape.h"
#include "model/host_metrics.h"

// The readings of hosts, by the table of model/host_metrics.h.

namespace gpu_platform::api {

namespace {

template <class Value>
double number(Value value, model::GpuUnit unit) {
  if constexpr (requires { value.value(); }) {
    return static_cast<double>(value.value());
  } else {
    const double plain = static_cast<double>(value);
    return unit == model::GpuUnit::kPermille ? plain / 1000 : plain;
  }
}

}  // namespace

void add_host_readings(const Scrape& scrape, MetricPage& page) {
  if (scrape.core.readings == nullptr) return;
  std::array<MetricFamily*, model::kHostMetricCount> families{};
  std::size_t place = 0;
  model::for_each_host_metric([&](const auto& row) {
    const bool is_counter = row.exported.kind == model::GpuCount::kCounter;
    families[place++] = &page.family(row.exported.name, row.exported.help,
                                     is_counter ? MetricKind::kCounter : MetricKind::kGauge);
  });
  scrape.snapshot->nodes.for_each([&](std::uint64_t, const model::Node& node) {
    const auto host = scrape.core.readings->latest_host(node.name);
    if (host == nullptr) return;
    const MetricLabels labels{{"Hostname", node.name}};
    std::size_t i = 0;
    model::for_each_host_metric([&](const auto& row) {
      MetricFamily& family = *families[i++];
      const auto& value = (*host).*row.member;
      if (value) family.add(labels, number(*value, row.unit));
    });
  });
}

}  // namespace gpu_platform::api
