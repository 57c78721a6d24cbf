#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/advice_text.h"
#include "cli/words/report_window.h"
#include "http/http.h"

// Reports that say what was saved, what a month will cost and what could cost less.

namespace gpu_platform::cli {

namespace {

struct ReportOptions {
  ReportWindow window;
  std::optional<std::string> team;
  Output output;

  void add_team_and_output(Arguments& arguments) {
    arguments.option("--team", team, "TEAM", "only this team and those below it")
        .output(output, {});
  }
};

// Asks for the report and prints it; the exit code.
template <class Message>
int show_report(Console& console, Client& client, const ReportOptions& options,
                const CommandText& text, std::string_view path,
                std::string (*page_of)(const Message& message, const TableStyle& style)) {
  std::string query;
  if (const auto put = options.window.put(console.process_environment().now(), query); !put) {
    return usage_error(console, fmt::format("{}: {}", put.error().field, put.error().message),
                       text.name);
  }
  if (options.team) http::append_query(query, "team", *options.team);
  const std::string target = fmt::format("{}{}{}", path, query.empty() ? "" : "?", query);
  return show_message<Message>(console, client, options.output, target,
                               [&](Console& shown, const Message& message) {
                                 shown.out(page_of(message, options.output.style(shown)));
                               });
}

}  // namespace

int run_report_savings(const CommandText& text, Invocation& invocation) {
  ReportOptions options;
  Arguments arguments(text);
  options.window.add_to(arguments, kMonthOfEnd);
  options.add_team_and_output(arguments);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show_report<v1::Savings>(invocation.console, *client, options, text, "/v1/reports/savings",
                                  savings_page);
}

int run_report_forecast(const CommandText& text, Invocation& invocation) {
  ReportOptions options;
  Arguments arguments(text);
  options.add_team_and_output(arguments);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show_report<v1::Forecast>(invocation.console, *client, options, text,
                                   "/v1/reports/forecast", outlook_page);
}

int run_report_advice(const CommandText& text, Invocation& invocation) {
  ReportOptions options;
  Arguments arguments(text);
  options.window.add_to(arguments, "four weeks before the end");
  options.add_team_and_output(arguments);
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show_report<v1::Advice>(invocation.console, *client, options, text, "/v1/reports/advice",
                                 advice_page);
}

}  // namespace gpu_platform::cli
