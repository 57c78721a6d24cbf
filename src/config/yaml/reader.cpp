#include "config/yaml/reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/suggest.h"
#include "config/schema.h"

namespace gpu_platform::config {

namespace {

constexpr std::size_t kLargestFile = std::size_t{1} << 20;

std::string joined(std::string_view section, std::string_view name) {
  return section.empty() ? std::string(name) : fmt::format("{}.{}", section, name);
}

// What of a key a message may show: a file is the site's own, but it may be any file by mistake.
std::string printable(std::string_view text) {
  std::string shown;
  for (const char c : text.substr(0, 80)) {
    shown.push_back(static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c);
  }
  return text.size() > 80 ? shown + "…" : shown;
}

// The names that may stand directly below `section` ("" is the top).
std::vector<std::string_view> names_below(std::string_view section) {
  std::vector<std::string_view> names;
  const std::size_t skip = section.empty() ? 0 : section.size() + 1;
  for (const Key& key : schema()) {
    const bool below =
        section.empty() || (key.path.starts_with(section) && key.path.size() > section.size() &&
                            key.path[section.size()] == '.');
    if (!below) continue;
    const std::string_view rest = key.path.substr(skip);
    const std::string_view name = rest.substr(0, rest.find('.'));
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return names;
}

const Key* find_key(std::string_view path) {
  const auto keys = schema();
  const auto it = std::ranges::find(keys, path, &Key::path);
  return it == keys.end() ? nullptr : &*it;
}

std::string_view kind_of(const YAML::Node& node) {
  if (node.IsMap()) return "a section";
  if (node.IsSequence()) return "a list";
  if (node.IsScalar()) return "a value";
  return "nothing";
}

// Walks a document beside the schema and collects everything that is wrong with it.
class Checker {
 public:
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
    if (problems_.empty()) check_rules();
    if (problems_.empty()) return configuration_;
    std::ranges::sort(problems_, {}, [](const Problem& problem) {
      return std::tie(problem.line, problem.column, problem.key, problem.message);
    });
    return std::unexpected(std::move(problems_));
  }

 private:
  void report(const YAML::Node& at, std::string key, std::string message) {
    const YAML::Mark mark = at.Mark();
    problems_.push_back({mark.line + 1, mark.column + 1, std::move(key), std::move(message)});
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
    std::string hint = base::did_you_mean(name.Scalar(), allowed);
    if (hint.empty()) hint = fmt::format("; known here: {}", fmt::join(allowed, ", "));
    report(name, joined(path, shown),
           path.empty() ? fmt::format("unknown key '{}'{}", shown, hint)
                        : fmt::format("unknown key '{}' in '{}'{}", shown, path, hint));
  }

  void check_entry(const YAML::Node& name, const YAML::Node& value, const std::string& path) {
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
      Problem problem{0, 0, std::string(rule.key), fmt::format("{}: {}", rule.key, rule.message)};
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
  std::vector<std::pair<std::string, YAML::Mark>> places_;  // of the known keys that the file has
};

Checked whole_file(std::string message) {
  return std::unexpected(std::vector<Problem>{{0, 0, {}, std::move(message)}});
}

}  // namespace

Checked parse_configuration(std::string_view yaml) {
  if (yaml.size() > kLargestFile) return whole_file("the file is larger than 1 MiB");
  if (yaml.find('\0') != std::string_view::npos) {
    return whole_file("the file contains a NUL byte; it is not a YAML file");
  }
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(yaml));
    Checker checker;
    if (documents.size() > 1) {
      const YAML::Mark mark = documents[1].Mark();
      return std::unexpected(std::vector<Problem>{
          {mark.line + 1, mark.column + 1, {}, "a second document begins here; one is allowed"}});
    }
    if (!documents.empty()) checker.check_document(documents.front());
    return checker.finish();
  } catch (const YAML::Exception& e) {
    const bool placed = e.mark.line >= 0;
    return std::unexpected(std::vector<Problem>{{placed ? e.mark.line + 1 : 0,
                                                 placed ? e.mark.column + 1 : 0,
                                                 {},
                                                 fmt::format("not valid YAML: {}", e.msg)}});
  }
}

Checked read_configuration(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  if (file) {
    text.resize(kLargestFile + 1);
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
  }
  if (file.bad() || !file.is_open() || (file.fail() && !file.eof())) {
    return whole_file(fmt::format("cannot be read: {}", std::strerror(errno)));
  }
  return parse_configuration(text);
}

}  // namespace gpu_platform::config
