#include "api/identity/failure_throttle.h"
#include "api/identity/token_text.h"
#include "base/check.h"
#include "target.h"

// The text that a client shows as its credential, and the address that it is said to come from.

namespace gpu_platform::fuzz {

void run(std::string_view input) {
  const auto token = api::parse_token_text(input);
  if (token) CHECK(api::to_text(*token) == input);
  const std::string group = api::address_group(input);
  CHECK(!group.empty() && api::address_group(group.substr(0, group.find('/'))) == group);
}

std::vector<std::string> seeds() {
  return {api::to_text({model::TokenId(7), std::string(model::kTokenSecretBytes, 'a')}), "gpt_1_",
          "192.0.2.7", "2001:db8::1%eth0", "::ffff:192.0.2.7"};
}

}  // namespace gpu_platform::fuzz
