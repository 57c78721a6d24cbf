#include <fmt/format.h>

#include "shims/call.h"

// sacctmgr and sshare, for programs that ask before they submit whether an account is there. The
// platform keeps no list of accounts, since any name is a team: an empty list says so, and such
// programs go on with the name they have.

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kManagerSynopsis = "[options] list|show WHAT [KEY=VALUE…]";
constexpr std::string_view kShareSynopsis = "[options]";

constexpr Option kManagerOptions[] = {
    {"noheader", 'n', Take::kNothing, Rule::kAccepted, "", ""},
    {"associations", 's', Take::kNothing, Rule::kAccepted, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kAccepted, "", ""},
    {"parsable2", 'P', Take::kNothing, Rule::kAccepted, "", ""},
    {"immediate", 'i', Take::kNothing, Rule::kAccepted, "", ""},
    {"oneliner", 'o', Take::kNothing, Rule::kAccepted, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kAccepted, "", ""},
    {"readonly", 'r', Take::kNothing, Rule::kAccepted, "", ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
};

constexpr Option kShareOptions[] = {
    {"accounts", 'A', Take::kValue, Rule::kAccepted, "", ""},
    {"all", 'a', Take::kNothing, Rule::kAccepted, "", ""},
    {"format", 'o', Take::kValue, Rule::kAccepted, "", ""},
    {"long", 'l', Take::kNothing, Rule::kAccepted, "", ""},
    {"noheader", 'n', Take::kNothing, Rule::kAccepted, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kAccepted, "", ""},
    {"parsable2", 'P', Take::kNothing, Rule::kAccepted, "", ""},
    {"users", 'u', Take::kValue, Rule::kAccepted, "", ""},
    {"Users", 'U', Take::kNothing, Rule::kAccepted, "", ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
};

}  // namespace

int sacctmgr(Call& call) {
  const auto given = call.given({kManagerOptions, kManagerSynopsis, true});
  if (!given) return given.error();
  const std::string verb = given->words.empty() ? std::string() : given->words.front();
  if (verb == "list" || verb == "show") return 0;
  return call.fail(
      fmt::format("'{}' is not there: no accounts are kept, any name given to -A is a team", verb));
}

int sshare(Call& call) {
  const auto given = call.given({kShareOptions, kShareSynopsis});
  return given ? 0 : given.error();
}

}  // namespace gpu_platform::shims
