#include "health/rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "health/rule_table.h"
#include "model/gpu_catalogue.h"
#include "model/job_selection.h"

namespace gpu_platform::health {

namespace {

constexpr std::array<std::string_view, 8> kActions = {"NONE",  "COUNT", "AVOID",   "DEGRADE",
                                                      "DRAIN", "RESET", "OFFLINE", "REBOOT"};
constexpr std::array<std::string_view, 6> kClasses = {"NONE",     "APPLICATION", "DRIVER",
                                                      "HARDWARE", "SYMPTOM",     "UNKNOWN"};
constexpr std::array<std::string_view, 3> kModes = {"EXECUTE", "SHADOW", "OFF"};
constexpr std::array<std::string_view, 3> kProfiles = {"nvidia", "cloud", "strict"};

bool is_equal_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

template <class Value, std::size_t kSize>
std::optional<Value> parse_word(const std::array<std::string_view, kSize>& words,
                                std::string_view name) {
  for (std::size_t i = 0; i < kSize; ++i) {
    if (is_equal_word(words[i], name)) return static_cast<Value>(i);
  }
  return std::nullopt;
}

struct Change {
  std::string_view rule;
  Action action;
};

// Clouds replace rather than repair: a restart or isolation before a reset (AWS), and Crusoe's
// lists of unhealthy (32, 48, 64, 74, 79, 95) and degraded (119, 120, 140, 143).
constexpr auto kCloud = std::to_array<Change>({
    {"xid-32", Action::kDrain},
    {"xid-46", Action::kReboot},
    {"xid-48", Action::kReboot},
    {"xid-62", Action::kReboot},
    {"xid-64", Action::kOffline},
    {"xid-74", Action::kReboot},
    {"xid-95", Action::kReboot},
    {"xid-110", Action::kReboot},
    {"xid-119", Action::kDegrade},
    {"xid-120", Action::kDegrade},
    {"xid-140", Action::kDegrade},
    {"xid-143", Action::kDegrade},
    {"xid-158", Action::kReboot},
    {"ecc-uncorrected", Action::kReboot},
    {"remap-failed", Action::kOffline},
});

// Every error is the GPU's until a check has passed.
constexpr auto kStrict = std::to_array<Change>({
    {"xid-13", Action::kDegrade},
    {"xid-31", Action::kReset},
    {"xid-32", Action::kDegrade},
    {"xid-38", Action::kDegrade},
    {"xid-43", Action::kReset},
    {"xid-44", Action::kDegrade},
    {"xid-68", Action::kDegrade},
    {"xid-69", Action::kDegrade},
    {"xid-121", Action::kDegrade},
    {"xid-163", Action::kReset},
    {"xid-unknown", Action::kDegrade},
});

std::span<const Change> changes_of(Profile profile) {
  switch (profile) {
    case Profile::kNvidia:
      return {};
    case Profile::kCloud:
      return kCloud;
    case Profile::kStrict:
      return kStrict;
  }
  return {};
}

Rule* find_row(std::vector<Rule>& rows, std::string_view name) {
  const auto found = std::ranges::find(rows, name, &Rule::name);
  return found == rows.end() ? nullptr : &*found;
}

std::vector<Rule> rows_of(Profile profile) {
  std::vector<Rule> rows(xid_rows().begin(), xid_rows().end());
  rows.insert(rows.end(), condition_rows().begin(), condition_rows().end());
  rows.insert(rows.end(), published_rows().begin(), published_rows().end());
  for (const Change& change : changes_of(profile)) {
    Rule* const row = find_row(rows, change.rule);
    CHECK(row != nullptr);
    row->action = change.action;
    row->repeated = std::max(row->repeated, change.action);
    row->changed_by = fmt::format("profile {}", to_string(profile));
  }
  return rows;
}

enum class Breadth : std::uint8_t { kAll, kFamily, kType };

// A name that is not in the catalogue is of one model.
Breadth breadth_of(std::string_view gpu_type) {
  if (gpu_type.empty()) return Breadth::kAll;
  const auto name = model::canonical_gpu_type(gpu_type);
  const auto all = model::gpu_catalogue();
  const bool is_type = !name || std::ranges::find(all, *name, &model::GpuType::name) != all.end();
  return is_type ? Breadth::kType : Breadth::kFamily;
}

void change(Rule& row, const RuleOverride& by) {
  if (by.action) {
    row.action = *by.action;
    row.repeated = *by.action == Action::kNone ? Action::kNone : std::max(row.repeated, *by.action);
    // A site that names an action knows better than the driver.
    row.trusts_driver = false;
  }
  if (by.mode) row.mode = *by.mode;
  row.changed_by = "configuration";
}

}  // namespace

std::string_view to_string(Action action) {
  return kActions[static_cast<std::size_t>(action)];
}

std::string_view to_string(FaultClass fault) {
  return kClasses[static_cast<std::size_t>(fault)];
}

std::string_view to_string(RuleMode mode) {
  return kModes[static_cast<std::size_t>(mode)];
}

std::string_view to_string(Profile profile) {
  return kProfiles[static_cast<std::size_t>(profile)];
}

std::optional<Profile> parse_profile(std::string_view name) {
  return parse_word<Profile>(kProfiles, name);
}

std::optional<Action> parse_action(std::string_view name) {
  return parse_word<Action>(kActions, name);
}

std::optional<RuleMode> parse_rule_mode(std::string_view name) {
  return parse_word<RuleMode>(kModes, name);
}

base::Result<RuleOverride> make_override(const OverrideWords& words, const std::string& field) {
  RuleOverride by{std::string(words.rule), std::string(words.gpu_type), parse_action(words.action),
                  parse_rule_mode(words.mode), std::string(words.nodes)};
  if (!words.action.empty() && !by.action) {
    return base::invalid(field + ".action", fmt::format("\"{}\" is not one of {}", words.action,
                                                        fmt::join(kActions, ", ")));
  }
  if (!words.mode.empty() && !by.mode) {
    return base::invalid(field + ".mode", fmt::format("\"{}\" is not one of {}", words.mode,
                                                      fmt::join(kModes, ", ")));
  }
  return by;
}

base::Result<Rules> Rules::make(Profile profile, std::span<const RuleOverride> overrides) {
  Rules rules;
  rules.profile_ = profile;
  rules.tables_.push_back({"", rows_of(profile)});
  // First what is of all, then of families, so that the tables of single types begin with it.
  for (const Breadth breadth : {Breadth::kAll, Breadth::kFamily, Breadth::kType}) {
    for (std::size_t i = 0; i < overrides.size(); ++i) {
      const RuleOverride& by = overrides[i];
      const std::string field = fmt::format("rules[{}]", i);
      if (find_row(rules.tables_.front().rows, by.rule) == nullptr) {
        return base::invalid(field + ".rule",
                             fmt::format("\"{}\" is no rule; 'gpu-platform health rules' lists "
                                         "them, such as xid-79 and remap-pending",
                                         by.rule));
      }
      if (!by.action && !by.mode) {
        return base::invalid(field,
                             fmt::format("it changes nothing; give action ({}) or mode ({})",
                                         fmt::join(kActions, ", "), fmt::join(kModes, ", ")));
      }
      if (breadth_of(by.gpu_type) != breadth || !by.nodes.empty()) continue;
      const std::string type = model::canonical_gpu_type(by.gpu_type).value_or(by.gpu_type);
      auto table = std::ranges::find(rules.tables_, type, &Table::gpu_type);
      if (table == rules.tables_.end()) {
        std::vector<Rule> rows = rules.table(type).rows;
        rules.tables_.push_back({type, std::move(rows)});
        table = rules.tables_.end() - 1;
      }
      change(*find_row(table->rows, by.rule), by);
    }
  }
  for (const RuleOverride& by : overrides) {
    if (!by.nodes.empty()) rules.add_node_row(by);
  }
  return rules;
}

// An earlier entry for the same nodes, type and rule is changed further.
void Rules::add_node_row(const RuleOverride& by) {
  NodeRow added{by.nodes, model::canonical_gpu_type(by.gpu_type).value_or(by.gpu_type), {}};
  const auto earlier = std::ranges::find_if(node_rows_, [&](const NodeRow& each) {
    return each.nodes == added.nodes && each.gpu_type == added.gpu_type &&
           each.rows.front().name == by.rule;
  });
  if (earlier != node_rows_.end()) {
    added.rows = std::move(earlier->rows);
    node_rows_.erase(earlier);
  } else {
    for (Table& table : tables_) added.rows.push_back(*find_row(table.rows, by.rule));
  }
  for (Rule& row : added.rows) {
    change(row, by);
    row.changed_by = fmt::format("configuration, for nodes {}", by.nodes);
  }
  node_rows_.push_back(std::move(added));
}

const Rule& Rules::on_node(const Rule& row, std::string_view gpu_type,
                           std::string_view node) const {
  if (node.empty()) return row;
  for (auto each = node_rows_.rbegin(); each != node_rows_.rend(); ++each) {
    const bool is_of_type = each->gpu_type.empty() || each->gpu_type == gpu_type ||
                            model::gpu_type_matches(each->gpu_type, gpu_type);
    const bool is_it = each->rows.front().name == row.name && is_of_type &&
                       model::matches_pattern(each->nodes, node);
    if (is_it) return each->rows[static_cast<std::size_t>(&table(gpu_type) - tables_.data())];
  }
  return row;
}

const Rules::Table& Rules::table(std::string_view gpu_type) const {
  const Table* found = &tables_.front();
  for (std::size_t i = 1; i < tables_.size(); ++i) {
    if (tables_[i].gpu_type == gpu_type) return tables_[i];
    if (model::gpu_type_matches(tables_[i].gpu_type, gpu_type)) found = &tables_[i];
  }
  return *found;
}

std::span<const Rule> Rules::rows(std::string_view gpu_type) const {
  return table(gpu_type).rows;
}

const Rule& Rules::of_xid(std::uint32_t xid, std::string_view gpu_type,
                          std::string_view node) const {
  const std::span<const Rule> xids = rows(gpu_type).first(xid_rows().size());
  const auto found = std::ranges::lower_bound(xids, xid, {}, &Rule::code);
  if (found != xids.end() && found->code == xid) return on_node(*found, gpu_type, node);
  return of("xid-unknown", gpu_type, node);
}

const Rule& Rules::of(std::string_view name, std::string_view gpu_type,
                      std::string_view node) const {
  const std::span<const Rule> all = rows(gpu_type);
  const auto found = std::ranges::find(all, name, &Rule::name);
  CHECK(found != all.end());
  return on_node(*found, gpu_type, node);
}

}  // namespace gpu_platform::health
