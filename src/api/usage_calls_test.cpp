#include "api/usage_calls.h"

#include <map>
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

constexpr model::Millis kHour = 3'600'000;
const base::Month kMay{2025, 5};  // before all that happens in the fake core

// Lines that a test adds.
class FakeLedger final : public store::Ledger {
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

// An H100 costs 5.50 an hour. Ada used one for an hour in job 70, Bob one for two in job 71 for the
// team vision; then the GPU was idle for three hours.
class UsageTest : public testing::Test {
 protected:
  UsageTest() {
    model::PriceBook prices;
    model::PriceEntry& entry = prices.entries.emplace_back();
    entry.id = 1;
    entry.price.gpu_type = "H100-80GB";
    entry.price.per_hour = base::MicroUsd(5'500'000);
    entry.begin = base::Instant(1);
    core_.set_prices(std::move(prices));
    core_.ledger = &ledger_;
    ledger_.lines = {held("ada", "", 70, 0, 1), held("bob", "vision", 71, 1, 3), rest(3, 6)};
  }

  static model::LedgerLine gpu_line(int from, int to) {
    model::LedgerLine line;
    line.node = "n1";
    line.gpu_uuid = "GPU-1";
    line.gpu_type = "H100-80GB";
    line.share = base::kWholeGpu;
    line.price = 1;
    const model::Millis begin = model::millis_of(base::begin_of(kMay));
    line.from = begin + from * kHour;
    line.to = begin + to * kHour;
    return line;
  }
  static model::LedgerLine held(std::string user, std::string team, std::uint64_t job, int from,
                                int to) {
    model::LedgerLine line = gpu_line(from, to);
    line.kind = model::LedgerKind::kHeld;
    line.started = line.from;
    line.ended = line.to;
    line.attempt = {model::JobId(job), 1};
    line.user = std::move(user);
    line.team = std::move(team);
    return line;
  }
  static model::LedgerLine rest(int from, int to) {
    model::LedgerLine line = gpu_line(from, to);
    line.kind = model::LedgerKind::kRest;
    return line;
  }

  template <class Request>
  static Request of_may() {
    Request request;
    to_proto(base::begin_of(kMay), *request.mutable_since());
    to_proto(base::end_of(kMay), *request.mutable_until());
    return request;
  }
  static v1::GetUsageRequest by_user() {
    auto request = of_may<v1::GetUsageRequest>();
    request.add_group_by("user");
    return request;
  }
  base::Result<v1::Usage> ask(const v1::GetUsageRequest& request, const Peer& peer) {
    const CoreAccess core = core_.access();
    const CallContext context(core, {});
    return UsageCalls(context).get(request, peer);
  }
  std::map<std::string, std::string> costs_for(const v1::GetUsageRequest& request,
                                               const Peer& peer) {
    const auto usage = ask(request, peer);
    EXPECT_TRUE(usage) << usage.error().message;
    std::map<std::string, std::string> costs;
    if (!usage) return costs;
    for (const v1::UsageGroup& group : usage->groups()) {
      costs[group.keys(0)] = group.figures().cost();
    }
    return costs;
  }
  base::Result<v1::MonthlyReport> month(const std::string& name, const Peer& peer,
                                        const std::string& format = {}) {
    const CoreAccess core = core_.access();
    const CallContext context(core, {});
    v1::GetMonthlyReportRequest request;
    request.set_month(name);
    if (!format.empty()) request.set_format(format);
    return UsageCalls(context).monthly(request, peer);
  }

  FakeCore core_;
  FakeLedger ledger_;
};

using Costs = std::map<std::string, std::string>;

TEST_F(UsageTest, ACallerSeesTheMoneyOfItsOwnJobsAlone) {
  EXPECT_EQ(costs_for(by_user(), kAda), (Costs{{"ada", "5.500000"}}));
  EXPECT_EQ(costs_for(by_user(), kBob), (Costs{{"bob", "11.000000"}}));
  v1::GetUsageRequest of_bob = by_user();
  of_bob.set_user("bob");
  EXPECT_EQ(costs_for(of_bob, kAda), Costs());
}

TEST_F(UsageTest, ACoordinatorSeesTheMoneyOfItsTeam) {
  model::AccessSettings settings;
  settings.coordinators = {{"vision", {"ada"}}};
  model::Organisation organisation;
  organisation.teams = {{.name = "vision", .members = {{"bob"}}}};
  core_.set_rules({settings, organisation, 900});
  EXPECT_EQ(costs_for(by_user(), kAda), (Costs{{"ada", "5.500000"}, {"bob", "11.000000"}}));
}

TEST_F(UsageTest, AnAdminSeesAllAndTheTimeOfTheFleet) {
  const auto usage = ask(of_may<v1::GetUsageRequest>(), kRoot);
  ASSERT_TRUE(usage) << usage.error().message;
  EXPECT_EQ(usage->total().cost(), "16.500000");
  EXPECT_DOUBLE_EQ(usage->total().gpu_hours(), 3);
  ASSERT_EQ(usage->total().rest_size(), 1);
  EXPECT_EQ(usage->total().rest(0).name(), "idle");
  EXPECT_EQ(usage->total().rest(0).cost(), "16.500000");
  EXPECT_FALSE(usage->has_running());
  const auto own = ask(of_may<v1::GetUsageRequest>(), kAda);
  ASSERT_TRUE(own);
  EXPECT_EQ(own->total().rest_size(), 0);
}

TEST_F(UsageTest, MineAreThoseOfTheCaller) {
  v1::GetUsageRequest request = by_user();
  request.set_mine(true);
  EXPECT_EQ(costs_for(request, kBob), (Costs{{"bob", "11.000000"}}));
  request.set_user("ada");
  const auto usage = ask(request, kBob);
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().field, "user");
}

