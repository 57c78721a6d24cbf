#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "api/convert/job.h"
#include "base/letters.h"
#include "base/parse.h"
#include "base/percent.h"
#include "base/suggest.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/json_view.h"
#include "cli/text/local_clock.h"
#include "cli/text/text.h"
#include "cli/words/input.h"
#include "cli/words/list_command.h"
#include "cli/words/secret_file.h"
#include "client/request_text.h"
#include "gpu_platform/v1/tokens.pb.h"

// Tokens. A secret is printed once, to stdout, or written into a file.

namespace gpu_platform::cli {

namespace {

constexpr PagedList kTokens{"/v1/tokens", "tokens", 1'000};
constexpr std::array<std::string_view, 4> kRoles = {"viewer", "user", "operator", "admin"};

struct CreateOptions {
  std::optional<std::string> name, user, role, expires, request_id, output_file;
  bool quiet = false;
  Output output;
};

base::Status put_role(v1::CreateTokenRequest& request, const std::optional<std::string>& role) {
  if (!role) return {};
  if (std::ranges::find(kRoles, *role) == kRoles.end()) {
    return base::invalid("--role",
                         fmt::format("'{}' is not one of {}{}", *role, fmt::join(kRoles, ", "),
                                     base::did_you_mean(*role, kRoles)));
  }
  v1::TokenRole value = v1::TOKEN_ROLE_UNSPECIFIED;
  v1::TokenRole_Parse("TOKEN_ROLE_" + base::to_upper(*role), &value);
  request.set_role(value);
  return {};
}

// "30d", "never", or a time in the future.
base::Status put_end(v1::CreateTokenRequest& request, const std::optional<std::string>& expires,
                     base::Instant now) {
  if (!expires) return {};
  if (*expires == "never") {
    request.set_never_expires(true);
    return {};
  }
  google::protobuf::Timestamp& at = *request.mutable_expires_at();
  if (const auto lifetime = base::parse_duration(*expires)) {
    api::to_proto(now + *lifetime, at);
  } else if (!put_future_time("--expires", *expires, now, at)) {
    return base::invalid("--expires",
                         fmt::format("'{}' is neither a duration (30d), nor a future time "
                                     "(2026-12-31), nor 'never'",
                                     *expires));
  }
  return {};
}

base::Result<v1::CreateTokenRequest> request_of(const CreateOptions& o, base::Instant now) {
  for (const auto& [option, word] :
       {std::pair{"--name", &o.name}, {"--user", &o.user}, {"--request-id", &o.request_id}}) {
    if (*word) TRY(check_text(option, **word));
  }
  v1::CreateTokenRequest request;
  if (o.name) request.set_name(*o.name);
  if (o.user) request.set_user(*o.user);
  if (o.request_id) request.set_request_id(*o.request_id);
  TRY(put_role(request, o.role));
  TRY(put_end(request, o.expires, now));
  return request;
}

std::string time_text(const google::protobuf::Timestamp& field, std::string_view otherwise) {
  const auto at = time_of(field);
  return at ? local_time(*at) : std::string(otherwise);
}

std::string role_of(const v1::Token& token) {
  return base::to_lower(name_at(token, v1::Token::kRoleFieldNumber));
}

std::string page_of(const v1::Token& token, const std::string& secret) {
  const std::array<std::pair<std::string_view, std::string>, 5> rows = {{
      {"Token", fmt::format("{} (id {})", token.name(), token.id())},
      {"User", token.user()},
      {"Role", role_of(token)},
      {"Expires", time_text(token.expires_at(), "never")},
      {"Secret", secret},
  }};
  std::string page;
  for (const auto& [name, value] : rows) {
    page += fmt::format("{:<14}{}\n", name, harmless(value));
  }
  return page;
}

int refuse_repetition(Console& console, const v1::Token& token) {
  console.error(fmt::format(
      "an earlier request with this --request-id made token {}, and its secret is not shown "
      "again; if you do not have it, use 'token revoke {}' and make another one",
      token.name(), token.id()));
  return kRefused;
}

std::string without_secret(const std::string& answer) {
  Json document = Json::parse(answer, nullptr, false);
  if (!document.is_object()) return "{}";
  document.erase("secret");
  return json_text(document);
}

// The secret goes into the file and nowhere else.
int keep_created(Console& console, const std::string& answer, const CreateOptions& o,
                 SecretFile& file) {
  const auto created = client::message_of<v1::CreatedToken>(answer);
  if (!created) {
    console.error("the daemon's answer cannot be read");
    return kFailure;
  }
  const v1::Token& token = created->token();
  if (created->secret().empty()) return refuse_repetition(console, token);
  if (const auto kept = file.put(created->secret(), o.user.value_or("")); !kept) {
    console.error(
        fmt::format("--output-file: {}; token {} was made, and its secret is lost: revoke it with "
                    "'gpu-platform token revoke {}'",
                    kept.error().message, token.name(), token.id()));
    return kFailure;
  }
  if (o.output.is_document()) return print_document(console, o.output, without_secret(answer));
  if (!o.quiet) console.out(page_of(token, fmt::format("in {}", *o.output_file)));
  return console.out_failed() ? kFailure : kOk;
}

int print_created(Console& console, const std::string& answer, const CreateOptions& o) {
  const auto created = client::message_of<v1::CreatedToken>(answer);
  if (o.output.is_document() || !created) return print_document(console, o.output, answer);
  const v1::Token& token = created->token();
  const std::string& secret = created->secret();
  if (secret.empty()) return refuse_repetition(console, token);
  console.out(o.quiet ? harmless(secret) + "\n" : page_of(token, secret));
  if (!o.quiet) {
    console.warning("the secret is shown only once: keep it where no other user can read it");
  }
  return console.out_failed() ? kFailure : kOk;
}

// What its maker came with.
std::string minted_with(const v1::Token& token) {
  if (!token.identities().empty()) return token.identities(0);
  return token.made_with().empty() ? std::string() : "token " + token.made_with();
}

using TokenColumn = ListColumn<v1::Token>;

double seen_rank(const google::protobuf::Timestamp& field) {
  const auto at = time_of(field);
  return at ? static_cast<double>(at->unix_ns()) : 0;
}

// In lists, to the minute.
std::string minute_or(const google::protobuf::Timestamp& field, std::string_view otherwise) {
  const auto at = time_of(field);
  return at ? short_time(*at) : std::string(otherwise);
}

std::vector<TokenColumn> token_columns() {
  return {
      {.key = "id",
       .column = {"ID", Column::Align::kRight},
       .cell = [](const v1::Token& token, base::Instant) { return token.id(); }},
      {.key = "name",
       .column = {.title = "NAME", .cut_to = 10, .wraps = true},
       .cell = [](const v1::Token& token, base::Instant) { return token.name(); }},
      {.key = "user",
       .column = {.title = "USER", .cut_to = 8, .wraps = true},
       .cell = [](const v1::Token& token, base::Instant) { return token.user(); }},
      {.key = "role",
       .column = {.title = "ROLE"},
       .cell = [](const v1::Token& token, base::Instant) { return role_of(token); }},
      {.key = "created",
       .column = {.title = "CREATED", .expendable = 2},
       .cell = [](const v1::Token& token,
                  base::Instant) { return minute_or(token.created_at(), ""); },
       .rank = [](const v1::Token& token, base::Instant) { return seen_rank(token.created_at()); }},
      {.key = "by",
       .column = {.title = "BY", .cut_to = 8, .expendable = 3, .wraps = true},
       .cell = [](const v1::Token& token, base::Instant) { return token.created_by(); }},
      {.key = "expires",
       .column = {.title = "EXPIRES"},
       .cell = [](const v1::Token& token,
                  base::Instant) { return minute_or(token.expires_at(), "never"); },
       .rank = [](const v1::Token& token, base::Instant) { return seen_rank(token.expires_at()); }},
      {.key = "used",
       .column = {.title = "LAST USED", .expendable = 1},
       .cell = [](const v1::Token& token,
                  base::Instant) { return minute_or(token.last_used_at(), "never"); },
       .rank = [](const v1::Token& token,
                  base::Instant) { return seen_rank(token.last_used_at()); }},
      {.key = "made-with",
       .column = {.title = "MADE WITH", .expendable = 4},
       .cell = [](const v1::Token& token, base::Instant) { return minted_with(token); }}};
}

}  // namespace

int run_token_create(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  CreateOptions o;
  Arguments arguments(text);
  arguments.option("--name", o.name, "NAME", "name of the token, such as the machine that keeps it")
      .option("--expires", o.expires, "WHEN",
              "30d, a future time, or never (default: 90d, or the site's maximum if that is less)")
      .option("--role", o.role, "viewer|user|operator|admin",
              "role of the token (default: user), at most its owner's")
      .option("--user", o.user, "NAME",
              "for this user (for root, and for admins where access.admins_act_as_users is set)")
      .option("--request-id", o.request_id, "KEY",
              "a repeat with the same key creates no second token")
      .option("--output-file", o.output_file, "FILE",
              "write the secret into this new file, which only you can read (as root with --user: "
              "only that user), and do not print it")
      .flag("-q,--quiet", o.quiet, "print only the secret")
      .output(o.output, {"", "token/id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  if (!o.name) return usage_error(console, "--name: give the token a name", text.name);
  const auto request = request_of(o, console.process_environment().now());
  if (!request) {
    return usage_error(
        console, fmt::format("{}: {}", request.error().field, request.error().message), text.name);
  }
  std::optional<SecretFile> file;
  if (o.output_file) {
    auto made = SecretFile::create(*o.output_file);
    if (!made) return usage_error(console, "--output-file: " + made.error().message, text.name);
    file.emplace(*std::move(made));
  }
  const auto answer = client->post(std::string(kTokens.path), client::request_text(*request));
  if (!answer) return report(console, answer.error(), o.output.wants_documents());
  return file ? keep_created(console, *answer, o, *file) : print_created(console, *answer, o);
}

int run_token_list(const CommandText& text, Invocation& invocation) {
  const List<v1::Token> list{.pages = kTokens,
                             .names = {"tokens", "name"},
                             .filters = {{"--user", "user", ListFilter::Kind::kText, "NAME",
                                          "tokens of this user (administrators only)"},
                                         {"--all-users", "all_users", ListFilter::Kind::kFlag, "",
                                          "tokens of all users (administrators only)"}},
                             .columns = token_columns(),
                             .nothing = "no tokens"};
  return ListCommand(list, &v1::ListTokensResponse::tokens).run(text, invocation);
}

int run_token_revoke(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> token;
  std::optional<std::string> user;
  Output output;
  Arguments arguments(text);
  arguments.words("TOKEN", token, 1, 1, "its name or its id")
      .option("--user", user, "NAME", "the user of the token of that name (administrators only)")
      .output(output, {"", "id"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  std::string query;
  if (user) http::append_query(query, "user", *user);
  const std::string path =
      fmt::format("{}/{}{}{}", kTokens.path, base::percent_encoded(token.front()),
                  query.empty() ? "" : "?", query);
  const auto answer = client->remove(path);
  if (!answer) return report(console, answer.error(), output.wants_documents());
  const auto revoked = client::message_of<v1::Token>(*answer);
  if (output.is_document() || !revoked) return print_document(console, output, *answer);
  console.out(fmt::format("token {} of {} is revoked\n", harmless(revoked->name()),
                          harmless(revoked->user())));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
