#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/fake_history_test.h"
#include "api/kpi_calls.h"
#include "api/peers_test.h"
#include "api/rest/server_fixture_test.h"
#include "base/prng.h"
#include "model/job_spec.h"
#include "os/clock.h"

// Key figures, as calls and over the wire.

namespace gpu_platform::api {
namespace {

// Ended jobs that a test adds.
class FakeKpis final : public telemetry::KpiSource {
 public:
  base::Result<base::Instant> add_ended(telemetry::KpiSums& sums,
                                        const std::set<model::JobId>& skip) const override {
    if (is_reading) return base::fail(base::ErrorCode::kUnavailable, "still being read");
    sums.add(runs, skip);
    return complete_since;
  }

  telemetry::KpiRuns runs;
  base::Instant complete_since;
  bool is_reading = false;
};

// Every attempt has hardly used its GPU.
class IdleUses final : public telemetry::UseSource {
 public:
  std::optional<telemetry::UseSummary> get(model::AttemptId) const override {
    telemetry::UseSummary summary;
    summary.from = base::Instant(1'000'000'000);
    summary.to = summary.from + base::seconds(10);
    summary.interval = base::seconds(10);
    telemetry::GpuUse& gpu = summary.gpus.emplace_back();
    gpu.samples = 1;
    gpu.levels[telemetry::use_level("utilization_percent")].add(1);
    return summary;
  }
  std::optional<telemetry::UseBrief> brief(model::AttemptId) const override { return std::nullopt; }
};

// The window is the four hours before the test.
class KpiTest : public ServerTest {
 protected:
  KpiTest() { core_.kpis = &kpis_; }

  // An hour on two GPUs, an hour after the window begins.
  model::Job ended_job(std::uint64_t id) const {
    model::Job job;
    job.id = model::JobId(id);
    model::JobSpec spec;
    spec.user = "ada";
    spec.team = "vision";
    spec.kind = model::JobKind::kTraining;
    job.spec = std::make_shared<const model::JobSpec>(spec);
    job.state = model::JobState::kCompleted;
    job.submitted_at = job.eligible_at = from_ + base::minutes(50);
    model::Attempt attempt;
    attempt.number = 1;
    attempt.requested_at = attempt.started_at = from_ + base::hours(1);
    attempt.ended_at = attempt.released_at = job.ended_at = from_ + base::hours(2);
    attempt.exit.code = 0;
    model::NodeAllocation part{model::NodeId(1), {}, 0, {}};
    for (const std::uint32_t index : {0U, 1U}) part.grants.push_back({index, base::kWholeGpu, {}});
    attempt.allocation.nodes.push_back(part);
    job.attempts.push_back(attempt);
    return job;
  }
  // The same from one minute of the window to another.
  model::Job job_between(std::uint64_t id, int begin, int end) const {
    model::Job job = ended_job(id);
    job.submitted_at = job.eligible_at = from_ + base::minutes(begin);
    model::Attempt& attempt = job.attempts.back();
    attempt.requested_at = attempt.started_at = job.submitted_at;
    attempt.ended_at = attempt.released_at = job.ended_at = from_ + base::minutes(end);
    return job;
  }
  // One GPU from before the window on.
  model::JobId run_job(const std::string& user, std::uint32_t uid) {
    const model::JobId job = core_.add_job(user, uid);
    core_.start_job(job, {3});
    return job;
  }
  base::Result<v1::Kpi> ask_as(const Peer& peer, const std::string& team = {}) {
    const CoreAccess core = core_.access();
    const CallContext context(core, {});
    v1::GetKpiRequest request;
    to_proto(from_, *request.mutable_since());
    to_proto(to_, *request.mutable_until());
    if (!team.empty()) request.set_team(team);
    return KpiCalls(context).get(request, peer);
  }
  // Of two GPUs there are readings in each hour.
  void keep_readings() {
    const auto snapshot = core_.snapshot();
    const model::Node& node = *snapshot->nodes.find(1);
    for (const std::size_t index : {0U, 1U}) {
      std::vector<telemetry::Point> points;
      for (int hour = 0; hour < 4; ++hour) {
        points.push_back({.from = from_ + base::hours(hour), .count = 1});
      }
      history_.put({.uuid = node.gpus[index].info.uuid}, "memory_used_bytes", std::move(points))
          .step = base::hours(1);
    }
    history_.known.quarters_since = from_;
    core_.history = &history_;
  }

  // Of four GPUs there are readings in some hours; returns in how many, all GPUs together.
  int keep_some_readings(base::Prng& random, FakeHistory& history) {
    const auto snapshot = core_.snapshot();
    const model::Node& node = *snapshot->nodes.find(1);
    int hours = 0;
    for (const std::size_t index : {0U, 1U, 2U, 3U}) {
      std::vector<telemetry::Point> points;
      for (int hour = 0; hour < 4; ++hour) {
        if (random.below(3) > 0) continue;
        points.push_back({.from = from_ + base::hours(hour), .count = 1});
        ++hours;
      }
      history.put({.uuid = node.gpus[index].info.uuid}, "memory_used_bytes", std::move(points))
          .step = base::hours(1);
    }
    history.known.quarters_since = from_;
    return hours;
  }

