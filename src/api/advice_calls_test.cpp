#include "api/advice_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/fake_core_test.h"
#include "api/peers_test.h"
#include "base/month.h"
#include "os/clock.h"

namespace gpu_platform::api {
namespace {

constexpr model::Millis kAdviceHour = 3'600'000;
const base::Month kAdviceMonth{2020, 5};

// Lines that a test adds.
class AdviceLedger final : public store::Ledger {
 public:
  base::Status visit(const store::LedgerQuery& query, const Visit& visit) const override {
    for (const model::LedgerLine& line : lines) {
      const bool is_in = line.from < query.to && line.to > query.from;
      if (is_in && (query.user.empty() || line.user == query.user)) TRY(visit(line));
    }
    return {};
  }
  base::Result<model::EventSeq> ledger_upto() const override { return model::EventSeq(1); }

  std::vector<model::LedgerLine> lines;
};

// Summaries that a test adds.
class AdviceUses final : public telemetry::UseSource {
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

// Two readings, all that were to be expected: 2 % of the GPU, and at most 20 GiB.
telemetry::UseSummary summary_of_an_idle_run() {
  telemetry::UseSummary summary;
  summary.from = base::begin_of(kAdviceMonth);
  summary.to = summary.from + base::seconds(10);
  summary.interval = base::seconds(5);
  telemetry::GpuUse& gpu = summary.gpus.emplace_back();
  gpu.memory = base::kGiB * 80;
  gpu.samples = 2;
  for (const std::int64_t step : {1, 2}) {
    gpu.levels[telemetry::use_level("utilization_percent")].add(2 * step - 1);
    gpu.levels[telemetry::use_level("memory_used_bytes")].add(base::kGiB.value() * 10 * step);
  }
  return summary;
}

// An H100 costs 5.50 an hour, 1.65 on spot capacity and 2.75 if it is reserved, an L40S 2.20. In
// May 2020 Ada used a spot H100 for two hours in job 70, and Bob an H100 for four hours in job 71
// for the team vision.
class AdviceTest : public testing::Test {
 protected:
  AdviceTest() {
    model::PriceBook prices;
    add_price(prices, "H100-80GB", {}, 5'500'000);
    add_price(prices, "H100-80GB", model::CapacityClass::kSpot, 1'650'000);
    add_price(prices, "H100-80GB", model::CapacityClass::kReserved, 2'750'000);
    add_price(prices, "L40S-48GB", {}, 2'200'000);
    core_.set_prices(std::move(prices));
    core_.edit_node([](model::Node& node) {
      node.gpus[0].info.type = "L40S-48GB";
      node.gpus[0].info.memory = base::kGiB * 48;
    });
    core_.ledger = &ledger_;
    core_.uses = &uses_;
    ledger_.lines = {used("ada", "", 70, {0, 2}), used("bob", "vision", 71, {2, 6})};
    ledger_.lines[0].capacity = model::CapacityClass::kSpot;
    ledger_.lines[0].price = 2;
    uses_.summaries[{model::JobId(71), 1}] = summary_of_an_idle_run();
  }

  static void add_price(model::PriceBook& prices, std::string gpu_type,
                        std::optional<model::CapacityClass> capacity, std::int64_t micros) {
    model::PriceEntry& entry = prices.entries.emplace_back();
    entry.id = static_cast<std::uint32_t>(prices.entries.size());
    entry.price.gpu_type = std::move(gpu_type);
    entry.price.capacity = capacity;
    entry.price.per_hour = base::MicroUsd(micros);
    entry.begin = base::Instant(1);
  }
  struct Hours {
    int from = 0;
    int to = 0;
  };
  static model::LedgerLine used(std::string user, std::string team, std::uint64_t job,
                                Hours hours) {
    model::LedgerLine line;
    line.kind = model::LedgerKind::kHeld;
    line.node = "dgx-h100-1";
    line.gpu_uuid = "GPU-1";
    line.gpu_type = "H100-80GB";
    line.share = base::kWholeGpu;
    line.price = 1;
    const model::Millis begin = model::millis_of(base::begin_of(kAdviceMonth));
    line.from = line.started = begin + hours.from * kAdviceHour;
    line.ended = line.to = begin + hours.to * kAdviceHour;
    line.attempt = {model::JobId(job), 1};
    line.user = std::move(user);
    line.team = std::move(team);
    line.job_name = "train-" + std::to_string(job);
    return line;
  }
  // Bob's GPU from some days ago on until after now.
  void use_since(int days) {
    model::LedgerLine& line = ledger_.lines[1];
    const model::Millis now = model::millis_of(os::wall_now());
    line.from = line.started = now - days * 24 * kAdviceHour;
    line.ended = line.to = now + 24 * kAdviceHour;
  }

