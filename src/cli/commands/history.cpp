#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/graph.h"
#include "cli/text/history_text.h"
#include "cli/text/text.h"
#include "cli/words/gpu_choice.h"
#include "cli/words/input.h"
#include "gpu_platform/v1/telemetry.pb.h"

// What GPUs, hosts and jobs did.

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kWidthOfFiles = 80;
constexpr std::string_view kDefaultPercentile = "95";

struct HistoryOptions {
  std::vector<std::string> gpus, nodes, metrics;
  std::optional<std::string> job, team, since, from, to, step, percentiles;
  bool is_csv = false;
  Output output;
};

// The parameters of the call.
class Query {
 public:
  void add(std::string_view name, std::string_view value) {
    text_ += fmt::format("{}{}={}", text_.empty() ? "?" : "&", name, base::percent_encoded(value));
  }
  std::string target() const { return "/v1/history" + text_; }

 private:
  std::string text_;
};

base::Status put_things(const HistoryOptions& options, Query& query) {
  const int kinds =
      static_cast<int>(!options.gpus.empty()) + static_cast<int>(!options.nodes.empty()) +
      static_cast<int>(options.job.has_value()) + static_cast<int>(options.team.has_value());
  if (kinds != 1) return base::invalid("", "give one of --gpu, --job, --node and --team");
  for (const std::string& word : words_of_lists(options.gpus)) {
    const GpuChoice which = choice_of_word(word);
    if (!which.is_one_gpu()) {
      return base::invalid("--gpu", fmt::format("'{}' is no GPU: give NODE:INDEX or a UUID", word));
    }
    query.add(which.gpu ? "gpu" : "gpu_id", word);
  }
  for (const std::string& word : words_of_lists(options.nodes)) query.add("node", word);
  for (const auto& [option, value] :
       {std::pair{"--job", &options.job}, std::pair{"--team", &options.team}}) {
    if (!*value) continue;
    if ((*value)->empty()) return base::invalid(option, "is empty");
    query.add(std::string_view(option).substr(2), **value);
  }
  return {};
}

base::Status put_window(const HistoryOptions& options, base::Instant now, Query& query) {
  if (options.since && (options.from || options.to)) {
    return base::invalid("--since", "cannot be given with --from or --to");
  }
  for (const auto& [option, value, field] :
       {std::tuple{"--since", &options.since, "from"}, std::tuple{"--from", &options.from, "from"},
        std::tuple{"--to", &options.to, "to"}}) {
    if (!*value) continue;
    TRY_ASSIGN(const std::string time, past_time(option, **value, now));
    query.add(field, time);
  }
  if (!options.step || *options.step == "0") {
    if (options.step) query.add("step_seconds", "0");
    return {};
  }
  const auto step = base::parse_duration(*options.step);
  if (!step) return base::invalid("--step", step.error().message);
  query.add("step_seconds",
            fmt::format("{}", static_cast<double>(base::whole_milliseconds(*step)) / 1000));
  return {};
}

base::Result<std::string> target_of(const HistoryOptions& options, base::Instant now) {
  Query query;
  TRY(put_things(options, query));
  for (const std::string& metric : words_of_lists(options.metrics)) query.add("metric", metric);
  TRY(put_window(options, now, query));
  const std::string percentiles = options.percentiles.value_or(std::string(kDefaultPercentile));
  for (const std::string& percentile : words_of_lists({percentiles})) {
    query.add("percentile", percentile);
  }
  return query.target();
}

void print(Console& console, const v1::History& history, const HistoryOptions& options) {
  if (options.is_csv) {
    console.out(history_csv(history));
    return;
  }
  const v1::HistoryCoverage& coverage = history.coverage();
  if (!coverage.problem().empty()) console.note("nothing is kept now: " + coverage.problem());
  if (history.series().empty()) {
    console.note("it had no GPU in this time");
    return;
  }
  const std::size_t width = console.process_environment().width;
  console.out(history_page(history, {.width = width == 0 ? kWidthOfFiles : width,
                                     .is_ascii = !has_utf8(console.process_environment())}));
}

}  // namespace

int run_history(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  HistoryOptions options;
  Arguments arguments(text);
  arguments.many("--gpu", options.gpus, "GPU,…", "GPUs: NODE:INDEX or UUID")
      .option("--job", options.job, "ID", "the GPUs of this job while it had them")
      .many("--node", options.nodes, "NODE,…", "a node: its host and its GPUs")
      .option("--team", options.team, "TEAM", "the jobs of this team together")
      .many("--metric", options.metrics, "METRIC,…",
            "utilization, memory, temperature, power (the default), or names of the API")
      .option("--since", options.since, "TIME",
              "begin: 2h, 1d, yesterday, a time (default: 1h; of a job, its start)")
      .option("--from", options.from, "TIME", "begin, with --to")
      .option("--to", options.to, "TIME", "end (default: now)")
      .option("--step", options.step, "DURATION",
              "span of each point: 1m, 1h; 0: as fine as it is kept (default: 1m or more)")
      .option("--percentiles", options.percentiles, "N,…",
              "percentiles of the window (default: 95)")
      .flag("--csv", options.is_csv, "print a line for each point, for spreadsheets")
      .output_and_watch(options.output, {"series", "gpu_id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (options.is_csv && options.output.is_document()) {
    return usage_error(console, "--csv: cannot be given with -o or --json", text.name);
  }
  const auto target = target_of(options, console.process_environment().now());
  if (!target) {
    const base::Error& mistake = target.error();
    return usage_error(console,
                       mistake.field.empty()
                           ? mistake.message
                           : fmt::format("{}: {}", mistake.field, mistake.message),
                       text.name);
  }
  return show_message<v1::History>(
      console, *client, options.output, *target,
      [&](Console& shown, const v1::History& history) { print(shown, history, options); });
}

}  // namespace gpu_platform::cli