// Job 71 has left the history; job 78 never was.
TEST_F(UsageTest, UnknownAndHiddenJobsAreAnsweredAlike) {
  auto request = of_may<v1::GetUsageRequest>();
  request.set_job("71");
  const auto hidden = ask(request, kAda);
  ASSERT_FALSE(hidden);
  EXPECT_EQ(hidden.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(hidden.error().message, "there is no job 71");
  const auto seen = ask(request, kBob);
  ASSERT_TRUE(seen) << "its lines stay";
  EXPECT_EQ(seen->total().cost(), "11.000000");
  request.set_job("78");
  const auto unknown = ask(request, kAda);
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(unknown.error().message, "there is no job 78");
}

TEST_F(UsageTest, ErrorsNameTheField) {
  v1::GetUsageRequest odd = by_user();
  odd.add_group_by("colour");
  EXPECT_EQ(ask(odd, kAda).error().field, "group_by");
  v1::GetUsageRequest future;
  to_proto(os::wall_now() + base::hours(24), *future.mutable_since());
  EXPECT_EQ(ask(future, kAda).error().field, "since");
  v1::GetUsageRequest backwards;
  to_proto(base::end_of(kMay), *backwards.mutable_since());
  to_proto(base::begin_of(kMay), *backwards.mutable_until());
  EXPECT_EQ(ask(backwards, kAda).error().field, "since");
  EXPECT_EQ(month("2025-13", kAda).error().field, "month");
  EXPECT_EQ(month("2261-01", kAda).error().field, "month");
  EXPECT_EQ(month("2025-05", kAda, "pdf").error().field, "format");
}

TEST_F(UsageTest, AWindowHasItsPartOfALine) {
  v1::GetUsageRequest request = by_user();
  to_proto(base::begin_of(kMay) + base::hours(2), *request.mutable_since());
  EXPECT_EQ(costs_for(request, kBob), (Costs{{"bob", "5.500000"}}));
}

TEST_F(UsageTest, AClosedMonthIsFinalAndAddsUp) {
  const auto report = month("2025-05", kRoot, "json");
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_EQ(report->status(), "final");
  EXPECT_EQ(report->total(), "16.500000");
  ASSERT_EQ(report->teams_size(), 2);
  EXPECT_EQ(report->teams(0).team(), "");
  EXPECT_EQ(report->teams(0).total_cost(), "5.500000");
  EXPECT_EQ(report->teams(1).team(), "vision");
  ASSERT_EQ(report->teams(1).by_gpu_type_size(), 1);
  EXPECT_DOUBLE_EQ(report->teams(1).by_gpu_type(0).hours(), 2);
  EXPECT_EQ(report->fleet_total().cost(), "33.000000");
  EXPECT_EQ(report->differences_size(), 0);
  EXPECT_FALSE(report->partial());
  EXPECT_TRUE(report->document().starts_with("{\n  \"month\": \"2025-05\",\n"))
      << report->document();
}

// No team is there any more: what was used keeps its names. A name that never was has used nothing.
TEST_F(UsageTest, ATeamThatIsGoneKeepsItsUse) {
  v1::GetUsageRequest request = by_user();
  request.set_team("vision");
  EXPECT_EQ(costs_for(request, kRoot), (Costs{{"bob", "11.000000"}}));
  request.set_team("visoin");
  EXPECT_EQ(costs_for(request, kRoot), Costs());
}

TEST_F(UsageTest, AMonthOfACallerIsOfTheJobsThatItSees) {
  const auto report = month("2025-05", kAda);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->total(), "5.500000");
  EXPECT_TRUE(report->partial());
  EXPECT_EQ(report->fleet_size(), 0);
  EXPECT_FALSE(report->has_document());
}

TEST_F(UsageTest, TheBalanceHasNoDifference) {
  const CoreAccess core = core_.access();
  const CallContext context(core, {});
  const auto balance = UsageCalls(context).balance(of_may<v1::GetBalanceRequest>(), kRoot);
  ASSERT_TRUE(balance) << balance.error().message;
  EXPECT_EQ(balance->differences_size(), 0);
  EXPECT_EQ(balance->gpus(), 1U);
  EXPECT_DOUBLE_EQ(balance->whole().gpu_hours(), 6);
  EXPECT_EQ(balance->whole().cost(), "33.000000");
}

TEST_F(UsageTest, LinesComeInPages) {
  const CoreAccess core = core_.access();
  const CallContext context(core, {});
  auto request = of_may<v1::ListLedgerRequest>();
  request.set_limit(2);
  const auto first = UsageCalls(context).list_lines(request, kRoot);
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(first->lines_size(), 2);
  EXPECT_EQ(first->lines(0).job(), "70");
  EXPECT_EQ(first->lines(0).cost(), "5.500000");
  EXPECT_EQ(first->lines(0).price_per_hour(), "5.500000");
  ASSERT_TRUE(first->has_next_page());
  request.set_page_token(first->next_page());
  const auto second = UsageCalls(context).list_lines(request, kRoot);
  ASSERT_TRUE(second);
  ASSERT_EQ(second->lines_size(), 1);
  EXPECT_EQ(second->lines(0).rest(), "idle");
  EXPECT_FALSE(second->has_next_page());
  request.set_page_token("x");
  EXPECT_EQ(UsageCalls(context).list_lines(request, kRoot).error().field, "page_token");
}

TEST_F(UsageTest, WithoutALedgerThereIsNoAnswer) {
  core_.ledger = nullptr;
  const auto usage = ask(by_user(), kAda);
  ASSERT_FALSE(usage);
  EXPECT_EQ(usage.error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpu_platform::api
