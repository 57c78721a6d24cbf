#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "execution/process/job_request.h"

namespace gpu_platform::execution {

// What users' logins would have, as the name service says; kept for a minute, because a site's
// directory may be far away.
// One thread.
class Users {
 public:
  // kNotFound for a user that nobody knows, unless it is the one this process runs as.
  base::Result<UserIdentity> find(std::uint32_t uid);

 private:
  struct Known {
    UserIdentity identity;
    std::int64_t until_s = 0;  // on the steady clock
  };
  std::map<std::uint32_t, Known> known_;
};

}  // namespace gpu_platform::execution
