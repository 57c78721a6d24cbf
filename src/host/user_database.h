#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"

namespace gpu_platform::host {

struct User {
  std::string name;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string home;
  std::string shell;

  friend bool operator==(const User&, const User&) = default;
};

// The system's users. Its functions may hang: only SlowCalls calls them. Safe from any thread.
class UserDatabase {
 public:
  virtual ~UserDatabase() = default;
  // Returns kNotFound for a user that does not exist, and another error if that cannot be known.
  virtual base::Result<User> find(std::uint32_t uid) const = 0;
  virtual base::Result<User> find(const std::string& name) const = 0;
};

// The users of the name service (nsswitch.conf).
std::shared_ptr<const UserDatabase> system_users();

}  // namespace gpu_platform::host
