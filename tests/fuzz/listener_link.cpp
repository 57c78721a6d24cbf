#include "base/check.h"
#include "listener/link.h"
#include "target.h"

// The messages between the daemon and its listener, which the daemon does not trust.

namespace gpu_platform::fuzz {

namespace {

template <class Decode>
void expect_stable_form(std::string_view input, const Decode& decode) {
  const auto message = decode(input);
  if (!message) return;
  const auto again = decode(listener::encode(*message));
  CHECK(again && *again == *message);
}

}  // namespace

void run(std::string_view input) {
  expect_stable_form(input, listener::decode_from_listener);
  expect_stable_form(input, listener::decode_to_listener);
}

std::vector<std::string> seeds() {
  const listener::FromListener from[] = {
      listener::Begun{listener::kLinkVersion, {{"files", false, "no landlock"}}},
      listener::Open{{listener::Credential::Kind::kBearer, "gp_x", "192.0.2.7"}},
      listener::Note{true, "a line"}};
  const listener::ToListener to[] = {
      listener::Settings{.host_names = {"a.example"}, .web_origins = {"https://b.example"}},
      listener::Listen{listener::Door::kGrpc, true, "[::]:8443"},
      listener::CertificateTexts{"chain", "key"}, listener::Begin{}};
  std::vector<std::string> seeds;
  for (const auto& message : from) seeds.push_back(listener::encode(message));
  for (const auto& message : to) seeds.push_back(listener::encode(message));
  return seeds;
}

}  // namespace gpu_platform::fuzz
