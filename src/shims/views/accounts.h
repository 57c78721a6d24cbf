#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gpu_platform/v1/shares.pb.h"
#include "shims/command_call.h"

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
};

bool is_user(const v1::Share& share);
// The team; "root" for the organisation and for users without a team.
std::string account_of(const v1::Share& share);
// "gres/gpu", "gres/gpu:h100".
std::string gpu_resource(const std::string& type);

// The shares as the daemon lists them: a team, then its users and the teams below it. The limits of
// a user are for all of its accounts together. Nothing after a message.
std::optional<std::vector<AccountShare>> shares_of(CommandCall& call);

}  // namespace gpu_platform::shims
