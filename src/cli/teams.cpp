#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/letters.h"
#include "base/parse.h"
#include "base/percent.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/input.h"
#include "cli/json_view.h"
#include "cli/local_clock.h"
#include "cli/repeat.h"
#include "cli/table.h"
#include "cli/text.h"

// Teams and their quotas.

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kTeamsPath = "/v1/teams";
constexpr std::uint64_t kMaxShares = 1'000'000;

// The keys of a quota, as the configuration and the interface have them.
struct LimitOption {
  const char* key;
  const char* flag;
  const char* head;  // of a column
  const char* help;
};
constexpr std::array<LimitOption, 8> kLimits = {{
    {"max_gpus", "--max-gpus", "MAX GPUS", "GPUs at once"},
    {"max_running_jobs", "--max-running-jobs", "MAX RUNNING", "running jobs at once"},
    {"max_queued_jobs", "--max-queued-jobs", "MAX QUEUED", "waiting jobs at once"},
    {"gpu_hours", "--gpu-hours", "GPU HOURS", "GPU-hours in one quota period"},
    {"guaranteed_gpus", "--guaranteed-gpus", "GUARANTEED", "GPUs that are its own"},
    {"borrow_limit", "--borrow-limit", "BORROW LIMIT", "GPUs at once above the guaranteed ones"},
    {"lend_limit", "--lend-limit", "LEND LIMIT", "guaranteed GPUs that others may use"},
    {"over_quota_weight", "--over-quota-weight", "WEIGHT",
     "its share of the GPUs beyond all guarantees"},
}};

struct TeamOptions {
  std::vector<std::string> words;  // the team, and for some commands users
  std::optional<std::string> parent, shares;
  std::vector<std::string> members, coordinators, dismissed;
  std::array<std::optional<std::string>, kLimits.size()> limits;
  bool is_default = false;
  Output output;
};

void add_limit_options(Arguments& arguments, TeamOptions& o, bool may_clear) {
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    arguments.option(kLimits[i].flag, o.limits[i], may_clear ? "N|none" : "N", kLimits[i].help);
  }
}

base::Result<std::uint64_t> shares_in(std::string_view text, std::string_view option) {
  const auto shares = base::parse_count(text, 1, kMaxShares);
  if (!shares) return base::invalid(std::string(option), shares.error().message);
  return *shares;
}

// "ann", or "bob:2" with two shares.
base::Result<Json> member_of(const std::string& word, std::string_view option) {
  const std::size_t colon = word.find(':');
  Json member;
  member["user"] = word.substr(0, colon);
  TRY(check_text(option, word));
  if (colon == std::string::npos) return member;
  TRY_ASSIGN(member["shares"], shares_in(word.substr(colon + 1), option));
  return member;
}

base::Status put_members(Json& body, const std::vector<std::string>& words,
                         std::string_view option) {
  for (const std::string& word : words) {
    TRY_ASSIGN(Json member, member_of(word, option));
    body["add_members"].push_back(std::move(member));
  }
  return {};
}

base::Status put_limits(Json& body, const TeamOptions& o, bool may_clear) {
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    if (!o.limits[i]) continue;
    if (may_clear && *o.limits[i] == "none") {
      body["clear"].push_back(kLimits[i].key);
      continue;
    }
    const auto value = base::parse_count(*o.limits[i], 0, UINT32_MAX);
    if (!value) return base::invalid(kLimits[i].flag, value.error().message);
    body[kLimits[i].key] = *value;
  }
  return {};
}

