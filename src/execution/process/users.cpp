#include "execution/process/users.h"

#include <errno.h>
#include <grp.h>
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

std::vector<std::uint32_t> groups_of(const std::string& name, gid_t gid) {
  int count = 64;
  std::vector<gid_t> groups(static_cast<std::size_t>(count));
  while (getgrouplist(name.c_str(), gid, groups.data(), &count) < 0) {
    // Where count does not grow there is another failure than want of room.
    if (count <= static_cast<int>(groups.size())) return {gid};
    groups.resize(static_cast<std::size_t>(count));
  }
  groups.resize(static_cast<std::size_t>(count));
  return {groups.begin(), groups.end()};
}

base::Result<UserIdentity> look_up(std::uint32_t uid, std::uint32_t gid) {
  UserIdentity identity;
  identity.uid = uid;
  identity.gid = gid;
  identity.groups = {gid};
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
  identity.groups = groups_of(identity.name, gid);
  return identity;
}

}  // namespace

base::Result<UserIdentity> Users::find(std::uint32_t uid, std::uint32_t gid) {
  const std::int64_t now = steady_seconds();
  const auto key = std::pair(uid, gid);
  const auto known = known_.find(key);
  if (known != known_.end() && now < known->second.until_s) return known->second.identity;
  TRY_ASSIGN(UserIdentity identity, look_up(uid, gid));
  if (known_.size() >= kMaxKnown) known_.clear();
  known_[key] = {identity, now + kKeepSeconds};
  return identity;
}

}  // namespace gpu_platform::execution
