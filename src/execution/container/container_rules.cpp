#include "execution/container/container_rules.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"

namespace gpu_platform::execution {

namespace {

constexpr std::uint64_t kMaxUlimit = std::uint64_t{1} << 40;

std::string_view take_word(std::string_view& line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    line = {};
    return {};
  }
  const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  line.remove_prefix(end);
  return word;
}

bool is_absolute(std::string_view path) {
  return path.starts_with('/') && path.find("/../") == std::string_view::npos &&
         !path.ends_with("/..");
}

bool take_network(ContainerRules& rules, std::string_view name) {
  rules.allow_host_network = rules.allow_host_network || name == "host";
  rules.allow_bridge_network = rules.allow_bridge_network || name == "bridge";
  return name == "none" || name == "host" || name == "bridge";
}

bool take_mount(ContainerRules& rules, std::string_view path, std::string_view mode) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  rules.mounts.push_back({std::string(path), mode == "ro"});
  return is_absolute(path) && (mode.empty() || mode == "ro");
}

bool take_ulimit(ContainerRules& rules, std::string_view name, std::string_view number) {
  const auto limit = base::parse_count(number, 0, kMaxUlimit);
  if (!limit) return false;
  rules.ulimits.push_back({std::string(name), static_cast<std::int64_t>(*limit)});
  return !name.empty();
}

// A size as the engines write it: a number and one of k, m, g, t.
bool take_writable(ContainerRules& rules, std::string_view size) {
  rules.is_read_only = size == "none";
  if (rules.is_read_only) return true;
  rules.writable = size;
  if (size.empty() || std::string_view("kmgtKMGT").find(size.back()) == std::string_view::npos) {
    return false;
  }
  size.remove_suffix(1);
  return base::parse_count(size, 1, 1'000'000).has_value();
}

bool take_credentials(ContainerRules& rules, std::string_view whose) {
  if (whose == "users") {
    rules.allow_user_credentials = true;
    return true;
  }
  const bool is_first = rules.site_credentials.empty();
  rules.site_credentials = whose;
  return is_first && is_absolute(whose);
}

bool take_images(ContainerRules& rules, std::string_view what, std::string_view duration) {
  const auto time = base::parse_duration(duration);
  const bool is_first = !rules.keep_images;
  if (time) rules.keep_images = *time;
  return what == "keep" && is_first && time && *time > base::Duration();
}

bool take_rule(ContainerRules& rules, std::string_view key, std::string_view first,
               std::string_view second) {
  if (key == "mount") return take_mount(rules, first, second);
  if (key == "images") return take_images(rules, first, second);
  if (key == "ulimit") return take_ulimit(rules, first, second);
  if (first.empty() || !second.empty()) return false;
  if (key == "socket") {
    const bool is_first = rules.socket.empty();
    rules.socket = first;
    return is_first && is_absolute(first);
  }
  if (key == "image") {
    rules.images.emplace_back(first);
    return true;
  }
  if (key == "annotation") {
    rules.annotations.emplace_back(first);
    return true;
  }
  if (key == "writable") return take_writable(rules, first);
  if (key == "pull") {
    rules.always_pulls = true;
    return first == "always";
  }
  if (key == "credentials") return take_credentials(rules, first);
  if (key == "capability") {
    rules.capabilities.emplace_back(first);
    return first.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == std::string_view::npos;
  }
  if (key == "gpus") {
    const bool is_first = rules.gpus.empty();
    rules.gpus = first;
    return is_first && (first == "nodes" || first == "cdi" || first == "nvidia");
  }
  if (key == "driver") {
    rules.driver_files.emplace_back(first);
    return is_absolute(first);
  }
  if (key == "seccomp") {
    rules.needs_seccomp = false;
    return first == "off";
  }
  return key == "network" && take_network(rules, first);
}

bool is_below(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

}  // namespace

base::Result<ContainerRules> parse_container_rules(std::string_view text) {
  ContainerRules rules;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const std::string whole(line);
    line = line.substr(0, line.find('#'));
    const std::string_view key = take_word(line);
    if (key.empty()) continue;
    const std::string_view first = take_word(line);
    const std::string_view second = take_word(line);
    if (!take_rule(rules, key, first, second) || !take_word(line).empty()) {
      return base::invalid({}, fmt::format("line {}: '{}' is not a rule", number, whole));
    }
  }
  if (rules.socket.empty()) return base::invalid({}, "no line 'socket PATH' names the engine");
  return rules;
}

// The last * that was passed is where a mismatch goes back to.
bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t after_star = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++after_star;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::string error_in_image(const ContainerRules& rules, std::string_view image) {
  if (std::string why = model::error_in_image(image); !why.empty()) {
    return fmt::format("image '{}' {}", image, why);
  }
  const auto allows = [&](const std::string& pattern) { return matches(pattern, image); };
  if (std::ranges::any_of(rules.images, allows)) return {};
  return fmt::format(
      "image '{}' is not allowed by this site's rules; allowed are: {}", image,
      rules.images.empty() ? "none" : fmt::format("{}", fmt::join(rules.images, ", ")));
}

std::string error_in_mount(const ContainerRules& rules, const model::ContainerMount& mount) {
  bool is_in_a_folder = false;
  for (const ContainerRules::Folder& folder : rules.mounts) {
    if (!is_below(mount.source, folder.path)) continue;
    is_in_a_folder = true;
    if (mount.read_only || !folder.read_only) return {};
  }
  return fmt::format(
      "mount of '{}': this site's rules {}", mount.source,
      is_in_a_folder ? "allow it only to read; write SRC:DST:ro" : "do not allow it");
}

std::string error_in_annotation(const ContainerRules& rules, std::string_view annotation) {
  const std::size_t equals = std::min(annotation.find('='), annotation.size());
  const std::string_view key = annotation.substr(0, equals);
  const std::string_view value = annotation.substr(std::min(equals + 1, annotation.size()));
  if (std::string why = model::error_in_annotation(key, value); !why.empty()) {
    return fmt::format("annotation '{}' {}", key, why);
  }
  const auto allows = [&](const std::string& pattern) { return matches(pattern, key); };
  if (std::ranges::any_of(rules.annotations, allows)) return {};
  return fmt::format(
      "annotation '{}' is not allowed by this site's rules; allowed are: {}", key,
      rules.annotations.empty() ? "none" : fmt::format("{}", fmt::join(rules.annotations, ", ")));
}

std::string error_in_network(const ContainerRules& rules, model::ContainerNetwork network) {
  switch (network) {
    case model::ContainerNetwork::kNone:
      return {};
    case model::ContainerNetwork::kHost:
      return rules.allow_host_network ? "" : "network host: this site's rules do not allow it";
    case model::ContainerNetwork::kBridge:
      return rules.allow_bridge_network ? "" : "network bridge: this site's rules do not allow it";
  }
  return "a network that is not known";
}

}  // namespace gpu_platform::execution
