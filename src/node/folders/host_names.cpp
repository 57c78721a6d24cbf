#include "node/folders/host_names.h"

#include <algorithm>

namespace gpu_platform::node {

namespace {

constexpr std::size_t kMaxName = 253;

bool is_host_name(std::string_view name) {
  const auto may_stand = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  };
  return !name.empty() && name.size() <= kMaxName && name.front() != '.' && name.front() != '-' &&
         std::ranges::all_of(name, may_stand);
}

bool has_name(std::string_view hosts, std::string_view name) {
  constexpr std::string_view kEnds = " \t\n\r#";
  for (std::size_t at = hosts.find(name); at != std::string_view::npos;
       at = hosts.find(name, at + 1)) {
    const bool begins = at == 0 || kEnds.find(hosts[at - 1]) != std::string_view::npos;
    const std::size_t end = at + name.size();
    if (begins && (end == hosts.size() || kEnds.find(hosts[end]) != std::string_view::npos))
      return true;
  }
  return false;
}

}  // namespace

std::string hosts_with_names(std::string_view hosts, std::string_view names) {
  std::string line;
  while (!names.empty()) {
    const std::size_t comma = names.find(',');
    const std::string_view name = names.substr(0, comma);
    names.remove_prefix(comma == std::string_view::npos ? names.size() : comma + 1);
    if (is_host_name(name) && !has_name(hosts, name)) (line += ' ') += name;
  }
  if (line.empty()) return {};
  std::string text(hosts);
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text + "127.0.0.1" + line + "\n";
}

}  // namespace gpu_platform::node