base::Result<Json> body_of(const TeamOptions& o, bool may_clear) {
  Json body = Json::object();
  if (o.parent) {
    TRY(check_text("--parent", *o.parent));
    body["parent"] = *o.parent == "none" ? "" : *o.parent;
  }
  if (o.shares) {
    TRY_ASSIGN(body["shares"], shares_in(*o.shares, "--shares"));
  }
  TRY(put_members(body, words_of_lists(o.members), "--member"));
  for (const auto& [option, key, lists] :
       {std::tuple{"--coordinator", "add_coordinators", &o.coordinators},
        {"--remove-coordinator", "remove_coordinators", &o.dismissed}}) {
    for (const std::string& user : words_of_lists(*lists)) {
      TRY(check_text(option, user));
      body[key].push_back(user);
    }
  }
  TRY(put_limits(body, o, may_clear));
  return body;
}

std::string origin_text(const Json& object, std::string_view key = "origin") {
  const std::string origin = text_at(object, key);
  return origin == "RUN_TIME" ? "run time" : base::to_lower(origin);
}

// The origin of one value, and what it was lowered from.
std::string origin_of(const Json& team, std::string_view key) {
  for (const Json& origin : list_at(team, "origins")) {
    if (text_at(origin, "key") != key) continue;
    const auto from = integer_at(origin, "lowered_from");
    return from ? fmt::format("{}, lowered from {} by a coordinator", origin_text(origin), *from)
                : origin_text(origin);
  }
  return {};
}

std::string with_origin(const Json& team, std::string_view key, const std::string& value) {
  const std::string origin = origin_of(team, key);
  return origin.empty() ? value : fmt::format("{} ({})", value, origin);
}

std::string members_of(const Json& team) {
  std::vector<std::string> texts;
  for (const Json& member : list_at(team, "members")) {
    const std::uint64_t shares = count_at(member, "shares");
    texts.push_back(shares == 1 ? text_at(member, "user")
                                : fmt::format("{}:{}", text_at(member, "user"), shares));
  }
  return joined(texts, ", ");
}

std::string invited_of(const Json& team) {
  std::vector<std::string> texts;
  for (const Json& each : list_at(team, "invited")) {
    texts.push_back(fmt::format("{} (by {})", text_at(each, "user"), text_at(each, "invited_by")));
  }
  return joined(texts, ", ");
}

// Tells the caller of an invitation to the team.
void note_invitation(Console& console, const Json& team) {
  if (!flag_at(team, "invites_you")) return;
  const std::string name = harmless(text_at(team, "name"));
  console.note(
      fmt::format("you are invited to the team {0}: 'gpu-platform team accept {0}', or "
                  "'decline'",
                  name));
}

void add_row(std::string& page, std::string_view name, const std::string& value) {
  page += fmt::format("{:<19}{}\n", name, harmless(value));
}

void add_limits(std::string& page, const Json& team) {
  for (const LimitOption& limit : kLimits) {
    const std::string value = text_at(team, limit.key);
    if (!value.empty()) add_row(page, limit.key, with_origin(team, limit.key, value));
  }
  for (const Json& hidden : list_at(team, "hidden")) {
    add_row(page, "hidden",
            fmt::format("{} {}, set at run time; the configuration speaks of it",
                        text_at(hidden, "key"), text_at(hidden, "value")));
  }
}

std::string team_page(const Json& team) {
  std::string page;
  add_row(page, "team", fmt::format("{} ({})", text_at(team, "name"), origin_text(team)));
  const std::string parent = text_at(team, "parent");
  if (!parent.empty()) add_row(page, "parent", with_origin(team, "parent", parent));
  add_row(page, "shares", with_origin(team, "shares", text_at(team, "shares")));
  const std::string members = members_of(team);
  if (!members.empty()) add_row(page, "members", with_origin(team, "members", members));
  const std::string invited = invited_of(team);
  if (!invited.empty()) add_row(page, "invited", invited);
  const std::string coordinators = joined(texts_at(team, "coordinators"), ", ");
  if (!coordinators.empty()) add_row(page, "coordinators", coordinators);
  add_limits(page, team);
  const auto at = time_at(team, "set_at");
  if (at)
    add_row(page, "changed", fmt::format("{} by {}", local_time(*at), text_at(team, "set_by")));
  return page;
}

