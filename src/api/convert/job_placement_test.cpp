#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "api/convert/job.h"
#include "api/convert/job_spec.h"
#include "api/convert/json_writer.h"
#include "model/job_spec.h"

// These tests check where a job's GPUs may lie, where they do lie, and what the API says about it.

namespace gpu_platform::api {
namespace {

using nlohmann::json;
using Indices = std::vector<std::uint32_t>;

// Four GPUs on two sockets: PIX between 0 and 1, two NVLinks between 2 and 3, SYS across.
model::Node board() {
  model::Node node;
  node.id = model::NodeId(1);
  node.name = "n1";
  node.gpus.resize(4);
  node.topology.numa_nodes = {{.id = 0, .socket = 0}, {.id = 1, .socket = 1}};
  node.topology.links.assign(6, {.kind = model::LinkKind::kSystem});
  node.topology.links[model::link_index(4, 0, 1)] = {.kind = model::LinkKind::kPix};
  node.topology.links[model::link_index(4, 2, 3)] = {.kind = model::LinkKind::kNvLink,
                                                     .nvlinks = 2};
  for (std::size_t i = 0; i < 4; ++i) {
    node.gpus[i].info.numa_node = static_cast<std::int32_t>(i / 2);
  }
  return node;
}

json job_on(const model::Node& node, const Indices& gpus, model::PlacementLevel level,
            model::JobState state = model::JobState::kRunning) {
  model::Job job;
  job.id = model::JobId(7);
  job.state = state;
  job.spec = std::make_shared<const model::JobSpec>();
  model::Attempt attempt{.number = 1};
  model::NodeAllocation part{.node = model::NodeId(1), .level = level};
  for (const std::uint32_t gpu : gpus) part.grants.push_back({gpu, base::kWholeGpu, {}});
  attempt.allocation.nodes = {part};
  job.attempts = {attempt};
  Nodes nodes;
  nodes.put(node.id.value, node);
  v1::Job out;
  to_proto(job, nodes, out);
  return json::parse(to_json(out));
}

json links_of(const json& job) {
  json links = json::array();
  for (const json& gpu : job["gpus"]) links.push_back(gpu["link"]);
  return links;
}

constexpr auto kOneNumaNode = model::PlacementLevel::kOneNumaNode;
constexpr auto kAcrossSockets = model::PlacementLevel::kAcrossSockets;

TEST(GpuLinkOfJobs, IsTheSlowestToTheJobsOthers) {
  EXPECT_EQ(links_of(job_on(board(), {2, 3}, kOneNumaNode)), json::array({"NV2", "NV2"}));
  EXPECT_EQ(links_of(job_on(board(), {0, 1}, kOneNumaNode)), json::array({"PIX", "PIX"}));
  EXPECT_EQ(links_of(job_on(board(), {1, 2, 3}, kAcrossSockets)),
            json::array({"SYS", "SYS", "SYS"}));
}

TEST(GpuLinkOfJobs, IsNullForOneGpuAndWhereItIsNotKnown) {
  EXPECT_EQ(links_of(job_on(board(), {2}, kOneNumaNode)), json::array({nullptr}));
  model::Node untold = board();
  untold.topology.links[model::link_index(4, 0, 1)] = {};
  EXPECT_EQ(links_of(job_on(untold, {0, 1}, kOneNumaNode)), json::array({nullptr, nullptr}));
  // Index 5 is on the node no more.
  EXPECT_EQ(links_of(job_on(board(), {0, 5}, kOneNumaNode)), json::array({nullptr, nullptr}));
}

TEST(GpusOfJobs, AreThoseOfTheStartWhateverTheirNumbersNameNow) {
  model::Job job;
  job.id = model::JobId(7);
  job.state = model::JobState::kCompleted;
  job.spec = std::make_shared<const model::JobSpec>();
  model::Attempt attempt{.number = 1};
  attempt.allocation.nodes = {{.node = model::NodeId(1), .grants = {{0, base::kWholeGpu, {}}}}};
  Nodes nodes;
  model::Node node = board();
  node.gpus[0].info.uuid = "GPU-first";
  node.gpus[0].info.model = "Tesla T4";
  nodes.put(1, node);
  const auto shown = [&] {
    job.attempts = {attempt};
    v1::Job out;
    to_proto(job, nodes, out);
    return json::parse(to_json(out));
  };
  // Archived by a version that kept numbers alone.
  EXPECT_EQ(shown()["gpus"][0]["uuid"], "GPU-first");
  attempt.granted = model::granted_of(attempt.allocation, nodes);
  node.gpus[0].info.uuid = "GPU-second";
  nodes.put(1, node);
  EXPECT_EQ(shown()["gpus"][0]["uuid"], "GPU-first");
  EXPECT_EQ(shown()["gpus"][0]["model"], "Tesla T4");
  EXPECT_EQ(shown()["attempts"][0]["nodes"], json::array({"n1"}));
  nodes.erase(1);
  EXPECT_EQ(shown()["gpus"][0]["uuid"], "GPU-first");
  EXPECT_EQ(shown()["gpus"][0]["node"], "n1");
}

TEST(WarningsOfJobs, TellOfGpusOnSeveralSockets) {
  const json warning = json::array({"its 3 GPUs are on 2 sockets of n1"});
  EXPECT_EQ(job_on(board(), {1, 2, 3}, kAcrossSockets)["warnings"], warning);
  EXPECT_EQ(job_on(board(), {1, 2, 3}, kAcrossSockets, model::JobState::kCompleted)["warnings"],
            warning);
  EXPECT_EQ(job_on(board(), {2, 3}, kOneNumaNode)["warnings"], json::array());
}

TEST(WarningsOfJobs, AreGoneWhileTheJobWaitsAgain) {
  EXPECT_EQ(job_on(board(), {1, 2}, kAcrossSockets, model::JobState::kQueued)["warnings"],
            json::array());
}

TEST(WarningsOfJobs, DoNotCountWhatIsNotKnown) {
  EXPECT_EQ(job_on(board(), {0, 5}, kAcrossSockets)["warnings"],
            json::array({"its 2 GPUs are on several sockets of n1"}));
  // NUMA nodes whose sockets are not known count as sockets of their own.
  model::Node untold = board();
  untold.topology.numa_nodes.clear();
  EXPECT_EQ(job_on(untold, {0, 3}, kAcrossSockets)["warnings"],
            json::array({"its 2 GPUs are on 2 sockets of n1"}));
}

TEST(NumaPolicy, ComesWithASubmissionAndIsShown) {
  const std::pair<v1::NumaPolicy, model::NumaPolicy> policies[] = {
      {v1::NUMA_POLICY_UNSPECIFIED, model::NumaPolicy::kDefault},
      {v1::NUMA_POLICY_DEFAULT, model::NumaPolicy::kDefault},
      {v1::NUMA_POLICY_ALLOW_CROSS, model::NumaPolicy::kAllowCross},
      {v1::NUMA_POLICY_STRICT, model::NumaPolicy::kStrict}};
  for (const auto& [sent, expected] : policies) {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_numa(sent);
    const auto submit = to_model(request, Account{"ada", 1000, 100}, Nodes());
    ASSERT_TRUE(submit.has_value());
    EXPECT_EQ(submit->spec.request.numa, expected);
    model::Job job;
    job.id = model::JobId(1);
    job.spec = std::make_shared<const model::JobSpec>(submit->spec);
    v1::Job out;
    to_proto(job, Nodes(), out);
    EXPECT_EQ(out.spec().numa(),
              sent == v1::NUMA_POLICY_UNSPECIFIED ? v1::NUMA_POLICY_DEFAULT : sent);
  }
  EXPECT_EQ(job_on(board(), {0}, kOneNumaNode)["spec"]["numa"], "DEFAULT");
}

Nodes nodes_named(std::initializer_list<const char*> names) {
  Nodes nodes;
  std::uint64_t id = 0;
  for (const char* name : names) {
    model::Node node;
    node.id = model::NodeId(++id);
    node.name = name;
    nodes.put(id, node);
  }
  return nodes;
}

TEST(Gang, ComesWithASubmissionAndIsShown) {
  const Nodes nodes = nodes_named({"n1", "n2", "n3"});
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_gpus(8);
  request.set_nodes(2);
  request.set_network_level(v1::NETWORK_LEVEL_RACK);
  request.add_nodelist("n[2-3]");
  request.add_exclude("n1");
  request.add_gpu_types("H100");
  request.add_gpu_types("A100");
  request.add_gpu_speeds(2);
  request.add_gpu_speeds(1);
  const auto submit = to_model(request, Account{"ada", 1000, 100}, nodes);
  ASSERT_TRUE(submit.has_value()) << submit.error().message;
  const model::ResourceRequest& asked = submit->spec.request;
  EXPECT_EQ(asked.nodes, 2U);
  EXPECT_EQ(asked.within, model::NetworkLevel::kRack);
  EXPECT_EQ(asked.nodelist, (std::vector{model::NodeId(2), model::NodeId(3)}));
  EXPECT_EQ(asked.exclude, (std::vector{model::NodeId(1)}));
  EXPECT_EQ(asked.gpu_speeds, (std::vector<std::uint32_t>{1000, 500}));
  model::Job job;
  job.id = model::JobId(1);
  job.spec = std::make_shared<const model::JobSpec>(submit->spec);
  v1::Job out;
  to_proto(job, nodes, out);
  EXPECT_EQ(out.spec().gpus(), 8U);
  EXPECT_EQ(out.spec().nodes(), 2U);
  EXPECT_EQ(out.spec().nodelist(0), "n2");
  EXPECT_EQ(out.spec().exclude(0), "n1");
  EXPECT_EQ(out.spec().gpu_speeds(1), 0.5);
}

// Nodes "n1" and "n2" of two GPUs each: "GPU-n1-0" and so on.
Nodes nodes_with_gpus() {
  Nodes nodes;
  for (std::uint64_t id = 1; id <= 2; ++id) {
    model::Node node;
    node.id = model::NodeId(id);
    node.name = "n" + std::to_string(id);
    node.gpus.resize(2);
    for (std::size_t i = 0; i < 2; ++i) {
      node.gpus[i].info.uuid = "GPU-" + node.name + "-" + std::to_string(i);
    }
    nodes.put(id, node);
  }
  return nodes;
}

TEST(NamedGpus, AreKnownByUuidWhateverNamedThem) {
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_gpus(1);
  request.add_gpus_avoid("n2:1,GPU-n1-0");
  request.add_gpus_avoid("GPU-n1-0");
  request.add_gpus_only("n1:1");
  request.set_accept_degraded(true);
  const auto submit = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
  ASSERT_TRUE(submit.has_value()) << submit.error().message;
  const model::ResourceRequest& asked = submit->spec.request;
  EXPECT_EQ(asked.gpus_avoid, (std::vector<std::string>{"GPU-n1-0", "GPU-n2-1"}));
  EXPECT_EQ(asked.gpus_only, (std::vector<std::string>{"GPU-n1-1"}));
  EXPECT_TRUE(asked.accept_degraded);
  v1::JobSpec shown;
  to_proto(submit->spec, nodes_with_gpus(), shown);
  EXPECT_EQ(shown.gpus_avoid(1), "GPU-n2-1");
  EXPECT_EQ(shown.gpus_only(0), "GPU-n1-1");
}

TEST(HangTimeout, NeedsGpusAndKeptOutput) {
  const auto refused = [](auto change) -> std::string {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_gpus(1);
    request.set_hang_timeout_seconds(600);
    change(request);
    const auto submit = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
    if (submit) EXPECT_EQ(submit->spec.hang_timeout, base::minutes(10));
    return submit ? "" : submit.error().field;
  };
  using Message = v1::JobSpec;
  EXPECT_EQ(refused([](Message&) {}), "");
  EXPECT_EQ(refused([](Message& m) { m.set_gpus(0); }), "hang_timeout_seconds");
  EXPECT_EQ(refused([](Message& m) { m.set_output("out"); }), "hang_timeout_seconds");
  EXPECT_EQ(refused([](Message& m) { m.set_error("err"); }), "hang_timeout_seconds");
  EXPECT_EQ(refused([](Message& m) { m.set_hang_timeout_seconds(30); }), "hang_timeout_seconds");
}

TEST(Preflight, NeedsGpus) {
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_gpus(1);
  request.set_preflight(v1::PREFLIGHT_DEEP);
  const auto submit = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
  ASSERT_TRUE(submit) << submit.error().message;
  EXPECT_EQ(submit->spec.preflight, model::Preflight::kDeep);
  v1::JobSpec shown;
  to_proto(submit->spec, nodes_with_gpus(), shown);
  EXPECT_EQ(shown.preflight(), v1::PREFLIGHT_DEEP);
  request.set_gpus(0);
  const auto refused = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "preflight");
}

TEST(Monitor, NeedsGpusAndIsShownWhereItIsAskedFor) {
  v1::JobSpec request;
  request.add_command("/bin/true");
  request.set_gpus(1);
  const auto usual = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
  ASSERT_TRUE(usual) << usual.error().message;
  v1::JobSpec shown;
  to_proto(usual->spec, nodes_with_gpus(), shown);
  EXPECT_FALSE(shown.has_monitor());
  request.set_monitor(true);
  const auto submit = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
  ASSERT_TRUE(submit) << submit.error().message;
  to_proto(submit->spec, nodes_with_gpus(), shown);
  EXPECT_TRUE(shown.monitor());
  request.set_gpus(0);
  const auto refused = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "monitor");
}

