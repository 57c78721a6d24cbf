#include "host/user_database.h"

#include <pwd.h>

#include <cerrno>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::host {

namespace {

constexpr std::size_t kLongestRecord = std::size_t{1} << 20;

// Words in which name services say that there is no such user.
bool means_unknown(int error) {
  return error == 0 || error == ENOENT || error == ESRCH || error == EBADF || error == EPERM;
}

// Calls one of the getpw…_r functions with a buffer that is large enough.
template <class Query>
base::Result<User> ask(const std::string& who, Query&& query) {
  passwd record{};
  std::vector<char> buffer(4096);
  passwd* found = nullptr;
  int error = 0;
  while (true) {
    error = query(&record, buffer.data(), buffer.size(), &found);
    if (error == EINTR) continue;
    if (error != ERANGE || buffer.size() >= kLongestRecord) break;
    buffer.resize(buffer.size() * 2);
  }
  if (found != nullptr) {
    return User{record.pw_name, record.pw_uid, record.pw_gid, record.pw_dir, record.pw_shell};
  }
  if (!means_unknown(error)) {
    return std::unexpected(base::system_error("look up user " + who, error));
  }
  return base::fail(base::ErrorCode::kNotFound,
                    fmt::format("user {} is not known on this host", who));
}

class SystemUsers final : public UserDatabase {
 public:
  base::Result<User> find(std::uint32_t uid) const override {
    return ask(fmt::format("{}", uid), [uid](auto... rest) { return getpwuid_r(uid, rest...); });
  }
  base::Result<User> find(const std::string& name) const override {
    return ask(name, [&name](auto... rest) { return getpwnam_r(name.c_str(), rest...); });
  }
};

}  // namespace

std::shared_ptr<const UserDatabase> system_users() {
  return std::make_shared<const SystemUsers>();
}

}  // namespace gpu_platform::host