  // A whole second.
  const base::Instant to_{os::wall_now().unix_ns() / 1'000'000'000 * 1'000'000'000};
  const base::Instant from_ = to_ + base::hours(4) * -1;
  FakeKpis kpis_;
  FakeHistory history_;
  IdleUses uses_;
};

TEST_F(KpiTest, SumsEndedJobsAndThoseInTheCore) {
  kpis_.runs.add(ended_job(1'000'000), {});
  run_job("ada", kAda.caller.uid);
  const auto kpi = ask_as(kBob);
  ASSERT_TRUE(kpi) << kpi.error().message;
  EXPECT_EQ(kpi->jobs_ended(), 1U);
  EXPECT_DOUBLE_EQ(kpi->gpus().gpu_hours(), 6) << "2 GPUs for an hour, 1 for four";
  EXPECT_DOUBLE_EQ(kpi->queue_wait().mean_seconds(), 600);
  EXPECT_DOUBLE_EQ(kpi->completion_time().mean_seconds(), 70 * 60);
  EXPECT_DOUBLE_EQ(kpi->completed_per_hour(), 0.25);
  EXPECT_FALSE(kpi->has_completed_per_day()) << "the window is shorter";
  EXPECT_FALSE(kpi->gpus().has_utilization_percent()) << "nothing was read";
  EXPECT_FALSE(kpi->has_complete_since());
}

TEST_F(KpiTest, CountsAJobOnceThatHasJustLeftTheCore) {
  const model::JobId job = run_job("ada", kAda.caller.uid);
  kpis_.runs.add(ended_job(job.value), {});
  const auto kpi = ask_as(kBob);
  ASSERT_TRUE(kpi);
  EXPECT_EQ(kpi->jobs_ended(), 0U);
  EXPECT_DOUBLE_EQ(kpi->gpus().gpu_hours(), 4);
}

TEST_F(KpiTest, AllocationIsKnownWhereReadingsReachBack) {
  kpis_.runs.add(ended_job(1'000'000), {});
  run_job("ada", kAda.caller.uid);
  const auto blind = ask_as(kBob);
  ASSERT_TRUE(blind);
  EXPECT_FALSE(blind->has_allocation_percent());
  EXPECT_FALSE(blind->has_available_gpu_hours());
  keep_readings();
  const auto kpi = ask_as(kBob);
  ASSERT_TRUE(kpi);
  EXPECT_DOUBLE_EQ(kpi->available_gpu_hours(), 8);
  EXPECT_DOUBLE_EQ(kpi->allocation_percent(), 75);
  ASSERT_EQ(kpi->teams_size(), 2);
  EXPECT_EQ(kpi->teams(1).team(), "vision");
  EXPECT_DOUBLE_EQ(kpi->teams(1).allocation_percent(), 25);
  history_.known.quarters_since = from_ + base::hours(3);
  const auto late = ask_as(kBob);
  ASSERT_TRUE(late);
  EXPECT_FALSE(late->has_allocation_percent()) << "of the time before nothing is known";
}

TEST_F(KpiTest, WhatJobsHeldWasAvailable) {
  for (std::uint64_t id = 1'000'000; id < 1'000'010; ++id) kpis_.runs.add(ended_job(id), {});
  keep_readings();
  const auto kpi = ask_as(kBob);
  ASSERT_TRUE(kpi);
  EXPECT_DOUBLE_EQ(kpi->available_gpu_hours(), 20);
  EXPECT_DOUBLE_EQ(kpi->allocation_percent(), 100);
}

TEST_F(KpiTest, TheAllocationRatioIsThatOfACountByHand) {
  base::Prng random(37);
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    FakeHistory history;
    const int present_hours = keep_some_readings(random, history);
    core_.history = &history;
    kpis_.runs = {};
    int held_minutes = 0;  // in the window, of two GPUs each
    for (std::uint64_t id = 1'000'000; id < 1'000'004; ++id) {
      const int begin = static_cast<int>(random.below(290)) - 60;
      const int end = begin + 1 + static_cast<int>(random.below(120));
      kpis_.runs.add(job_between(id, begin, end), {});
      for (int minute = 0; minute < 240; ++minute) {
        if (begin <= minute && minute < end) held_minutes += 2;
      }
    }
    const auto kpi = ask_as(kBob);
    ASSERT_TRUE(kpi);
    ASSERT_EQ(kpi->has_allocation_percent(), present_hours > 0);
    EXPECT_NEAR(kpi->gpus().gpu_hours(), held_minutes / 60.0, 1e-9);
    if (present_hours == 0) continue;
    const double available = std::max<double>(present_hours, held_minutes / 60.0);
    EXPECT_NEAR(kpi->available_gpu_hours(), available, 1e-9);
    EXPECT_NEAR(kpi->allocation_percent(), 100 * held_minutes / 60.0 / available, 1e-9);
  }
}

TEST_F(KpiTest, NamesIdleJobsToThoseWhoMaySeeThem) {
  const model::JobId job = run_job("ada", kAda.caller.uid);
  core_.uses = &uses_;
  const auto own = ask_as(kAda);
  ASSERT_TRUE(own);
  ASSERT_EQ(own->idle().jobs_size(), 1);
  EXPECT_EQ(own->idle().jobs(0).id(), std::to_string(job.value));
  EXPECT_EQ(own->idle().jobs(0).user(), "ada");
  EXPECT_TRUE(own->idle().jobs(0).running());
  EXPECT_DOUBLE_EQ(own->idle().jobs(0).use().utilization_percent(), 1);
  const auto others = ask_as(kBob);
  ASSERT_TRUE(others);
  EXPECT_EQ(others->idle().jobs_size(), 0);
  EXPECT_EQ(others->idle().attempts(), 1U) << "it is counted";
  EXPECT_DOUBLE_EQ(others->idle().gpu_hours(), 4);
}

TEST_F(KpiTest, OfATeamHasItsShareOfAllThatWasAvailable) {
  kpis_.runs.add(ended_job(1'000'000), {});
  run_job("ada", kAda.caller.uid);
  keep_readings();
  const auto kpi = ask_as(kBob, "vision");
  ASSERT_TRUE(kpi);
  EXPECT_EQ(kpi->team(), "vision");
  EXPECT_EQ(kpi->jobs_ended(), 1U);
  EXPECT_DOUBLE_EQ(kpi->gpus().gpu_hours(), 2);
  EXPECT_DOUBLE_EQ(kpi->available_gpu_hours(), 8);
  EXPECT_DOUBLE_EQ(kpi->allocation_percent(), 25);
}

TEST_F(KpiTest, RatesUseTheTimeOfWhichThereAreRecords) {
  kpis_.runs.add(ended_job(1'000'000), {});
  core_.records_since = from_ + base::hours(2);
  const auto kpi = ask_as(kBob);
  ASSERT_TRUE(kpi);
  EXPECT_TRUE(kpi->has_complete_since());
  EXPECT_NEAR(kpi->completed_per_hour(), 0.5, 0.001);
}

TEST_F(KpiTest, GpusAreAvailableFromTheFirstRecordOn) {
  keep_readings();
  core_.records_since = from_ + base::hours(2);
  const auto kpi = ask_as(kBob);
  ASSERT_TRUE(kpi);
  EXPECT_DOUBLE_EQ(kpi->available_gpu_hours(), 4) << "2 GPUs for two of the four hours";
  core_.records_since = to_;
  const auto empty = ask_as(kBob);
  ASSERT_TRUE(empty);
  EXPECT_FALSE(empty->has_available_gpu_hours());
}

TEST_F(KpiTest, IsNotAnsweredWhileEndedJobsAreRead) {
  kpis_.is_reading = true;
  const auto kpi = ask_as(kBob);
  ASSERT_FALSE(kpi);
  EXPECT_EQ(kpi.error().code, base::ErrorCode::kUnavailable);
}

TEST_F(KpiTest, IsAnsweredOverTheWireWithNullsForWhatIsNotKnown) {
  start();
  const auto kpi = parsed(ask("GET", "/v1/kpi?since=2024-01-01T00:00:00Z"));
  EXPECT_EQ(kpi["jobs_ended"], 0) << kpi;
  EXPECT_TRUE(kpi["completion_time"].is_null());
  EXPECT_TRUE(kpi["failure_percent"].is_null());
  EXPECT_TRUE(kpi["allocation_percent"].is_null());
  EXPECT_TRUE(kpi["gpus"]["utilization_percent"].is_null());
  ASSERT_EQ(kpi["kinds"].size(), 4U);
  EXPECT_EQ(kpi["kinds"][0]["kind"], "TRAINING");
  EXPECT_EQ(kpi["kinds"][0]["min_target_percent"], 90.0);
  EXPECT_TRUE(kpi["kinds"][0]["target_met"].is_null());
  EXPECT_EQ(kpi["kinds"][1]["max_target_percent"], 50.0);
  EXPECT_TRUE(kpi["kinds"][3]["min_target_percent"].is_null());
}

TEST_F(KpiTest, RefusesAWindowThatIsNone) {
  start();
  const auto answer = ask("GET", "/v1/kpi?since=2024-02-01T00:00:00Z&until=2024-01-01T00:00:00Z");
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("since: 2024-02-01"), std::string::npos) << answer.body;
  EXPECT_EQ(ask("GET", "/v1/kpi?since=1990-01-01T00:00:00Z").status, 400);
}

}  // namespace
}  // namespace gpu_platform::api
