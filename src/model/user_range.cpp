#include "model/user_range.h"

#include <algorithm>
#include <charconv>

namespace gpu_platform::model {

namespace {

constexpr auto kNoId = static_cast<std::uint32_t>(-1);  // means "leave as it is" to setuid's kin
constexpr std::uint32_t kNoId16 = 65'535;               // the same to calls with 16 bits
// What belongs to no user has these: the kernel's overflow number, and that of 32-bit NFS.
constexpr std::uint32_t kOverflow[] = {65'534, kNoId - 1};

std::string_view take_word(std::string_view& line) {
  constexpr std::string_view kBlanks = " \t\r\n";
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const std::size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

}  // namespace

// No fmt: the launcher is a small static program.
std::string error_in_user(std::uint32_t uid, const UserRange& range) {
  const std::string number = std::to_string(uid);
  if (uid == 0) return "root is an account of the system";
  if (uid == kNoId || uid == kNoId16) return number + " is not a user";
  if (std::ranges::find(kOverflow, uid) != std::end(kOverflow)) {
    return "user " + number + " is an account of the system, for what belongs to no user";
  }
  if (std::ranges::find(range.of_platform, uid) != range.of_platform.end()) {
    return "user " + number + " is an account of the system: a part of the platform runs as it";
  }
  if (uid < range.min_uid) {
    return "user " + number + " is an account of the system, below " +
           std::to_string(range.min_uid) + " (execution.min_uid, --min-uid of the launcher)";
  }
  if (uid > range.max_uid) {
    return "user " + number + " is an account of the system, above " +
           std::to_string(range.max_uid) +
           " (a site whose users have higher numbers raises execution.max_uid, and --max-uid of "
           "the launcher)";
  }
  return {};
}

std::optional<std::uint32_t> max_uid_in(std::string_view login_defs) {
  std::optional<std::uint32_t> found;
  while (!login_defs.empty()) {
    const std::size_t end = std::min(login_defs.find('\n'), login_defs.size());
    std::string_view line = login_defs.substr(0, end);
    login_defs.remove_prefix(std::min(end + 1, login_defs.size()));
    if (take_word(line) != "UID_MAX") continue;
    const std::string_view word = take_word(line);
    std::uint32_t value = 0;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc() && stop == word.data() + word.size() && value > 0) found = value;
  }
  return found;
}

}  // namespace gpu_platform::model
