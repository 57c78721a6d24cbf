#include "bin/site_users.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "api/subordinate_ids.h"
#include "host/unused_uid.h"
#include "node/local_user.h"
#include "os/small_file.h"

namespace gpu_platform::bin {

namespace {

std::string text_of(const char* path) {
  return os::read_small_file(AT_FDCWD, path);
}

// A directory on the network is asked, too. One that does not answer is taken to have no account of
// so high a number.
bool has_account(std::uint32_t uid, host::UserDirectory& directory) {
  constexpr auto kTimeout = std::chrono::seconds(5);
  const auto answered = std::make_shared<std::promise<void>>();
  auto found = directory.user_now(uid, [answered] { answered->set_value(); });
  if (!found) {
    answered->get_future().wait_for(kTimeout);
    found = directory.user_now(uid, [] {});
  }
  return found && found->has_value();
}

base::Result<ListenerUser> unused_user(const model::UserRange& users,
                                       host::UserDirectory& directory) {
  const std::set<std::uint32_t> running = host::uids_of_processes("/proc");
  const std::string accounts = text_of("/etc/passwd");
  const std::string groups = text_of("/etc/group");
  const std::string uids = text_of("/proc/self/uid_map");
  const std::string gids = text_of("/proc/self/gid_map");
  api::SubordinateIds subordinate;
  const auto is_taken = [&](std::uint32_t uid) {
    const bool is_users = uid >= users.min_uid && uid <= users.max_uid;
    return is_users || running.contains(uid) || !host::is_mapped(uids, uid) ||
           !host::is_mapped(gids, uid) || host::has_number(accounts, uid) ||
           host::has_number(groups, uid) || subordinate.owner_of(uid) ||
           has_account(uid, directory);
  };
  const auto uid = host::unused_uid(static_cast<std::uint32_t>(getpid()), is_taken);
  if (uid) return ListenerUser{*uid, *uid};
  return base::fail(base::ErrorCode::kFailedPrecondition,
                    "api.listener_user: every user id that the listener could have is taken on "
                    "this host: name an account of its own",
                    "api.listener_user");
}

}  // namespace

base::Result<model::UserRange> users_of_site(const config::Configuration& configuration,
                                             bool runs_as_itself) {
  model::UserRange users;
  users.min_uid = configuration.min_uid;
  users.max_uid = configuration.max_uid.value_or(
      model::max_uid_in(text_of("/etc/login.defs")).value_or(model::kUsualMaxUid));
  if (users.min_uid > users.max_uid) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("execution.min_uid: {} is above execution.max_uid, which is {}",
                                  users.min_uid, users.max_uid),
                      "execution.min_uid");
  }
  if (const std::uint32_t own = geteuid(); own != 0 && !runs_as_itself) {
    users.of_platform.push_back(own);
  }
  return users;
}

base::Result<ListenerUser> listener_user(const std::string& name, const model::UserRange& users,
                                         host::UserDirectory& directory) {
  if (name.empty()) return unused_user(users, directory);
  const auto refuse = [&](const std::string& why) {
    return base::fail(base::ErrorCode::kFailedPrecondition,
                      fmt::format("api.listener_user: '{}' {}", name, why), "api.listener_user");
  };
  const auto user = node::find_local_user(text_of("/etc/passwd"), name);
  if (!user || user->uid == 0) return refuse("is not a user of /etc/passwd other than root");
  if (model::error_in_user(user->uid, users).empty()) {
    return refuse(
        fmt::format("has the number {}, which may have jobs, and a job of it could stop the "
                    "listener: remove the key, or name an account of the system",
                    user->uid));
  }
  return ListenerUser{user->uid, user->gid};
}

}  // namespace gpu_platform::bin
