#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/kpi_text.h"
#include "cli/words/input.h"

// Reports about a time.

namespace gpu_platform::cli {

namespace {

struct KpiOptions {
  std::optional<std::string> since, until, team;
  bool is_csv = false;
  Output output;
};

// The errors' fields are options.
base::Result<std::string> target_of(const KpiOptions& options, base::Instant now) {
  std::string target = "/v1/kpi";
  const auto add = [&](std::string_view name, std::string_view value) {
    target += fmt::format("{}{}={}", target.find('?') == std::string::npos ? "?" : "&", name,
                          base::percent_encoded(value));
  };
  for (const auto& [option, value, field] : {std::tuple{"--since", &options.since, "since"},
                                             std::tuple{"--until", &options.until, "until"}}) {
    if (!*value) continue;
    TRY_ASSIGN(const std::string time, past_time(option, **value, now));
    add(field, time);
  }
  if (options.team) add("team", *options.team);
  return target;
}

}  // namespace

int run_report_kpi(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  KpiOptions options;
  Arguments arguments(text);
  arguments
      .option("--since", options.since, "TIME",
              "begin: 7d, 30d, monday, a time (default: 30 days before the end)")
      .option("--until", options.until, "TIME", "end (default: now)")
      .option("--team", options.team, "TEAM", "only the jobs of this team")
      .flag("--csv", options.is_csv, "print a line for each figure, for spreadsheets")
      .output(options.output, {});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (options.is_csv && options.output.is_document()) {
    return usage_error(console, "--csv: cannot be given with -o or --json", text.name);
  }
  const auto target = target_of(options, console.process_environment().now());
  if (!target) {
    return usage_error(console, fmt::format("{}: {}", target.error().field, target.error().message),
                       text.name);
  }
  return show_message<v1::Kpi>(
      console, *client, options.output, *target, [&](Console& shown, const v1::Kpi& kpi) {
        shown.out(options.is_csv ? kpi_csv(kpi) : kpi_page(kpi, options.output.style(shown)));
      });
}

}  // namespace gpu_platform::cli
