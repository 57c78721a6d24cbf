#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/message_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "cli/words/arguments.h"
#include "cli/words/list_command.h"
#include "gpu_platform/v1/shares.pb.h"
#include "http/http.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

std::string percent(double part) {
  return fmt::format("{:.1f} %", part * 100);
}

// Decayed as the usage is; empty where it is not counted.
std::string gpu_seconds_of(const v1::Share& share) {
  return if_known(share.has_use_gpu_seconds(), share.use_gpu_seconds(), "{:.0f}");
}

// The limits of the account over all types of GPUs; null if it has none.
const v1::Quota* quota_of(const v1::ListSharesResponse& answer, const v1::Share& share) {
  const std::string& name = share.user().empty() ? share.team() : share.user();
  const std::string_view holder = share.user().empty() ? "team" : "user";
  for (const v1::Quota& quota : answer.quotas()) {
    if (quota.holder() == holder && quota.name() == name && quota.gpu_type().empty()) return &quota;
  }
  return nullptr;
}

std::string in_thousandths(double number);

// "8/16", "8" without a limit.
std::string gpus_of(const v1::Quota& quota) {
  const std::string used = in_thousandths(quota.gpus());
  return quota.has_max_gpus() ? fmt::format("{}/{}", used, quota.max_gpus()) : used;
}

// One account, and what the table shows of it.
struct ShareRow {
  const v1::Share* share = nullptr;
  const v1::Quota* quota = nullptr;  // null: it has no limits
  bool is_counted = false;           // usage decides the order
  bool is_in_tree = false;           // it comes below the account that it belongs to
};

// "whole", "  vision", "    ada": as deep as it lies.
std::string account_of(const ShareRow& row) {
  const v1::Share& share = *row.share;
  const std::string name = !share.user().empty()  ? share.user()
                           : share.team().empty() ? "(all)"
                                                  : share.team() + "/";
  return std::string(row.is_in_tree ? 2 * std::size_t{share.depth()} : 0, ' ') + name;
}

using ShareColumn = ListColumn<ShareRow>;

// A number of the share, which is shown if usage is counted.
ShareColumn usage_column(std::string key, std::string title, int expendable,
                         double (*number)(const ShareRow&, base::Instant),
                         std::string (*cell)(const v1::Share&)) {
  return {
      .key = std::move(key),
      .column = {.title = std::move(title), .align = Align::kRight, .expendable = expendable},
      .cell = [cell](const ShareRow& row,
                     base::Instant) { return row.is_counted ? cell(*row.share) : std::string(); },
      .rank = number,
      .is_left_out_if_empty = true};
}

std::vector<ShareColumn> quota_columns() {
  return {{.key = "gpus",
           .column = {.title = "GPUS", .align = Align::kRight},
           .cell = [](const ShareRow& row,
                      base::Instant) { return row.quota ? gpus_of(*row.quota) : std::string(); },
           .rank = [](const ShareRow& row,
                      base::Instant) { return row.quota ? row.quota->gpus() : 0.0; }},
          {.key = "guaranteed",
           .column = {.title = "GUARANTEED", .align = Align::kRight},
           .cell =
               [](const ShareRow& row, base::Instant) {
                 return if_known(row.quota && row.quota->has_guaranteed_gpus(),
                                 row.quota ? row.quota->guaranteed_gpus() : 0);
               },
           .rank =
               [](const ShareRow& row, base::Instant) {
                 return row.quota ? static_cast<double>(row.quota->guaranteed_gpus()) : 0.0;
               }}};
}

