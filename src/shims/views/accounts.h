#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu_platform/v1/budgets.pb.h"
#include "gpu_platform/v1/shares.pb.h"
#include "shims/command_call.h"
#include "shims/views/billing_weights.h"

// The teams of the configuration and their users, which are Slurm's accounts: what sacctmgr and
// sshare have in common. If the configuration has no teams, any name is one, and all users are of
// the account "root".

namespace gpu_platform::shims {

// The organisation as a whole.
inline constexpr std::string_view kRootAccount = "root";

// A line of the organisation with its limits as Slurm writes them; empty ones are not set.
struct AccountShare {
  v1::Share share;
  std::string grp_jobs;
  std::string grp_submit;
  std::string grp_tres;
  std::string grp_tres_mins;
  std::string tres_run_mins;  // where sshare has asked for the prices
  // Of its budget in the present period; absent: it has none that the caller may see.
  std::optional<std::int64_t> spent_billing_minutes;
};

bool is_user(const v1::Share& share);
// The team; "root" for the organisation and for users without a team.
std::string account_of(const v1::Share& share);
// "gres/gpu", "gres/gpu:h100".
std::string gpu_resource(const std::string& type);

// The shares as the daemon lists them: a team, then its users and the teams below it. The limits of
// a user are for all of its accounts together. A budget is a limit of billing. Nothing after a
// message.
std::optional<std::vector<AccountShare>> shares_of(CommandCall& call);

// Puts the limits of a share, from the quotas and the budgets.
void put_limits(const v1::ListSharesResponse& shares, const v1::ListBudgetsResponse& budgets,
                AccountShare& row);

// What its running jobs may still use by their time limits, in minutes:
// "billing=495,gres/gpu=90,gres/gpu:h100=90". Without weights there is no billing.
std::string running_minutes(const v1::Share& share, const BillingWeights& weights);
// What it has used, in minutes: "billing=495,gres/gpu=90". Each is left out where it is not
// counted.
std::string raw_minutes(const AccountShare& row);

}  // namespace gpu_platform::shims
