#include "node/local_user.h"

#include <charconv>

#include "node/mount_table.h"

namespace gpu_platform::node {

namespace {

std::string_view take_field(std::string_view& line) {
  const std::size_t end = line.find(':');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

bool parse_id(std::string_view text, std::uint32_t& id) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::optional<LocalUser> find_local_user(std::string_view passwd, std::string_view name) {
  while (!passwd.empty()) {
    std::string_view line = take_line(passwd);
    if (name.empty() || take_field(line) != name) continue;
    take_field(line);  // the password
    LocalUser user;
    if (parse_id(take_field(line), user.uid) && parse_id(take_field(line), user.gid)) return user;
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::node
