#include "api/user_directory.h"

#include <pwd.h>

#include <cerrno>
#include <vector>

#include <fmt/format.h>

namespace gpu_platform::api {

namespace {

constexpr std::chrono::seconds kRememberedFor{60};
constexpr std::size_t kMostRemembered = 4096;
constexpr std::size_t kMostRecordBytes = std::size_t{1} << 20;

// Calls one of the getpw…_r functions with a buffer that is large enough.
template <class Query>
bool ask(Query&& query, passwd& record, std::vector<char>& buffer) {
  buffer.resize(4096);
  for (;;) {
    passwd* found = nullptr;
    const int error = query(&record, buffer.data(), buffer.size(), &found);
    if (error == EINTR) continue;
    if (error != ERANGE || buffer.size() >= kMostRecordBytes) return found != nullptr;
    buffer.resize(buffer.size() * 2);
  }
}

}  // namespace

std::string UserDirectory::name_of(std::uint32_t uid) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    const auto found = names_.find(uid);
    if (found != names_.end() && found->second.until > now) return found->second.name;
  }
  passwd record{};
  std::vector<char> buffer;
  const bool is_known =
      ask([uid](auto... rest) { return getpwuid_r(uid, rest...); }, record, buffer);
  std::string name = is_known ? std::string(record.pw_name) : fmt::format("{}", uid);
  const std::lock_guard lock(mutex_);
  if (names_.size() >= kMostRemembered) names_.clear();
  names_[uid] = {name, now + kRememberedFor};
  return name;
}

base::Result<Account> UserDirectory::find(const std::string& user) {
  passwd record{};
  std::vector<char> buffer;
  const bool is_known =
      ask([&user](auto... rest) { return getpwnam_r(user.c_str(), rest...); }, record, buffer);
  if (!is_known) {
    return base::invalid("user", fmt::format("user: there is no user '{}' on this machine", user));
  }
  return Account{record.pw_name, record.pw_uid, record.pw_gid};
}

}  // namespace gpu_platform::api
