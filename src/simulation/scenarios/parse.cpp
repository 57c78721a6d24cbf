#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"
#include "model/quota_fields.h"
#include "simulation/scenarios/job_options.h"
#include "simulation/scenarios/scenario.h"
#include "simulation/scenarios/values.h"

namespace gpu_platform::simulation {

namespace {

struct Rule {
  std::string_view verb;
  std::size_t least = 0;  // arguments
  std::size_t most = 0;
  std::string_view usage;
  std::vector<std::string_view> options;
};

// Returns the options for what a job asks for, and for what it does.
std::vector<std::string_view> submit_options() {
  std::vector<std::string_view> names = options_of_submission();
  names.insert(names.end(),
               {"command", "runs", "exit", "launch_exit", "launch_failures", "ignores_term",
                "cleaning", "starts_after", "prolog_failures", "prolog_fails_on", "epilog_fails"});
  return names;
}

// Returns the options for limits between others: "max_gpus", and of a type "max_gpus_of".
std::vector<std::string_view> options_with_quota(std::vector<std::string_view> names,
                                                 const std::vector<std::string_view>& after = {}) {
  static const std::vector<std::string> kOfTypes = [] {
    std::vector<std::string> of_types;
    model::for_each_type_quota_field(
        [&](const auto& row) { of_types.push_back(fmt::format("{}_of", row.name)); });
    return of_types;
  }();
  for (const model::QuotaField& row : model::kQuotaFields) names.push_back(row.name);
  names.insert(names.end(), kOfTypes.begin(), kOfTypes.end());
  names.insert(names.end(), after.begin(), after.end());
  return names;
}

std::vector<std::string_view> update_options() {
  std::vector<std::string_view> names = options_of_update();
  names.insert(names.begin(), "by");
  return names;
}

// Options that had names of the scenarios' own.
constexpr std::pair<std::string_view, std::string_view> kFormer[] = {
    {"types", "gpu-type"},
    {"speeds", "gpu-type"},
    {"limit", "time"},
    {"expected", "expected-time"},
    {"cross_node", "allow-cross-node"},
    {"within", "network-level"},
    {"numa", "strict-numa"},
    {"max_time_limit", "policies.max_job_duration_hours"},
    {"max_loss_retries", "fault_tolerance.max_retries"},
    {"root_jobs", "execution.root_jobs"},
    {"points", "scheduling.priority_points.critical"},
    {"preempt_below", "policies.preempt_priority_threshold"},
    {"max_preemptions", "policies.max_preemptions_per_job"},
    {"weights", "scheduling.weights.age"},
    {"quota_period", "quotas.period"},
    {"allocation", "allocation.mode"},
    {"reserved_thousandths", "allocation.reserved_ratio"},
};

// The name that an option of a former spelling has now; empty for what was never one.
std::string_view name_instead(std::string_view key, const std::vector<std::string_view>& allowed) {
  std::string dashed(key);
  std::ranges::replace(dashed, '_', '-');
  for (const std::string_view name : allowed) {
    const bool is_end = name.size() > key.size() && name.ends_with(key) &&
                        name[name.size() - key.size() - 1] == '.';
    if (name == dashed || is_end) return name;
  }
  for (const auto& [former, now] : kFormer) {
    if (former == key && std::ranges::find(allowed, now) != allowed.end()) return now;
  }
  return {};
}

const std::vector<Rule>& rules() {
  static const std::vector<Rule> kRules = {
      {"node",
       1,
       1,
       "node NAME",
       {"gpus", "model", "cpus", "memory", "numa_gpus", "socket_gpus", "links", "pairs", "domain",
        "rack", "zone", "engine", "others_cpus", "others_memory", "capacity", "share_modes"}},
      {"engines", 1, 1, "engines process|containers|kubernetes,…", {}},
      {"policy", 0, 0, "policy KEY=VALUE", options_of_policy()},
      {"sharing",
       0,
       0,
       "sharing KEY=VALUE",
       {"gpus", "nodes", "between_users", "max_jobs", "weakest_rung", "modes"}},
      {"team", 1, 1, "team NAME",
       options_with_quota({"parent", "shares", "users"},
                          {"reclaim_min_runtime", "max_reclaims_per_job", "preempt_min_runtime",
                           "default_time_limit"})},
      {"quota", 0, 0, "quota user=NAME|project=NAME (neither: each user)",
       options_with_quota({"user", "project"})},
      {"submit", 1, 1, "submit JOB", submit_options()},
      {"reserve",
       1,
       1,
       "reserve NAME",
       {"nodes", "gpus_per_node", "gpus", "type", "teams", "users", "maintenance", "begin", "end",
        "for", "ignore_running", "force", "by", "repeat", "until", "count", "utc_offset"}},
      {"change_reservation",
       1,
       1,
       "change_reservation NAME",
       {"nodes", "gpus_per_node", "gpus", "type", "teams", "users", "maintenance", "begin", "end",
        "for", "ignore_running", "force", "by", "repeat", "until", "count", "utc_offset", "skip"}},
      {"unreserve", 1, 1, "unreserve NAME", {"by"}},
      {"at", 1, 1, "at TIME", {}},
      {"after", 1, 1, "after TIME", {}},
      {"end", 1, 1, "end JOB", {"exit", "signal", "reason", "attempt"}},
      {"cancel", 1, 1, "cancel JOB", {"by"}},
      {"kill", 1, 1, "kill JOB", {"by"}},
      {"hold", 1, 1, "hold JOB", {"by"}},
      {"release", 1, 1, "release JOB", {"by"}},
      {"requeue", 1, 1, "requeue JOB", {"by", "hold"}},
      {"update", 1, 1, "update JOB", update_options()},
      {"all", 1, 1, "all cancel|kill|hold|release|requeue", {"by", "user", "state", "name", "dry"}},
      {"lose", 1, 1, "lose NODE", {}},
      {"return", 1, 1, "return NODE", {}},
      {"reboot", 1, 1, "reboot NODE", {"without_gpu"}},
      {"drain", 1, 1, "drain NODE", {"gpu"}},
      {"offline", 1, 1, "offline NODE", {"gpu", "force"}},
      {"online", 1, 1, "online NODE", {"gpu"}},
      {"service", 2, 2, "service NODE up|draining|offline", {"cause"}},
      {"unavailable", 1, 1, "unavailable NODE", {"gpu", "text"}},
      {"degrade", 1, 1, "degrade NODE", {"gpu", "text"}},
      {"disk", 1, 1, "disk full|free", {}},
      {"restart", 0, 0, "restart", {"after"}},
      {"mute", 1, 1, "mute JOB", {}},
      {"deliver", 1, 1, "deliver JOB", {}},
      {"expect start",
       2,
       2,
       "expect start JOB NODE",
       {"because", "gpus", "attempt", "level", "preempted_jobs", "limit_s", "passed", "yields_s"}},
      {"expect wait", 1, 1, "expect wait JOB", {"because", "behind", "text"}},
      {"expect state",
       2,
       2,
       "expect state JOB STATE",
       {"exit", "signal", "lost", "reason", "attempts", "by", "starts", "team", "detail",
        "preemptions", "losses", "stopped_for", "borrowed"}},
      {"expect prediction",
       1,
       1,
       "expect prediction JOB",
       {"by_s", "p50_s", "p90_s", "basis", "after"}},
      {"expect predicted", 1, 1, "expect predicted JOB", {"p50_s", "p90_s", "basis", "runs"}},
      {"expect promise", 1, 1, "expect promise JOB", {"by_s"}},
      {"expect score", 1, 1, "expect score BASIS", {"starts", "by_then", "p50_s", "signed_s"}},
      {"expect answer", 1, 1, "expect answer ok|unchanged|CODE", {"field", "text"}},
      {"expect changed", 1, 1, "expect changed NUMBER", {"refused"}},
      {"expect same", 2, 2, "expect same JOB JOB", {}},
      {"expect free", 1, 1, "expect free NODE", {"gpus", "cpus", "memory"}},
      {"expect node", 2, 2, "expect node NODE STATE", {"text"}},
      {"expect reserved",
       1,
       1,
       "expect reserved NAME",
       {"gpus", "nodes", "let_finish", "begin", "end"}},
      {"expect gpu", 3, 3, "expect gpu NODE INDEX STATE", {}},
  };
  return kRules;
}

// Words of one line: quotes keep blanks together, '#' begins a comment.
base::Result<std::vector<std::string>> words_of(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool is_quoted = false;
  bool has_word = false;
  for (const char c : line) {
    if (c == '"') {
      is_quoted = !is_quoted;
      has_word = true;
    } else if (!is_quoted && c == '#') {
      break;
    } else if (!is_quoted && (c == ' ' || c == '\t' || c == '\r')) {
      if (has_word) words.push_back(std::exchange(word, {}));
      has_word = false;
    } else {
      word.push_back(c);
      has_word = true;
    }
  }
  if (is_quoted) return base::invalid({}, "a quotation mark is not closed");
  if (has_word) words.push_back(std::move(word));
  return words;
}

std::string unknown(std::string_view what, const std::string& word,
                    const std::vector<std::string_view>& allowed) {
  if (allowed.empty()) return fmt::format("{} '{}' is unknown: none is allowed here", what, word);
  return fmt::format("{} '{}' is unknown{} (allowed: {})", what, word,
                     base::did_you_mean(word, allowed), fmt::join(allowed, ", "));
}

const Rule* find_rule(std::string_view verb) {
  const auto found = std::ranges::find(rules(), verb, &Rule::verb);
  return found == rules().end() ? nullptr : &*found;
}

base::Result<Statement> statement_of(std::vector<std::string> words) {
  Statement statement;
  std::size_t used = 1;
  statement.verb = words[0];
  if (words[0] == "expect") {
    if (words.size() < 2) return base::invalid({}, "expect what? For example: expect start a n1");
    statement.verb += " " + words[1];
    used = 2;
  }
  const Rule* rule = find_rule(statement.verb);
  if (rule == nullptr) {
    std::vector<std::string_view> verbs;
    std::ranges::transform(rules(), std::back_inserter(verbs), &Rule::verb);
    return base::invalid({}, unknown("the statement", statement.verb, verbs));
  }
  for (; used < words.size(); ++used) {
    const std::string& word = words[used];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      statement.arguments.push_back(word);
      continue;
    }
    const std::string key = word.substr(0, equals);
    if (std::ranges::find(rule->options, key) == rule->options.end()) {
      const std::string_view now = name_instead(key, rule->options);
      if (!now.empty()) {
        return base::invalid({}, fmt::format("the option '{}' is called '{}'", key, now));
      }
      return base::invalid({}, unknown("the option", key, rule->options));
    }
    if (!statement.options.emplace(key, word.substr(equals + 1)).second) {
      return base::invalid({}, fmt::format("the option '{}' is given twice", key));
    }
  }
  if (statement.arguments.size() < rule->least || statement.arguments.size() > rule->most) {
    return base::invalid({}, fmt::format("{} words follow '{}'; it is written '{}'",
                                         statement.arguments.size(), statement.verb, rule->usage));
  }
  return statement;
}

}  // namespace

base::Result<Scenario> parse_scenario(std::string_view text, std::string file) {
  Scenario scenario;
  scenario.file = std::move(file);
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    const auto at_line = [&](const base::Error& error) {
      return base::invalid({}, fmt::format("{}:{}: {}", scenario.file, number, error.message));
    };
    auto words = words_of(line);
    if (!words) return at_line(words.error());
    if (words->empty()) continue;
    auto statement = statement_of(*std::move(words));
    if (!statement) return at_line(statement.error());
    statement->line = number;
    scenario.statements.push_back(*std::move(statement));
  }
  return scenario;
}

}  // namespace gpu_platform::simulation
