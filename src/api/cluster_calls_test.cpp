#include <future>

#include <gtest/gtest.h>

#include "api/call_context.h"
#include "api/cluster_calls.h"
#include "api/fake_core_test.h"
#include "api/peers_test.h"
#include "api/site_calls.h"

namespace gpu_platform::api {
namespace {

using base::ErrorCode;
using model::GpuAction;

class ClusterCallsTest : public testing::Test {
 protected:
  // The answer, which comes on any thread.
  base::Result<v1::ChangeGpusResponse> change(const v1::ChangeGpusRequest& request,
                                              GpuAction action, bool administrator = true) {
    std::promise<base::Result<v1::ChangeGpusResponse>> promise;
    auto answer = promise.get_future();
    const Peer peer = administrator ? kRoot : kAda;
    calls_.change_gpus(
        request, action, peer, [](auto proceed) { proceed(); },
        [&](auto result) { promise.set_value(std::move(result)); });
    return answer.get();
  }
  static v1::ChangeGpusRequest of_gpu(std::string place) {
    v1::ChangeGpusRequest request;
    request.set_gpu(std::move(place));
    return request;
  }

  FakeCore core_;
  CoreAccess access_ = core_.access();
  CallContext context_{access_, {.version = "1.2.3"}};
  ClusterCalls calls_{context_};
};

TEST_F(ClusterCallsTest, AnswerAChangeWithTheGpusAsTheyAreAfterIt) {
  v1::ChangeGpusRequest request = of_gpu("dgx-h100-1:3");
  request.set_reason("a fan is loud");
  const auto drained = change(request, GpuAction::kDrain);
  ASSERT_TRUE(drained.has_value()) << drained.error().message;
  EXPECT_TRUE(drained->changed());
  ASSERT_EQ(drained->gpus_size(), 1);
  EXPECT_EQ(drained->gpus(0).index(), 3U);
  EXPECT_EQ(drained->gpus(0).state(), v1::GPU_STATE_DRAINING);
  EXPECT_EQ(drained->gpus(0).reason(), "a fan is loud");
  EXPECT_EQ(drained->gpus(0).changed_by(), "root");
  const auto again = change(request, GpuAction::kDrain);
  EXPECT_FALSE(again->changed());
  EXPECT_EQ(again->gpus_size(), 0);
}

TEST_F(ClusterCallsTest, SayOfEachPartWhatKeepsItsJobToIt) {
  const model::JobId job = core_.add_job("ada", 1000);
  core_.start_job(job, {2});
  core_.edit_node([&](model::Node& node) {
    model::GpuHolder here{{job, 1}, base::GpuShare(3500), base::kGiB * 40};
    here.mode = model::ShareMode::kTimeSlice;
    model::GpuHolder gone{{model::JobId(4711), 1}, base::GpuShare(1750), base::kGiB * 20};
    gone.mode = model::ShareMode::kTimeSlice;
    node.gpus[2].holders = {here, gone};
    model::settle(node.gpus[2]);
  });
  const v1::Status status = calls_.status({}, kRoot);
  ASSERT_EQ(status.gpus(2).parts_size(), 2);
  // The wall is that of the job's own grant.
  EXPECT_EQ(status.gpus(2).parts(0).memory_rung(), v1::RUNG_HARDWARE);
  EXPECT_EQ(status.gpus(2).parts(0).compute_rung(), v1::RUNG_HARDWARE);
  EXPECT_EQ(status.gpus(2).parts(1).memory_rung(), v1::RUNG_UNSPECIFIED) << "not in the core";
  EXPECT_DOUBLE_EQ(status.gpus(2).free_share(), 0.25);
  const auto gpus = calls_.gpus({}, kRoot);
  ASSERT_TRUE(gpus.has_value());
  EXPECT_EQ(gpus->gpus(2).gpu().parts(0).memory_rung(), v1::RUNG_HARDWARE);
  const auto topology = calls_.topology({});
  ASSERT_TRUE(topology.has_value());
  const v1::TopologyGpu& gpu = topology->nodes(0).gpus(2);
  ASSERT_EQ(gpu.parts_size(), 2);
  EXPECT_EQ(gpu.parts(0).job(), status.gpus(2).parts(0).job());
  EXPECT_EQ(gpu.parts(0).compute_rung(), v1::RUNG_HARDWARE);
  EXPECT_EQ(gpu.parts(1).memory_rung(), v1::RUNG_UNSPECIFIED);
  EXPECT_DOUBLE_EQ(gpu.free_share(), 0.25);
  EXPECT_EQ(topology->nodes(0).gpus(1).parts_size(), 0);
  EXPECT_DOUBLE_EQ(topology->nodes(0).gpus(1).free_share(), 1);
}

TEST_F(ClusterCallsTest, TellSlurmsCommandsHowGpusAreShared) {
  EXPECT_EQ(SiteCalls(context_).slurm_names().shards_per_gpu(), 4U);
  EXPECT_FALSE(SiteCalls(context_).slurm_names().can_share());
}

TEST_F(ClusterCallsTest, TellSlurmsCommandsWhatEachTypeOfGpuCosts) {
  EXPECT_EQ(SiteCalls(context_).slurm_names().billing_weights_size(), 0) << "without a price";
  model::PriceBook prices;
  for (const char* node : {"", "other-*"}) {
    model::PriceEntry& entry = prices.entries.emplace_back();
    entry.id = static_cast<std::uint32_t>(prices.entries.size());
    entry.price.gpu_type = "H100";
    entry.price.node = node;
    entry.price.per_hour = base::MicroUsd(5'500'000 * entry.id);
    entry.begin = base::Instant(1'000'000'000);
  }
  core_.set_prices(std::move(prices));
  const v1::SlurmNames names = SiteCalls(context_).slurm_names();
  ASSERT_EQ(names.billing_weights_size(), 1);
  EXPECT_EQ(names.billing_weights(0).gpu_type(), "H100-80GB");
  EXPECT_EQ(names.billing_weights(0).models_size(), 1);
  EXPECT_EQ(names.billing_weights(0).per_hour(), "5.50") << "no node has the other one";
  EXPECT_FALSE(names.has_core_hour());
}

TEST_F(ClusterCallsTest, TellTheNamesOfSlurmsCommands) {
  EXPECT_EQ(SiteCalls(context_).slurm_names().partitions_size(), 0);
  EXPECT_FALSE(SiteCalls(context_).slurm_names().can_notify());
  CoreAccess access = core_.access();
  access.slurm_names = [] {
    config::SlurmNames names;
    names.partitions = {{.name = "h100",
                         .is_default = true,
                         .gpu_types = {"H100"},
                         .priority = model::PriorityClass::kLow,
                         .max_time = base::hours(2)}};
    names.qos = {{.name = "urgent", .max_gpus = 8}};
    return std::make_shared<const config::SlurmNames>(std::move(names));
  };
  const CallContext context(access, {.version = "1.2.3"});
  const v1::SlurmNames names = SiteCalls(context).slurm_names();
  ASSERT_EQ(names.partitions_size(), 1);
  EXPECT_EQ(names.partitions(0).name(), "h100");
  EXPECT_TRUE(names.partitions(0).is_default());
  EXPECT_EQ(names.partitions(0).gpu_types(0), "H100");
  EXPECT_EQ(names.partitions(0).priority(), "LOW");
  EXPECT_EQ(names.partitions(0).max_time_seconds(), 7200);
  EXPECT_FALSE(names.partitions(0).has_max_gpus());
  EXPECT_EQ(names.qos(0).max_gpus(), 8U);
}

TEST_F(ClusterCallsTest, ChangeAWholeNode) {
  v1::ChangeGpusRequest request;
  request.set_node("dgx-h100-1");
  request.set_force(true);
  EXPECT_EQ(change(request, GpuAction::kTakeOffline)->gpus_size(), 8);
  const auto sent = std::get<model::ChangeGpus>(core_.commands().at(0).body);
  EXPECT_EQ(sent.which.node, "dgx-h100-1");
  EXPECT_FALSE(sent.which.index.has_value());
  EXPECT_TRUE(sent.force);
}

TEST_F(ClusterCallsTest, PassOnWhatTheCoreRefuses) {
  EXPECT_EQ(change(of_gpu("dgx-h100-1:3"), GpuAction::kDrain, false).error().code,
            ErrorCode::kPermissionDenied);
  const auto unknown = change(of_gpu("elsewhere:3"), GpuAction::kDrain);
  EXPECT_EQ(unknown.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(unknown.error().field, "gpu");
}

TEST_F(ClusterCallsTest, SendNothingToTheCoreThatNamesNoGpu) {
  EXPECT_EQ(change({}, GpuAction::kDrain).error().field, "gpu_id");
  EXPECT_EQ(change(of_gpu("dgx-h100-1"), GpuAction::kDrain).error().field, "gpu");
  EXPECT_TRUE(core_.commands().empty());
}

TEST_F(ClusterCallsTest, ShowReadingsInTheStatus) {
  model::GpuReading reading;
  reading.utilization_percent = 93;
  core_.readings.set("GPU-2", reading);
  const v1::Status status = calls_.status({}, kRoot);
  EXPECT_EQ(status.gpus(2).utilization_percent(), 93);
  EXPECT_FALSE(status.gpus(1).has_utilization_percent());
}

TEST_F(ClusterCallsTest, ShowTheMeasuredUseAsTheMeanOfTheReadings) {
  EXPECT_FALSE(calls_.status({}, kRoot).has_gpu_utilization()) << "no reading is not no use";
  model::GpuReading reading;
  reading.utilization_percent = 100;
  core_.readings.set("GPU-2", reading);
  reading.utilization_percent = 50;
  core_.readings.set("GPU-3", reading);
  EXPECT_EQ(calls_.status({}, kRoot).gpu_utilization(), 0.75);
}

TEST_F(ClusterCallsTest, ListInPagesIfALimitIsGiven) {
  v1::ListGpusRequest gpus;
  gpus.set_limit(3);
  std::vector<std::uint32_t> seen;
  for (int page = 0; page < 3; ++page) {
    const auto answer = calls_.gpus(gpus, kRoot).value();
    for (const v1::GpuHealth& gpu : answer.gpus()) seen.push_back(gpu.gpu().index());
    EXPECT_EQ(answer.has_next_page(), page < 2);
    gpus.set_page_token(answer.next_page());
  }
  EXPECT_EQ(seen, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  v1::ListNodesRequest nodes;
  nodes.set_page_token("next");
  EXPECT_EQ(calls_.nodes(nodes).error().field, "page_token");
}

TEST_F(ClusterCallsTest, SayHowJobsAreKeptApart) {
  EXPECT_EQ(calls_.status({}, kRoot).isolation_size(), 0);
  access_.isolation = [] {
    return std::vector<IsolationGuard>{{"user", true, {}}, {"devices", false, "no CAP_BPF"}};
  };
  const v1::Status status = calls_.status({}, kRoot);
  ASSERT_EQ(status.isolation_size(), 2);
  EXPECT_TRUE(status.isolation(0).held());
  EXPECT_FALSE(status.isolation(0).has_reason());
  EXPECT_EQ(status.isolation(1).guard(), "devices");
  EXPECT_FALSE(status.isolation(1).held());
  EXPECT_EQ(status.isolation(1).reason(), "no CAP_BPF");
}

TEST_F(ClusterCallsTest, AskForNewReadingsOnlyWhenAnAgeIsGiven) {
  calls_.status({}, kRoot);
  EXPECT_TRUE(core_.readings.asked().empty());
  v1::GetStatusRequest request;
  request.set_max_age_seconds(0.5);
  calls_.status(request, kRoot);
  EXPECT_EQ(core_.readings.asked(),
            std::vector<std::chrono::milliseconds>{std::chrono::milliseconds(500)});
}

TEST_F(ClusterCallsTest, SayWhyThereAreNoReadings) {
  EXPECT_FALSE(calls_.status({}, kRoot).nodes(0).has_no_readings());
  EXPECT_FALSE(calls_.gpus({}, kRoot)->gpus(0).has_no_readings());
  core_.readings.lack("there is no exporter's pod on it");
  EXPECT_EQ(calls_.status({}, kRoot).nodes(0).no_readings(), "there is no exporter's pod on it");
  EXPECT_EQ(calls_.nodes({})->nodes(0).no_readings(), "there is no exporter's pod on it");
  EXPECT_EQ(calls_.gpus({}, kRoot)->gpus(7).no_readings(), "there is no exporter's pod on it");
  v1::GetGpuHealthRequest request;
  request.set_gpu("dgx-h100-1:3");
  EXPECT_EQ(calls_.gpu_health(request, kRoot)->no_readings(), "there is no exporter's pod on it");
}

TEST_F(ClusterCallsTest, WorkWithoutReadings) {
  access_.readings = nullptr;
  v1::GetStatusRequest request;
  request.set_max_age_seconds(1);
  EXPECT_EQ(calls_.status(request, kRoot).gpus_size(), 8);
  EXPECT_FALSE(calls_.gpus({}, kRoot)->gpus(0).has_read_at());
}

// GPU 1 has a process of ada's, one of bob's, and one of root's in a job of ada's.
model::GpuReading crowded(model::JobId job) {
  model::GpuReading reading;
  reading.processes = {{1, "ada", "hers", base::kMiB, {}, true, 1000},
                       {2, "bob", "his-secret", base::kMiB, {}, true, 1001},
                       {3, "root", "in-her-job", base::kMiB, job, false, 0}};
  return reading;
}

std::string commands_of(const google::protobuf::RepeatedPtrField<v1::GpuProcess>& processes) {
  std::string text;
  for (const v1::GpuProcess& process : processes) text += process.command() + " ";
  return text;
}

TEST_F(ClusterCallsTest, ShowCommandsOfOthersOnlyWhereTheSiteSaysSo) {
  core_.readings.set("GPU-1", crowded(core_.add_job("ada", 1000)));
  v1::GetGpuHealthRequest request;
  request.set_gpu("dgx-h100-1:1");
  const auto seen_by = [&](const ClusterCalls& calls, const Peer& peer) {
    const auto health = calls.gpu_health(request, peer);
    EXPECT_EQ(health->processes_size(), 3) << "every user may know that there is one";
    EXPECT_EQ(health->processes(1).user(), "bob");
    const std::string shown = commands_of(health->processes());
    EXPECT_EQ(commands_of(calls.gpus({}, peer)->gpus(1).processes()), shown);
    std::string unmanaged_processes;
    for (const v1::GpuProcess& process : health->processes()) {
      if (!process.has_job()) unmanaged_processes += process.command() + " ";
    }
    EXPECT_EQ(commands_of(calls.status({}, peer).gpus(1).unmanaged_processes()),
              unmanaged_processes);
    return shown;
  };
  EXPECT_EQ(seen_by(calls_, kAda), "hers  in-her-job ");
  EXPECT_EQ(seen_by(calls_, kRoot), "hers his-secret in-her-job ");
  model::AccessSettings open;
  open.visibility[static_cast<std::size_t>(model::Sight::kCommands)] = model::Audience::kAll;
  core_.set_rules({open, {}, 0});
  EXPECT_EQ(seen_by(calls_, kAda), "hers his-secret in-her-job ");
}

// ---- evidence and verdicts

model::Evidence seen(model::EvidenceKind kind, int second) {
  model::Evidence piece;
  piece.kind = kind;
  piece.at = piece.last = base::Instant(1) + base::seconds(second);
  return piece;
}

model::Evidence xid_of(model::JobId job, std::string user, int second) {
  model::Evidence piece = seen(model::EvidenceKind::kXid, second);
  piece.code = 13;
  piece.job = job;
  piece.user = std::move(user);
  piece.program = "train.py";
  piece.text = "NVRM: Xid 13";
  return piece;
}

// Judges by the users of the pieces alone.
health::GpuVerdict judge_by_users(const controller::Snapshot&, const health::Records& records,
                                  const health::GpuKey& gpu, base::Instant) {
  health::GpuVerdict verdict;
  verdict.action = health::Action::kDegrade;
  verdict.fault = health::FaultClass::kHardware;
  verdict.confidence_percent = 80;
  verdict.rule = "two-jobs";
  for (const model::Evidence& piece : records.of_gpu(gpu.uuid)) {
    verdict.reasons.push_back("XID 13 in a job of " + piece.user);
  }
  return verdict;
}

TEST_F(ClusterCallsTest, ShowTheVerdictAndTheEvidenceOfAGpuAndOfItsNode) {
  core_.edit_node([](model::Node& node) {
    node.evidence = std::vector{seen(model::EvidenceKind::kNodeRestarted, 2)};
    node.gpus[1].evidence =
        std::vector{xid_of(model::JobId(7), "ada", 1), xid_of(model::JobId(8), "ada", 3)};
    model::set_taint(node.gpus[1].taints,
                     {model::TaintSource::kHealth, model::TaintEffect::kDegraded,
                      "XID 13 in two jobs", "node", base::Instant(1)});
    node.gpus[1].withheld_verdict = "XID 13 in three jobs (not done: health.mode is shadow)";
  });
  v1::GetGpuHealthRequest request;
  request.set_gpu("dgx-h100-1:1");
  EXPECT_FALSE(calls_.gpu_health(request, kRoot)->has_verdict()) << "nothing judges";
  access_.judge_gpu = judge_by_users;
  const v1::GpuHealth health = *calls_.gpu_health(request, kRoot);
  ASSERT_EQ(health.taints_size(), 1);
  EXPECT_EQ(health.taints(0).source(), "HEALTH");
  EXPECT_EQ(health.taints(0).effect(), "DEGRADED");
  EXPECT_EQ(health.withheld(), "XID 13 in three jobs (not done: health.mode is shadow)");
  EXPECT_EQ(health.verdict().action(), "DEGRADE");
  EXPECT_EQ(health.verdict().fault(), "HARDWARE");
  EXPECT_EQ(health.verdict().confidence_percent(), 80U);
  EXPECT_EQ(health.verdict().reasons(1), "XID 13 in a job of ada");
  ASSERT_EQ(health.evidence_size(), 3);
  EXPECT_EQ(health.evidence(0).job(), "7");
  EXPECT_EQ(health.evidence(0).gpu_id(), "GPU-1");
  EXPECT_EQ(health.evidence(1).kind(), "NODE_RESTARTED");
  EXPECT_FALSE(health.evidence(1).has_gpu_id());
  EXPECT_EQ(health.evidence(2).job(), "8");
  const auto list = *calls_.gpus({}, kRoot);
  EXPECT_TRUE(list.gpus(1).has_verdict());
  EXPECT_EQ(list.gpus(1).evidence_size(), 0) << "one GPU has it";
}

TEST_F(ClusterCallsTest, ListTheEvidenceOfAGpuANodeOrAll) {
  core_.edit_node([](model::Node& node) {
    node.evidence = std::vector{seen(model::EvidenceKind::kNodeRestarted, 2)};
    node.gpus[1].evidence = std::vector{xid_of(model::JobId(7), "ada", 3)};
    node.gpus[2].evidence = std::vector{xid_of(model::JobId(8), "ada", 1)};
  });
  v1::ListEvidenceRequest request;
  const auto kinds = [&] {
    std::string text;
    const auto answer = calls_.evidence(request, kRoot);
    for (const v1::Evidence& piece : answer->evidence()) {
      text += piece.kind() + piece.gpu_id() + " ";
    }
    return text;
  };
  EXPECT_EQ(kinds(), "XIDGPU-2 NODE_RESTARTED XIDGPU-1 ");
  request.mutable_since()->set_seconds(2);
  EXPECT_EQ(kinds(), "NODE_RESTARTED XIDGPU-1 ");
  request.set_node("dgx-h100-1");
  EXPECT_EQ(kinds(), "NODE_RESTARTED XIDGPU-1 ");
  request.clear_node();
  request.set_gpu("dgx-h100-1:1");
  EXPECT_EQ(kinds(), "XIDGPU-1 ");
  request.set_gpu_id("GPU-1");
  EXPECT_EQ(calls_.evidence(request, kRoot).error().field, "gpu_id");
  request.clear_gpu();
  request.set_gpu_id("GPU-70");
  EXPECT_EQ(calls_.evidence(request, kRoot).error().code, ErrorCode::kNotFound);
}

TEST_F(ClusterCallsTest, NameNoUserInEvidenceWhoseJobTheCallerMayNotSee) {
  const model::JobId hers = core_.add_job("ada", 1000);
  const model::JobId his = core_.add_job("bob", 1001);
  core_.edit_node([&](model::Node& node) {
    model::Evidence ended = xid_of(his, "bob", 3);
    ended.kind = model::EvidenceKind::kJobEnded;
    ended.source = model::EvidenceSource::kJob;
    ended.text = "his last words";
    node.gpus[1].evidence = std::vector{xid_of(hers, "ada", 1), xid_of(his, "bob", 2), ended};
  });
  access_.judge_gpu = judge_by_users;
  v1::GetGpuHealthRequest request;
  request.set_gpu("dgx-h100-1:1");
  const v1::GpuHealth shown = *calls_.gpu_health(request, kAda);
  EXPECT_EQ(shown.evidence(0).user(), "ada");
  EXPECT_FALSE(shown.evidence(1).has_user());
  EXPECT_FALSE(shown.evidence(1).has_program());
  EXPECT_EQ(shown.evidence(1).text(), "NVRM: Xid 13") << "it is the driver's";
  EXPECT_FALSE(shown.evidence(2).has_text());
  EXPECT_EQ(shown.ShortDebugString().find("bob"), std::string::npos);
  EXPECT_EQ(shown.verdict().reasons_size(), 3);
  EXPECT_EQ(calls_.gpu_health(request, kRoot)->evidence(2).text(), "his last words");
}

TEST_F(ClusterCallsTest, CountNoGpuWithUnwelcomeUnmanagedProcessesAsAvailable) {
  core_.edit_node([](model::Node& node) {
    node.gpus[1].unmanaged_processes = "pid 77 of bob";
    model::set_taint(node.gpus[1].taints, {model::TaintSource::kProcesses,
                                           model::TaintEffect::kAvoided,
                                           "pid 77 of bob",
                                           "node",
                                           {}});
    node.gpus[2].unmanaged_processes = "pid 78 of bob";
  });
  const v1::Status status = calls_.status({}, kRoot);
  EXPECT_EQ(status.available_gpus(), 7U);
  EXPECT_EQ(status.gpus(1).reason(), "unmanaged processes: pid 77 of bob");
  EXPECT_FALSE(status.gpus(2).has_reason());
}

TEST_F(ClusterCallsTest, TellTheHealthOfAGpuByEitherName) {
  v1::GetGpuHealthRequest by_uuid;
  by_uuid.set_gpu_id("GPU-5");
  v1::GetGpuHealthRequest by_place;
  by_place.set_gpu("dgx-h100-1:5");
  ASSERT_TRUE(calls_.gpu_health(by_uuid, kRoot).has_value());
  EXPECT_EQ(calls_.gpu_health(by_uuid, kRoot)->gpu().index(), 5U);
  EXPECT_EQ(calls_.gpu_health(by_place, kRoot)->gpu().uuid(), "GPU-5");
}

TEST_F(ClusterCallsTest, NameTheFieldOfAGpuThatIsNotThere) {
  v1::GetGpuHealthRequest request;
  request.set_gpu_id("GPU-8");
  EXPECT_EQ(calls_.gpu_health(request, kRoot).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(calls_.gpu_health(request, kRoot).error().field, "gpu_id");
  request.clear_gpu_id();
  for (const char* place : {"dgx-h100-1:8", "dgx-h100-2:0"}) {
    request.set_gpu(place);
    EXPECT_EQ(calls_.gpu_health(request, kRoot).error().code, ErrorCode::kNotFound) << place;
    EXPECT_EQ(calls_.gpu_health(request, kRoot).error().field, "gpu") << place;
  }
}

TEST_F(ClusterCallsTest, ListTheGpusAndTheTopologyOfOneNodeOrAll) {
  v1::ListGpusRequest gpus;
  v1::GetTopologyRequest topology;
  EXPECT_EQ(calls_.gpus(gpus, kRoot)->gpus_size(), 8);
  EXPECT_EQ(calls_.topology(topology)->nodes_size(), 1);
  gpus.set_node("dgx-h100-1");
  topology.set_node("dgx-h100-1");
  EXPECT_EQ(calls_.gpus(gpus, kRoot)->gpus_size(), 8);
  EXPECT_EQ(calls_.topology(topology)->nodes(0).links_size(), 28);
  gpus.set_node("elsewhere");
  topology.set_node("elsewhere");
  EXPECT_EQ(calls_.gpus(gpus, kRoot).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(calls_.gpus(gpus, kRoot).error().field, "node");
  EXPECT_EQ(calls_.topology(topology).error().field, "node");
}

}  // namespace
}  // namespace gpu_platform::api