  template <class Request>
  static Request of_that_month() {
    Request request;
    to_proto(base::begin_of(kAdviceMonth), *request.mutable_since());
    to_proto(base::end_of(kAdviceMonth), *request.mutable_until());
    return request;
  }
  base::Result<v1::Savings> savings(const Peer& peer) {
    const CoreAccess core = core_.access();
    const CallContext context(core, {});
    return AdviceCalls(context).savings(of_that_month<v1::GetSavingsRequest>(), peer);
  }
  base::Result<v1::Forecast> forecast(const Peer& peer, const std::string& team = {}) {
    const CoreAccess core = core_.access();
    const CallContext context(core, {});
    v1::GetForecastRequest request;
    if (!team.empty()) request.set_team(team);
    return AdviceCalls(context).forecast(request, peer);
  }
  base::Result<v1::Advice> advice(const Peer& peer, const std::string& team = {}) {
    const CoreAccess core = core_.access();
    const CallContext context(core, {});
    auto request = of_that_month<v1::GetAdviceRequest>();
    if (!team.empty()) request.set_team(team);
    return AdviceCalls(context).advice(request, peer);
  }

  FakeCore core_;
  AdviceLedger ledger_;
  AdviceUses uses_;
};

TEST_F(AdviceTest, SavingsAreOfTheJobsThatACallerSees) {
  const auto own = savings(kAda);
  ASSERT_TRUE(own) << own.error().message;
  ASSERT_EQ(own->rows_size(), 1);
  EXPECT_EQ(own->total().cost(), "3.300000");
  EXPECT_EQ(own->total().on_demand_cost(), "11.000000");
  EXPECT_EQ(own->total().saved(), "7.700000");
  EXPECT_DOUBLE_EQ(own->total().gpu_hours(), 2);
  EXPECT_TRUE(own->partial());
  const auto none = savings(kBob);
  ASSERT_TRUE(none);
  EXPECT_EQ(none->rows_size(), 0);
  EXPECT_EQ(none->total().saved(), "0.000000");
  const auto all = savings(kRoot);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->total().saved(), "7.700000");
  EXPECT_FALSE(all->partial());
}

TEST_F(AdviceTest, ACoordinatorSeesTheFamiliesOfItsTeam) {
  model::AccessSettings settings;
  settings.coordinators = {{"vision", {"ada"}}};
  model::Organisation organisation;
  organisation.teams = {{.name = "vision", .members = {{"bob"}}}};
  core_.set_rules({settings, organisation, 900});
  const auto seen = advice(kAda);
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(seen->families_size(), 2);
  EXPECT_EQ(seen->reserved_size(), 0) << "that is for operators";
  const auto own = advice(kBob);
  ASSERT_TRUE(own);
  ASSERT_EQ(own->families_size(), 1);
  EXPECT_EQ(own->families(0).user(), "bob");
}

TEST_F(AdviceTest, AdvisesACheaperTypeWithItsEvidence) {
  const auto found = advice(kRoot);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->families_size(), 2);
  const v1::JobFamily& family = found->families(0);
  EXPECT_EQ(family.user(), "bob");
  EXPECT_EQ(family.name(), "train");
  EXPECT_EQ(family.cost(), "22.000000");
  EXPECT_EQ(family.measured_attempts(), 1U);
  EXPECT_EQ(family.peak_memory_bytes(), static_cast<std::uint64_t>(base::kGiB.value()) * 20);
  EXPECT_DOUBLE_EQ(family.utilization_percent(), 2);
  ASSERT_EQ(family.jobs_size(), 1);
  EXPECT_EQ(family.jobs(0), "71");
  EXPECT_EQ(family.advised_gpu_type(), "L40S-48GB");
  EXPECT_EQ(family.saved(), "13.200000");
  EXPECT_EQ(family.saved_percent(), 60U);
  const v1::JobFamily& other = found->families(1);
  EXPECT_EQ(other.user(), "ada");
  EXPECT_FALSE(other.has_advised_gpu_type());
  ASSERT_GE(other.unknown_size(), 1);
  EXPECT_EQ(other.unknown(0), "peak memory");
}

TEST_F(AdviceTest, TellsIdleGpusFromThoseThatWereNotRead) {
  const auto found = advice(kRoot);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->teams_size(), 2);
  EXPECT_EQ(found->teams(0).team(), "");
  EXPECT_EQ(found->teams(0).not_measured().attempts(), 1U);
  EXPECT_EQ(found->teams(0).not_measured().cost(), "3.300000");
  EXPECT_EQ(found->teams(0).idle().attempts(), 0U);
  EXPECT_EQ(found->teams(1).team(), "vision");
  EXPECT_EQ(found->teams(1).idle().attempts(), 1U);
  EXPECT_EQ(found->teams(1).idle().cost(), "22.000000");
  EXPECT_DOUBLE_EQ(found->idle_below_percent(), 5);
  EXPECT_EQ(found->attempts_not_looked_at(), 0U);
}