std::vector<ShareColumn> usage_columns() {
  return {
      usage_column(
          "usage", "USAGE", 0, [](const ShareRow& row, base::Instant) { return row.share->use(); },
          [](const v1::Share& share) { return percent(share.use()); }),
      usage_column(
          "fair-share", "FAIR SHARE", 0,
          [](const ShareRow& row, base::Instant) { return row.share->fair_share(); },
          [](const v1::Share& share) { return fmt::format("{:.3f}", share.fair_share()); }),
      usage_column(
          "place", "PLACE", 0,
          [](const ShareRow& row, base::Instant) {
            return static_cast<double>(row.share->place());
          },
          [](const v1::Share& share) { return if_known(share.place() > 0, share.place()); }),
      usage_column(
          "norm-shares", "NORM SHARES", 1,
          [](const ShareRow& row, base::Instant) { return row.share->normalized_shares(); },
          [](const v1::Share& share) { return percent(share.normalized_shares()); }),
      {.key = "shares",
       .column = {.title = "SHARES", .align = Align::kRight, .expendable = 2},
       .cell = [](const ShareRow& row,
                  base::Instant) { return fmt::format("{}", row.share->shares()); },
       .rank = [](const ShareRow& row,
                  base::Instant) { return static_cast<double>(row.share->shares()); }},
      usage_column(
          "effective-usage", "EFFECTIVE USAGE", 3,
          [](const ShareRow& row, base::Instant) { return row.share->effective_use(); },
          [](const v1::Share& share) { return percent(share.effective_use()); }),
      usage_column(
          "gpu-seconds", "GPU SECONDS", 4,
          [](const ShareRow& row, base::Instant) { return row.share->use_gpu_seconds(); },
          [](const v1::Share& share) { return gpu_seconds_of(share); })};
}

std::vector<ShareColumn> share_columns() {
  std::vector<ShareColumn> columns = {
      {.key = "account",
       .column = {.title = "ACCOUNT", .cut_to = 12},
       .cell = [](const ShareRow& row, base::Instant) { return account_of(row); }}};
  std::ranges::move(quota_columns(), std::back_inserter(columns));
  std::ranges::move(usage_columns(), std::back_inserter(columns));
  return columns;
}

std::vector<ShareRow> rows_of(const v1::ListSharesResponse& answer, bool are_in_tree) {
  std::vector<ShareRow> rows;
  for (const v1::Share& share : answer.shares()) {
    rows.push_back({&share, quota_of(answer, share), answer.counted(), are_in_tree});
  }
  return rows;
}

