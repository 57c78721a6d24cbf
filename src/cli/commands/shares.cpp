#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/screen/repeat.h"
#include "cli/text/message_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "cli/words/arguments.h"
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

// "whole", "  vision", "    ada": as deep as it lies.
std::string account_of(const v1::Share& share) {
  const std::string name = !share.user().empty()  ? share.user()
                           : share.team().empty() ? "(all)"
                                                  : share.team() + "/";
  return std::string(2 * std::size_t{share.depth()}, ' ') + name;
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

// What usage decides is shown where it is counted.
std::string table_of(const v1::ListSharesResponse& answer, std::size_t width) {
  std::vector<Column> columns = {
      {"ACCOUNT", Align::kLeft, 12}, {"GPUS", Align::kRight}, {"GUARANTEED", Align::kRight}};
  if (answer.counted()) {
    columns.insert(columns.end(), {{"USAGE", Align::kRight},
                                   {"FAIR SHARE", Align::kRight},
                                   {"PLACE", Align::kRight},
                                   {"NORM SHARES", Align::kRight, std::nullopt, 1},
                                   {"SHARES", Align::kRight, std::nullopt, 2},
                                   {"EFFECTIVE USAGE", Align::kRight, std::nullopt, 3},
                                   {"GPU SECONDS", Align::kRight, std::nullopt, 4}});
  } else {
    columns.push_back({"SHARES", Align::kRight});
  }
  Table table(std::move(columns));
  for (const v1::Share& share : answer.shares()) {
    const v1::Quota* quota = quota_of(answer, share);
    std::vector<std::string> row = {
        account_of(share), quota != nullptr ? gpus_of(*quota) : "",
        quota != nullptr ? if_known(quota->has_guaranteed_gpus(), quota->guaranteed_gpus()) : ""};
    if (answer.counted()) {
      row.insert(row.end(), {percent(share.use()), fmt::format("{:.3f}", share.fair_share()),
                             if_known(share.place() > 0, share.place()),
                             percent(share.normalized_shares()), fmt::format("{}", share.shares()),
                             percent(share.effective_use()), gpu_seconds_of(share)});
    } else {
      row.push_back(fmt::format("{}", share.shares()));
    }
    table.add(std::move(row));
  }
  return table.render({.width = width});
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
  arguments
      .option("--team", team, "NAME", "show only this team, its members and the teams below it")
      .option("--user", user, "NAME", "show only this user's accounts")
      .output_and_watch(output, {});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::string query;
  if (team) http::append_query(query, "team", *team);
  if (user) http::append_query(query, "user", *user);
  return show_message<v1::ListSharesResponse>(
      invocation.console, *client, output, query.empty() ? "/v1/shares" : "/v1/shares?" + query,
      [&](Console& console, const v1::ListSharesResponse& answer) {
        const std::size_t width = output.width(console);
        console.out(basis_of(answer) + table_of(answer, width));
        if (!answer.quotas().empty()) console.out("\n" + quotas_of(answer, width));
        console.out(surplus_of(answer, width));
      });
}

}  // namespace gpu_platform::cli
