#include <fmt/format.h>

#include "cli/arguments.h"
#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/json_view.h"
#include "cli/text.h"
#include "http/http.h"

namespace gpu_platform::cli {

namespace {

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// "vision, video"; "none".
std::string names_at(const Json& identity, std::string_view key) {
  std::string names;
  for (const Json& name : list_at(identity, key)) {
    if (!names.empty()) names += ", ";
    names += name.is_string() ? harmless(name.get<std::string>()) : "?";
  }
  return names.empty() ? "none" : names;
}

// "token laptop (12)", "openid openid:ada (claim preferred_username of https://sso.example)".
std::string credential_of(const Json& identity) {
  std::string told = lower(text_at(identity, "credential"));
  if (const std::string name = text_at(identity, "credential_name"); !name.empty()) {
    told += " " + name;
  }
  if (const std::string token = text_at(identity, "token"); !token.empty()) {
    told += fmt::format(" ({})", token);
  }
  if (const std::string issuer = text_at(identity, "issuer"); !issuer.empty()) {
    told += fmt::format(" (claim {} of {})", text_at(identity, "user_claim"), issuer);
  }
  return harmless(told);
}

}  // namespace

int run_whoami(const CommandText& text, Invocation& invocation) {
  Console& console = invocation.console;
  Output output;
  Arguments arguments(text);
  arguments.output(output, {"", "user"});
  auto client = open_client(arguments, invocation);
  if (!client) return client.error();
  const auto body = client->get("/v1/whoami");
  if (!body) return report(console, body.error(), output.wants_documents());
  const auto identity = parse_object(*body);
  if (output.is_document() || !identity) return print_document(console, output, *body);
  console.out(fmt::format("User:         {} ({})\n", harmless(text_at(*identity, "user")),
                          integer_at(*identity, "uid").value_or(0)));
  console.out(fmt::format("Role:         {}\n", lower(harmless(text_at(*identity, "role")))));
  console.out(fmt::format("Teams:        {}\n", names_at(*identity, "teams")));
  console.out(fmt::format("Coordinates:  {}\n", names_at(*identity, "coordinates")));
  if (!list_at(*identity, "invitations").empty()) {
    console.out(fmt::format("Invited to:   {} (gpu-platform team accept TEAM)\n",
                            names_at(*identity, "invitations")));
  }
  console.out(fmt::format("Credential:   {}\n", credential_of(*identity)));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
