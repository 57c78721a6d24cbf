#include "api/rest/server_fixture_test.h"

// GPUs over the wire. What needs an administrator is answered as the user that the tests run as may
// expect.

namespace gpu_platform::api {
namespace {

using GpusTest = ServerTest;

TEST_F(GpusTest, AreTakenOutOfServiceByAnAdministratorAlone) {
  start();
  const RawResponse drained =
      ask("POST", "/v1/gpus/drain", R"({"gpu":"dgx-h100-1:3","reason":"a fan is loud"})");
  ASSERT_EQ(core_.commands().size(), 1U);
  const model::Command command = core_.commands()[0];
  EXPECT_EQ(command.caller.uid, uid_);
  EXPECT_EQ(std::get<model::ChangeGpus>(command.body).reason, "a fan is loud");
  if (uid_ != 0) {
    EXPECT_EQ(drained.status, 403);
    EXPECT_EQ(parsed(drained)["code"], "PERMISSION_DENIED");
    return;
  }
  EXPECT_EQ(drained.status, 200);
  const auto document = parsed(drained);
  EXPECT_EQ(document["changed"], true);
  EXPECT_EQ(document["gpus"][0]["state"], "DRAINING");
  EXPECT_EQ(document["gpus"][0]["changed_by"], user_);
}

TEST_F(GpusTest, ThatJobsHoldAreRefusedUnlessForced) {
  if (uid_ != 0) GTEST_SKIP() << "only root is an administrator";
  core_.edit_node([](model::Node& node) {
    node.gpus[3].holders = {{{model::JobId(1), 1}, base::kWholeGpu, base::kGiB}};
  });
  start();
  const RawResponse refused = ask("POST", "/v1/gpus/offline", R"({"gpu_id":"GPU-3"})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(parsed(refused)["field"], "force");
  const auto forced = parsed(ask("POST", "/v1/gpus/offline", R"({"gpu_id":"GPU-3","force":true})"));
  EXPECT_EQ(forced["gpus"][0]["state"], "OFFLINE");
  const auto back = parsed(ask("POST", "/v1/gpus/online", R"({"node":"dgx-h100-1"})"));
  EXPECT_EQ(back["gpus"].size(), 8U);
}

TEST_F(GpusTest, AreResetByAnAdministratorAlone) {
  start();
  const RawResponse reset = ask("POST", "/v1/gpus/reset", R"({"gpu":"dgx-h100-1:3"})");
  ASSERT_EQ(core_.commands().size(), 1U);
  EXPECT_EQ(std::get<model::ChangeGpus>(core_.commands()[0].body).action, model::GpuAction::kReset);
  if (uid_ != 0) {
    EXPECT_EQ(reset.status, 403);
    return;
  }
  EXPECT_EQ(reset.status, 200);
  EXPECT_EQ(parsed(reset)["gpus"][0]["state"], "RESETTING");
  ask("POST", "/v1/gpus/reset", R"({"gpu":"dgx-h100-1:4","when_empty":true})");
  EXPECT_TRUE(std::get<model::ChangeGpus>(core_.commands()[1].body).when_empty);
  EXPECT_EQ(
      parsed(ask("POST", "/v1/gpus/drain", R"({"node":"dgx-h100-1","when_empty":true})"))["field"],
      "when_empty");
}

TEST_F(GpusTest, ShowTheEvidenceThatIsKeptOfThem) {
  core_.edit_node([](model::Node& node) {
    model::Evidence piece;
    piece.at = piece.last = base::Instant(1) + base::seconds(60);
    piece.code = 79;
    piece.count = 3;
    node.gpus[3].evidence = std::vector{piece};
  });
  start();
  const auto list = parsed(ask("GET", "/v1/gpus/evidence?gpu=dgx-h100-1%3A3"));
  ASSERT_EQ(list["evidence"].size(), 1U);
  const auto& piece = list["evidence"][0];
  EXPECT_EQ(piece["kind"], "XID");
  EXPECT_EQ(piece["source"], "DRIVER");
  EXPECT_EQ(piece["code"], 79);
  EXPECT_EQ(piece["count"], 3);
  EXPECT_EQ(piece["at"], "1970-01-01T00:01:00.000Z");
  EXPECT_EQ(piece["job"], nullptr);
  EXPECT_EQ(parsed(ask("GET", "/v1/gpus/evidence?since=1970-01-01T00:02:00Z"))["evidence"].size(),
            0U);
  EXPECT_EQ(ask("GET", "/v1/gpus/evidence?node=elsewhere").status, 404);
}

TEST_F(GpusTest, ShowWhatWasReadOfThem) {
  model::GpuReading reading;
  reading.ecc_uncorrected = 2;
  reading.temperature_c = 61;
  core_.readings.set("GPU-3", reading);
  start();
  const auto health = parsed(ask("GET", "/v1/gpus/health?gpu=dgx-h100-1%3A3"));
  EXPECT_EQ(health["ecc_uncorrected"], 2);
  EXPECT_EQ(health["gpu"]["temperature_c"], 61);
  EXPECT_EQ(parsed(ask("GET", "/v1/gpus?node=dgx-h100-1"))["gpus"][3], health);
  const auto status = parsed(ask("GET", "/v1/status?max_age_seconds=2"));
  EXPECT_EQ(status["gpus"][3]["temperature_c"], 61);
  EXPECT_EQ(core_.readings.asked().size(), 1U);
}

TEST_F(GpusTest, ShowHowTheyLieToEachOther) {
  start();
  const auto node = parsed(ask("GET", "/v1/topology"))["nodes"][0];
  EXPECT_EQ(node["node"], "dgx-h100-1");
  EXPECT_EQ(node["emulated"], true);
  EXPECT_EQ(node["links"].size(), 28U);
  EXPECT_EQ(node["links"][0]["link"], "NV18");
  EXPECT_EQ(node["numa_nodes"][1]["cpus"], "56-111");
  EXPECT_EQ(node["gpus"][7]["numa_node"], 1);
}

}  // namespace
}  // namespace gpu_platform::api