TEST_F(AdviceTest, ReservationsAreForOperatorsAndOfAllTeams) {
  // The GPU of job 71 is in use all the time.
  ledger_.lines[1].ended = ledger_.lines[1].to = model::millis_of(base::end_of(kAdviceMonth));
  ledger_.lines[1].from = ledger_.lines[1].started = model::millis_of(base::begin_of(kAdviceMonth));
  const auto found = advice(kRoot);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->reserved_size(), 1);
  const v1::ReservedAdvice& reserved = found->reserved(0);
  EXPECT_EQ(reserved.gpu_type(), "H100-80GB");
  EXPECT_EQ(reserved.gpus(), 1U);
  EXPECT_EQ(reserved.reserved_price(), "2.750000");
  EXPECT_DOUBLE_EQ(reserved.break_even_percent(), 50);
  EXPECT_DOUBLE_EQ(reserved.in_use_percent(), 100);
  EXPECT_EQ(reserved.saved(), "2046.000000") << "744 hours × 2.75";
  const auto of_team = advice(kRoot, "vision");
  ASSERT_TRUE(of_team);
  EXPECT_EQ(of_team->families_size(), 1);
  EXPECT_EQ(of_team->reserved_size(), 0);
}

TEST_F(AdviceTest, AForecastOfAConstantUseIsTheWholeMonth) {
  use_since(400);
  const auto month = forecast(kBob);
  ASSERT_TRUE(month) << month.error().message;
  const auto parsed = base::parse_month(month->month());
  ASSERT_TRUE(parsed);
  const base::Duration length = base::end_of(*parsed) - base::begin_of(*parsed);
  const std::int64_t days = length.value() / base::hours(24).value();
  ASSERT_TRUE(month->has_total());
  EXPECT_EQ(month->total(), std::to_string(days * 132) + ".000000");
  EXPECT_EQ(month->history_days(), 28U);
  ASSERT_EQ(month->means_size(), 7);
  EXPECT_EQ(month->means(0).weekday(), "Monday");
  EXPECT_EQ(month->means(0).cost(), "132.000000");
  ASSERT_GE(month->trials_size(), 1);
  EXPECT_EQ(month->error_percent(), 0);
  EXPECT_FALSE(month->has_no_total());
}

TEST_F(AdviceTest, AForecastNeedsHistoryThatTheCallerSees) {
  use_since(10);
  const auto month = forecast(kBob, "vision");
  ASSERT_TRUE(month);
  EXPECT_FALSE(month->has_total());
  EXPECT_FALSE(month->has_error_percent());
  EXPECT_NE(month->no_total().find("a forecast needs 14"), std::string::npos) << month->no_total();
  const auto hidden = forecast(kAda);
  ASSERT_TRUE(hidden);
  EXPECT_EQ(hidden->booked(), "0.000000");
  EXPECT_EQ(hidden->history_days(), 0U);
}

TEST_F(AdviceTest, ErrorsNameTheFieldOfTheWindow) {
  const CoreAccess core = core_.access();
  const CallContext context(core, {});
  v1::GetSavingsRequest request;
  to_proto(os::wall_now() + base::hours(24), *request.mutable_since());
  const auto future = AdviceCalls(context).savings(request, kAda);
  ASSERT_FALSE(future);
  EXPECT_EQ(future.error().field, "since");
  core_.ledger = nullptr;
  const auto without = forecast(kAda);
  ASSERT_FALSE(without);
  EXPECT_EQ(without.error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpu_platform::api
