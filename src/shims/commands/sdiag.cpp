#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/json_view.h"
#include "shims/command_call.h"
#include "shims/options/common_options.h"
#include "shims/text/slurm_times.h"

// sdiag: what the daemon counted of its own work. A scheduling cycle here plans starts and
// backfills in one, so both parts of Slurm's page tell of the same cycles.

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr Option kDiagnosisRows[] = {
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", ""},
    {"reset", 'r', Take::kNothing, Rule::kRefused,
     "figures count from the start of the daemon; take differences of two calls", ""},
    {"sort-by-id", 'i', Take::kNothing, Rule::kHonoured, "", ""},
    {"sort-by-time", 't', Take::kNothing, Rule::kHonoured, "", ""},
    {"sort-by-time2", 'T', Take::kNothing, Rule::kHonoured, "", ""},
};
constexpr auto kDiagnosisOptions =
    joined(kDiagnosisRows, kVerboseOption, kHelpOption, kCommonOptions);

std::int64_t count_at(const Json& object, std::string_view key) {
  return cli::integer_at(object, key).value_or(0);
}

const Json& distribution(const Json& statistics, std::string_view key) {
  static const Json kNone = Json::object();
  const auto found = statistics.find(key);
  return found != statistics.end() && found->is_object() ? *found : kNone;
}

std::int64_t microseconds_at(const Json& distribution, std::string_view key) {
  return std::llround(cli::number_at(distribution, key).value_or(0) * 1e6);
}

// "Mon Nov 23 00:51:03 2026 (1795395063)"
std::string date_and_number(const Json& object, std::string_view key) {
  const auto at = cli::time_at(object, key);
  if (!at) return "N/A";
  std::string date = date_line(*at);
  date.pop_back();
  return fmt::format("{} ({})", date, at->unix_ns() / 1'000'000'000);
}

std::string cycles_text(const Json& statistics) {
  const Json& cycles = distribution(statistics, "cycle_seconds");
  const std::int64_t count = count_at(cycles, "count");
  std::string text = fmt::format(
      "Main schedule statistics (microseconds):\n\tLast cycle:   {}\n\tMax cycle:    {}\n"
      "\tTotal cycles: {}\n",
      microseconds_at(cycles, "last"), microseconds_at(cycles, "max"), count);
  if (count > 0) {
    const Json& considered = distribution(statistics, "considered_jobs");
    text += fmt::format("\tMean cycle:   {}\n\tMean depth cycle:  {}\n",
                        microseconds_at(cycles, "mean"),
                        std::llround(cli::number_at(considered, "mean").value_or(0)));
    const auto since = cli::time_at(statistics, "since");
    const auto at = cli::time_at(statistics, "at");
    const double minutes =
        since && at ? static_cast<double>(base::whole_milliseconds(*at - *since)) / 60'000 : 0;
    if (minutes >= 1) {
      text += fmt::format("\tCycles per minute: {}\n",
                          std::llround(static_cast<double>(count) / minutes));
    }
  }
  return text + fmt::format("\tLast queue length: {}\n", count_at(statistics, "waiting_jobs"));
}

std::string backfill_text(const Json& statistics) {
  const Json& cycles = distribution(statistics, "cycle_seconds");
  const Json& considered = distribution(statistics, "considered_jobs");
  const std::int64_t depth = std::llround(cli::number_at(considered, "last").value_or(0));
  const std::int64_t backfilled = count_at(statistics, "backfilled");
  return fmt::format(
      "Backfilling stats\n"
      "\tTotal backfilled jobs (since last slurm start): {}\n"
      "\tTotal backfilled jobs (since last stats cycle start): {}\n"
      "\tTotal backfilled heterogeneous job components: 0\n"
      "\tTotal cycles: {}\n\tLast cycle when: N/A\n\tLast cycle: {}\n\tMax cycle:  {}\n"
      "\tLast depth cycle: {}\n\tLast depth cycle (try sched): {}\n\tLast queue length: {}\n"
      "\tLast table size: 0\n",
      backfilled, backfilled, count_at(cycles, "count"), microseconds_at(cycles, "last"),
      microseconds_at(cycles, "max"), depth, depth, count_at(statistics, "waiting_jobs"));
}

double mean_of(const Json& call) {
  return cli::number_at(call, "total_seconds").value_or(0) /
         static_cast<double>(std::max<std::int64_t>(1, count_at(call, "count")));
}

// The calls of the interface, the most frequent first unless asked otherwise.
std::string calls_text(const Json& statistics, const Settings& settings) {
  const Json& list = cli::list_at(statistics, "calls");
  std::vector<Json> calls(list.begin(), list.end());
  if (settings.has("sort-by-id")) {
    std::ranges::stable_sort(calls, {}, [](const Json& call) { return text_at(call, "call"); });
  } else if (settings.has("sort-by-time")) {
    std::ranges::stable_sort(calls, std::greater(), [](const Json& call) {
      return cli::number_at(call, "total_seconds").value_or(0);
    });
  } else if (settings.has("sort-by-time2")) {
    std::ranges::stable_sort(calls, std::greater(), mean_of);
  }
  std::string text = "Remote Procedure Call statistics by message type\n";
  for (const Json& call : calls) {
    const std::string name = text_at(call, "call");
    text += fmt::format("\t{:<40}({:>5}) count:{:<6} ave_time:{:<6} total_time:{}\n",
                        name.empty() ? "(no call)" : name, 0, count_at(call, "count"),
                        std::llround(mean_of(call) * 1e6), microseconds_at(call, "total_seconds"));
  }
  return text + "\nPending RPC statistics\n\tNo pending RPCs\n";
}

std::string page_of(const Json& statistics, const Settings& settings) {
  constexpr std::string_view kLine = "*******************************************************\n";
  std::string text =
      fmt::format("{}sdiag output at {}\nData since      {}\n{}", kLine,
                  date_and_number(statistics, "at"), date_and_number(statistics, "since"), kLine);
  text +=
      "Server thread count:  1\nAgent queue size:     0\nAgent count:          0\n"
      "Agent thread count:   0\nDBD Agent queue size: 0\n\n";
  const std::int64_t failed =
      count_at(statistics, "jobs_failed") + count_at(statistics, "jobs_timed_out");
  text += fmt::format(
      "Jobs submitted: {}\nJobs started:   {}\nJobs completed: {}\nJobs canceled:  {}\n"
      "Jobs failed:    {}\n\n",
      count_at(statistics, "jobs_submitted"), count_at(statistics, "attempts_started"),
      count_at(statistics, "jobs_completed"), count_at(statistics, "jobs_cancelled"), failed);
  text += fmt::format("Job states ts:  {}\nJobs pending:   {}\nJobs running:   {}\n\n",
                      date_and_number(statistics, "at"), count_at(statistics, "waiting_jobs"),
                      count_at(statistics, "running_jobs"));
  return text + cycles_text(statistics) + "\n" + backfill_text(statistics) + "\n" +
         calls_text(statistics, settings);
}

}  // namespace

std::span<const Option> sdiag_options() {
  return kDiagnosisOptions;
}

int sdiag(CommandCall& call) {
  const auto given = call.given({kDiagnosisOptions, "[options]"});
  if (!given) return given.error();
  auto client = call.client();
  if (!client) return 1;
  const auto body = client->get("/v1/statistics");
  if (!body) return call.fail(body.error());
  const auto statistics = cli::parse_object(*body);
  if (!statistics) return call.fail("the daemon's answer is not a JSON object");
  call.console().out(page_of(*statistics, given->settings));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
