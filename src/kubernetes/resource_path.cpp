#include "kubernetes/resource_path.h"

#include <vector>

#include <fmt/format.h>

#include "base/percent.h"

namespace gpu_platform::kubernetes {

std::string resource_of(std::string_view path) {
  std::vector<std::string_view> parts;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    if (slash != 0) parts.push_back(path.substr(0, slash));
    path = slash == std::string_view::npos ? std::string_view() : path.substr(slash + 1);
  }
  const bool is_group = !parts.empty() && parts[0] == "apis";
  const std::size_t kind_at = is_group ? 3 : 2;  // after /api/v1 or /apis/GROUP/VERSION
  if (parts.size() <= kind_at) return parts.empty() ? "" : std::string(parts.back());
  const bool is_namespaced = parts.size() > kind_at + 2 && parts[kind_at] == "namespaces";
  std::string name(parts[is_namespaced ? kind_at + 2 : kind_at]);
  if (is_group) name += fmt::format(".{}", parts[1]);
  return is_namespaced ? fmt::format("{} in namespace {}", name, parts[kind_at + 1]) : name;
}

std::string query_value(std::string_view text) {
  return base::percent_encoded(text);
}

}  // namespace gpu_platform::kubernetes