TEST(NamedGpus, AreRefusedWhereTheyAreUnknownOrTooFew) {
  const auto refused = [](auto change) {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_gpus(2);
    change(request);
    const auto submit = to_model(request, Account{"ada", 1000, 100}, nodes_with_gpus());
    return submit ? base::Error() : submit.error();
  };
  using Message = v1::JobSpec;
  for (const char* unknown : {"GPU-n3-0", "n1:2", "n3:0", "n1", "n1:", ":0", "GPU-n1-0,"}) {
    const base::Error error = refused([&](Message& m) { m.add_gpus_avoid(unknown); });
    EXPECT_EQ(error.code, base::ErrorCode::kNotFound) << unknown;
    EXPECT_EQ(error.field, "gpus_avoid") << unknown;
  }
  EXPECT_EQ(refused([](Message& m) { m.add_gpus_only("n1:0"); }).message,
            "gpus_only: leaves the job 1 GPU, and it asks for 2; name at least as many as it asks "
            "for");
  EXPECT_EQ(refused([](Message& m) {
              m.add_gpus_only("n1:0,n1:1");
              m.add_gpus_avoid("n1:1");
            }).field,
            "gpus_only");
  EXPECT_EQ(refused([](Message& m) {
              m.set_gpus(0);
              m.add_gpus_avoid("n1:1");
            }).field,
            "gpus_avoid");
  EXPECT_EQ(refused([](Message& m) {
              m.set_gpus(0);
              m.set_accept_degraded(true);
            }).field,
            "accept_degraded");
}

