#include "shims/views/accounts.h"

#include <gtest/gtest.h>

#include "client/answer.h"

namespace gpu_platform::shims {
namespace {

v1::ListBudgetsResponse two_budgets() {
  return *client::message_of<v1::ListBudgetsResponse>(
      R"({"budgets":[{"holder":"team","name":"vision","amount":"100.00","spent":"8.25"},)"
      R"({"holder":"user","name":"ada","amount":"1.50","spent":"0.00"},)"
      R"({"holder":"project","name":"vision","amount":"7.00","spent":"7.00"}]})");
}

AccountShare limited_share(const std::string& team, const std::string& user) {
  const auto quotas = *client::message_of<v1::ListSharesResponse>(
      R"({"quotas":[{"holder":"team","name":"vision","gpu_type":"","gpu_hours":100},)"
      R"({"holder":"team","name":"vision","gpu_type":"H100","gpu_hours":4}]})");
  AccountShare row;
  row.share.set_team(team);
  row.share.set_user(user);
  put_limits(quotas, two_budgets(), row);
  return row;
}

TEST(AccountLimits, ABudgetIsALimitOfBilling) {
  EXPECT_EQ(limited_share("vision", "").grp_tres_mins,
            "billing=6000,gres/gpu=6000,gres/gpu:h100=240");
  EXPECT_EQ(limited_share("vision", "ada").grp_tres_mins, "billing=90");
  EXPECT_EQ(limited_share("speech", "").grp_tres_mins, "");
  EXPECT_EQ(limited_share("", "").grp_tres_mins, "") << "the organisation";
}

TEST(AccountLimits, WhatIsSpentIsRawUsage) {
  AccountShare row = limited_share("vision", "");
  EXPECT_EQ(raw_minutes(row), "billing=495");
  row.share.set_use_gpu_seconds(5400);
  EXPECT_EQ(raw_minutes(row), "billing=495,gres/gpu=90");
  EXPECT_EQ(raw_minutes(limited_share("speech", "")), "");
}

TEST(AccountLimits, RunningJobsMayStillCostTheirTime) {
  const v1::Share share = *client::message_of<v1::Share>(
      R"({"running":[{"gpu_type":"H100-80GB","gpu_seconds":5400}]})");
  EXPECT_EQ(running_minutes(share, {}), "gres/gpu=90,gres/gpu:h100-80gb=90");
  const BillingWeights weights{.gpus = {{"H100-80GB", {}, base::MicroUsd(5'500'000)}}};
  EXPECT_EQ(running_minutes(share, weights), "billing=495,gres/gpu=90,gres/gpu:h100-80gb=90");
}

}  // namespace
}  // namespace gpu_platform::shims
