#include <fmt/format.h>

#include "cli/client_names.h"
#include "cli/commands.h"
#include "cli/text/message_text.h"
#include "cli/text/text.h"
#include "cli/words/arguments.h"
#include "gpu_platform/v1/access.pb.h"
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
std::string names_of(const TextList& list) {
  std::string names;
  for (const std::string& name : list) names += (names.empty() ? "" : ", ") + harmless(name);
  return names.empty() ? "none" : names;
}

// "token laptop (12)", "openid openid:ada (claim preferred_username of https://sso.example)".
std::string credential_of(const v1::Identity& identity) {
  std::string told = lower(name_at(identity, v1::Identity::kCredentialFieldNumber));
  if (!identity.credential_name().empty()) told += " " + identity.credential_name();
  if (!identity.token().empty()) told += fmt::format(" ({})", identity.token());
  if (!identity.issuer().empty()) {
    told += fmt::format(" (claim {} of {})", identity.user_claim(), identity.issuer());
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
  const auto identity = client::message_of<v1::Identity>(*body);
  if (output.is_document() || !identity) return print_document(console, output, *body);
  console.out(fmt::format("User:         {} ({})\n", harmless(identity->user()), identity->uid()));
  console.out(fmt::format("Role:         {}\n",
                          lower(harmless(name_at(*identity, v1::Identity::kRoleFieldNumber)))));
  console.out(fmt::format("Teams:        {}\n", names_of(identity->teams())));
  console.out(fmt::format("Coordinates:  {}\n", names_of(identity->coordinates())));
  if (!identity->invitations().empty()) {
    console.out(fmt::format("Invited to:   {} (gpu-platform team accept TEAM)\n",
                            names_of(identity->invitations())));
  }
  console.out(fmt::format("Credential:   {}\n", credential_of(*identity)));
  return console.out_failed() ? kFailure : kOk;
}

}  // namespace gpu_platform::cli
