#include <fmt/format.h>

#include "base/parse.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/http.h"
#include "cli/json_view.h"
#include "cli/table.h"
#include "cli/text.h"

namespace gpu_platform::cli {

namespace {

using Align = Column::Align;

std::string percent(const Json& share, std::string_view key) {
  return fmt::format("{:.1f} %", number_at(share, key).value_or(0) * 100);
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
               {"OF ALL", Align::kRight},
               {"USED", Align::kRight},
               {"COUNTED", Align::kRight, std::nullopt, 1},
               {"FAIR SHARE", Align::kRight},
               {"PLACE", Align::kRight}});
  for (const Json& share : list_at(answer, "shares")) {
    const auto place = integer_at(share, "place").value_or(0);
    table.add({account_of(share), text_at(share, "shares"), percent(share, "normalized_shares"),
               percent(share, "use"), percent(share, "effective_use"),
               fmt::format("{:.3f}", number_at(share, "fair_share").value_or(0)),
               place > 0 ? fmt::format("{}", place) : ""});
  }
  return table.render(width);
}

std::string basis_of(const Json& answer) {
  const std::string order = text_at(answer, "order");
  if (!flag_at(answer, "counted")) {
    return fmt::format(
        "order: {}, which does not ask what was used; fair_share and weighted count it\n", order);
  }
  const auto half_life = base::milliseconds(
      static_cast<std::int64_t>(number_at(answer, "half_life_seconds").value_or(0) * 1000));
  return fmt::format("order: {}, use counts half after {}\n", order, base::written(half_life));
}

}  // namespace

int run_shares(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::optional<std::string> team;
  std::optional<std::string> user;
  bool json = false;
  Arguments arguments(text);
  arguments
      .option("--team", team, "NAME", "show only this team, its members and the teams below it")
      .option("--user", user, "NAME", "show only this user's accounts")
      .flag("--json", json, "print JSON");
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::string query;
  if (team) append_query(query, "team", *team);
  if (user) append_query(query, "user", *user);
  const auto body = client->get(query.empty() ? "/v1/shares" : "/v1/shares?" + query);
  if (!body) return report(console, body.error(), json);
  const auto answer = parse_object(*body);
  if (json || !answer) return print_document(console, *body);
  console.out(basis_of(*answer));
  console.out(table_of(*answer, console.surroundings().width));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
