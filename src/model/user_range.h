#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpu_platform::model {

inline constexpr std::uint32_t kUsualMinUid = 1000;
inline constexpr std::uint32_t kUsualMaxUid = 60'000;  // as login.defs(5) has it by default

// The users of a host that may have jobs and credentials, by their numbers: one rule for the
// launcher, which starts jobs, and for every door. The numbers outside of the range belong to
// accounts of the system; some numbers are no user's even if the range has them.
struct UserRange {
  std::uint32_t min_uid = kUsualMinUid;
  std::uint32_t max_uid = kUsualMaxUid;
  std::vector<std::uint32_t> of_platform = {};  // processes of the platform itself run as these

  friend bool operator==(const UserRange&, const UserRange&) = default;
};

// Returns why the number is not a user's, with the key to change where the site may change it; an
// empty text if it is. Root is none: a caller that lets root in asks before.
std::string error_in_user(std::uint32_t uid, const UserRange& range);

// Returns UID_MAX of the text of /etc/login.defs; nothing if it does not say.
std::optional<std::uint32_t> max_uid_in(std::string_view login_defs);

}  // namespace gpu_platform::model
