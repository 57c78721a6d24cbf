#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/json_view.h"
#include "shims/command_call.h"

// The teams of the configuration and their users, which are Slurm's accounts: what sacctmgr and
// sshare have in common. Where the configuration has no teams any name is one, and all users are of
// the account "root".

namespace gpu_platform::shims {

// The organisation as a whole.
inline constexpr std::string_view kRootAccount = "root";

bool is_user(const cli::Json& share);
// The team; "root" for the organisation and for users without a team.
std::string account_of(const cli::Json& share);
// "gres/gpu", "gres/gpu:h100".
std::string gpu_resource(const std::string& type);

// The shares as the daemon lists them: a team, then its users and the teams below it. Each has its
// limits as "grp_jobs", "grp_submit", "grp_tres" and "grp_tres_mins"; those of a user are for all
// of its accounts together. Nothing after a message.
std::optional<std::vector<cli::Json>> shares_of(CommandCall& call);

}  // namespace gpu_platform::shims
