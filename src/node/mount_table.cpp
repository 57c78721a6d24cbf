#include "node/mount_table.h"

namespace gpu_platform::node {

namespace {

std::string_view take_field(std::string_view& line) {
  const std::size_t end = line.find(' ');
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return field;
}

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

// mountinfo writes blanks and such as \040.
std::string unescape(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size() && is_octal(text[i + 1]) && is_octal(text[i + 2]) &&
        is_octal(text[i + 3])) {
      plain.push_back(static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 +
                                        (text[i + 3] - '0')));
      i += 3;
    } else {
      plain.push_back(text[i]);
    }
  }
  return plain;
}

std::optional<Mount> parse_mount(std::string_view line) {
  for (int skipped = 0; skipped < 3; ++skipped) take_field(line);
  Mount mount;
  mount.root = unescape(take_field(line));
  mount.point = unescape(take_field(line));
  const std::size_t dash = line.find(" - ");
  if (dash == std::string_view::npos || !mount.point.starts_with('/')) return std::nullopt;
  line.remove_prefix(dash + 3);
  mount.type = take_field(line);
  take_field(line);  // what is mounted
  mount.options = take_field(line);
  return mount;
}

}  // namespace

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::optional<Mount> take_mount(std::string_view& mountinfo) {
  while (!mountinfo.empty()) {
    if (auto mount = parse_mount(take_line(mountinfo))) return mount;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::node
