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
#include "cli/screen/repeat.h"
#include "cli/text/local_clock.h"
#include "cli/text/message_text.h"
#include "cli/text/table.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "client/request_text.h"
#include "gpu_platform/v1/teams.pb.h"

// Teams and their quotas.

namespace gpu_platform::cli {

namespace {

constexpr std::string_view kTeamsPath = "/v1/teams";
constexpr std::uint64_t kMaxShares = 1'000'000;

// The values of a quota.
struct LimitOption {
  const char* key;  // as the configuration and the interface have it
  const char* flag;
  const char* head;  // of a column
  const char* help;
  bool (v1::Team::*is_set)() const;
  std::uint32_t (v1::Team::*value)() const;
  void (v1::SetTeamRequest::*set)(std::uint32_t);
};
constexpr std::array<LimitOption, 8> kLimits = {{
    {"max_gpus", "--max-gpus", "MAX GPUS", "GPUs at once", &v1::Team::has_max_gpus,
     &v1::Team::max_gpus, &v1::SetTeamRequest::set_max_gpus},
    {"max_running_jobs", "--max-running-jobs", "MAX RUNNING", "running jobs at once",
     &v1::Team::has_max_running_jobs, &v1::Team::max_running_jobs,
     &v1::SetTeamRequest::set_max_running_jobs},
    {"max_queued_jobs", "--max-queued-jobs", "MAX QUEUED", "waiting jobs at once",
     &v1::Team::has_max_queued_jobs, &v1::Team::max_queued_jobs,
     &v1::SetTeamRequest::set_max_queued_jobs},
    {"gpu_hours", "--gpu-hours", "GPU HOURS", "GPU-hours in one quota period",
     &v1::Team::has_gpu_hours, &v1::Team::gpu_hours, &v1::SetTeamRequest::set_gpu_hours},
    {"guaranteed_gpus", "--guaranteed-gpus", "GUARANTEED", "GPUs guaranteed to the team",
     &v1::Team::has_guaranteed_gpus, &v1::Team::guaranteed_gpus,
     &v1::SetTeamRequest::set_guaranteed_gpus},
    {"borrow_limit", "--borrow-limit", "BORROW LIMIT", "GPUs at once above the guaranteed ones",
     &v1::Team::has_borrow_limit, &v1::Team::borrow_limit, &v1::SetTeamRequest::set_borrow_limit},
    {"lend_limit", "--lend-limit", "LEND LIMIT", "guaranteed GPUs that others may use",
     &v1::Team::has_lend_limit, &v1::Team::lend_limit, &v1::SetTeamRequest::set_lend_limit},
    {"over_quota_weight", "--over-quota-weight", "WEIGHT",
     "its weight in sharing GPUs that are not guaranteed", &v1::Team::has_over_quota_weight,
     &v1::Team::over_quota_weight, &v1::SetTeamRequest::set_over_quota_weight},
}};

std::string limit_text(const v1::Team& team, const LimitOption& limit) {
  return if_known((team.*limit.is_set)(), (team.*limit.value)());
}

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

base::Result<std::uint32_t> shares_in(std::string_view text, std::string_view option) {
  const auto shares = base::parse_count(text, 1, kMaxShares);
  if (!shares) return base::invalid(std::string(option), shares.error().message);
  return static_cast<std::uint32_t>(*shares);
}

// "ann", or "bob:2" with two shares.
base::Status put_member(v1::TeamMember& member, const std::string& word, std::string_view option) {
  TRY(check_text(option, word));
  const std::size_t colon = word.find(':');
  member.set_user(word.substr(0, colon));
  if (colon == std::string::npos) return {};
  TRY_ASSIGN(const std::uint32_t shares, shares_in(word.substr(colon + 1), option));
  member.set_shares(shares);
  return {};
}

base::Status put_members(v1::SetTeamRequest& request, const std::vector<std::string>& words,
                         std::string_view option) {
  for (const std::string& word : words) TRY(put_member(*request.add_add_members(), word, option));
  return {};
}

base::Status put_limits(v1::SetTeamRequest& request, const TeamOptions& o, bool may_clear) {
  for (std::size_t i = 0; i < kLimits.size(); ++i) {
    if (!o.limits[i]) continue;
    if (may_clear && *o.limits[i] == "none") {
      request.add_clear(kLimits[i].key);
      continue;
    }
    const auto value = base::parse_count(*o.limits[i], 0, UINT32_MAX);
    if (!value) return base::invalid(kLimits[i].flag, value.error().message);
    (request.*kLimits[i].set)(static_cast<std::uint32_t>(*value));
  }
  return {};
}

base::Status put_users(google::protobuf::RepeatedPtrField<std::string>& field,
                       const std::vector<std::string>& users, std::string_view option) {
  for (const std::string& user : users) {
    TRY(check_text(option, user));
    *field.Add() = user;
  }
  return {};
}

base::Result<v1::SetTeamRequest> request_of(const TeamOptions& o, bool may_clear) {
  v1::SetTeamRequest request;
  if (o.parent) {
    TRY(check_text("--parent", *o.parent));
    request.set_parent(*o.parent == "none" ? "" : *o.parent);
  }
  if (o.shares) {
    TRY_ASSIGN(const std::uint32_t shares, shares_in(*o.shares, "--shares"));
    request.set_shares(shares);
  }
  TRY(put_members(request, words_of_lists(o.members), "--member"));
  TRY(put_users(*request.mutable_add_coordinators(), words_of_lists(o.coordinators),
                "--coordinator"));
  TRY(put_users(*request.mutable_remove_coordinators(), words_of_lists(o.dismissed),
                "--remove-coordinator"));
  TRY(put_limits(request, o, may_clear));
  return request;
}

// Of a team or one of its values.
template <class Message>
std::string origin_text(const Message& message) {
  if (message.origin() == v1::TEAM_ORIGIN_RUN_TIME) return "run time";
  return base::to_lower(name_at(message, Message::kOriginFieldNumber));
}

// The origin of one value, and what it was lowered from.
std::string origin_of(const v1::Team& team, std::string_view key) {
  for (const v1::TeamValueOrigin& origin : team.origins()) {
    if (origin.key() != key) continue;
    return origin_text(origin) + if_known(origin.has_lowered_from(), origin.lowered_from(),
                                          ", lowered from {} by a coordinator");
  }
  return {};
}

std::string with_origin(const v1::Team& team, std::string_view key, const std::string& value) {
  const std::string origin = origin_of(team, key);
  return origin.empty() ? value : fmt::format("{} ({})", value, origin);
}

std::string members_of(const v1::Team& team) {
  std::vector<std::string> texts;
  for (const v1::TeamMember& member : team.members()) {
    texts.push_back(member.user() + if_known(member.shares() != 1, member.shares(), ":{}"));
  }
  return joined(texts, ", ");
}

std::string invited_of(const v1::Team& team) {
  std::vector<std::string> texts;
  for (const v1::TeamInvitation& each : team.invited()) {
    texts.push_back(fmt::format("{} (by {})", each.user(), each.invited_by()));
  }
  return joined(texts, ", ");
}

// What the caller is told of an invitation to the team; empty: there is none.
std::string invitation_note(const v1::Team& team) {
  if (!team.invites_you()) return {};
  return fmt::format(
      "you are invited to the team {0}: 'gpu-platform team accept {0}', or 'decline'",
      harmless(team.name()));
}

void add_row(std::string& page, std::string_view name, const std::string& value) {
  page += fmt::format("{:<19}{}\n", name, harmless(value));
}

void add_limits(std::string& page, const v1::Team& team) {
  for (const LimitOption& limit : kLimits) {
    const std::string value = limit_text(team, limit);
    if (!value.empty()) add_row(page, limit.key, with_origin(team, limit.key, value));
  }
  for (const v1::HiddenTeamValue& hidden : team.hidden()) {
    add_row(page, "hidden",
            fmt::format("{} {}, set at run time, has no effect: the configuration sets it",
                        hidden.key(), hidden.value()));
  }
}

std::string team_page(const v1::Team& team) {
  std::string page;
  add_row(page, "team", fmt::format("{} ({})", team.name(), origin_text(team)));
  const std::string& parent = team.parent();
  if (!parent.empty()) add_row(page, "parent", with_origin(team, "parent", parent));
  add_row(page, "shares", with_origin(team, "shares", fmt::format("{}", team.shares())));
  const std::string members = members_of(team);
  if (!members.empty()) add_row(page, "members", with_origin(team, "members", members));
  const std::string invited = invited_of(team);
  if (!invited.empty()) add_row(page, "invited", invited);
  const std::string coordinators = joined(texts_of(team.coordinators()), ", ");
  if (!coordinators.empty()) add_row(page, "coordinators", coordinators);
  add_limits(page, team);
  if (const auto at = time_of(team.set_at())) {
    add_row(page, "changed", fmt::format("{} by {}", local_time(*at), team.set_by()));
  }
  return page;
}

int show_team(Console& console, const Called<std::string>& answer, const Output& output) {
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto team = client::message_of<v1::Team>(*answer);
  if (output.is_document() || !team) return print_document(console, output, *answer);
  console.out(team_page(*team));
  if (const std::string note = invitation_note(*team); !note.empty()) console.note(note);
  return console.out_failed() ? kFailure : kOk;
}

std::string path_of_team(const TeamOptions& o) {
  return fmt::format("{}/{}", kTeamsPath, base::percent_encoded(o.words.front()));
}

// Sends a change of a team that is there.
int change_team(const CommandText& text, Console& console, Client& client, const TeamOptions& o,
                base::Result<v1::SetTeamRequest> request) {
  if (request && request->ByteSizeLong() == 0) {
    request = base::invalid("TEAM", "give at least one change, such as --max-gpus 8");
  }
  if (!request) return usage_error(console, request.error(), text.name);
  request->set_must_exist(true);
  return show_team(
      console, client.post(path_of_team(o) + "/update", client::request_text(*request)), o.output);
}

}  // namespace

int run_team_create(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("NAME", o.words, 1, 1, "its name, for submit --team NAME")
      .option("--parent", o.parent, "TEAM", "the team above it (default: the organisation)")
      .option("--shares", o.shares, "N",
              "fair-share weight relative to its sibling teams (default: 1)")
      .many("--member", o.members, "USER[:SHARES]", "its members: ann,bob:2")
      .many("--coordinator", o.coordinators, "USER", "users who may change its members and jobs");
  add_limit_options(arguments, o, false);
  arguments.output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  auto request = request_of(o, false);
  if (request) {
    if (const auto named = check_text("NAME", o.words.front()); !named) {
      request = std::unexpected(named.error());
    }
  }
  if (!request) return usage_error(console, request.error(), text.name);
  request->set_name(o.words.front());
  return show_team(console, client->post(std::string(kTeamsPath), client::request_text(*request)),
                   o.output);
}

int run_team_set(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM", o.words, 1, 1, "the team")
      .option("--parent", o.parent, "TEAM|none", "the team above it")
      .option("--shares", o.shares, "N", "fair-share weight relative to its sibling teams")
      .many("--coordinator", o.coordinators, "USER", "add a coordinator")
      .many("--remove-coordinator", o.dismissed, "USER", "remove this coordinator");
  add_limit_options(arguments, o, true);
  arguments.output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return change_team(text, invocation.console, *client, o, request_of(o, true));
}

int run_quota_set(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments.words("TEAM", o.words, 1, 1, "the team");
  add_limit_options(arguments, o, true);
  arguments.output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  return change_team(text, invocation.console, *client, o, request_of(o, true));
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
            "their jobs without --team are charged to it (administrators)")
      .output(o.output, {"", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  base::Result<v1::SetTeamRequest> request;
  if (const auto put = put_members(*request, users_of(o), "USER"); !put) {
    request = std::unexpected(put.error());
  }
  if (request && o.is_default) {
    for (v1::TeamMember& member : *request->mutable_add_members()) member.set_default_team(true);
  }
  return change_team(text, invocation.console, *client, o, std::move(request));
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
  base::Result<v1::SetTeamRequest> request;
  const auto put = put_users(*request->mutable_remove_members(), users_of(o), "USER");
  if (!put) request = std::unexpected(put.error());
  return change_team(text, invocation.console, *client, o, std::move(request));
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

using TeamColumn = ListColumn<v1::Team>;

constexpr PagedList kTeams{kTeamsPath, "teams", 10'000};

std::vector<TeamColumn> team_columns() {
  using base::Instant;
  using v1::Team;
  constexpr auto kRight = Column::Align::kRight;
  return {{.key = "name",
           .column = {.title = "NAME", .cut_to = 12, .wraps = true},
           .cell = [](const Team& team, Instant) { return team.name(); }},
          {.key = "parent",
           .column = {.title = "PARENT", .cut_to = 8, .expendable = 3, .wraps = true},
           .cell = [](const Team& team, Instant) { return team.parent(); },
           .is_left_out_if_empty = true},
          {.key = "shares",
           .column = {.title = "SHARES", .align = kRight, .expendable = 5},
           .cell = [](const Team& team, Instant) { return fmt::format("{}", team.shares()); }},
          {.key = "max-gpus",
           .column = {"MAX GPUS", kRight},
           .cell = [](const Team& team,
                      Instant) { return if_known(team.has_max_gpus(), team.max_gpus()); }},
          {.key = "guaranteed",
           .column = {"GUARANTEED", kRight},
           .cell =
               [](const Team& team, Instant) {
                 return if_known(team.has_guaranteed_gpus(), team.guaranteed_gpus());
               }},
          {.key = "from",
           .column = {.title = "FROM", .cut_to = 8, .expendable = 4, .wraps = true},
           .cell = [](const Team& team, Instant) { return origin_text(team); }},
          {.key = "coordinators",
           .column = {.title = "COORDINATORS", .cut_to = 12, .expendable = 2, .wraps = true},
           .cell = [](const Team& team,
                      Instant) { return joined(texts_of(team.coordinators()), ", "); },
           .is_left_out_if_empty = true},
          {.key = "members",
           .column = {.title = "MEMBERS", .cut_to = 16, .wraps = true},
           .cell = [](const Team& team, Instant) { return members_of(team); }}};
}

void print_quotas(Console& console, const Output& output, const v1::ListTeamsResponse& answer) {
  std::vector<Column> columns{{"TEAM"}};
  for (const LimitOption& limit : kLimits) columns.push_back({limit.head, Column::Align::kRight});
  Table table(std::move(columns));
  for (const v1::Team& team : answer.teams()) {
    std::vector<std::string> row{team.name()};
    for (const LimitOption& limit : kLimits) row.push_back(limit_text(team, limit));
    const bool has_some =
        std::any_of(row.begin() + 1, row.end(), [](const std::string& v) { return !v.empty(); });
    if (has_some) table.add(std::move(row));
  }
  if (table.empty()) return console.note("no team has a limit or a guarantee");
  console.out(table.render(output.style(console)));
}

}  // namespace

int run_team_list(const CommandText& text, Invocation& invocation) {
  const List<v1::Team> list{.pages = kTeams,
                            .names = {"teams", "name"},
                            .columns = team_columns(),
                            .nothing = "there are no teams",
                            .note = invitation_note};
  return ListCommand(list, &v1::ListTeamsResponse::teams).run(text, invocation);
}

int run_quota_show(const CommandText& text, Invocation& invocation) {
  TeamOptions o;
  Arguments arguments(text);
  arguments
      .words("[TEAM]", o.words, 0, 1,
             "only this team (default: all teams with a limit or guarantee)")
      .output(o.output, {"teams", "name"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (o.words.empty()) {
    return show_message<v1::ListTeamsResponse>(
        invocation.console, *client, o.output, std::string(kTeamsPath),
        [&](Console& console, const v1::ListTeamsResponse& answer) {
          print_quotas(console, o.output, answer);
        });
  }
  o.output.names = {"", "name"};
  return show_message<v1::Team>(invocation.console, *client, o.output, path_of_team(o),
                                [](Console& console, const v1::Team& team) {
                                  std::string page;
                                  add_limits(page, team);
                                  if (page.empty())
                                    return console.note("no limits and no guarantees");
                                  console.out(page);
                                });
}

}  // namespace gpu_platform::cli
