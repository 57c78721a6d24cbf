#include "config/yaml/structure_reader.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "base/suggest.h"

namespace gpu_platform::config {

namespace {

constexpr std::size_t kLongestName = 255;
constexpr std::uint64_t kMaxShares = 1'000'000;
constexpr base::Duration kLongestTime = base::hours(365 * 24);
constexpr std::uint64_t kMaxCount = 1'000'000'000;

}  // namespace

void StructureReader::report(const YAML::Node& at, std::string message) {
  const YAML::Mark mark = at.Mark();
  problems_.push_back({mark.line + 1, mark.column + 1, key_, std::move(message), file_});
}

void StructureReader::report_unknown(const YAML::Node& name,
                                     std::span<const std::string_view> allowed) {
  std::string hint = base::did_you_mean(name.Scalar(), allowed);
  if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(allowed, ", "));
  report(name, fmt::format("unknown key '{}' in '{}'{}", printable(name.Scalar()), key_, hint));
}

std::optional<std::string> StructureReader::word(const YAML::Node& node, std::string_view what) {
  if (node.IsScalar() && !node.Scalar().empty() && node.Scalar().size() <= kLongestName &&
      printable(node.Scalar()).find('?') == std::string::npos) {
    return node.Scalar();
  }
  report(node,
         fmt::format("'{}' in '{}' must be a name of 1 to {} bytes", what, key_, kLongestName));
  return std::nullopt;
}

std::vector<std::string> StructureReader::users(const YAML::Node& list, std::string_view what) {
  std::vector<std::string> names;
  if (!list.IsSequence()) {
    report(list, fmt::format("'{}' in '{}' must be a list of users ([ann, bob]), not {}", what,
                             key_, kind_of(list)));
    return names;
  }
  for (const auto& item : list) {
    const auto name = word(item, what);
    if (!name) continue;
    if (*name == "root") {
      report(item,
             fmt::format("root in '{}' of '{}': root may do everything; leave it out", what, key_));
    } else if (name->find_first_not_of("0123456789") == std::string::npos) {
      report(item, fmt::format("'{}' in '{}' of '{}': users are named here, not numbered", *name,
                               what, key_));
    } else if (name->starts_with('%')) {
      report(item, fmt::format("'{}' in '{}' of '{}': groups are not allowed here; name the users",
                               *name, what, key_));
    } else if (std::ranges::find(names, *name) != names.end()) {
      report(item,
             fmt::format("user '{}' is in '{}' of '{}' already: list it once", *name, what, key_));
    } else {
      names.push_back(*name);
    }
  }
  return names;
}

std::optional<std::uint32_t> StructureReader::count(const YAML::Node& node, std::string_view what,
                                                    std::uint64_t least) {
  const bool is_weight = what == "shares" || what == "over_quota_weight";
  const std::uint64_t most = is_weight ? kMaxShares : kMaxCount;
  const bool is_plain = node.IsScalar() && (node.Tag() == "?" || node.Tag().empty());
  if (is_plain) {
    if (const auto number = base::parse_count(node.Scalar(), least, most)) {
      return static_cast<std::uint32_t>(*number);
    }
  }
  report(node,
         fmt::format("'{}' in '{}' must be a whole number from {} to {}", what, key_, least, most));
  return std::nullopt;
}

std::optional<base::Duration> StructureReader::duration(const YAML::Node& node,
                                                        std::string_view what) {
  if (node.IsScalar()) {
    const auto read = base::parse_duration(node.Scalar());
    if (read && *read >= base::Duration() && *read <= kLongestTime) return *read;
  }
  report(node, fmt::format("'{}' in '{}' must be a time from 0s to 365d, such as 30m", what, key_));
  return std::nullopt;
}

}  // namespace gpu_platform::config