TEST(Gang, WhatMakesNoSenseIsRefusedByItsField) {
  const auto refused = [](auto change) -> std::string {
    v1::JobSpec request;
    request.add_command("/bin/true");
    request.set_gpus(4);
    change(request);
    const auto submit = to_model(request, Account{"ada", 1000, 100}, nodes_named({"n1", "n2"}));
    return submit ? "" : submit.error().field;
  };
  using Message = v1::JobSpec;
  EXPECT_EQ(refused([](Message& m) { m.add_nodelist("n3"); }), "nodelist");
  EXPECT_EQ(refused([](Message& m) { m.add_exclude("n[1-"); }), "exclude");
  EXPECT_EQ(refused([](Message& m) { m.set_network_level(v1::NETWORK_LEVEL_RACK); }),
            "network_level");
  EXPECT_EQ(refused([](Message& m) {
              m.set_nodes(2);
              m.set_allow_cross_node(true);
            }),
            "nodes");
  EXPECT_EQ(refused([](Message& m) {
              m.set_nodes(2);
              m.set_terminal(true);
            }),
            "terminal");
  EXPECT_EQ(refused([](Message& m) {
              m.set_per_gpu(true);
              m.set_limit_signal("B:USR1@60");
            }),
            "limit_signal");
  EXPECT_EQ(refused([](Message& m) {
              m.set_per_gpu(true);
              m.set_first_node_only(true);
            }),
            "first_node_only");
  // Its one process may have what ranks cannot have.
  EXPECT_EQ(refused([](Message& m) {
              m.set_nodes(2);
              m.set_first_node_only(true);
              m.set_limit_signal("B:USR1@60");
            }),
            "");
  EXPECT_EQ(refused([](Message& m) { m.add_gpu_speeds(1); }), "gpu_speeds");
  EXPECT_EQ(refused([](Message& m) { m.set_nodes(5000); }), "nodes");
}

}  // namespace
}  // namespace gpu_platform::api
