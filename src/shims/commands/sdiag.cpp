#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "client/answer.h"
#include "gpu_platform/v1/statistics.pb.h"
#include "shims/command_call.h"
#include "shims/options/common_options.h"
#include "shims/text/slurm_times.h"

// sdiag: what the daemon counted of its own work. A scheduling cycle here plans starts and
// backfills in one, so both parts of Slurm's page tell of the same cycles.

namespace gpu_platform::shims {

namespace {

constexpr Option kDiagnosisRows[] = {
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", ""},
    {"reset", 'r', Take::kNothing, Rule::kRefused,
     "figures are since the start of the daemon; take differences of two calls", ""},
    {"sort-by-id", 'i', Take::kNothing, Rule::kHonoured, "", ""},
    {"sort-by-time", 't', Take::kNothing, Rule::kHonoured, "", ""},
    {"sort-by-time2", 'T', Take::kNothing, Rule::kHonoured, "", ""},
};
constexpr auto kDiagnosisOptions =
    joined(kDiagnosisRows, kVerboseOption, kHelpOption, kCommonOptions);

std::int64_t microseconds(double seconds) {
  return std::llround(seconds * 1e6);
}

// "Mon Nov 23 00:51:03 2026 (1795395063)"
std::string date_and_number(const std::optional<base::Instant>& at) {
  if (!at) return "N/A";
  std::string date = date_line(*at);
  date.pop_back();
  return fmt::format("{} ({})", date, at->unix_ns() / 1'000'000'000);
}

std::string cycles_text(const v1::Statistics& statistics) {
  const v1::Distribution& cycles = statistics.cycle_seconds();
  const std::uint64_t count = cycles.count();
  std::string text = fmt::format(
      "Main schedule statistics (microseconds):\n\tLast cycle:   {}\n\tMax cycle:    {}\n"
      "\tTotal cycles: {}\n",
      microseconds(cycles.last()), microseconds(cycles.max()), count);
  if (count > 0) {
    const v1::Distribution& considered = statistics.considered_jobs();
    text += fmt::format("\tMean cycle:   {}\n\tMean depth cycle:  {}\n",
                        microseconds(cycles.mean()), std::llround(considered.mean()));
    const auto since = client::time_of(statistics.since());
    const auto at = client::time_of(statistics.at());
    const double minutes =
        since && at ? static_cast<double>(base::whole_milliseconds(*at - *since)) / 60'000 : 0;
    if (minutes >= 1) {
      text += fmt::format("\tCycles per minute: {}\n",
                          std::llround(static_cast<double>(count) / minutes));
    }
  }
  return text + fmt::format("\tLast queue length: {}\n", statistics.waiting_jobs());
}

std::string backfill_text(const v1::Statistics& statistics) {
  const v1::Distribution& cycles = statistics.cycle_seconds();
  const v1::Distribution& considered = statistics.considered_jobs();
  const std::int64_t depth = std::llround(considered.last());
  const std::uint64_t backfilled = statistics.backfilled();
  return fmt::format(
      "Backfilling stats\n"
      "\tTotal backfilled jobs (since last slurm start): {}\n"
      "\tTotal backfilled jobs (since last stats cycle start): {}\n"
      "\tTotal backfilled heterogeneous job components: 0\n"
      "\tTotal cycles: {}\n\tLast cycle when: N/A\n\tLast cycle: {}\n\tMax cycle:  {}\n"
      "\tLast depth cycle: {}\n\tLast depth cycle (try sched): {}\n\tLast queue length: {}\n"
      "\tLast table size: 0\n",
      backfilled, backfilled, cycles.count(), microseconds(cycles.last()),
      microseconds(cycles.max()), depth, depth, statistics.waiting_jobs());
}

double mean_of(const v1::CallStatistics& call) {
  return call.total_seconds() / static_cast<double>(std::max<std::uint64_t>(1, call.count()));
}

// The calls of the interface, the most frequent first unless asked otherwise.
std::string calls_text(const v1::Statistics& statistics, const Settings& settings) {
  std::vector<v1::CallStatistics> calls(statistics.calls().begin(), statistics.calls().end());
  if (settings.has("sort-by-id")) {
    std::ranges::stable_sort(calls, {}, [](const v1::CallStatistics& call) { return call.call(); });
  } else if (settings.has("sort-by-time")) {
    std::ranges::stable_sort(calls, std::greater(),
                             [](const v1::CallStatistics& call) { return call.total_seconds(); });
  } else if (settings.has("sort-by-time2")) {
    std::ranges::stable_sort(calls, std::greater(), mean_of);
  }
  std::string text = "Remote Procedure Call statistics by message type\n";
  for (const v1::CallStatistics& call : calls) {
    const std::string name = call.call();
    text += fmt::format("\t{:<40}({:>5}) count:{:<6} ave_time:{:<6} total_time:{}\n",
                        name.empty() ? "(no call)" : name, 0, call.count(),
                        std::llround(mean_of(call) * 1e6), microseconds(call.total_seconds()));
  }
  return text + "\nPending RPC statistics\n\tNo pending RPCs\n";
}

std::string page_of(const v1::Statistics& statistics, const Settings& settings) {
  constexpr std::string_view kLine = "*******************************************************\n";
  std::string text = fmt::format("{}sdiag output at {}\nData since      {}\n{}", kLine,
                                 date_and_number(client::time_of(statistics.at())),
                                 date_and_number(client::time_of(statistics.since())), kLine);
  text +=
      "Server thread count:  1\nAgent queue size:     0\nAgent count:          0\n"
      "Agent thread count:   0\nDBD Agent queue size: 0\n\n";
  const std::uint64_t failed = statistics.jobs_failed() + statistics.jobs_timed_out();
  text += fmt::format(
      "Jobs submitted: {}\nJobs started:   {}\nJobs completed: {}\nJobs canceled:  {}\n"
      "Jobs failed:    {}\n\n",
      statistics.jobs_submitted(), statistics.attempts_started(), statistics.jobs_completed(),
      statistics.jobs_cancelled(), failed);
  text += fmt::format("Job states ts:  {}\nJobs pending:   {}\nJobs running:   {}\n\n",
                      date_and_number(client::time_of(statistics.at())), statistics.waiting_jobs(),
                      statistics.running_jobs());
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
  const auto statistics = client::message_of<v1::Statistics>(*body);
  if (!statistics) return call.fail("the daemon's answer is not a JSON object");
  call.console().out(page_of(*statistics, given->settings));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
