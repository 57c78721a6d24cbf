#include <algorithm>

#include <fmt/format.h>

#include "base/letters.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/commands/device_login.h"
#include "cli/text/json_view.h"
#include "cli/text/text.h"
#include "cli/words/list_command.h"
#include "cli/words/secret_input.h"
#include "client/profiles.h"
#include "gpu_platform/v1/access.pb.h"

// login, logout and profile …: the daemon of the commands, and the user.

namespace gpu_platform::cli {

namespace {

int report_error(Console& console, const base::Error& error, const CommandText& text) {
  if (error.code == base::ErrorCode::kInvalidArgument) {
    return usage_error(console, fmt::format("{}: {}", error.field, error.message), text.name);
  }
  if (error.code == base::ErrorCode::kNotFound) {
    console.error(error.message);
    return kNotFound;
  }
  console.error(error.message);
  return error.code == base::ErrorCode::kPermissionDenied ? kRefused : kFailure;
}

base::Error no_profile(std::string_view name) {
  return {base::ErrorCode::kNotFound,
          fmt::format("there is no profile '{}'; 'gpu-platform profile list' shows them", name),
          {}};
}

// ---- login

struct LoginOptions {
  std::vector<std::string> server;
  TokenSource token;
  std::optional<std::string> issuer;
  std::optional<std::string> client_id;
  std::optional<std::string> issuer_ca;
  std::optional<std::string> name;
  client::ServerChoice choice;
};

// The server with its certificates, without a token; the variable of the token does not count here.
base::Result<http::Server> server_of(LoginOptions& o, const ProcessEnvironment& around) {
  if (!o.server.empty()) o.choice.server = o.server.front();
  ProcessEnvironment without = around;
  std::erase_if(without.environment,
                [](const std::string& entry) { return entry.starts_with("GPU_PLATFORM_TOKEN="); });
  TRY_ASSIGN(std::vector<http::Server> servers, client::servers_to_try(o.choice, without));
  if (!servers.front().is_network()) {
    return base::invalid("SERVER",
                         "write https://HOST:PORT; this machine's own daemon needs no login, it "
                         "knows who calls");
  }
  servers.front().token.clear();
  return std::move(servers.front());
}

// Returns the user as which the server authenticates the caller; empty from a server that cannot
// tell, which has then answered a call that needs a known caller.
Called<std::string> identity_at(Client& client) {
  const auto answer = client.get("/v1/whoami");
  if (answer) {
    const auto who = client::message_of<v1::Identity>(*answer).value_or(v1::Identity());
    const std::string& user = who.user();
    const std::string role = base::to_lower(name_at(who, v1::Identity::kRoleFieldNumber));
    if (user.empty()) return std::unexpected(client::bad_answer("it does not name the user"));
    return role.empty() ? user : fmt::format("{} ({})", user, role);
  }
  const bool is_old = answer.error().code == base::ErrorCode::kNotFound;
  if (answer.error().kind != Failure::Kind::kProblem || !is_old) {
    return std::unexpected(answer.error());
  }
  const auto jobs = client.get("/v1/jobs?limit=1");
  if (!jobs) return std::unexpected(jobs.error());
  return std::string();
}

// The profile that has this server already, or the host as a new one's name.
std::string name_for(const client::Profiles& profiles, const http::Server& server) {
  if (const client::Profile* known = profiles.find_server(server)) return known->name;
  std::string name = server.host;
  std::ranges::replace_if(name, [](char c) { return c == ':' || c == '%'; }, '-');
  if (!client::check_profile_name(name)) name = "server-" + name;
  return profiles.find(name) == nullptr ? name : name + "-" + server.port;
}

base::Result<std::string> keep(const ProcessEnvironment& around, const http::Server& server,
                               const std::optional<std::string>& wanted) {
  std::string name;
  const auto changed =
      client::change_profiles(around, [&](client::Profiles& profiles) -> base::Status {
        name = wanted ? *wanted : name_for(profiles, server);
        TRY(client::check_profile_name(name));
        profiles.put({name, server});
        profiles.current = name;
        return {};
      });
  TRY(changed);
  return name;
}

// Empty: the options fit.
std::string wrong_mix(const LoginOptions& o) {
  const int sources = (o.token.file ? 1 : 0) + (o.token.from_stdin ? 1 : 0) + (o.issuer ? 1 : 0);
  if (sources > 1) return "give one of --token-file, --token-stdin and --issuer";
  if (o.issuer.has_value() != o.client_id.has_value()) {
    return "--issuer and --client-id belong together";
  }
  return o.issuer_ca && !o.issuer ? "--issuer-ca is for --issuer" : "";
}

// Nothing: interrupted.
base::Result<std::optional<std::string>> token_for(const LoginOptions& o,
                                                   const http::Server& server, Console& console) {
  if (!o.issuer) {
    return read_token(o.token, console, fmt::format("Token for {}: ", server.text()));
  }
  DeviceGrant grant{.issuer = *o.issuer, .client_id = *o.client_id};
  if (o.issuer_ca) {
    const std::string& folder = console.process_environment().directory;
    grant.authorities = o.issuer_ca->starts_with('/') ? *o.issuer_ca : folder + "/" + *o.issuer_ca;
  }
  return device_token(grant, console);
}

}  // namespace

int run_login(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  LoginOptions o;
  o.choice.server = invocation.server;
  Arguments arguments(text);
  arguments
      .words("SERVER", o.server, 0, 1, "https://HOST:PORT, or a profile (default: the current one)")
      .option("--token-file", o.token.file, "FILE", "read the token from this file")
      .flag("--token-stdin", o.token.from_stdin, "read the token from standard input")
      .option("--issuer", o.issuer, "URL",
              "sign in with a browser at this OpenID Connect issuer (https://HOST/…)")
      .option("--client-id", o.client_id, "ID",
              "client id under which this platform is registered at the issuer")
      .option("--issuer-ca", o.issuer_ca, "FILE",
              "authority that signed the issuer's certificate (default: the system's)")
      .option("--name", o.name, "NAME", "name of the profile (default: the host)");
  add_server_options(arguments, o.choice);
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  if (const std::string wrong = wrong_mix(o); !wrong.empty()) {
    return usage_error(console, wrong, text.name);
  }
  if (o.name) {
    if (const auto good = client::check_profile_name(*o.name); !good) {
      return report_error(console, good.error(), text);
    }
  }
  auto server = server_of(o, console.process_environment());
  if (!server) return report_error(console, server.error(), text);
  // With a certificate of one's own there need be no token.
  const bool needs_token =
      server->tls.certificate.empty() || o.token.file || o.token.from_stdin || o.issuer;
  if (needs_token) {
    auto token = token_for(o, *server, console);
    if (!token) return report_error(console, token.error(), text);
    if (!token->has_value()) return kInterrupted;
    server->token = std::move(**token);
  }
  Client client({*server});
  const auto who = identity_at(client);
  if (!who) return report(console, who.error(), false);
  const auto name = keep(console.process_environment(), *server, o.name);
  if (!name) return report_error(console, name.error(), text);
  console.out(fmt::format("logged in to {}{}; the profile is '{}'\n", server->text(),
                          who->empty() ? "" : " as " + harmless(*who), *name));
  return console.out_failed() ? kFailure : kOk;
}

int run_logout(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> words;
  Arguments arguments(text);
  arguments.words("PROFILE", words, 0, 1,
                  "a profile or its https://HOST:PORT (default: the current profile)");
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  std::string name;
  const auto changed = client::change_profiles(
      console.process_environment(), [&](client::Profiles& profiles) -> base::Status {
        name = words.empty() ? profiles.current : words.front();
        client::Profile* profile = profiles.find(name);
        if (profile == nullptr && http::is_address(name)) {
          const auto server = http::parse_server(name);
          const client::Profile* found = server ? profiles.find_server(*server) : nullptr;
          profile = found == nullptr ? nullptr : profiles.find(found->name);
        }
        if (profile == nullptr && name.empty()) {
          return base::fail(base::ErrorCode::kNotFound, "no profile is in use");
        }
        if (profile == nullptr) return std::unexpected(no_profile(name));
        profile->server.token.clear();
        name = profile->name;
        return {};
      });
  if (!changed) return report_error(console, changed.error(), text);
  console.out(
      fmt::format("profile '{}' has no token any more; the token itself stays "
                  "valid until 'token revoke' or its end\n",
                  name));
  return console.out_failed() ? kFailure : kOk;
}

// ---- profile …

namespace {

std::string login_of(const client::Profile& profile) {
  if (!profile.server.token.empty()) return "token";
  return profile.server.tls.certificate.empty() ? "none" : "certificate";
}

// Without the token: what is shown may be copied anywhere.
Json shown(const client::Profile& profile, const client::Profiles& profiles) {
  const http::TlsFiles& tls = profile.server.tls;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json entry;
  entry["name"] = profile.name;
  entry["current"] = profile.name == profiles.current;
  entry["server"] = profile.server.text();
  entry["login"] = login_of(profile);
  entry["ca_file"] = or_null(tls.authorities);
  entry["certificate"] = or_null(tls.certificate);
  entry["key"] = or_null(tls.key);
  return entry;
}

struct ProfileRow {
  std::string name, server, login;
  bool is_current = false;
};

// This machine's own daemon comes last.
std::vector<ProfileRow> rows_of(const client::Profiles& profiles) {
  std::vector<ProfileRow> rows;
  for (const client::Profile& profile : profiles.all) {
    rows.push_back(
        {profile.name, profile.server.text(), login_of(profile), profile.name == profiles.current});
  }
  rows.push_back({std::string(client::kLocalProfile), "this machine's own daemon", "none needed",
                  profiles.current.empty()});
  return rows;
}

std::vector<ListColumn<ProfileRow>> profile_columns() {
  return {{.key = "name",
           .column = {.title = "NAME", .cut_to = 10, .wraps = true},
           .cell = [](const ProfileRow& row, base::Instant) { return row.name; }},
          {.key = "current",
           .column = {.title = "CURRENT"},
           .cell = [](const ProfileRow& row,
                      base::Instant) { return std::string(row.is_current ? "yes" : "no"); }},
          {.key = "server",
           .column = {.title = "SERVER", .cut_to = 20, .wraps = true},
           .cell = [](const ProfileRow& row, base::Instant) { return row.server; }},
          {.key = "login",
           .column = {.title = "LOGIN", .cut_to = 12, .wraps = true},
           .cell = [](const ProfileRow& row, base::Instant) { return row.login; }}};
}

}  // namespace

int run_profile_list(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Output output;
  Arguments arguments(text);
  EntryTable table(profile_columns());
  table.define(arguments);
  arguments.output(output, {"profiles", "name"});
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  if (const auto read = table.read(output); !read) {
    return report_error(console, read.error(), text);
  }
  const auto profiles = client::read_profiles(console.process_environment());
  if (!profiles) return report_error(console, profiles.error(), text);
  Json list = Json::array();
  for (const client::Profile& profile : profiles->all) list.push_back(shown(profile, *profiles));
  if (output.is_document()) {
    return print_document(console, output, json_text(Json{{"profiles", list}}));
  }
  console.out(
      table.render(rows_of(*profiles), console.process_environment().now(), output.style(console)));
  if (const auto server = variable(console.process_environment(), "GPU_PLATFORM_SERVER")) {
    console.note(fmt::format("GPU_PLATFORM_SERVER is set, so commands go to {}", *server));
  }
  return console.out_failed() ? kFailure : kOk;
}

int run_profile_use(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> names;
  Arguments arguments(text);
  arguments.words("PROFILE", names, 1, 1, "a profile, or local for this machine's own daemon");
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  const std::string& name = names.front();
  const auto changed = client::change_profiles(
      console.process_environment(), [&](client::Profiles& profiles) -> base::Status {
        const bool is_local = name == client::kLocalProfile;
        if (!is_local && profiles.find(name) == nullptr) return std::unexpected(no_profile(name));
        profiles.current = is_local ? std::string() : name;
        return {};
      });
  if (!changed) return report_error(console, changed.error(), text);
  console.out(fmt::format("the profile is '{}'\n", name));
  if (variable(console.process_environment(), "GPU_PLATFORM_SERVER")) {
    console.warning("GPU_PLATFORM_SERVER is set and takes precedence over profiles");
  }
  return console.out_failed() ? kFailure : kOk;
}

int run_profile_show(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> names;
  Output output;
  Arguments arguments(text);
  arguments.words("PROFILE", names, 0, 1, "the profile (default: the current one)")
      .output(output, {"", "name"});
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  const auto profiles = client::read_profiles(console.process_environment());
  if (!profiles) return report_error(console, profiles.error(), text);
  const std::string name = names.empty() ? profiles->current : names.front();
  const client::Profile* profile = profiles->find(name);
  if (profile == nullptr && name.empty()) {
    console.note("no profile is in use: commands go to this machine's own daemon");
    return kOk;
  }
  if (profile == nullptr) return report_error(console, no_profile(name), text);
  const Json entry = shown(*profile, *profiles);
  if (output.is_document()) return print_document(console, output, json_text(entry));
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_null())
      console.out(fmt::format("{:<14}{}\n", key, harmless(text_at(entry, key))));
  }
  return console.out_failed() ? kFailure : kOk;
}

int run_profile_remove(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  std::vector<std::string> names;
  Arguments arguments(text);
  arguments.words("PROFILE", names, 1, 1, "the profile");
  if (const auto done = arguments.parse(invocation.words, console)) return *done;
  const std::string& name = names.front();
  const auto changed = client::change_profiles(
      console.process_environment(), [&](client::Profiles& profiles) -> base::Status {
        if (profiles.find(name) == nullptr) return std::unexpected(no_profile(name));
        std::erase_if(profiles.all,
                      [&](const client::Profile& profile) { return profile.name == name; });
        if (profiles.current == name) profiles.current.clear();
        return {};
      });
  if (!changed) return report_error(console, changed.error(), text);
  console.out(fmt::format("profile '{}' is removed\n", name));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
