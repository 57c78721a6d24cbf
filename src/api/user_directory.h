#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "api/convert/job.h"
#include "base/result.h"

namespace gpu_platform::api {

// The system's accounts. Answers are remembered for a minute, because the system may have to ask
// the network. Safe from any thread.
class UserDirectory {
 public:
  // Name of a user id; the number itself where the system has no name for it.
  std::string name_of(std::uint32_t uid);
  // kInvalidArgument (field "user") for a name that the system does not know.
  base::Result<Account> find(const std::string& user);

 private:
  struct Entry {
    std::string name;
    std::chrono::steady_clock::time_point until;
  };
  std::mutex mutex_;
  std::map<std::uint32_t, Entry> names_;
};

}  // namespace gpu_platform::api
