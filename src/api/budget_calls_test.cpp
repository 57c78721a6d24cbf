#include "api/budget_calls.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "accounting/exact_cost.h"
#include "api/call_context.h"
#include "api/fake_core_test.h"
#include "api/peers_test.h"
#include "os/clock.h"

namespace gpu_platform::api {
namespace {

// Publishes budgets, and accepts all commands.
class CoreOfBudgets final : public CommandSink, public SnapshotSource {
 public:
  void submit(model::Command command, Done done) override {
    commands.push_back(std::move(command));
    done(model::CommandReply{});
  }
  std::shared_ptr<const controller::Snapshot> snapshot() const override {
    return std::make_shared<const controller::Snapshot>(published);
  }

  controller::Snapshot published;
  std::vector<model::Command> commands;
};

// 80.25 of 100.00 are spent of each of three budgets.
class BudgetCallsTest : public testing::Test {
 protected:
  BudgetCallsTest() {
    core_.published.policy = std::make_shared<const model::Policy>();
    model::BudgetStates budgets;
    for (const model::BudgetKey& key : {model::BudgetKey{model::QuotaHolder::kTeam, "vision"},
                                        model::BudgetKey{model::QuotaHolder::kUser, "ada"},
                                        model::BudgetKey{model::QuotaHolder::kProject, "demo"}}) {
      budgets.emplace(key, state_of(key));
    }
    core_.published.budgets = std::move(budgets);
  }

  static model::BudgetState state_of(const model::BudgetKey& key) {
    model::BudgetState state;
    state.budget.key = key;
    state.budget.amount = base::MicroUsd(100'000'000);
    state.budget.act = model::BudgetAct::kRefuse;
    state.period_begin = model::begin_of(model::BudgetPeriod::kMonth, os::wall_now());
    state.settled = accounting::ExactCost(base::MicroUsd(80'250'000)).stored();
    state.level = model::BudgetLevel::kNearly;
    state.level_since = state.period_begin;
    return state;
  }
  static Peer member_of(std::string team) {
    Peer peer = kBob;
    model::Teams teams;
    teams.member_of = {std::move(team)};
    peer.caller.teams = std::make_shared<const model::Teams>(std::move(teams));
    return peer;
  }
  std::string listed(const Peer& peer) const {
    const auto page = calls_.list({}, peer);
    if (!page) return page.error().message;
    std::string names;
    for (const v1::Budget& budget : page->budgets()) {
      names += budget.holder() + " " + budget.name() + ";";
    }
    return names;
  }
  // The refusal's code and field.
  static std::string refusal(const base::Result<v1::Budget>& result) {
    if (result) return "accepted";
    return std::string(to_string(result.error().code)) + " " + result.error().field;
  }
  base::Result<v1::Budget> set(const v1::SetBudgetRequest& request, const Peer& peer) const {
    std::optional<base::Result<v1::Budget>> answer;
    calls_.set(
        request, peer, [](auto work) { work(); },
        [&](base::Result<v1::Budget> made) { answer = std::move(made); });
    return *std::move(answer);
  }

  CoreOfBudgets core_;
  FakeCore others_;
  CoreAccess access_{.commands = core_,
                     .snapshots = core_,
                     .archive = others_,
                     .outputs = others_,
                     .users = others_.users};
  CallContext context_{access_, {.version = "1"}};
  BudgetCalls calls_{context_};
};

TEST_F(BudgetCallsTest, AreSeenByTheirHoldersAndByOperators) {
  EXPECT_EQ(listed(kRoot), "team vision;user ada;project demo;");
  EXPECT_EQ(listed(kAda), "user ada;");
  EXPECT_EQ(listed(kBob), "");
  EXPECT_EQ(listed(member_of("vision")), "team vision;");
  EXPECT_EQ(listed(member_of("ada")), "") << "a team that is called like the user";
}

TEST_F(BudgetCallsTest, SayWhatIsSpentAndLeft) {
  v1::GetBudgetRequest request;
  request.set_holder("user");
  request.set_name("ada");
  const auto budget = calls_.get(request, kAda);
  ASSERT_TRUE(budget) << budget.error().message;
  EXPECT_EQ(budget->amount(), "100.00");
  EXPECT_EQ(budget->spent(), "80.25");
  EXPECT_EQ(budget->left(), "19.75");
  EXPECT_EQ(budget->per_hour(), "0.00");
  EXPECT_EQ(budget->level(), v1::BUDGET_LEVEL_NEARLY);
  EXPECT_FALSE(budget->bars_starts());
  EXPECT_EQ(refusal(calls_.get(request, kBob)), "NOT_FOUND name");
  request.set_holder("group");
  EXPECT_EQ(refusal(calls_.get(request, kAda)), "INVALID_ARGUMENT holder");
}

TEST_F(BudgetCallsTest, AChangeIsSentAndAnsweredWithTheBudget) {
  v1::SetBudgetRequest request;
  request.set_holder("team");
  request.set_name("vision");
  request.set_amount("250.5");
  request.set_at_limit(v1::BUDGET_ACT_STOP);
  const auto budget = set(request, kRoot);
  ASSERT_TRUE(budget) << budget.error().message;
  EXPECT_EQ(budget->name(), "vision");
  ASSERT_EQ(core_.commands.size(), 1U);
  const auto* command = std::get_if<model::SetBudget>(&core_.commands[0].body);
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->key, (model::BudgetKey{model::QuotaHolder::kTeam, "vision"}));
  EXPECT_EQ(command->amount, base::MicroUsd(250'500'000));
  EXPECT_EQ(command->period, std::nullopt);
  EXPECT_EQ(command->act, model::BudgetAct::kStop);
  for (const char* wrong : {"-1", "1.1234567", "1000000000000000", "ten"}) {
    request.set_amount(wrong);
    EXPECT_EQ(refusal(set(request, kRoot)), "INVALID_ARGUMENT amount") << wrong;
  }
  EXPECT_EQ(core_.commands.size(), 1U);
}

}  // namespace
}  // namespace gpu_platform::api