int show_team(Console& console, const Called<std::string>& answer, const Output& output) {
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto team = parse_object(*answer);
  if (output.is_document() || !team) return print_document(console, output, *answer);
  console.out(team_page(*team));
  note_invitation(console, *team);
  return console.out_failed() ? kFailure : kOk;
}

std::string path_of_team(const TeamOptions& o) {
  return fmt::format("{}/{}", kTeamsPath, base::percent_encoded(o.words.front()));
}

int mistake(Console& console, const base::Error& error, std::string_view command) {
  return usage_error(console, fmt::format("{}: {}", error.field, error.message), command);
}

// Sends a change of a team that is there.
int change_team(const CommandText& text, Console& console, Client& client, const TeamOptions& o,
                base::Result<Json> body) {
  if (body && body->empty()) {
    body = base::invalid("TEAM", "say what is to change, such as --max-gpus 8");
  }
  if (!body) return mistake(console, body.error(), text.name);
  (*body)["must_exist"] = true;
  return show_team(console, client.post(path_of_team(o) + "/update", json_text(*body)), o.output);
}

}  // namespace

int run_team_create(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("NAME", o.words, 1, 1, "its name, for submit --team NAME")
      .option("--parent", o.parent, "TEAM", "the team above it (default: the organisation)")
      .option("--shares", o.shares, "N", "relative to the teams beside it (default: 1)")
      .many("--member", o.members, "USER[:SHARES]", "its members: ann,bob:2")
      .many("--coordinator", o.coordinators, "USER", "users who may change its members and jobs");
  add_limit_options(arguments, o, false);
  arguments.output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  auto body = body_of(o, false);
  if (body) {
    if (const auto named = check_text("NAME", o.words.front()); !named) {
      body = std::unexpected(named.error());
    }
  }
  if (!body) return mistake(console, body.error(), text.name);
  (*body)["name"] = o.words.front();
  return show_team(console, client->post(std::string(kTeamsPath), json_text(*body)), o.output);
}

int run_team_set(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM", o.words, 1, 1, "the team")
      .option("--parent", o.parent, "TEAM|none", "the team above it")
      .option("--shares", o.shares, "N", "relative to the teams beside it")
      .many("--coordinator", o.coordinators, "USER", "one more user who coordinates it")
      .many("--remove-coordinator", o.dismissed, "USER", "this user coordinates it no longer");
  add_limit_options(arguments, o, true);
  arguments.output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return change_team(text, invocation.console, *client, o, body_of(o, true));
}

int run_quota_set(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM", o.words, 1, 1, "the team");
  add_limit_options(arguments, o, true);
  arguments.output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return change_team(text, invocation.console, *client, o, body_of(o, true));
}

namespace {

constexpr std::size_t kMaxUsers = 5'000;

std::vector<std::string> users_of(const TeamOptions& o) {
  return {o.words.begin() + 1, o.words.end()};
}

}  // namespace

int run_team_add_member(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments
      .words("TEAM USER[:SHARES]", o.words, 2, kMaxUsers + 1,
             "the team, and its new members: ann, or bob:2 with two shares")
      .flag("--default", o.is_default,
            "their jobs that name no team are charged to it (administrators)")
      .output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  Json members;
  const auto put = put_members(members, users_of(o), "USER");
  if (put && o.is_default) {
    for (Json& member : members["add_members"]) member["default_team"] = true;
  }
  base::Result<Json> body = members;
  if (!put) body = std::unexpected(put.error());
  return change_team(text, invocation.console, *client, o, std::move(body));
}

namespace {

int answer_invitation(const CommandText& text, Invocation& invocation, std::string_view answer) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM", o.words, 1, 1, "the team").output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show_team(invocation.console,
                   client->post(fmt::format("{}/{}", path_of_team(o), answer), "{}"), o.output);
}

}  // namespace

int run_team_accept(const CommandText& text, Invocation& invocation) {
  return answer_invitation(text, invocation, "accept");
}