// "2", "0.125", "13.508": thousandths, as GPUs are counted.
std::string in_thousandths(double number) {
  std::string text = fmt::format("{:.3f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// "6 of 8", "6" without a limit.
std::string of_limit(double used, bool is_limited, std::uint32_t limit) {
  const std::string text = in_thousandths(used);
  return is_limited ? fmt::format("{} of {}", text, limit) : text;
}

std::string quotas_of(const v1::ListSharesResponse& answer, std::size_t width) {
  Table table({{"QUOTA", Align::kLeft, 12},
               {"GPU TYPE", Align::kLeft},
               {"GPUS", Align::kRight},
               {"GUARANTEED", Align::kRight},
               {"BORROW LIMIT", Align::kRight, std::nullopt, 1},
               {"LEND LIMIT", Align::kRight, std::nullopt, 1},
               {"RUNNING", Align::kRight, std::nullopt, 2},
               {"QUEUED", Align::kRight, std::nullopt, 2},
               {"GPU HOURS", Align::kRight, std::nullopt, 2}});
  const auto jobs_of_limit = [](bool is_known, std::uint32_t jobs, bool is_limited,
                                std::uint32_t limit) {
    return is_known ? of_limit(jobs, is_limited, limit) : std::string();
  };
  for (const v1::Quota& quota : answer.quotas()) {
    table.add({quota.holder() + " " + quota.name(),
               quota.gpu_type().empty() ? "all" : quota.gpu_type(),
               of_limit(quota.gpus(), quota.has_max_gpus(), quota.max_gpus()),
               if_known(quota.has_guaranteed_gpus(), quota.guaranteed_gpus()),
               if_known(quota.has_borrow_limit(), quota.borrow_limit()),
               if_known(quota.has_lend_limit(), quota.lend_limit()),
               jobs_of_limit(quota.has_running_jobs(), quota.running_jobs(),
                             quota.has_max_running_jobs(), quota.max_running_jobs()),
               jobs_of_limit(quota.has_queued_jobs(), quota.queued_jobs(),
                             quota.has_max_queued_jobs(), quota.max_queued_jobs()),
               quota.has_gpu_hours_committed()
                   ? of_limit(quota.gpu_hours_committed(), quota.has_gpu_hours(), quota.gpu_hours())
                   : ""});
  }
  return table.render({.width = width});
}

// "16", "2.29".
std::string gpus_text(double gpus) {
  return fmt::format("{:.4g}", gpus);
}

// The GPUs beyond guarantees; empty where they are not shared by weight.
std::string surplus_of(const v1::ListSharesResponse& answer, std::size_t width) {
  Table table({{"HOLDER", Align::kLeft, 12},
               {"GPU TYPE", Align::kLeft, std::nullopt, 1},
               {"WEIGHT", Align::kRight},
               {"GUARANTEED", Align::kRight, std::nullopt, 1},
               {"ABOVE", Align::kRight},
               {"WANTED", Align::kRight, std::nullopt, 2},
               {"SHARE", Align::kRight}});
  if (answer.surplus().empty()) return {};
  const bool has_types = std::ranges::any_of(
      answer.surplus(), [](const v1::SurplusShare& share) { return !share.gpu_type().empty(); });
  for (const v1::SurplusShare& share : answer.surplus()) {
    const std::string& user = share.user();
    const std::string& team = share.team();
    const std::string& type = share.gpu_type();
    const std::string name = !team.empty() ? team + "/" : user.empty() ? "(no guarantee)" : user;
    table.add({name,
               !type.empty() ? type
               : has_types   ? "others"
                             : "all",
               fmt::format("{}", share.weight()), gpus_text(share.guaranteed_gpus()),
               gpus_text(share.held_gpus()), gpus_text(share.wanted_gpus()),
               gpus_text(share.share_gpus())});
  }
  return "\nGPUs beyond all guarantees, shared by over_quota_weight:\n" +
         table.render({.width = width});
}

std::string basis_of(const v1::ListSharesResponse& answer) {
  if (!answer.counted()) {
    return fmt::format("scheduling order: {} (usage is not counted)\n", answer.order());
  }
  const auto half_life =
      base::milliseconds(static_cast<std::int64_t>(answer.half_life_seconds() * 1000));
  return fmt::format("order: {}, usage counts half after {}\n", answer.order(),
                     base::written(half_life));
}

}  // namespace

int run_shares(const CommandText& text, Invocation& invocation) {
  std::optional<std::string> team;
  std::optional<std::string> user;
  Output output;
  Arguments arguments(text);
  EntryTable table(share_columns());
  table.define(arguments);
  arguments
      .option("--team", team, "NAME", "show only this team, its members and the teams below it")
      .option("--user", user, "NAME", "show only this user's accounts")
      .output_and_watch(output, {});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (const auto read = table.read(output); !read) {
    return usage_error(invocation.console,
                       fmt::format("{}: {}", read.error().field, read.error().message), text.name);
  }
  std::string query;
  if (team) http::append_query(query, "team", *team);
  if (user) http::append_query(query, "user", *user);
  return show_message<v1::ListSharesResponse>(
      invocation.console, *client, output, query.empty() ? "/v1/shares" : "/v1/shares?" + query,
      [&](Console& console, const v1::ListSharesResponse& answer) {
        const std::size_t width = output.width(console);
        const std::string accounts =
            table.render(rows_of(answer, !table.is_sorted()), console.process_environment().now(),
                         {.width = width});
        if (table.is_alone()) {
          console.out(accounts);
          return;
        }
        console.out(basis_of(answer) + accounts);
        if (!answer.quotas().empty()) console.out("\n" + quotas_of(answer, width));
        console.out(surplus_of(answer, width));
      });
}

}  // namespace gpu_platform::cli
