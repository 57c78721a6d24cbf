#include "api/accounts.h"

#include <cstddef>
#include <memory>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::api {

namespace {

base::Status check_can_run(const CallOptions& options, const Account& account) {
  if (!options.only_uid) {
    // Root's jobs are the core's to judge.
    const std::string why = account.uid == 0 ? "" : error_in_user(account.uid, options.users);
    if (why.empty()) return {};
    return base::fail(base::ErrorCode::kPermissionDenied,
                      fmt::format("user: {} may have no jobs: {}", account.user, why), "user");
  }
  if (*options.only_uid == account.uid) return {};
  return base::fail(
      base::ErrorCode::kPermissionDenied,
      fmt::format(
          "user: this daemon runs as user id {} and not as root, so it can start jobs of that "
          "user only; jobs of {} need a daemon of their own, or one that root runs",
          *options.only_uid, account.user),
      "user");
}

// A look at some users, one after the other: there are few of them, and the directory remembers
// its answers.
struct UserCheck {
  const CallContext& context;
  std::vector<NamedUser> users;
  std::uint32_t asker = 0;
  Resume resume;
  std::function<void(base::Status)> done;
  std::size_t next = 0;  // the first that has not been looked up
};

base::Status status_of(const base::Result<host::User>& found, const NamedUser& user) {
  if (found) return {};
  const auto& [field, name] = user;
  if (found.error().code != base::ErrorCode::kNotFound) {
    return base::fail(found.error().code, fmt::format("{}: {}", field, found.error().message),
                      field);
  }
  return base::fail(base::ErrorCode::kNotFound,
                    fmt::format("{}: there is no user '{}' on this machine", field, name), field);
}

void check_next(std::shared_ptr<UserCheck> check) {
  if (check->next == check->users.size()) return check->done({});
  const CallContext& context = check->context;
  const std::string name = check->users[check->next].name;
  const std::uint32_t asker = check->asker;
  context.core.users.find(
      name, asker, [check = std::move(check)](base::Result<host::User> found) mutable {
        const Resume resume = check->resume;
        // Moved on, so that nothing of the request is left for this thread to destroy.
        resume([check = std::move(check), found = std::move(found)]() mutable {
          const base::Status status = status_of(found, check->users[check->next]);
          if (!status) return check->done(status);
          ++check->next;
          check_next(std::move(check));
        });
      });
}

}  // namespace

void find_account(const CallContext& context, const std::string& user, std::uint32_t asker,
                  Resume resume, AccountFound done) {
  context.core.users.find(
      user, asker,
      [resume = std::move(resume), user, done = std::move(done)](base::Result<host::User> found) {
        resume([user, done, found = std::move(found)] {
          if (found) return done(Account{found->name, found->uid, found->gid});
          done(std::unexpected(status_of(found, {"user", user}).error()));
        });
      });
}

void find_job_owner(const CallContext& context, const std::string& user, const Peer& peer,
                    Resume resume, AccountFound then) {
  AccountFound done = [&options = context.options,
                       then = std::move(then)](base::Result<Account> account) {
    if (account) {
      if (const auto able = check_can_run(options, *account); !able) {
        account = std::unexpected(able.error());
      }
    }
    then(std::move(account));
  };
  const model::Caller& caller = peer.caller;
  if (!peer.has_account) {
    return done(base::fail(
        base::ErrorCode::kPermissionDenied,
        fmt::format("user: uid {} has no account on this machine, and only users with an account "
                    "may submit jobs (from a user namespace: submit from outside of it)",
                    caller.uid),
        "user"));
  }
  if (user.empty() || user == caller.user) {
    const base::Status named = check_named(peer);
    if (!named) return done(std::unexpected(named.error()));
    return done(Account{caller.user, caller.uid, peer.gid});
  }
  if (caller.reach != model::Reach::kAll) {
    return done(base::fail(base::ErrorCode::kPermissionDenied,
                           fmt::format("user: only root may submit jobs of another user; you "
                                       "are {}",
                                       caller.user),
                           "user"));
  }
  find_account(context, user, caller.uid, std::move(resume), std::move(done));
}

void check_users(const CallContext& context, std::vector<NamedUser> users, std::uint32_t asker,
                 Resume resume, std::function<void(base::Status)> done) {
  check_next(std::make_shared<UserCheck>(
      UserCheck{context, std::move(users), asker, std::move(resume), std::move(done)}));
}

}  // namespace gpu_platform::api
