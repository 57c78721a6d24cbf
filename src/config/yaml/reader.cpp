#include "config/yaml/reader.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/suggest.h"
#include "config/retired_keys.h"
#include "config/schema.h"
#include "config/yaml/document.h"
#include "config/yaml/organisation.h"

namespace gpu_platform::config {

namespace {

std::string joined(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

// The names that may stand directly below `section` ("" is the top).
std::vector<std::string_view> names_below(std::string_view section) {
  std::vector<std::string_view> names;
  const std::size_t skip = section.empty() ? 0 : section.size() + 1;
  const auto add = [&](std::string_view path) {
    const bool below =
        section.empty() ||
        (path.starts_with(section) && path.size() > section.size() && path[section.size()] == '.');
    if (!below) return;
    const std::string_view rest = path.substr(skip);
    const std::string_view name = rest.substr(0, rest.find('.'));
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const Key& key : schema()) add(key.path);
  for (const Structure& structure : structures()) add(structure.path);
  return names;
}

const Key* find_key(std::string_view path) {
  const auto keys = schema();
  const auto it = std::ranges::find(keys, path, &Key::path);
  return it == keys.end() ? nullptr : &*it;
}

bool is_structure(std::string_view path) {
  const auto all = structures();
  return std::ranges::find(all, path, &Structure::path) != all.end();
}

// Walks a document beside the schema and collects everything that is wrong with it.
class Checker {
 public:
  explicit Checker(std::string folder) : organisation_(std::move(folder), problems_) {}

  void check_document(const YAML::Node& root) {
    if (root.IsNull()) return;
    if (!root.IsMap()) {
      report(root, {},
             fmt::format("the file holds {}; it must hold sections such as 'scheduling:'",
                         kind_of(root)));
      return;
    }
    check_section(root, {});
  }

  // The configuration, or the problems in the order of the file.
  Checked finish() {
    organisation_.finish(configuration_);
    if (problems_.empty()) check_rules();
    if (problems_.empty()) return configuration_;
    std::ranges::sort(problems_, {}, [](const Problem& problem) {
      return std::tie(problem.file, problem.line, problem.column, problem.key, problem.message);
    });
    return std::unexpected(std::move(problems_));
  }

 private:
  void report(const YAML::Node& at, std::string key, std::string message) {
    const YAML::Mark mark = at.Mark();
    problems_.push_back({mark.line + 1, mark.column + 1, std::move(key), std::move(message), {}});
  }

  void check_section(const YAML::Node& section, const std::string& path) {
    const std::vector<std::string_view> allowed = names_below(path);
    std::set<std::string> seen;
    for (const auto& entry : section) {
      const YAML::Node& name = entry.first;
      if (!name.IsScalar()) {
        report(name, path, fmt::format("a key must be a word, not {}", kind_of(name)));
        continue;
      }
      const std::string& word = name.Scalar();
      if (std::ranges::find(allowed, word) == allowed.end()) {
        report_unknown(name, path, allowed);
      } else if (!seen.insert(word).second) {
        report(name, joined(path, word), fmt::format("'{}' stands here twice", joined(path, word)));
      } else {
        check_entry(name, entry.second, joined(path, word));
      }
    }
  }

  void report_unknown(const YAML::Node& name, const std::string& path,
                      const std::vector<std::string_view>& allowed) {
    const std::string shown = printable(name.Scalar());
    const auto retired = std::ranges::find(kRetiredKeys, joined(path, shown), &RetiredKey::path);
    if (retired != kRetiredKeys.end()) {
      report(name, joined(path, shown),
             fmt::format("the key '{}' is called '{}' now", retired->path, retired->instead));
      return;
    }
    std::string hint = base::did_you_mean(name.Scalar(), allowed);
    if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(allowed, ", "));
    report(name, joined(path, shown),
           path.empty() ? fmt::format("unknown key '{}'{}", shown, hint)
                        : fmt::format("unknown key '{}' in '{}'{}", shown, path, hint));
  }

  void check_entry(const YAML::Node& name, const YAML::Node& value, const std::string& path) {
    if (is_structure(path)) return organisation_.read(path, name, value);
    const Key* key = find_key(path);
    if (key == nullptr) {
      if (value.IsMap()) {
        check_section(value, path);
      } else if (!value.IsNull()) {  // a section with all its keys commented out is fine
        report(value, path,
               fmt::format("'{}' is a section, but {} stands here", path, kind_of(value)));
      }
      return;
    }
    places_.emplace_back(path, name.Mark());
    if (!value.IsScalar()) {
      report(value.IsNull() ? name : value, path,
             fmt::format("'{}' wants a value ({}), but {} stands here", path, allowed_text(*key),
                         kind_of(value)));
      return;
    }
    // A plain scalar has the tag "?"; quotes make it "!", and a written tag stands for itself.
    if (value.Tag() != "?" && !value.Tag().empty()) {
      report(value, path,
             fmt::format("'{}' is written without quotes and tags: {}", path, allowed_text(*key)));
      return;
    }
    if (const auto set = set_value(*key, value.Scalar(), configuration_); !set) {
      report(value, path, fmt::format("{}: {}", path, printable_message(set.error().message)));
    }
  }

  static std::string printable_message(std::string_view message) {
    std::string shown(message);
    for (char& c : shown) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return shown;
  }

  void check_rules() {
    for (const Rule& rule : rules()) {
      if (rule.holds(configuration_)) continue;
      Problem problem{
          0, 0, std::string(rule.key), fmt::format("{}: {}", rule.key, rule.message), {}};
      // The key at fault may be left at its default: then the file as a whole is named.
      const auto place =
          std::ranges::find(places_, rule.key, &std::pair<std::string, YAML::Mark>::first);
      if (place != places_.end()) {
        problem.line = place->second.line + 1;
        problem.column = place->second.column + 1;
      }
      problems_.push_back(std::move(problem));
    }
  }

  Configuration configuration_;
  std::vector<Problem> problems_;
  OrganisationReader organisation_;
  std::vector<std::pair<std::string, YAML::Mark>> places_;  // of the known keys that the file has
};

Checked whole_file(std::string message) {
  return std::unexpected(std::vector<Problem>{{0, 0, {}, std::move(message), {}}});
}

}  // namespace

Checked parse_configuration(std::string_view yaml, const std::string& folder) {
  const auto document = parse_document(yaml);
  if (!document) return std::unexpected(std::vector<Problem>{document.error()});
  Checker checker(folder);
  checker.check_document(*document);
  return checker.finish();
}

Checked read_configuration(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return whole_file(text.error().message);
  const std::size_t slash = path.rfind('/');
  return parse_configuration(*text, slash == std::string::npos ? "." : path.substr(0, slash + 1));
}

}  // namespace gpu_platform::config
