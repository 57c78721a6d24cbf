#include <algorithm>

#include <fmt/format.h>

#include "base/utc.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/submission/text_file.h"
#include "cli/text/evidence_lines.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "health/evidence_file/replay_json.h"
#include "health/evidence_file/rules_file.h"

// 'health replay' and 'health rules': what the rules say, of a file without a daemon.

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kMaxEvidenceBytes = std::size_t{512} << 20;
constexpr std::size_t kMaxRulesBytes = std::size_t{1} << 20;

base::Result<health::Rules> rules_from(const ProcessEnvironment& environment,
                                       const std::optional<std::string>& given) {
  if (!given) return health::Rules::make(health::Profile::kNvidia);
  if (const auto profile = health::parse_profile(*given)) return health::Rules::make(*profile);
  auto text = read_text_file(environment, *given, kMaxRulesBytes);
  if (!text) {
    return base::invalid("--rules", fmt::format("'{}' is no profile (nvidia, cloud, strict), and "
                                                "as a file it {}",
                                                *given, text.error().message));
  }
  auto rules = health::read_rules(*text);
  if (rules) return rules;
  return base::invalid("--rules",
                       fmt::format("{}: {}{}{}", *given, rules.error().field,
                                   rules.error().field.empty() ? "" : ": ", rules.error().message));
}

std::string replayed_gpus_text(const health::Replay& replay, const TableStyle& style) {
  Table table({{.title = "GPU"},
               {.title = "TAKEN OUT"},
               {.title = "ACTION"},
               {.title = "CLASS"},
               {.title = "RULE"},
               {.title = "CONFIDENCE", .align = Column::Align::kRight},
               {.title = "WHY", .cut_to = 30, .wraps = true}});
  for (const health::ReplayedGpu& gpu : replay.gpus) {
    const bool was_out = gpu.taken_out_at.is_set();
    const health::GpuVerdict& verdict = was_out ? gpu.taken_out_by : gpu.verdict;
    if (verdict.action == health::Action::kNone) continue;
    table.add({gpu.gpu, was_out ? base::utc(gpu.taken_out_at) : "",
               std::string(to_string(verdict.action)), std::string(to_string(verdict.fault)),
               verdict.rule, fmt::format("{} %", verdict.confidence_percent), verdict.text});
  }
  return table.empty() ? "No GPU has a fault.\n" : table.render(style);
}

std::string replayed_jobs_text(const health::Replay& replay, const TableStyle& style) {
  Table table({{.title = "JOB"},
               {.title = "PROGRAM"},
               {.title = "ENDED"},
               {.title = "CHARGED"},
               {.title = "CLASS"},
               {.title = "WHY", .cut_to = 30, .wraps = true}});
  for (const health::ReplayedJob& job : replay.jobs) {
    if (!job.failed) continue;
    table.add({job.job, job.program, base::utc(job.at), job.is_charged ? "yes" : "no",
               std::string(to_string(job.verdict.fault)),
               job.verdict.reasons.empty() ? "" : job.verdict.reasons.front()});
  }
  return table.empty() ? "No job failed.\n" : table.render(style);
}

int evidence_error(Console& console, const CommandText& text, const std::string& file,
                   const std::string& message) {
  return usage_error(console, fmt::format("--evidence '{}': {}", file, message), text.name);
}

}  // namespace

int run_health_replay(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> evidence;
  std::optional<std::string> given_rules;
  Output output;
  Arguments arguments(text);
  arguments.option("--evidence", evidence, "FILE",
                   "the evidence, one event a line (docs/health-evidence.md); - reads standard "
                   "input (default: what the daemon has kept)");
  arguments.option("--rules", given_rules, "PROFILE|FILE",
                   "nvidia (the default), cloud, strict, or a JSON file of a profile and rules");
  arguments.output(output, {"gpus", "gpu"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const ProcessEnvironment& environment = console.process_environment();
  const auto rules = rules_from(environment, given_rules);
  if (!rules) return usage_error(console, "--rules: " + rules.error().message, text.name);
  std::string bytes;
  if (evidence) {
    auto read = read_text_file(environment, *evidence, kMaxEvidenceBytes);
    if (!read) return evidence_error(console, text, *evidence, read.error().message);
    bytes = *std::move(read);
  } else {
    auto kept = kept_evidence_lines(*client, "");
    if (!kept) return report(console, kept.error(), output.wants_documents());
    bytes = *std::move(kept);
  }
  const auto file = health::read_evidence(bytes);
  if (!file) return evidence_error(console, text, evidence.value_or("-"), file.error().message);
  const health::Replay replay = health::replay(*file, *rules);
  if (output.is_document()) return print_document(console, output, health::replay_json(replay));
  console.out(replayed_gpus_text(replay, output.style(console)));
  console.out("\n" + replayed_jobs_text(replay, output.style(console)));
  for (const health::StoppedAct& act : replay.breaker) {
    console.out(harmless(fmt::format("Stopped by the circuit breaker at {}: {}: {}",
                                     base::utc(act.at), act.gpu, act.text)) +
                "\n");
  }
  for (const std::string& note : replay.notes) console.err(harmless("note: " + note) + "\n");
  return console.out_failed() ? kFailure : kOk;
}

int run_health_rules(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> profile;
  std::optional<std::string> gpu_type;
  std::optional<std::string> node;
  Output output;
  Arguments arguments(text);
  arguments.option("--profile", profile, "PROFILE|FILE",
                   "nvidia (the default), cloud, strict, or a JSON file of a profile and rules");
  arguments.option("--gpu-type", gpu_type, "TYPE", "with the rules that a file has for this type");
  arguments.option("--node", node, "NODE", "with the rules that a file has for this node");
  arguments.output(output, {"rules", "rule"});
  if (const auto stop = arguments.parse(invocation.words, console)) return *stop;
  const auto rules = rules_from(console.process_environment(), profile);
  if (!rules) return usage_error(console, "--profile: " + rules.error().message, text.name);
  const std::string type = gpu_type.value_or("");
  if (output.is_document()) {
    return print_document(console, output, health::rules_json(*rules, type, node.value_or("")));
  }
  Table table({{.title = "RULE"},
               {.title = "WHAT", .cut_to = 20},
               {.title = "CLASS"},
               {.title = "FIRST"},
               {.title = "AGAIN"},
               {.title = "MODE"},
               {.title = "SOURCE", .cut_to = 20, .wraps = true}});
  for (const health::Rule& row : rules->rows(type)) {
    const health::Rule& rule = rules->of(row.name, type, node.value_or(""));
    table.add({std::string(rule.name), std::string(rule.what), std::string(to_string(rule.fault)),
               std::string(to_string(rule.action)),
               rule.repeat == health::Repeat::kNever ? "" : std::string(to_string(rule.repeated)),
               std::string(to_string(rule.mode)),
               rule.changed_by.empty() ? std::string(rule.source) : rule.changed_by});
  }
  console.out(table.render(output.style(console)));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
