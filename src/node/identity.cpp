#include "node/identity.h"

#include <algorithm>
#include <charconv>
#include <optional>

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxGroups = 65'536;              // the kernel's own limit
constexpr auto kNoId = static_cast<std::uint32_t>(-1);  // means "leave as it is" to setuid's kin

std::optional<std::uint32_t> number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string_view take_field(std::string_view& line, char separator) {
  const std::size_t end = std::min(line.find(separator), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

}  // namespace

std::string error_in_uid(std::uint32_t uid, const IdentityRules& rules) {
  if (uid == 0) return rules.allow_root ? "" : "this launcher starts no job as root";
  return error_in_user(uid, rules.users);
}

bool parse_account(std::string_view line, std::uint32_t uid, Identity& user) {
  const std::string_view name = take_field(line, ':');
  take_field(line, ':');  // the password
  const auto own = number(take_field(line, ':'));
  const auto gid = number(take_field(line, ':'));
  const bool is_plain = !name.empty() && name.front() != '-' &&
                        std::ranges::none_of(name, [](char c) { return c <= ' ' || c == 127; });
  if (!is_plain || own != uid || !gid || *gid == kNoId) return false;
  user = {uid, *gid, {*gid}, std::string(name)};
  return true;
}

bool parse_groups(std::string_view line, Identity& user) {
  if (take_field(line, ' ') != user.name) return false;
  while (!line.empty()) {
    const std::string_view field = take_field(line, ' ');
    const auto group = number(field);
    if (!group || *group == kNoId) continue;
    if (user.groups.size() < kMaxGroups &&
        std::ranges::find(user.groups, *group) == user.groups.end()) {
      user.groups.push_back(*group);
    }
  }
  return true;
}

}  // namespace gpu_platform::node
