#include "host/user_directory.h"

#include <fmt/format.h>

#include "host/remembered_answers.h"

namespace gpu_platform::host {

namespace {

UserName name_from(std::uint32_t uid, const base::Result<User>& answer) {
  if (answer) return {answer->name, true};
  const bool is_absent = answer.error().code == base::ErrorCode::kNotFound;
  return {fmt::format("{}", uid), is_absent, !is_absent};
}

}  // namespace

struct UserDirectory::Memory {
  template <class Key, class Value>
  using Answers = std::shared_ptr<RememberedAnswers<Key, Value>>;

  Answers<std::uint32_t, User> by_uid = std::make_shared<RememberedAnswers<std::uint32_t, User>>();
  Answers<std::string, User> by_name = std::make_shared<RememberedAnswers<std::string, User>>();
};

UserDirectory::UserDirectory(std::shared_ptr<const UserDatabase> database, SlowCalls::Limits limits)
    : database_(std::move(database)),
      memory_(std::make_unique<Memory>()),
      calls_("the user database", limits) {}

UserDirectory::~UserDirectory() = default;

void UserDirectory::name_of(std::uint32_t uid, std::function<void(UserName)> done) {
  if (uid == 0) return done({"root", true});
  const auto known = memory_->by_uid->now(
      uid, uid, calls_, [database = database_, uid] { return database->find(uid); },
      [uid, done](const base::Result<User>& answer) { done(name_from(uid, answer)); });
  if (known) done(name_from(uid, *known));
}

UserName UserDirectory::name_now(std::uint32_t uid) {
  if (uid == 0) return {"root", true};
  auto known = memory_->by_uid->now(
      uid, uid, calls_, [database = database_, uid] { return database->find(uid); }, nullptr);
  if (!known) known = memory_->by_uid->last(uid);
  return known ? name_from(uid, *known) : UserName{fmt::format("{}", uid), false};
}

void UserDirectory::find(const std::string& name, std::uint32_t asker,
                         std::function<void(base::Result<User>)> done) {
  const auto known = memory_->by_name->now(
      name, asker, calls_, [database = database_, name] { return database->find(name); }, done);
  if (known) done(*known);
}

std::optional<base::Result<User>> UserDirectory::user_now(std::uint32_t uid,
                                                          std::function<void()> asked) {
  return memory_->by_uid->now(
      uid, uid, calls_, [database = database_, uid] { return database->find(uid); },
      [asked = std::move(asked)](const auto&) { asked(); });
}

}  // namespace gpu_platform::host
