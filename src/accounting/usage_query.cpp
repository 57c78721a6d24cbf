#include "accounting/usage_query.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "model/gpu_catalogue.h"

namespace gpu_platform::accounting {

namespace {

constexpr std::array<std::string_view, kUsageFields> kFieldNames = {
    "user", "team", "project", "type", "node", "job", "label", "capacity", "kind", "priority"};
constexpr std::array<std::string_view, kUsageSteps> kStepNames = {"none", "hour", "day", "month"};
constexpr std::string_view kLabelPrefix = "label:";
constexpr model::Millis kCalendarEnd = 9'214'646'400'000;  // 2262-01-01T00:00:00Z

template <class T>
bool has_or_all(const std::vector<T>& wanted, const T& value) {
  return wanted.empty() || std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

bool has_labels(const std::vector<model::Label>& wanted, const std::vector<model::Label>& labels) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const model::Label& label) {
    return std::find(labels.begin(), labels.end(), label) != labels.end();
  });
}

bool asks_for_owner(const UsageFilter& filter) {
  return !filter.users.empty() || !filter.teams.empty() || !filter.projects.empty();
}

bool asks_for_job(const UsageFilter& filter) {
  return !filter.jobs.empty() || !filter.kinds.empty() || !filter.priorities.empty() ||
         !filter.labels.empty();
}

bool asks_for_place(const UsageFilter& filter) {
  return !filter.types.empty() || !filter.nodes.empty() || !filter.capacities.empty();
}

bool is_of_owner(const UsageFilter& filter, const model::LedgerLine& line) {
  return has_or_all(filter.users, line.user) && has_or_all(filter.teams, line.team) &&
         has_or_all(filter.projects, line.project);
}

bool has_type(const std::vector<std::string>& wanted, const std::string& type) {
  return wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const std::string& each) {
           return model::gpu_type_matches(each, type);
         });
}

bool is_of_place(const UsageFilter& filter, const model::LedgerLine& line) {
  return has_type(filter.types, line.gpu_type) && has_or_all(filter.nodes, line.node) &&
         has_or_all(filter.capacities, line.capacity);
}

bool is_of_job(const UsageFilter& filter, const model::LedgerLine& line) {
  return has_or_all(filter.jobs, line.attempt.job) && has_or_all(filter.kinds, line.job_kind) &&
         has_or_all(filter.priorities, line.priority) && has_labels(filter.labels, line.labels);
}

}  // namespace

std::string to_string(const UsageBy& by) {
  if (by.field == UsageField::kLabel) return std::string(kLabelPrefix) + by.label;
  return std::string(kFieldNames[static_cast<std::size_t>(by.field)]);
}

std::optional<UsageBy> parse_usage_by(std::string_view text) {
  if (text.starts_with(kLabelPrefix)) {
    const std::string_view key = text.substr(kLabelPrefix.size());
    if (key.empty()) return std::nullopt;
    return UsageBy{UsageField::kLabel, std::string(key)};
  }
  for (std::size_t i = 0; i < kUsageFields; ++i) {
    const auto field = static_cast<UsageField>(i);
    if (field != UsageField::kLabel && kFieldNames[i] == text) return UsageBy{field, {}};
  }
  return std::nullopt;
}

std::string usage_bys() {
  std::string all;
  for (std::size_t i = 0; i < kUsageFields; ++i) {
    if (i > 0) all += ", ";
    all += static_cast<UsageField>(i) == UsageField::kLabel ? "label:KEY" : kFieldNames[i];
  }
  return all;
}

std::string_view to_string(UsageStep step) {
  return kStepNames[static_cast<std::size_t>(step)];
}

std::optional<UsageStep> parse_usage_step(std::string_view text) {
  for (std::size_t i = 0; i < kUsageSteps; ++i) {
    if (kStepNames[i] == text) return static_cast<UsageStep>(i);
  }
  return std::nullopt;
}

bool is_wanted(const UsageFilter& filter, const model::LedgerLine& line) {
  switch (line.kind) {
    case model::LedgerKind::kHeld:
      return is_of_owner(filter, line) && is_of_place(filter, line) && is_of_job(filter, line);
    case model::LedgerKind::kRest:
      return !asks_for_owner(filter) && !asks_for_job(filter) && is_of_place(filter, line);
    case model::LedgerKind::kCorrection:
      return !asks_for_place(filter) && !asks_for_job(filter) && is_of_owner(filter, line);
  }
  return false;
}

base::Status check(const UsageQuery& query) {
  if (query.from < 0 || query.from >= kCalendarEnd) {
    return base::invalid("from", "must be between the years 1970 and 2261");
  }
  if (query.to <= query.from) return base::invalid("to", "must be later than 'from'");
  if (query.to > kCalendarEnd) {
    return base::invalid("to", "must be between the years 1970 and 2261");
  }
  if (query.by.size() > kMaxUsageBys) {
    return base::invalid(
        "by", fmt::format("has {} fields; the maximum is {}", query.by.size(), kMaxUsageBys));
  }
  for (auto by = query.by.begin(); by != query.by.end(); ++by) {
    if (by->field == UsageField::kLabel && by->label.empty()) {
      return base::invalid("by", "a label needs its key, as in label:KEY");
    }
    if (std::find(query.by.begin(), by, *by) != by) {
      return base::invalid("by", fmt::format("has {} twice", to_string(*by)));
    }
  }
  return {};
}

}  // namespace gpu_platform::accounting
