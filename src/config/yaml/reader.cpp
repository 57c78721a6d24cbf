#include "config/yaml/reader.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/parse.h"
#include "base/suggest.h"
#include "config/other_names.h"
#include "config/retired_keys.h"
#include "config/schema.h"
#include "config/yaml/access.h"
#include "config/yaml/accounting.h"
#include "config/yaml/alerts.h"
#include "config/yaml/budgets.h"
#include "config/yaml/document.h"
#include "config/yaml/health_rules.h"
#include "config/yaml/organisation.h"
#include "config/yaml/power_limits.h"
#include "config/yaml/sharing.h"
#include "config/yaml/slurm_names.h"

namespace gpu_platform::config {

namespace {

// The key that names files whose keys count as if they stood here.
constexpr std::string_view kInclude = "include";

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

// Those below `section` that stand beside its own keys, so that a file of another program is read.
std::vector<std::string_view> other_names_below(std::string_view section) {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view path) {
    if (!path.starts_with(section) || path.size() <= section.size() || path[section.size()] != '.')
      return;
    const std::string_view rest = path.substr(section.size() + 1);
    names.push_back(rest.substr(0, rest.find('.')));
  };
  for (const OtherName& other : kOtherNames) add(other.path);
  for (const PassiveKey& passive : kPassiveKeys) add(passive.path);
  return names;
}

// The key that `path` is another name of, or `path`.
std::string key_meant(const std::string& path) {
  const auto other = std::ranges::find(kOtherNames, path, &OtherName::path);
  return other == kOtherNames.end() ? path : std::string(other->key);
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

bool is_structure(std::string_view path) {
  const auto all = structures();
  return std::ranges::find(all, path, &Structure::path) != all.end();
}

// Walks a document beside the schema and collects everything that is wrong with it.
class Checker {
 public:
  explicit Checker(const std::string& folder)
      : folder_(folder),
        organisation_(folder, problems_),
        access_(problems_),
        alerts_(problems_),
        power_limits_(problems_),
        slurm_names_(problems_),
        health_rules_(problems_),
        sharing_(problems_),
        accounting_(problems_),
        budgets_(problems_) {}

  // The document and the files that it includes.
  void check_all(const YAML::Node& root) {
    check_document(root);
    for (const Included& each : std::exchange(included_, {})) check_included(each);
  }

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
    access_.finish(configuration_);
    alerts_.finish(configuration_);
    use_retention_of_days();
    power_limits_.finish(configuration_);
    slurm_names_.finish(configuration_);
    health_rules_.finish(configuration_);
    sharing_.finish(configuration_);
    accounting_.finish(configuration_);
    budgets_.finish(configuration_);
    if (problems_.empty()) check_rules();
    const auto place = [](const Problem& problem) {
      return std::tie(problem.file, problem.line, problem.column, problem.key, problem.message);
    };
    if (problems_.empty()) {
      std::ranges::sort(configuration_.notes, {}, place);
      std::ranges::sort(configuration_.places, {}, &KeyPlace::key);
      return configuration_;
    }
    std::ranges::sort(problems_, {}, place);
    return std::unexpected(std::move(problems_));
  }

 private:
  // A file that the document includes; `at` is its name there.
  struct Included {
    std::string file;
    YAML::Node at;
  };

  void report(const YAML::Node& at, std::string key, std::string message) {
    const YAML::Mark mark = at.Mark();
    problems_.push_back(
        {mark.line + 1, mark.column + 1, std::move(key), std::move(message), file_});
  }

  void read_includes(const YAML::Node& name, const YAML::Node& value) {
    if (!file_.empty()) {
      return report(name, "include", "include: an included file cannot include others");
    }
    if (value.IsNull()) return;
    const auto add = [&](const YAML::Node& each) {
      const bool is_name = each.IsScalar() && !each.Scalar().empty();
      if (!is_name) {
        return report(each, "include",
                      fmt::format("include: must be the path of a file or a list of them, "
                                  "not {}",
                                  kind_of(each)));
      }
      const std::string& path = each.Scalar();
      included_.push_back({path.starts_with('/') ? path : folder_ + "/" + path, each});
    };
    if (!value.IsSequence()) return add(value);
    for (const auto& each : value) add(each);
  }

  void check_included(const Included& included) {
    const auto text = read_text(included.file);
    if (!text) {
      return report(included.at, "include",
                    fmt::format("include: {} {}", printable(included.file), text.error().message));
    }
    const auto document = parse_document(*text);
    const auto enter = [this](const std::string& file) {
      file_ = file;
      organisation_.in_file(file);
      access_.in_file(file);
      alerts_.in_file(file);
      power_limits_.in_file(file);
      slurm_names_.in_file(file);
      health_rules_.in_file(file);
      sharing_.in_file(file);
      accounting_.in_file(file);
      budgets_.in_file(file);
    };
    enter(included.file);
    if (document) {
      check_document(*document);
    } else {
      problems_.push_back(document.error());
      problems_.back().file = included.file;
    }
    enter({});
  }

  // Notes where the key stands. Returns false, and reports it, if another file has it too.
  bool enter_key(const YAML::Node& name, const std::string& path, std::string text = {}) {
    for (const KeyPlace& place : configuration_.places) {
      if (place.key != path) continue;
      report(name, path,
             fmt::format("'{}' is set in {} too, in line {}: set it once", path,
                         place.file.empty() ? "the including file" : place.file, place.line));
      return false;
    }
    const YAML::Mark mark = name.Mark();
    configuration_.places.push_back({path, file_, mark.line + 1, mark.column + 1, std::move(text)});
    return true;
  }

  void check_section(const YAML::Node& section, const std::string& path) {
    const std::vector<std::string_view> allowed = names_below(path);
    std::vector<std::string_view> known = other_names_below(path);
    known.insert(known.begin(), allowed.begin(), allowed.end());
    if (path.empty()) known.push_back(kInclude);
    std::set<std::string> seen;
    for (const auto& entry : section) {
      const YAML::Node& name = entry.first;
      if (!name.IsScalar()) {
        report(name, path, fmt::format("a key must be a word, not {}", kind_of(name)));
        continue;
      }
      const std::string& word = name.Scalar();
      const std::string key = key_meant(joined(path, word));
      if (std::ranges::find(known, word) == known.end()) {
        report_unknown(name, path, allowed.empty() ? known : allowed);
      } else if (!seen.insert(key).second) {
        report(name, key, fmt::format("'{}' is set twice", key));
      } else if (key == kInclude) {
        read_includes(name, entry.second);
      } else {
        check_entry(name, entry.second, key);
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
    if (SlurmNamesReader::reads(path) || is_structure(path)) {
      return check_structure(name, value, path);
    }
    const auto passive = std::ranges::find(kPassiveKeys, path, &PassiveKey::path);
    if (passive != kPassiveKeys.end()) return check_passive(*passive, value);
    const Key* key = find_key(path);
    if (key == nullptr) {
      if (value.IsMap()) {
        check_section(value, path);
      } else if (!value.IsNull()) {  // a section with all its keys commented out is fine
        report(value, path, fmt::format("'{}' is a section, not {}", path, kind_of(value)));
      }
      return;
    }
    if (!enter_key(name, path)) return;
    if (!value.IsScalar()) {
      report(value.IsNull() ? name : value, path,
             fmt::format("'{}' must be a value ({}), not {}", path, allowed_text(*key),
                         kind_of(value)));
      return;
    }
    // A plain scalar has the tag "?"; quotes make it "!", and a written tag stands for itself.
    const bool is_quoted_text = value.Tag() == "!" && is_text(*key);
    if (value.Tag() != "?" && !value.Tag().empty() && !is_quoted_text) {
      report(value, path,
             fmt::format("'{}' is written without quotes and tags: {}", path, allowed_text(*key)));
      return;
    }
    if (const auto set = set_value(*key, value.Scalar(), configuration_); !set) {
      report(value, path, fmt::format("{}: {}", path, printable_message(set.error().message)));
    }
  }

  void check_structure(const YAML::Node& name, const YAML::Node& value, const std::string& path) {
    if (!enter_key(name, path, YAML::Dump(value))) return;
    if (SlurmNamesReader::reads(path)) return slurm_names_.read(path, value);
    if (AccessReader::reads(path)) return access_.read(path, value);
    if (AlertsReader::reads(path)) return alerts_.read(path, value);
    if (HealthRulesReader::reads(path)) return health_rules_.read(path, value);
    if (PowerLimitsReader::reads(path)) return power_limits_.read(path, value);
    if (SharingReader::reads(path)) return sharing_.read(path, value);
    if (AccountingReader::reads(path)) return accounting_.read(path, value);
    if (BudgetsReader::reads(path)) return budgets_.read(path, value);
    organisation_.read(path, name, value);
  }

  void check_passive(const PassiveKey& key, const YAML::Node& value) {
    const std::string path(key.path);
    const std::string word = value.IsScalar() ? lower_case(value.Scalar()) : std::string();
    const bool is_done =
        !word.empty() && fmt::format(" {} ", key.done).find(' ' + word + ' ') != std::string::npos;
    if (is_done) return;
    const bool is_right = key.says == Says::kBoolean
                              ? word == "true" || word == "false"
                              : base::parse_count(word, 0, 1'000'000).has_value();
    if (!is_right) {
      const std::string_view wanted =
          key.says == Says::kBoolean ? "true or false" : "a whole number";
      const std::string found = value.IsScalar() ? fmt::format("'{}'", printable(value.Scalar()))
                                                 : std::string(kind_of(value));
      report(value, path, fmt::format("{}: must be {}, not {}", path, wanted, found));
    } else if (!key.others.empty()) {
      report(value, path, fmt::format("{}: {} is not possible: {}", path, word, key.others));
    } else {
      const YAML::Mark mark = value.Mark();
      configuration_.notes.push_back(
          {mark.line + 1, mark.column + 1, path, fmt::format("{}: {}", path, key.note), file_});
    }
  }

  static std::string printable_message(std::string_view message) {
    std::string shown(message);
    for (char& c : shown) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
    }
    return shown;
  }

  // The other name of a key that has another unit.
  void use_retention_of_days() {
    const bool has_minutes = std::ranges::find(configuration_.places, "telemetry.keep_minutes",
                                               &KeyPlace::key) != configuration_.places.end();
    if (!configuration_.metrics_retention_days || has_minutes) return;
    configuration_.telemetry.keep_minutes =
        base::hours(24 * std::int64_t{*configuration_.metrics_retention_days});
  }

  void check_rules() {
    for (const Rule& rule : rules()) {
      if (rule.holds(configuration_)) continue;
      // The key at fault may be left at its default: then the file as a whole is named.
      problems_.push_back(
          problem_at(rule.key, fmt::format("{}: {}", rule.key, rule.message), configuration_));
    }
  }

  const std::string folder_;
  std::string file_;  // that is being checked; empty: the configuration itself
  std::vector<Included> included_;
  Configuration configuration_;
  std::vector<Problem> problems_;
  OrganisationReader organisation_;
  AccessReader access_;
  AlertsReader alerts_;
  PowerLimitsReader power_limits_;
  SlurmNamesReader slurm_names_;
  HealthRulesReader health_rules_;
  SharingReader sharing_;
  AccountingReader accounting_;
  BudgetsReader budgets_;
};

Checked whole_file(std::string message) {
  return std::unexpected(std::vector<Problem>{{0, 0, {}, std::move(message), {}}});
}

}  // namespace

Checked parse_configuration(std::string_view yaml, const std::string& folder) {
  const auto document = parse_document(yaml);
  if (!document) return std::unexpected(std::vector<Problem>{document.error()});
  Checker checker(folder);
  checker.check_all(*document);
  return checker.finish();
}

namespace {

// The place where a person changes the teams: the file with the key.
void name_file_of_teams(const std::string& path, Configuration& configuration) {
  const auto place = std::ranges::find_if(configuration.places, [](const KeyPlace& each) {
    return each.key == "teams" || each.key == "teams_file";
  });
  if (place == configuration.places.end()) return;
  model::Organisation organisation = *configuration.policy.organisation;
  organisation.file = place->file.empty() ? path : place->file;
  configuration.policy.organisation = std::move(organisation);
}

}  // namespace

Checked read_configuration(const std::string& path) {
  const auto text = read_text(path);
  if (!text) return whole_file(text.error().message);
  const std::size_t slash = path.rfind('/');
  Checked checked =
      parse_configuration(*text, slash == std::string::npos ? "." : path.substr(0, slash));
  if (checked) name_file_of_teams(path, *checked);
  return checked;
}

}  // namespace gpu_platform::config
