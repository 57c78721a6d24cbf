#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/call_context.h"
#include "api/convert/job.h"
#include "api/peer.h"

// The users of this host that calls name. `done` is called through `resume` if the user database
// has to be asked, else at once.

namespace gpu_platform::api {

using AccountFound = std::function<void(base::Result<Account>)>;

// Finds the user that the request's field "user" names. `asker`: the caller.
void find_account(const CallContext& context, const std::string& user, std::uint32_t asker,
                  Resume resume, AccountFound done);

// Finds the owner of a new job: the caller, or the user that an administrator names. Refused if
// jobs of that user cannot be started here.
void find_job_owner(const CallContext& context, const std::string& user, const Peer& peer,
                    Resume resume, AccountFound done);

struct NamedUser {
  std::string field;  // of the request
  std::string name;
};
// Refused if one of them does not exist on this host.
void check_users(const CallContext& context, std::vector<NamedUser> users, std::uint32_t asker,
                 Resume resume, std::function<void(base::Status)> done);

}  // namespace gpu_platform::api
