#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "host/slow_calls.h"
#include "host/user_database.h"

namespace gpu_platform::host {

// A user's name for people.
struct UserName {
  std::string text;         // the number where the system has no name for it, or does not answer
  bool is_known = true;     // false: it does not answer, so what the name is cannot be told
  bool has_account = true;  // false: it answers that there is no such user

  friend bool operator==(const UserName&, const UserName&) = default;
};

// The users of this host, for threads that must not wait: the database is asked on threads of its
// own (SlowCalls), and what it says is remembered (RememberedAnswers). Answers that are not given
// at once come on another thread, within the deadline. Safe from any thread.
class UserDirectory {
 public:
  explicit UserDirectory(std::shared_ptr<const UserDatabase> database = system_users(),
                         SlowCalls::Limits limits = {});
  // Answers that have not come by then are dropped.
  ~UserDirectory();
  UserDirectory(const UserDirectory&) = delete;
  UserDirectory& operator=(const UserDirectory&) = delete;

  // Root's name is never looked up, so that the administrator gets in if a look-up hangs.
  void name_of(std::uint32_t uid, std::function<void(UserName)> done);
  // Returns what is known without a wait. If that is old or nothing, a lookup begins, and a later
  // call has its answer.
  UserName name_now(std::uint32_t uid);

  // `asker`: the user that the lookup is made for. kNotFound if the system does not know the name,
  // kUnavailable if it does not answer.
  void find(const std::string& name, std::uint32_t asker,
            std::function<void(base::Result<User>)> done);

  // kNotFound if the system does not know the user, kUnavailable if it does not answer. No value:
  // `asked` is called later.
  std::optional<base::Result<User>> user_now(std::uint32_t uid, std::function<void()> asked);

 private:
  struct Memory;
  std::shared_ptr<const UserDatabase> database_;
  std::unique_ptr<Memory> memory_;
  SlowCalls calls_;  // last: its threads end before what they answer to
};

}  // namespace gpu_platform::host
