#include "alerts/rule_table.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "base/suggest.h"
#include "model/job_selection.h"

namespace gpu_platform::alerts {

namespace {

// clang-format off
constexpr std::array<SignalRow, kSignals> kSignalRows = {{
    {Signal::kGpuTemperature, "gpu_temperature", Kind::kLevel, " °C", false, 150},
    {Signal::kGpuMemoryHeat, "gpu_memory_temperature", Kind::kLevel, " °C", false, 150},
    {Signal::kGpuMemory, "gpu_memory", Kind::kLevel, " %", false, 100},
    {Signal::kGpuUtilization, "gpu_utilization", Kind::kLevel, " %", false, 100},
    {Signal::kGpuHeatSlowdown, "gpu_heat_slowdown", Kind::kYesNo, "", false, 1},
    {Signal::kGpuThrottled, "gpu_throttled", Kind::kYesNo, "", false, 1},
    {Signal::kGpuXid, "gpu_xid", Kind::kCounter, "", false, 1'000'000},
    {Signal::kGpuEcc, "gpu_ecc_uncorrected", Kind::kCounter, "", false, 1'000'000},
    {Signal::kGpuOutOfService, "gpu_out_of_service", Kind::kYesNo, "", false, 1},
    {Signal::kGpuUnmanaged, "gpu_unmanaged", Kind::kYesNo, "", false, 1},
    {Signal::kNodeLost, "node_lost", Kind::kYesNo, "", false, 1},
    {Signal::kQueueWait, "queue_wait", Kind::kLevel, " s", false, 31'536'000},
    {Signal::kIdleAllocation, "idle_allocation", Kind::kYesNo, "", false, 1},
    {Signal::kDiskLow, "disk_free", Kind::kLevel, " %", true, 100},
    {Signal::kCertificate, "certificate_days", Kind::kLevel, " days", true, 3'660},
    {Signal::kHistory, "history", Kind::kYesNo, "", false, 1},
    {Signal::kDelivery, "delivery", Kind::kYesNo, "", false, 1},
    {Signal::kBudget, "budget", Kind::kLevel, " %", false, 1'000},
}};
// clang-format on

Rule rule(std::string name, Signal signal, std::int64_t threshold, std::int64_t clear,
          base::Duration hold, Severity severity, std::string advice) {
  Rule made;
  made.name = std::move(name);
  made.signal = signal;
  made.is_below = row_of(signal).is_bad_below;
  made.threshold = threshold;
  made.clear = clear;
  made.hold = hold;
  made.severity = severity;
  made.advice = std::move(advice);
  return made;
}

Rule yes(std::string name, Signal signal, base::Duration hold, Severity severity,
         std::string advice) {
  return rule(std::move(name), signal, 1, 0, hold, severity, std::move(advice));
}

std::vector<Rule> make_shipped() {
  constexpr Severity kInfo = Severity::kInfo;
  constexpr Severity kWarning = Severity::kWarning;
  constexpr Severity kCritical = Severity::kCritical;
  const base::Duration now;
  std::vector<Rule> all = {
      rule("GpuHot", Signal::kGpuTemperature, 85, 80, base::minutes(1), kWarning,
           "Look at the cooling of the node; 'gpu-platform health' shows its GPUs."),
      rule("GpuTooHot", Signal::kGpuTemperature, 90, 85, base::minutes(1), kCritical,
           "Look at the cooling of the node at once; 'gpu-platform drain' keeps new jobs away."),
      rule("GpuMemoryHot", Signal::kGpuMemoryHeat, 95, 90, base::minutes(1), kWarning,
           "Look at the cooling of the node; 'gpu-platform health' shows its GPUs."),
      yes("GpuSlowedByHeat", Signal::kGpuHeatSlowdown, base::minutes(1), kWarning,
          "Look at the cooling of the node; jobs on the GPU are slower meanwhile."),
      yes("GpuThrottled", Signal::kGpuThrottled, base::minutes(15), kWarning,
          "Look at the power supply and the cooling of the node."),
      rule("GpuMemoryNearFull", Signal::kGpuMemory, 90, 85, base::minutes(10), kInfo,
           "This is usual in training; a job that allocates more fails."),
      rule("GpuBusy", Signal::kGpuUtilization, 95, 90, base::minutes(15), kInfo,
           "The GPU is well used."),
      rule("GpuXidCritical", Signal::kGpuXid, 1, 0, now, kCritical,
           "'gpu-platform health NODE:INDEX' says what the error means and what helps."),
      rule("GpuUncorrectableEcc", Signal::kGpuEcc, 1, 0, now, kCritical,
           "'gpu-platform health NODE:INDEX' says whether the GPU needs a reset."),
      yes("GpuOutOfService", Signal::kGpuOutOfService, base::minutes(1), kWarning,
          "'gpu-platform health' says why, and what brings it back."),
      yes("GpuUnmanagedUse", Signal::kGpuUnmanaged, base::minutes(5), kWarning,
          "Processes of no job are on the GPU; 'gpu-platform health NODE:INDEX' names them."),
      yes("NodeLost", Signal::kNodeLost, now, kCritical,
          "Look at the node: it may be down, or cut off from the network."),
      rule("JobsWaitLong", Signal::kQueueWait, 600, 599, now, kWarning,
           "'gpu-platform queue' shows what waits, and 'gpu-platform jobs explain' why."),
      yes("GpuAllocatedIdle", Signal::kIdleAllocation, now, kWarning,
          "Cancel the job if it is done: other jobs could use its GPUs."),
      rule("DiskLow", Signal::kDiskLow, 10, 12, base::minutes(1), kWarning,
           "Make room on the file system of the data directory: when it is full, new jobs are "
           "refused."),
      rule("CertificateExpires", Signal::kCertificate, 14, 15, now, kWarning,
           "Renew the certificate of api.tls.certificate."),
      yes("HistoryNotKept", Signal::kHistory, base::minutes(1), kWarning,
          "The daemon's log says why readings are not kept; everything else goes on."),
      yes("DeliveryFails", Signal::kDelivery, now, kWarning,
          "'gpu-platform alerts channels' shows what is wrong with the channel."),
      rule("BudgetNearlySpent", Signal::kBudget, 80, 79, now, kWarning,
           "'gpu-platform budget list' shows what is left, and when it will be spent."),
      rule("BudgetSpent", Signal::kBudget, 100, 99, now, kCritical,
           "'gpu-platform budget list' shows what follows, and when the budget renews."),
  };
  std::ranges::find(all, "GpuBusy", &Rule::name)->is_enabled = false;
  return all;
}

bool matches_one(const std::vector<std::string>& patterns, std::string_view text) {
  return std::ranges::any_of(
      patterns, [&](const std::string& pattern) { return model::matches_pattern(pattern, text); });
}

// "H100" stands for "H100-80GB", too.
bool matches_type(const std::vector<std::string>& types, std::string_view type) {
  const std::string_view family = type.substr(0, type.find('-'));
  return matches_one(types, type) || matches_one(types, family);
}

std::string_view label(const Labels& labels, std::string_view name) {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string_view() : std::string_view(found->second);
}

bool is_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  const auto is_allowed = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= 64 && is_letter(name.front()) &&
         std::ranges::all_of(name, is_allowed);
}

// Whether the subjects of the signal have the label, so that a rule can be for some of them.
bool has_label(Signal signal, std::string_view label) {
  switch (signal) {
    case Signal::kNodeLost:
      return label == "node";
    case Signal::kIdleAllocation:
      return label == "team";
    case Signal::kQueueWait:
    case Signal::kDiskLow:
    case Signal::kCertificate:
    case Signal::kHistory:
    case Signal::kDelivery:
      return false;
    default:
      return label == "type" || label == "node";
  }
}

// One entry of a site.
class Change {
 public:
  Change(const RuleWords& words, std::string field) : words_(words), field_(std::move(field)) {}

  base::Status apply(Rule& rule, bool is_new) const {
    TRY(set_signal(rule, is_new));
    TRY(set_threshold(rule, is_new));
    if (!words_.severity.empty()) {
      const auto severity = parse_severity(words_.severity);
      if (!severity) {
        return wrong(
            fmt::format("severity '{}' is not one of info, warning, critical", words_.severity));
      }
      rule.severity = *severity;
    }
    TRY(check_labels(rule.signal));
    if (words_.hold && row_of(rule.signal).kind == Kind::kCounter) {
      return wrong(fmt::format("{} only grows: it has no 'for'", row_of(rule.signal).name));
    }
    if (words_.hold) rule.hold = *words_.hold;
    if (words_.is_enabled) rule.is_enabled = *words_.is_enabled;
    if (!words_.advice.empty()) rule.advice = words_.advice;
    rule.types = words_.types;
    rule.nodes = words_.nodes;
    rule.teams = words_.teams;
    rule.is_of_site = true;
    return {};
  }

  base::Result<Signal> signal() const {
    std::vector<std::string_view> names;
    for (const SignalRow& row : kSignalRows) names.push_back(row.name);
    if (words_.signal.empty()) {
      std::vector<std::string_view> shipped;
      for (const Rule& rule : shipped_rules()) shipped.push_back(rule.name);
      return wrong(fmt::format("the rule '{}' is not a shipped one, so it needs a signal{}",
                               words_.name, base::did_you_mean(words_.name, shipped)));
    }
    const auto found = parse_signal(words_.signal);
    if (!found) {
      return wrong(fmt::format("there is no signal '{}'{}", words_.signal,
                               base::did_you_mean(words_.signal, names)));
    }
    return *found;
  }

  std::unexpected<base::Error> wrong(std::string message) const {
    return base::invalid(field_, std::move(message));
  }

 private:
  base::Status set_signal(Rule& rule, bool is_new) const {
    if (words_.signal.empty() && !is_new) return {};
    TRY_ASSIGN(const Signal given, signal());
    if (!is_new && given != rule.signal) {
      return wrong(fmt::format("the rule '{}' is about {}: a rule about {} needs another name",
                               rule.name, row_of(rule.signal).name, words_.signal));
    }
    rule.signal = given;
    return {};
  }

  base::Status set_threshold(Rule& rule, bool is_new) const {
    const SignalRow& row = row_of(rule.signal);
    if (words_.above && words_.below) return wrong("give either 'above' or 'below'");
    const auto given = words_.above ? words_.above : words_.below;
    if (!given) {
      if (is_new && row.kind == Kind::kLevel) {
        return wrong(fmt::format("a rule about {} needs 'above' or 'below'", row.name));
      }
      if (words_.clear) return wrong("'clear' is given with 'above' or 'below'");
      return {};
    }
    if (row.kind == Kind::kYesNo) {
      return wrong(fmt::format("{} is true or not: it has no threshold", row.name));
    }
    const bool is_below = words_.below.has_value();
    if (row.kind == Kind::kCounter && is_below) {
      return wrong(fmt::format("{} only grows: give 'above'", row.name));
    }
    const std::int64_t least = row.kind == Kind::kCounter ? 1 : 0;
    if (*given < least || *given > row.most) {
      return wrong(fmt::format("the threshold {} is out of range: {} to {}{} is allowed", *given,
                               least, row.most, row.unit));
    }
    rule.is_below = is_below;
    rule.threshold = *given;
    rule.clear = words_.clear.value_or(is_below ? *given + 1 : *given - 1);
    return check_clear(rule);
  }

  // A rule for what its subjects do not have would never fire.
  base::Status check_labels(Signal signal) const {
    const auto check = [&](std::string_view key, std::string_view label,
                           const std::vector<std::string>& patterns) -> base::Status {
      if (patterns.empty() || has_label(signal, label)) return {};
      return wrong(fmt::format("{} has no '{}'", row_of(signal).name, key));
    };
    TRY(check("types", "type", words_.types));
    TRY(check("nodes", "node", words_.nodes));
    return check("teams", "team", words_.teams);
  }

  base::Status check_clear(const Rule& rule) const {
    const SignalRow& row = row_of(rule.signal);
    if (row.kind == Kind::kCounter) {
      if (!words_.clear) return {};
      return wrong(fmt::format("{} only grows: it has no 'clear'", row.name));
    }
    const bool is_apart = rule.is_below ? rule.clear > rule.threshold : rule.clear < rule.threshold;
    if (!is_apart) {
      return wrong(fmt::format("'clear' ({}) must be {} than the threshold ({})", rule.clear,
                               rule.is_below ? "more" : "less", rule.threshold));
    }
    if (rule.clear >= 0 && rule.clear <= row.most) return {};
    return wrong(fmt::format("the rule '{}' would never be over: its value never comes to {}{}",
                             words_.name, rule.clear, row.unit));
  }

  const RuleWords& words_;
  const std::string field_;
};

}  // namespace

std::span<const SignalRow> signals() {
  return kSignalRows;
}

const SignalRow& row_of(Signal signal) {
  const SignalRow& row = kSignalRows.at(static_cast<std::size_t>(signal));
  CHECK(row.signal == signal);
  return row;
}

std::optional<Signal> parse_signal(std::string_view name) {
  const auto row = std::ranges::find(kSignalRows, name, &SignalRow::name);
  return row == kSignalRows.end() ? std::nullopt : std::optional(row->signal);
}

bool fires(const Rule& rule, std::int64_t value) {
  return rule.is_below ? value <= rule.threshold : value >= rule.threshold;
}

bool is_clear(const Rule& rule, std::int64_t value) {
  return rule.is_below ? value >= rule.clear : value <= rule.clear;
}

bool applies(const Rule& rule, const Labels& labels) {
  return (rule.types.empty() || matches_type(rule.types, label(labels, "type"))) &&
         (rule.nodes.empty() || matches_one(rule.nodes, label(labels, "node"))) &&
         (rule.teams.empty() || matches_one(rule.teams, label(labels, "team")));
}

const std::vector<Rule>& shipped_rules() {
  static const std::vector<Rule> kShipped = make_shipped();
  return kShipped;
}

base::Result<std::vector<Rule>> make_rules(std::span<const RuleWords> changes) {
  std::vector<Rule> rules = shipped_rules();
  std::set<std::string, std::less<>> seen;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const RuleWords& words = changes[i];
    const Change change(words, fmt::format("alerts.rules[{}]", i));
    if (!is_name(words.name)) {
      return change.wrong(fmt::format(
          "a rule is named by 1 to 64 letters, digits, '-' and '_', a letter first, not '{}'",
          words.name));
    }
    if (!seen.insert(words.name).second) {
      return change.wrong(fmt::format("there are two rules '{}': each name once", words.name));
    }
    const auto known = std::ranges::find(rules, words.name, &Rule::name);
    if (known != rules.end()) {
      TRY(change.apply(*known, false));
      continue;
    }
    Rule added;
    added.name = words.name;
    TRY(change.apply(added, true));
    rules.push_back(std::move(added));
  }
  return rules;
}

}  // namespace gpu_platform::alerts
