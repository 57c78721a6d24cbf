#include "bin/event_log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bin/captured_log_fixture.h"

namespace gpu_platform::bin {
namespace {

class EventLogTest : public ::testing::Test {
 protected:
  std::string line_of(model::Event event, const controller::Snapshot& as_published = {}) {
    const model::EventRecord record{model::EventSeq(7), base::Instant(1), std::move(event)};
    const auto snapshot = std::make_shared<const controller::Snapshot>(as_published);
    EventLog(log_).published(snapshot, {&record, 1}, controller::DepartedJobs());
    const auto lines = captured_.lines();
    return lines.empty() ? "" : lines.back();
  }

  CapturedLog captured_;
  logging::Log log_;
};

TEST_F(EventLogTest, HasALineForEachEventOfANode) {
  model::TaintChanged change{
      model::NodeId(2),
      {},
      {model::TaintSource::kConnection, model::TaintEffect::kOut, "no \"answer\"\n", "node", {}}};
  EXPECT_EQ(line_of(change),
            "info: event=7 node_id=2 party=CONNECTION effect=OUT cause=\"no \\\"answer\\\"\\n\" "
            "by=\"node\"");
  change.is_lifted = true;
  EXPECT_TRUE(
      line_of(change).starts_with("info: event=7 node_id=2 party=CONNECTION effect=LIFTED"));
}

TEST_F(EventLogTest, TellsWhoKeepsAGpuFromWork) {
  const model::Taint taint{
      model::TaintSource::kOperator, model::TaintEffect::kNoNewWork, "swap", "ann", {}};
  const std::string line = line_of(model::TaintChanged{model::NodeId(1), 3, taint, false});
  EXPECT_TRUE(line.starts_with("info: event=7 node_id=1 gpu=3 party=")) << line;
  EXPECT_TRUE(line.ends_with(" cause=\"swap\" by=\"ann\"")) << line;
  const std::string lifted = line_of(model::TaintChanged{model::NodeId(1), 3, taint, true});
  EXPECT_NE(lifted.find(" effect=LIFTED "), std::string::npos) << lifted;
}

TEST_F(EventLogTest, WarnsOfTheSitesProgramsThatFailed) {
  model::AttemptEnded ended;
  ended.attempt = {model::JobId(4), 2};
  ended.reason = model::EndReason::kPrologFailed;
  ended.detail = "exit code 3\x1b";
  EXPECT_EQ(line_of(ended), "warning: event=7 job=4 attempt=2 not started: exit code 3\\x1b");
  model::AttemptReleased released;
  released.attempt = {model::JobId(4), 2};
  released.epilog_failure = "exit code 1";
  EXPECT_EQ(line_of(released), "warning: event=7 job=4 attempt=2 the site's epilog: exit code 1");
}

TEST_F(EventLogTest, TellsOfPricesAndCorrections) {
  model::PriceSet price;
  price.price.gpu_type = "H100";
  price.price.per_hour = base::MicroUsd(5'500'000);
  price.by = "root";
  EXPECT_EQ(line_of(price),
            "info: event=7 price of type=\"H100\" node=\"\" per_gpu_hour=5.50 set by=\"root\"");
  EXPECT_EQ(line_of(model::PriceWithdrawn{3, "root"}),
            "info: event=7 price=3 withdrawn by=\"root\"");
  model::LedgerCorrected correction;
  correction.user = "ann";
  correction.amount = base::MicroUsd(-250'000);
  correction.text = "=cmd()\n";
  correction.by = "root";
  EXPECT_EQ(line_of(correction),
            "info: event=7 ledger corrected user=\"ann\" team=\"\" project=\"\" amount=-0.25 "
            "by=\"root\" text=\"=cmd()\\n\"");
}

TEST_F(EventLogTest, TellsOfBudgetsAndOfTheirLevels) {
  model::BudgetSet set;
  set.budget.key = {model::QuotaHolder::kTeam, "vision"};
  set.budget.amount = base::MicroUsd(100'000'000);
  set.by = "root";
  EXPECT_EQ(line_of(set),
            "info: event=7 budget of team=\"vision\" amount=100.00 period=month at_limit=alert set "
            "by=\"root\"");
  set.budget.over = {base::Instant(base::seconds(86'400).value()), "eve", "a deadline"};
  EXPECT_EQ(line_of(set),
            "info: event=7 budget of team=\"vision\" overridden until=1970-01-02T00:00:00Z "
            "by=\"eve\" why=\"a deadline\"");
  EXPECT_EQ(line_of(model::BudgetRemoved{set.budget.key, "root"}),
            "info: event=7 budget of team=\"vision\" removed by=\"root\"");
  model::BudgetState state;
  state.budget = set.budget;
  state.level = model::BudgetLevel::kNearly;
  state.level_since = base::Instant(1);
  state.counted = base::MicroUsd(80'000'000);
  controller::Snapshot snapshot;
  snapshot.budgets = model::BudgetStates{{set.budget.key, state}};
  EXPECT_EQ(line_of(model::BudgetsCounted{}, snapshot),
            "info: event=7 budget of team=\"vision\" level=nearly spent=80.00 amount=100.00");
}

TEST_F(EventLogTest, JobsAreForDebugging) {
  EXPECT_TRUE(line_of(model::JobEligible{model::JobId(4)}).starts_with("debug: event=7 kind="));
}

}  // namespace
}  // namespace gpu_platform::bin
