#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "model/audit.h"
#include "model/role.h"

namespace gpu_platform::model {

// The caller, as the API established it, with its rights for this one call (model/access.h).
struct Caller {
  std::string user;
  std::uint32_t uid = 0;
  Role role = Role::kUser;
  Reach reach = Reach::kOwn;
  Door door = Door::kNone;             // kNone: nothing of it goes into the audit trail
  std::uint64_t pid = 0;               // 0: not known
  std::uint64_t credential = 0;        // the token that the caller came with; 0: none
  std::shared_ptr<const Teams> teams;  // null: none
  Role max_role = Role::kAdmin;        // that the caller's credential allows
  std::shared_ptr<const CredentialName> credential_name = nullptr;  // null: it came without one
};

// Root, as the door hands it to the core with a call that touches what belongs to all.
inline Caller root_caller() {
  return {"root", 0, Role::kAdmin, Reach::kAll};
}
// Root, or a user that the site has given no role.
inline Caller caller_with_uid(std::string user, std::uint32_t uid) {
  return uid == 0 ? root_caller() : Caller{std::move(user), uid};
}

// The caller, as the audit trail records it.
inline Origin origin_of(const Caller& caller) {
  return {
      caller.door,
      caller.user,
      caller.uid,
      caller.pid,
      TokenId(caller.credential),
      caller.credential_name == nullptr ? std::nullopt : std::optional(*caller.credential_name)};
}

}  // namespace gpu_platform::model
