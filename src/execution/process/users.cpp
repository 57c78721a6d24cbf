#include "execution/process/users.h"

#include <errno.h>
#include <pwd.h>
#include <unistd.h>

#include <chrono>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::execution {

namespace {

constexpr std::int64_t kKeepSeconds = 60;
constexpr std::size_t kMaxKnown = 4096;

std::int64_t steady_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

base::Result<UserIdentity> look_up(std::uint32_t uid) {
  UserIdentity identity;
  identity.uid = uid;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(4096);
  int error = 0;
  while ((error = getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found)) == ERANGE &&
         buffer.size() < (1u << 20)) {
    buffer.resize(buffer.size() * 2);
  }
  if (found == nullptr) {
    if (uid == geteuid()) return identity;  // arbitrary ids in containers have no entry
    if (error != 0)
      return std::unexpected(base::system_error(fmt::format("look up user {}", uid), error));
    return base::fail(base::ErrorCode::kNotFound,
                      fmt::format("user {} is not known on this host", uid));
  }
  identity.name = entry.pw_name;
  identity.home = entry.pw_dir;
  identity.shell = entry.pw_shell;
  return identity;
}

}  // namespace

base::Result<UserIdentity> Users::find(std::uint32_t uid) {
  const std::int64_t now = steady_seconds();
  const auto known = known_.find(uid);
  if (known != known_.end() && now < known->second.until_s) return known->second.identity;
  TRY_ASSIGN(UserIdentity identity, look_up(uid));
  if (known_.size() >= kMaxKnown) known_.clear();
  known_[uid] = {identity, now + kKeepSeconds};
  return identity;
}

}  // namespace gpu_platform::execution
