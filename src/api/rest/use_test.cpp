#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/call_context.h"
#include "api/job_cost.h"
#include "api/peers_test.h"
#include "api/rest/server_fixture_test.h"
#include "api/use_calls.h"

// What jobs did on their GPUs, over the wire.

namespace gpu_platform::api {
namespace {

// Summaries that a test sets before the server starts.
class FakeUses final : public telemetry::UseSource {
 public:
  std::optional<telemetry::UseSummary> get(model::AttemptId attempt) const override {
    const auto found = summaries.find(attempt);
    return found == summaries.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<telemetry::UseBrief> brief(model::AttemptId attempt) const override {
    const auto found = get(attempt);
    return found ? std::optional(telemetry::brief_of(*found)) : std::nullopt;
  }

  std::map<model::AttemptId, telemetry::UseSummary> summaries;
};

telemetry::UseSummary summary_of_a_run() {
  telemetry::UseSummary summary;
  summary.from = base::Instant() + base::seconds(1'000'000);
  summary.to = summary.from + base::seconds(10);
  summary.interval = base::seconds(5);
  summary.is_over = true;
  telemetry::GpuUse& gpu = summary.gpus.emplace_back();
  gpu.node = "dgx-h100-1";
  gpu.index = 3;
  gpu.uuid = "GPU-a";
  gpu.memory = base::Bytes(80'000);
  gpu.samples = 2;
  const auto put = [&](std::string_view level, std::int64_t first, std::int64_t second) {
    gpu.levels[telemetry::use_level(level)].add(first);
    gpu.levels[telemetry::use_level(level)].add(second);
  };
  put("utilization_percent", 40, 60);
  put("memory_used_bytes", 20'000, 40'000);
  put("power_watts", 300'000, 500'000);
  put("sm_active_percent", 455, 555);
  gpu.throttled[model::kThrottlePowerCap] = 1;
  gpu.throttle_samples = 2;
  return summary;
}

class UseTest : public ServerTest {
 protected:
  UseTest() { core_.uses = &uses_; }
  void record(model::JobId job, std::uint32_t attempt) {
    uses_.summaries[{job, attempt}] = summary_of_a_run();
  }
  std::string target(model::JobId job) const { return fmt::format("/v1/jobs/{}/use", job.value); }

  FakeUses uses_;
};

TEST_F(UseTest, ShowsWhatAnAttemptDidOnEachGpu) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job, {3});
  record(job, 1);
  start();
  const auto use = parsed(ask("GET", target(job)));
  EXPECT_EQ(use["id"], std::to_string(job.value));
  EXPECT_EQ(use["monitored"], false);
  ASSERT_EQ(use["attempts"].size(), 1U) << use;
  const auto& attempt = use["attempts"][0];
  EXPECT_EQ(attempt["attempt"], 1);
  EXPECT_EQ(attempt["duration_seconds"], 10.0);
  EXPECT_EQ(attempt["over"], true);
  const auto& gpu = attempt["gpus"][0];
  EXPECT_EQ(gpu["index"], 3);
  EXPECT_EQ(gpu["samples"], 2);
  EXPECT_EQ(gpu["expected_samples"], 2);
  EXPECT_EQ(gpu["utilization_percent"]["min"], 40.0);
  EXPECT_EQ(gpu["utilization_percent"]["mean"], 50.0);
  EXPECT_EQ(gpu["utilization_percent"]["max"], 60.0);
  EXPECT_EQ(gpu["memory_percent"]["mean"], 37.5);
  EXPECT_EQ(gpu["power_watts"]["mean"], 400.0) << "in watts";
  EXPECT_EQ(gpu["sm_active_percent"]["mean"], 50.5) << "in percent";
  EXPECT_TRUE(gpu["temperature_c"].is_null()) << "it was not read";
  EXPECT_EQ(gpu["energy_joules"], 4000.0);
  EXPECT_EQ(gpu["energy_from"], "power");
  EXPECT_EQ(gpu["throttled"][0]["reason"], "POWER_CAP");
  EXPECT_EQ(gpu["throttled"][0]["seconds"], 5.0);
  EXPECT_TRUE(gpu["attributed_by"].is_null());
  EXPECT_EQ(use["whole"]["gpu_seconds"], 10.0);
  EXPECT_EQ(use["whole"]["memory_percent"], 37.5);
}

TEST_F(UseTest, IsEmptyWhereNothingWasRead) {
  const model::JobId job = core_.add_job(user_, uid_);
  start();
  const auto use = parsed(ask("GET", target(job)));
  EXPECT_TRUE(use["attempts"].empty());
  EXPECT_TRUE(use["whole"].is_null());
}

TEST_F(UseTest, OfAJobOfAnotherUserIsAnsweredAsOfNone) {
  const model::JobId job = core_.add_job("ada", kAda.caller.uid);
  record(job, 1);
  core_.start_job(job, {3});
  const CoreAccess core = core_.access();
  const CallContext context(core, {});
  const UseCalls calls(context);
  v1::GetJobUseRequest request;
  request.set_id(std::to_string(job.value));
  EXPECT_TRUE(calls.get(request, kAda));
  const auto hidden = calls.get(request, kBob);
  ASSERT_FALSE(hidden);
  request.set_id("999999");
  const auto unknown = calls.get(request, kBob);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(hidden.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(unknown.error().code, base::ErrorCode::kNotFound);
}

TEST_F(UseTest, IsInShortWithASingleJobAndWithAListThatAsks) {
  const model::JobId job = core_.add_job(user_, uid_);
  core_.start_job(job, {3});
  record(job, 1);
  start();
  const auto single = parsed(ask("GET", fmt::format("/v1/jobs/{}", job.value)));
  EXPECT_EQ(single["gpu_use"]["utilization_percent"], 50.0);
  EXPECT_EQ(single["gpu_use"]["memory_percent"], 37.5);
  EXPECT_EQ(single["gpu_use"]["peak_memory_bytes"], 40'000);
  EXPECT_EQ(single["gpu_use"]["energy_joules"], 4000.0);
  EXPECT_TRUE(parsed(ask("GET", "/v1/jobs"))["jobs"][0]["gpu_use"].is_null());
  EXPECT_EQ(parsed(ask("GET", "/v1/jobs?gpu_use=true"))["jobs"][0]["gpu_use"]["samples"], 2);
}

class NoLines final : public store::Ledger {
 public:
  base::Status visit(const store::LedgerQuery&, const Visit&) const override { return {}; }
  base::Result<model::EventSeq> ledger_upto() const override { return model::EventSeq(1); }
};

TEST_F(UseTest, ItsEnergyCostsWhatTheSiteSays) {
  const model::JobId id = core_.add_job(user_, uid_);
  core_.start_job(id, {3});
  record(id, 1);
  const NoLines ledger;
  core_.ledger = &ledger;
  const CoreAccess core = core_.access();
  controller::Snapshot snapshot = *core.snapshots.snapshot();
  const auto cost_with = [&](model::EnergyFactors factors) {
    model::Policy policy;
    model::Billing billing;
    billing.energy = factors;
    policy.billing = std::move(billing);
    snapshot.policy = std::make_shared<const model::Policy>(std::move(policy));
    v1::Job out;
    add_cost(core, snapshot, *snapshot.jobs.find(id.value), out);
    return out.cost();
  };
  const v1::JobCost cost = cost_with({base::MicroUsd(300'000), 380});
  EXPECT_NEAR(cost.energy_kwh(), 4000 / 3.6e6, 1e-12);
  EXPECT_EQ(cost.energy_cost(), "0.000333");
  EXPECT_NEAR(cost.co2_grams(), 4000 / 3.6e6 * 380, 1e-9);
  const v1::JobCost without = cost_with({});
  EXPECT_TRUE(without.has_energy_kwh());
  EXPECT_FALSE(without.has_energy_cost());
  EXPECT_FALSE(without.has_co2_grams());
}

}  // namespace
}  // namespace gpu_platform::api
