#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/convert/cluster.h"
#include "api/convert/gpu_health.h"
#include "api/convert/gpu_selector.h"
#include "api/convert/json_writer.h"
#include "api/convert/topology.h"

namespace gpu_platform::api {
namespace {

using nlohmann::json;

model::Node node_with(std::size_t gpus) {
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  for (std::size_t i = 0; i < gpus; ++i) {
    model::Gpu gpu;
    gpu.info.uuid = fmt::format("GPU-{}", i);
    node.gpus.push_back(gpu);
  }
  return node;
}

model::GpuProcess process(std::uint32_t pid, bool is_unmanaged) {
  model::GpuProcess out;
  out.pid = pid;
  out.is_unmanaged = is_unmanaged;
  return out;
}

// ---- readings ----

TEST(GpuReadings, ThatWereNotTakenAreNull) {
  v1::GpuHealth out;
  const model::Node node = node_with(1);
  to_proto(node.gpus[0], node, 0, nullptr, out);
  const json document = json::parse(to_json(out));
  for (const auto& [key, value] : document.items()) {
    if (key == "gpu" || value.is_array()) continue;
    EXPECT_TRUE(value.is_null()) << key;
  }
  EXPECT_EQ(document["gpu"]["uuid"], "GPU-0");
}

TEST(GpuReadings, OfZeroAreNotNull) {
  model::GpuReading reading;
  reading.utilization_percent = 0;
  reading.memory_used = base::Bytes();
  reading.ecc_uncorrected = 0;
  reading.slow.emplace().remap_failed = false;
  v1::GpuHealth out;
  const model::Node node = node_with(1);
  to_proto(node.gpus[0], node, 0, &reading, out);
  const json document = json::parse(to_json(out));
  EXPECT_EQ(document["gpu"]["utilization_percent"], 0);
  EXPECT_EQ(document["gpu"]["memory_used_bytes"], 0);
  EXPECT_EQ(document["ecc_uncorrected"], 0);
  EXPECT_EQ(document["remap_failed"], false);
}

TEST(GpuReadings, AreAllShown) {
  model::GpuReading reading;
  reading.at = base::Instant(1'750'000'000'000'000'000);
  reading.problem = "GPU is lost";
  reading.memory_utilization_percent = 41;
  reading.memory_reserved = base::kGiB;
  reading.temperature_c = -3;
  reading.power = base::Milliwatts(700'500);
  reading.power_limit = base::Milliwatts(700'000);
  reading.clock_sm_mhz = 1980;
  reading.clock_memory_mhz = 2619;
  reading.ecc_corrected = 7;
  reading.ecc_uncorrected = 8;
  model::GpuSlowMetrics& slow = reading.slow.emplace();
  slow.remapped_rows_corrected = 1;
  slow.remapped_rows_uncorrected = 2;
  slow.remap_pending = true;
  slow.remap_failed = true;
  slow.pcie_sent_bytes_per_second = 11;
  slow.pcie_received_bytes_per_second = 12;
  slow.pcie_generation = 5;
  slow.pcie_width = 16;
  slow.pcie_replays = 9;
  slow.nvlinks_active = 18;
  reading.memory_temperature_c = 72;
  reading.encoder_percent = 3;
  reading.decoder_percent = 4;
  for (auto* share :
       {&reading.graphics_active, &reading.sm_active, &reading.sm_occupancy, &reading.tensor_active,
        &reading.dram_active, &reading.fp64_active, &reading.fp32_active, &reading.fp16_active}) {
    *share = 125;
  }
  reading.recovery_action = model::RecoveryAction::kGpuReset;
  reading.throttle_reasons = model::kThrottlePowerCap;
  reading.processes = {{4711, "ada", "python", base::kGiB, model::JobId(42), false}};
  reading.xids = {{79, base::Instant(1'750'000'001'000'000'000)}};
  v1::GpuHealth out;
  const model::Node node = node_with(1);
  to_proto(node.gpus[0], node, 0, &reading, out);
  const json document = json::parse(to_json(out));
  // What the judge adds, and why there are none.
  const std::set<std::string> of_others = {"verdict", "withheld", "no_readings"};
  for (const auto& [key, value] : document.items()) {
    EXPECT_EQ(value.is_null(), of_others.contains(key)) << key;
  }
  EXPECT_EQ(document["gpu"]["power_watts"], 700.5);
  EXPECT_EQ(document["gpu"]["temperature_c"], -3);
  EXPECT_EQ(document["read_at"], "2025-06-15T15:06:40.000Z");
  EXPECT_EQ(document["pcie_received_bytes_per_second"], 12);
  EXPECT_EQ(document["remapped_rows_uncorrected"], 2);
  EXPECT_EQ(document["throttle_reasons"], json::array({"POWER_CAP"}));
  EXPECT_EQ(document["tensor_active_percent"], 12.5);
  EXPECT_EQ(document["memory_temperature_c"], 72);
  EXPECT_EQ(document["processes"][0], (json{{"pid", 4711},
                                            {"user", "ada"},
                                            {"command", "python"},
                                            {"memory_bytes", 1 << 30},
                                            {"job", "42"}}));
  EXPECT_EQ(document["xids"][0]["xid"], 79);
}

TEST(GpuReadings, AreFieldsOfTheApiByTheTableOfMetrics) {
  // The rest of the message is no metric of the table.
  std::set<std::string> known{"gpu",       "read_at",  "problem",    "power_limit_watts",
                              "processes", "xids",     "taints",     "verdict",
                              "withheld",  "evidence", "no_readings"};
  model::for_each_gpu_metric([&](const auto& row) {
    if (row.message == model::GpuMessage::kGpuHealth) known.emplace(row.name);
  });
  std::set<std::string> fields;
  for (int i = 0; i < v1::GpuHealth::descriptor()->field_count(); ++i) {
    fields.insert(v1::GpuHealth::descriptor()->field(i)->name());
  }
  EXPECT_EQ(known, fields);
}

TEST(GpuReadings, TellUnmanagedProcessesFromTheProcessesOfJobs) {
  model::GpuReading reading;
  reading.processes = {process(1, false), process(2, true)};
  v1::GpuHealth out;
  const model::Node node = node_with(1);
  to_proto(node.gpus[0], node, 0, &reading, out);
  ASSERT_EQ(out.gpu().unmanaged_processes_size(), 1);
  EXPECT_EQ(out.gpu().unmanaged_processes(0).pid(), 2U);
  EXPECT_FALSE(out.gpu().unmanaged_processes(0).has_user());
  EXPECT_EQ(out.processes_size(), 2);
}

// ---- reasons ----

TEST(GpuReason, IsNullWhenThereIsNothingToSay) {
  const model::Node node = node_with(1);
  v1::Gpu out;
  to_proto(node.gpus[0], node, 0, nullptr, out);
  EXPECT_FALSE(out.has_reason());
  EXPECT_FALSE(out.has_changed_by());
  EXPECT_FALSE(out.has_changed_at());
}

TEST(GpuReason, SaysWhichProcessesACleaningGpuWaitsFor) {
  model::Node node = node_with(1);
  model::Gpu& gpu = node.gpus[0];
  gpu.state = model::GpuState::kCleaning;
  EXPECT_EQ(reason_of(gpu, node, nullptr), "waits until no process of its job is left on it");
  model::GpuReading reading;
  reading.processes = {process(123, false)};
  EXPECT_EQ(reason_of(gpu, node, &reading), "waits until process 123 has left it");
  for (std::uint32_t pid = 1; pid < 6; ++pid) reading.processes.push_back(process(pid, false));
  EXPECT_EQ(reason_of(gpu, node, &reading),
            "waits until processes 123, 1, 2, 3 and 2 more have left it");
  gpu.state = model::GpuState::kInUse;
  EXPECT_EQ(reason_of(gpu, node, &reading), "");
}

TEST(GpuReason, NamesUnmanagedProcessesOnlyWhereTheyKeepWorkAway) {
  model::Node node = node_with(1);
  node.gpus[0].unmanaged_processes = "pid 4711 (python of alice)";
  EXPECT_EQ(reason_of(node.gpus[0], node, nullptr), "");
  model::set_taint(node.gpus[0].taints, {model::TaintSource::kProcesses,
                                         model::TaintEffect::kAvoided,
                                         node.gpus[0].unmanaged_processes,
                                         "node",
                                         {}});
  EXPECT_EQ(reason_of(node.gpus[0], node, nullptr),
            "unmanaged processes: pid 4711 (python of alice)");
}

TEST(GpuReason, IsTheNodesToo) {
  model::Node node = node_with(1);
  node.state = model::NodeState::kDraining;
  node.cause = "new memory";
  EXPECT_EQ(reason_of(node.gpus[0], node, nullptr), "node n1 is DRAINING: new memory");
  node.gpus[0].cause = "a fan is loud";
  model::GpuReading reading;
  reading.problem = "GPU is lost";
  EXPECT_EQ(reason_of(node.gpus[0], node, &reading),
            "a fan is loud; does not answer: GPU is lost; node n1 is DRAINING: new memory");
}

TEST(GpuReason, SaysOnceThatTheGpuDoesNotAnswer) {
  model::Node node = node_with(1);
  model::Gpu& gpu = node.gpus[0];
  model::set_taint(gpu.taints, {model::TaintSource::kHealth,
                                model::TaintEffect::kOut,
                                "does not answer since 2026-11-28T09:52:28Z: GPU is lost",
                                "health",
                                {}});
  model::settle(gpu);
  model::GpuReading reading;
  reading.problem = "GPU is lost";
  EXPECT_EQ(reason_of(gpu, node, &reading),
            "does not answer since 2026-11-28T09:52:28Z: GPU is lost");
}

TEST(GpuReason, ComesWithWhoAndWhen) {
  model::Node node = node_with(1);
  node.gpus[0].state = model::GpuState::kOffline;
  node.gpus[0].cause = "a fan is loud";
  node.gpus[0].changed_by = "root";
  node.gpus[0].changed_at = base::Instant(1'750'000'000'000'000'000);
  v1::Gpu out;
  to_proto(node.gpus[0], node, 0, nullptr, out);
  EXPECT_EQ(out.reason(), "a fan is loud");
  EXPECT_EQ(out.changed_by(), "root");
  EXPECT_EQ(out.changed_at().seconds(), 1'750'000'000);
}

// ---- which GPUs ----

TEST(GpuPlace, IsANodeAndAnIndex) {
  const auto place = parse_gpu_place("dgx-h100-1:7");
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->node, "dgx-h100-1");
  EXPECT_EQ(place->index, 7U);
  EXPECT_EQ(parse_gpu_place("a:b:0")->node, "a:b");
  for (const char* text :
       {"", ":", "n1", "n1:", ":3", "n1:x", "n1:-1", "n1:1x", "n1: 1", "n1:4294967296"}) {
    const auto refused = parse_gpu_place(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_EQ(refused.error().field, "gpu");
  }
}

TEST(GpuChange, NeedsExactlyOneOfItsThreeNames) {
  for (int given = 0; given < 8; ++given) {
    v1::ChangeGpusRequest request;
    if ((given & 1) != 0) request.set_gpu_id("GPU-1");
    if ((given & 2) != 0) request.set_gpu("n1:1");
    if ((given & 4) != 0) request.set_node("n1");
    const auto change = to_model(request, model::GpuAction::kDrain);
    const bool is_one = given == 1 || given == 2 || given == 4;
    ASSERT_EQ(change.has_value(), is_one) << given;
    if (is_one) continue;
    EXPECT_EQ(change.error().code, base::ErrorCode::kInvalidArgument);
    EXPECT_EQ(change.error().message, "gpu_id, gpu, node: give exactly one of them");
  }
}

TEST(GpuChange, MayEndByItselfUnlessItIsOne) {
  v1::ChangeGpusRequest request;
  request.set_node("n1");
  EXPECT_FALSE(to_model(request, model::GpuAction::kDrain)->until.is_set());
  request.mutable_until()->set_seconds(1'800'000'000);
  EXPECT_EQ(to_model(request, model::GpuAction::kDrain)->until,
            base::Instant(1'800'000'000'000'000'000));
  EXPECT_TRUE(to_model(request, model::GpuAction::kTakeOffline)->until.is_set());
  request.mutable_until()->set_seconds(0);
  EXPECT_TRUE(to_model(request, model::GpuAction::kDrain)->until.is_set()) << "it is over";
  request.mutable_until()->set_seconds(1'800'000'000);
  EXPECT_EQ(to_model(request, model::GpuAction::kBringOnline).error().field, "until");
  EXPECT_EQ(to_model(request, model::GpuAction::kReset).error().field, "until");
}

TEST(GpuChange, OfAnOperatorShowsItsEnd) {
  model::Node node = node_with(1);
  const model::Taint drained{model::TaintSource::kOperator,
                             model::TaintEffect::kNoNewWork,
                             "a fan is loud",
                             "ann",
                             {},
                             base::Instant(1'800'000'000'000'000'000)};
  v1::Gpu gpu;
  v1::Node shown;
  to_proto(node.gpus[0], node, 0, nullptr, gpu);
  to_proto(node, shown);
  EXPECT_FALSE(gpu.has_changed_until());
  EXPECT_FALSE(shown.has_changed_until());
  model::set_taint(node.gpus[0].taints, drained);
  model::set_taint(node.taints, drained);
  to_proto(node.gpus[0], node, 0, nullptr, gpu);
  to_proto(node, shown);
  EXPECT_EQ(gpu.changed_until().seconds(), 1'800'000'000);
  EXPECT_EQ(shown.changed_until().seconds(), 1'800'000'000);
}

TEST(GpuChange, SaysWhatWhyAndByForce) {
  v1::ChangeGpusRequest request;
  request.set_gpu("n1:1");
  request.set_reason("a fan is loud");
  request.set_force(true);
  const auto change = to_model(request, model::GpuAction::kTakeOffline);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->which.node, "n1");
  EXPECT_EQ(change->which.index, 1U);
  EXPECT_EQ(change->action, model::GpuAction::kTakeOffline);
  EXPECT_EQ(change->reason, "a fan is loud");
  EXPECT_TRUE(change->force);
  EXPECT_EQ(to_model(request, model::GpuAction::kDrain).error().field, "force");
  EXPECT_EQ(to_model(request, model::GpuAction::kBringOnline).error().field, "force");
  EXPECT_TRUE(to_model(request, model::GpuAction::kReset)->force);
  request.clear_force();
  request.set_when_empty(true);
  EXPECT_TRUE(to_model(request, model::GpuAction::kReset)->when_empty);
  EXPECT_TRUE(to_model(request, model::GpuAction::kCheck)->when_empty);
  EXPECT_EQ(to_model(request, model::GpuAction::kDrain).error().field, "when_empty");
  EXPECT_FALSE(to_model(request, model::GpuAction::kCheck)->deep);
  request.set_deep(true);
  EXPECT_TRUE(to_model(request, model::GpuAction::kCheck)->deep);
  EXPECT_EQ(to_model(request, model::GpuAction::kReset).error().field, "deep");
}

TEST(GpuHealthRequest, NeedsExactlyOneOfItsTwoNames) {
  v1::GetGpuHealthRequest request;
  EXPECT_EQ(to_model(request).error().field, "gpu_id");
  request.set_gpu_id("GPU-1");
  EXPECT_EQ(to_model(request)->uuid, "GPU-1");
  request.set_gpu("n1:1");
  EXPECT_EQ(to_model(request).error().field, "gpu_id");
}

// ---- topology ----

TEST(Topology, HasEachKnownPairOnce) {
  model::Node node = node_with(3);
  node.gpus[1].info.numa_node = 1;
  node.gpus[0].info.pci_address = "00000000:1b:00.0";
  node.topology.numa_nodes = {{0, 1, "0-3", base::kGiB}, {1, -1, "4-7", {}}};
  node.topology.links = {{model::LinkKind::kNvLink, 2, 3}, {}, {model::LinkKind::kSystem, 0, 0}};
  v1::NodeTopology out;
  to_proto(node, out);
  const json document = json::parse(to_json(out));
  EXPECT_EQ(document["links"],
            json::array({{{"a", 0}, {"b", 1}, {"link", "NV2"}, {"nvlink_version", 3}},
                         {{"a", 1}, {"b", 2}, {"link", "SYS"}, {"nvlink_version", nullptr}}}));
  EXPECT_EQ(
      document["numa_nodes"],
      json::array({{{"id", 0}, {"socket", 1}, {"cpus", "0-3"}, {"memory_bytes", 1 << 30}},
                   {{"id", 1}, {"socket", nullptr}, {"cpus", "4-7"}, {"memory_bytes", nullptr}}}));
  EXPECT_TRUE(document["gpus"][0]["numa_node"].is_null());
  EXPECT_EQ(document["gpus"][1]["numa_node"], 1);
  EXPECT_EQ(document["gpus"][0]["pci_address"], "00000000:1b:00.0");
}

TEST(Topology, ThatIsNotKnownHasNoLinks) {
  v1::NodeTopology out;
  to_proto(node_with(4), out);
  EXPECT_EQ(out.links_size(), 0);
  EXPECT_EQ(out.gpus_size(), 4);
}

}  // namespace
}  // namespace gpu_platform::api
