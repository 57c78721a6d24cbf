#include <algorithm>

#include <fmt/format.h>

#include "base/parse.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/json_view.h"
#include "cli/repeat.h"
#include "cli/table.h"
#include "cli/text.h"
#include "http/http.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

std::string percent(const Json& share, std::string_view key) {
  return fmt::format("{:.1f} %", number_at(share, key).value_or(0) * 100);
}

// Decayed as the usage is; empty where it is not counted.
std::string gpu_seconds_of(const Json& share) {
  const auto seconds = number_at(share, "use_gpu_seconds");
  return seconds ? fmt::format("{:.0f}", *seconds) : "";
}

// "whole", "  vision", "    ada": as deep as it lies.
std::string account_of(const Json& share) {
  const std::string user = text_at(share, "user");
  const std::string team = text_at(share, "team");
  const std::string name = !user.empty() ? user : team.empty() ? "(all)" : team + "/";
  const auto depth = static_cast<std::size_t>(integer_at(share, "depth").value_or(0));
  return std::string(2 * depth, ' ') + name;
}

std::string table_of(const Json& answer, std::size_t width) {
  Table table({{"ACCOUNT", Align::kLeft, 12},
               {"SHARES", Align::kRight, std::nullopt, 2},
               {"NORM SHARES", Align::kRight},
               {"USAGE", Align::kRight},
               {"GPU SECONDS", Align::kRight, std::nullopt, 2},
               {"EFFECTIVE USAGE", Align::kRight, std::nullopt, 1},
               {"FAIR SHARE", Align::kRight},
               {"PLACE", Align::kRight}});
  for (const Json& share : list_at(answer, "shares")) {
    const auto place = integer_at(share, "place").value_or(0);
    table.add({account_of(share), text_at(share, "shares"), percent(share, "normalized_shares"),
               percent(share, "use"), gpu_seconds_of(share), percent(share, "effective_use"),
               fmt::format("{:.3f}", number_at(share, "fair_share").value_or(0)),
               place > 0 ? fmt::format("{}", place) : ""});
  }
  return table.render(width);
}

// "6 of 8", "6" without a limit, "" where neither is known.
// "2", "0.125", "13.508": thousandths, as GPUs are counted.
std::string in_thousandths(double number) {
  std::string text = fmt::format("{:.3f}", number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

std::string of_limit(const Json& quota, std::string_view used, std::string_view limit) {
  const auto number = number_at(quota, used);
  if (!number) return "";
  const auto most = integer_at(quota, limit);
  const std::string text = in_thousandths(*number);
  return most ? fmt::format("{} of {}", text, *most) : text;
}

std::string quotas_of(const Json& answer, std::size_t width) {
  Table table({{"QUOTA", Align::kLeft, 12},
               {"GPU TYPE", Align::kLeft},
               {"GPUS", Align::kRight},
               {"GUARANTEED", Align::kRight},
               {"BORROW LIMIT", Align::kRight, std::nullopt, 1},
               {"LEND LIMIT", Align::kRight, std::nullopt, 1},
               {"RUNNING", Align::kRight, std::nullopt, 2},
               {"QUEUED", Align::kRight, std::nullopt, 2},
               {"GPU HOURS", Align::kRight, std::nullopt, 2}});
  for (const Json& quota : list_at(answer, "quotas")) {
    const std::string type = text_at(quota, "gpu_type");
    table.add({text_at(quota, "holder") + " " + text_at(quota, "name"), type.empty() ? "all" : type,
               of_limit(quota, "gpus", "max_gpus"), text_at(quota, "guaranteed_gpus"),
               text_at(quota, "borrow_limit"), text_at(quota, "lend_limit"),
               of_limit(quota, "running_jobs", "max_running_jobs"),
               of_limit(quota, "queued_jobs", "max_queued_jobs"),
               of_limit(quota, "gpu_hours_committed", "gpu_hours")});
  }
  return table.render(width);
}

// "16", "2.29".
std::string gpus_at(const Json& share, std::string_view key) {
  return fmt::format("{:.4g}", number_at(share, key).value_or(0));
}

// The GPUs beyond guarantees; empty where they are not shared by weight.
std::string surplus_of(const Json& answer, std::size_t width) {
  Table table({{"HOLDER", Align::kLeft, 12},
               {"GPU TYPE", Align::kLeft, std::nullopt, 1},
               {"WEIGHT", Align::kRight},
               {"GUARANTEED", Align::kRight, std::nullopt, 1},
               {"ABOVE", Align::kRight},
               {"WANTED", Align::kRight, std::nullopt, 2},
               {"SHARE", Align::kRight}});
  const Json& surplus = list_at(answer, "surplus");
  if (surplus.empty()) return {};
  const bool has_types = std::ranges::any_of(
      surplus, [](const Json& share) { return !text_at(share, "gpu_type").empty(); });
  for (const Json& share : surplus) {
    const std::string user = text_at(share, "user");
    const std::string team = text_at(share, "team");
    const std::string type = text_at(share, "gpu_type");
    const std::string name = !team.empty() ? team + "/" : user.empty() ? "(no guarantee)" : user;
    table.add({name,
               !type.empty() ? type
               : has_types   ? "others"
                             : "all",
               text_at(share, "weight"), gpus_at(share, "guaranteed_gpus"),
               gpus_at(share, "held_gpus"), gpus_at(share, "wanted_gpus"),
               gpus_at(share, "share_gpus")});
  }
  return "\nGPUs beyond all guarantees, shared by over_quota_weight:\n" + table.render(width);
}

std::string basis_of(const Json& answer) {
  const std::string order = text_at(answer, "order");
  if (!flag_at(answer, "counted")) {
    return fmt::format(
        "order: {}, which does not depend on usage; fair_share and weighted count it\n", order);
  }
  const auto half_life = base::milliseconds(
      static_cast<std::int64_t>(number_at(answer, "half_life_seconds").value_or(0) * 1000));
  return fmt::format("order: {}, usage counts half after {}\n", order, base::written(half_life));
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
  return show_answer(invocation.console, *client, output,
                     query.empty() ? "/v1/shares" : "/v1/shares?" + query,
                     [&](Console& console, const Json& answer) {
                       const std::size_t width = output.width(console);
                       console.out(basis_of(answer) + table_of(answer, width));
                       if (!list_at(answer, "quotas").empty()) {
                         console.out("\n" + quotas_of(answer, width));
                       }
                       console.out(surplus_of(answer, width));
                     });
}

}  // namespace gpu_platform::cli