int run_team_decline(const CommandText& text, Invocation& invocation) {
  return answer_invitation(text, invocation, "decline");
}

int run_team_remove_member(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM USER", o.words, 2, kMaxUsers + 1, "the team, and the members that leave")
      .output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  Json members;
  members["remove_members"] = users_of(o);
  base::Result<Json> body = members;
  for (const std::string& user : users_of(o)) {
    if (const auto checked = check_text("USER", user); !checked) {
      body = std::unexpected(checked.error());
    }
  }
  return change_team(text, invocation.console, *client, o, std::move(body));
}

int run_team_show(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM", o.words, 1, 1, "the team").output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show_team(invocation.console, client->get(path_of_team(o)), o.output);
}

int run_team_delete(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM", o.words, 1, 1, "the team").output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto answer = client->remove(path_of_team(o));
  if (!answer) return report(console, answer.error(), o.output.wants_documents());
  if (o.output.is_document()) return print_document(console, o.output, *answer);
  console.out(fmt::format("team {} is removed\n", harmless(o.words.front())));
  return console.out_failed() ? kFailure : kOk;
}

namespace {

void print_teams(Console& console, const Output& output, const Json& answer) {
  Table table({{"NAME"},
               {"PARENT"},
               {"SHARES", Column::Align::kRight},
               {"MAX GPUS", Column::Align::kRight},
               {"GUARANTEED", Column::Align::kRight},
               {"FROM"},
               {"COORDINATORS", Column::Align::kLeft, 12},
               {"MEMBERS", Column::Align::kLeft, 12}});
  for (const Json& team : list_at(answer, "teams")) {
    table.add({text_at(team, "name"), text_at(team, "parent"), text_at(team, "shares"),
               text_at(team, "max_gpus"), text_at(team, "guaranteed_gpus"), origin_text(team),
               joined(texts_at(team, "coordinators"), ", "), members_of(team)});
  }
  if (table.empty()) return console.note("there are no teams");
  console.out(table.render(output.width(console)));
  for (const Json& team : list_at(answer, "teams")) note_invitation(console, team);
}

void print_quotas(Console& console, const Output& output, const Json& answer) {
  std::vector<Column> columns{{"TEAM"}};
  for (const LimitOption& limit : kLimits) columns.push_back({limit.head, Column::Align::kRight});
  Table table(std::move(columns));
  for (const Json& team : list_at(answer, "teams")) {
    std::vector<std::string> row{text_at(team, "name")};
    for (const LimitOption& limit : kLimits) row.push_back(text_at(team, limit.key));
    const bool has_some =
        std::any_of(row.begin() + 1, row.end(), [](const std::string& v) { return !v.empty(); });
    if (has_some) table.add(std::move(row));
  }
  if (table.empty()) return console.note("no team has a limit or a guarantee");
  console.out(table.render(output.width(console)));
}

}  // namespace

int run_team_list(const CommandText& text, Invocation& invocation) {
  Output output;
  Arguments arguments(text);
  arguments.output_and_watch(output, {"teams", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return show_answer(
      invocation.console, *client, output, std::string(kTeamsPath),
      [&](Console& console, const Json& answer) { print_teams(console, output, answer); });
}

int run_quota_show(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("[TEAM]", o.words, 0, 1, "only this team (default: all that have some)")
      .output(o.output, {"teams", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (o.words.empty()) {
    return show_answer(
        invocation.console, *client, o.output, std::string(kTeamsPath),
        [&](Console& console, const Json& answer) { print_quotas(console, o.output, answer); });
  }
  o.output.names = {"", "name"};
  return show_answer(invocation.console, *client, o.output, path_of_team(o),
                     [](Console& console, const Json& team) {
                       std::string page;
                       add_limits(page, team);
                       if (page.empty()) return console.note("no limits and no guarantees");
                       console.out(page);
                     });
}

}  // namespace gpu_platform::cli
