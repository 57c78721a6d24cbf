// How long an alert takes from the reading to the wire, on loopback:
//   alert_bench
// Prints the median and the longest of 200 alerts that begin and end, one after the other: from the
// reading, when the probe has delivered it, until a webhook has the whole request. The message is
// on disk by then; data lies under the build folder, on its disk, and syncing is on. The rule wants
// no time (for: 0s), and the message waits for no others (group_wait: 0s).

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "bench_directory.h"
#include "bin/alert_part.h"
#include "http/testing/scripted_server.h"
#include "os/clock.h"
#include "os/testing/eventually.h"

namespace gpu_platform::bench {
namespace {

constexpr int kAlerts = 200;
constexpr std::int32_t kHotC = 88;
constexpr std::int32_t kCoolC = 40;

config::Configuration site_with(const std::string& url) {
  config::Configuration site;
  site.alert_group_wait = {};
  site.alert_group_interval = {};
  config::AlertRule rule;
  rule.name = "GpuHot";
  rule.hold = base::Duration();
  site.alert_rules.push_back(rule);
  config::AlertChannel channel;
  channel.name = "hook";
  channel.kind = "webhook";
  channel.url = url;
  site.alert_channels.push_back(channel);
  config::AlertRoute route;
  route.rules = {"GpuHot"};
  route.channels = {"hook"};
  site.alert_routes.push_back(route);
  return site;
}

std::shared_ptr<const controller::Snapshot> one_gpu() {
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  model::Gpu gpu;
  gpu.info.uuid = "GPU-0";
  node.gpus.push_back(gpu);
  controller::Snapshot snapshot;
  snapshot.nodes.put(1, node);
  return std::make_shared<const controller::Snapshot>(std::move(snapshot));
}

void print(const char* what, std::vector<std::int64_t> times_ns) {
  std::ranges::sort(times_ns);
  fmt::print("{}: median {:.2f} ms, longest {:.2f} ms\n", what,
             static_cast<double>(times_ns[times_ns.size() / 2]) / 1e6,
             static_cast<double>(times_ns.back()) / 1e6);
}

void run() {
  std::vector<std::int64_t> arrived_ns;  // of the server's thread until the request is counted
  arrived_ns.reserve(2UL * kAlerts);
  const http::ScriptedServer server([&](const http::SeenRequest& /*request*/, http::Wire& wire) {
    arrived_ns.push_back(os::monotonic_ns());
    wire.answer(200, "");
  });
  const BenchDirectory directory;
  std::atomic<std::int32_t> heat = kCoolC;
  bin::AlertPart::Options options;
  options.data_dir = directory.path();
  options.snapshot = [snapshot = one_gpu()] { return snapshot; };
  options.reading_of = [&](std::string_view) {
    model::GpuReading reading;
    reading.at = os::wall_now();
    reading.temperature_c = heat.load();
    return std::make_shared<const model::GpuReading>(std::move(reading));
  };
  const auto part = bin::AlertPart::open(std::move(options), site_with(server.address()));
  CHECK(part.has_value());
  (*part)->start();
  std::uint64_t sent = 0;
  const auto time_of = [&](std::int32_t celsius) {
    telemetry::Frame frame;
    frame.subject = {telemetry::Of::kGpu, "n1", "GPU-0", {}};
    const std::int64_t begin_ns = os::monotonic_ns();
    heat = celsius;
    (*part)->take(std::make_shared<const std::vector<telemetry::Frame>>(1, frame));
    ++sent;
    CHECK(os::eventually([&] { return (*part)->channels().at(0).sent == sent; }));
    return arrived_ns.back() - begin_ns;
  };
  std::vector<std::int64_t> begin_ns;
  std::vector<std::int64_t> end_ns;
  for (int number = 0; number < kAlerts; ++number) {
    begin_ns.push_back(time_of(kHotC));
    end_ns.push_back(time_of(kCoolC));
  }
  print("an alert, from the reading until the server has it", begin_ns);
  print("its end", end_ns);
}

}  // namespace
}  // namespace gpu_platform::bench

int main() {
  gpu_platform::bench::run();
  return 0;
}
