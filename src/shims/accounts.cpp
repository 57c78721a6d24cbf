#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "cli/json_view.h"
#include "shims/call.h"
#include "shims/columns.h"
#include "shims/job_view.h"
#include "shims/step_variables.h"
#include "shims/values.h"

// sacctmgr and sshare: the teams of the configuration as accounts. Where it has none any name is a
// team, so there is nothing to list, and programs that ask before they submit go on with the name
// that they have.

namespace gpu_platform::shims {

namespace {

using cli::Json;
using cli::text_at;

constexpr std::string_view kManagerSynopsis = "[options] list|show WHAT [KEY=VALUE…]";
constexpr std::string_view kShareSynopsis = "[options]";
constexpr std::string_view kOrganisation = "root";
constexpr std::size_t kWidth = 10;

constexpr Option kManagerOptions[] = {
    {"noheader", 'n', Take::kNothing, Rule::kHonoured, "", ""},
    {"associations", 's', Take::kNothing, Rule::kAccepted, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable2", 'P', Take::kNothing, Rule::kHonoured, "", ""},
    {"immediate", 'i', Take::kNothing, Rule::kAccepted, "", ""},
    {"oneliner", 'o', Take::kNothing, Rule::kAccepted, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kAccepted, "", ""},
    {"readonly", 'r', Take::kNothing, Rule::kAccepted, "", ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
};

constexpr Option kShareOptions[] = {
    {"accounts", 'A', Take::kValue, Rule::kHonoured, "", ""},
    {"all", 'a', Take::kNothing, Rule::kHonoured, "", ""},
    {"format", 'o', Take::kValue, Rule::kHonoured, "", ""},
    {"long", 'l', Take::kNothing, Rule::kAccepted, "", ""},
    {"noheader", 'n', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable2", 'P', Take::kNothing, Rule::kHonoured, "", ""},
    {"users", 'u', Take::kValue, Rule::kHonoured, "", ""},
    {"Users", 'U', Take::kNothing, Rule::kHonoured, "", ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
};

bool is_user(const Json& share) {
  return !text_at(share, "user").empty();
}

std::string account_of(const Json& share) {
  const std::string team = text_at(share, "team");
  return team.empty() ? std::string(kOrganisation) : team;
}

std::string part_at(const Json& share, std::string_view key) {
  return fmt::format("{:.6f}", cli::number_at(share, key).value_or(0));
}

// What sshare prints: as deep as the account lies.
std::string indented_account(const Json& share) {
  const auto depth = static_cast<std::size_t>(cli::integer_at(share, "depth").value_or(0));
  return std::string(depth, ' ') + account_of(share);
}

std::span<const Field<Json>> fields() {
  static const std::vector<Field<Json>> kFields = {
      {0, "Account", "Account", indented_account},
      {0, "User", "User", [](const Json& share) { return text_at(share, "user"); }},
      {0, "Cluster", "Cluster", [](const Json&) { return std::string(kCluster); }},
      {0, "ParentName", "Par Name", [](const Json& share) { return text_at(share, "parent"); }},
      {0, "DefaultAccount", "Def Acct", account_of},
      {0, "RawShares", "RawShares", [](const Json& share) { return text_at(share, "shares"); }},
      {0, "Share", "Share", [](const Json& share) { return text_at(share, "shares"); }},
      {0, "NormShares", "NormShares",
       [](const Json& share) { return part_at(share, "normalized_shares"); }},
      {0, "NormUsage", "NormUsage", [](const Json& share) { return part_at(share, "use"); }},
      {0, "EffectvUsage", "EffectvUsage",
       [](const Json& share) { return part_at(share, "effective_use"); }},
      {0, "FairShare", "FairShare",
       [](const Json& share) { return is_user(share) ? part_at(share, "fair_share") : ""; }},
  };
  return kFields;
}

base::Result<std::vector<Bound<Json>>> columns_of(std::string_view format) {
  TRY_ASSIGN(const auto columns, named_columns(format, '%', kWidth));
  return bound(columns, fields());
}

std::optional<std::vector<Json>> shares_of(Call& call) {
  auto client = call.client();
  if (!client) return std::nullopt;
  const auto body = client->get("/v1/shares");
  if (!body) {
    call.fail(body.error());
    return std::nullopt;
  }
  const auto document = cli::parse_object(*body);
  if (!document) {
    call.fail("the list of shares is no JSON object");
    return std::nullopt;
  }
  const Json& shares = cli::list_at(*document, "shares");
  return std::vector<Json>(shares.begin(), shares.end());
}

int print(Call& call, const Settings& settings, std::string_view format,
          const std::vector<Json>& rows) {
  const auto columns = columns_of(format);
  if (!columns) return call.fail(columns.error());
  const bool has_header = !settings.has("noheader");
  const bool is_parsable = settings.has("parsable") || settings.has("parsable2");
  call.console().out(is_parsable
                         ? parsable(*columns, rows, has_header, {"|", settings.has("parsable")})
                         : accounted(*columns, rows, has_header));
  return call.console().out_failed() ? 1 : 0;
}

// What "list WHAT …" names.
struct Listing {
  enum class Kind : std::uint8_t { kAccounts, kUsers, kAssociations, kOther };

  Kind kind = Kind::kOther;
  std::string names;     // of accounts or users, comma-separated; empty: all
  std::string users;     // of associations
  std::string accounts;  // likewise
  std::string format;
};

Listing::Kind kind_of(std::string_view word) {
  const std::string name = plain_name(word);
  if (name.starts_with("acc")) return Listing::Kind::kAccounts;
  if (name.starts_with("us")) return Listing::Kind::kUsers;
  return name.starts_with("ass") ? Listing::Kind::kAssociations : Listing::Kind::kOther;
}

std::string_view usual_format(Listing::Kind kind) {
  switch (kind) {
    case Listing::Kind::kAccounts:
      return "Account";
    case Listing::Kind::kUsers:
      return "User,DefaultAccount";
    default:
      return "Cluster,Account,User,Share";
  }
}

// `words` behind "list".
Listing listing_of(std::span<const std::string> words) {
  Listing listing;
  if (words.empty()) return listing;
  listing.kind = kind_of(words.front());
  listing.format = usual_format(listing.kind);
  for (const std::string& word : words.subspan(1)) {
    const std::size_t equals = word.find('=');
    const std::string key = plain_name(std::string_view(word).substr(0, equals));
    const std::string value = equals == std::string::npos ? "" : word.substr(equals + 1);
    if (equals == std::string::npos) {
      if (key != "where") listing.names = word;
    } else if (key == "format") {
      listing.format = value;
    } else if (key.starts_with("name")) {
      listing.names = value;
    } else if (key.starts_with("user")) {
      listing.users = value;
    } else if (key.starts_with("account")) {
      listing.accounts = value;
    }
  }
  if (listing.kind == Listing::Kind::kUsers && listing.users.empty()) listing.users = listing.names;
  if (listing.kind == Listing::Kind::kAccounts && listing.accounts.empty())
    listing.accounts = listing.names;
  return listing;
}

bool is_wanted(const Json& share, const Listing& listing) {
  const std::string team = text_at(share, "team");
  if (team.empty()) return false;
  const bool is_of_kind = listing.kind == Listing::Kind::kAssociations ||
                          is_user(share) == (listing.kind == Listing::Kind::kUsers);
  const bool is_named_user =
      listing.users.empty() || is_listed(text_at(share, "user"), listing.users);
  const bool is_named_account = listing.accounts.empty() || is_listed(team, listing.accounts);
  return is_of_kind && is_named_user && is_named_account;
}

// Of whom sshare tells: with -U of users alone, without -a and -u of oneself.
bool is_wanted(const Json& share, const Settings& settings) {
  const std::string user = text_at(share, "user");
  const bool is_alone = text_at(share, "team").empty();
  if (settings.has("Users") && (user.empty() || is_alone)) return false;
  if (settings.has("accounts") && !is_listed(account_of(share), settings.value("accounts")))
    return false;
  if (user.empty() || settings.has("all")) return true;
  return settings.has("users") ? is_listed(user, settings.value("users")) : user == own_user();
}

}  // namespace

int sacctmgr(Call& call) {
  const auto given = call.given({kManagerOptions, kManagerSynopsis, true});
  if (!given) return given.error();
  const std::vector<std::string>& words = given->words;
  const std::string verb = words.empty() ? std::string() : words.front();
  if (verb != "list" && verb != "show") {
    return call.fail(fmt::format(
        "'{}' is not supported: accounts are the teams of the configuration (teams:)", verb));
  }
  const Listing listing = listing_of(std::span(words).subspan(1));
  if (listing.kind == Listing::Kind::kOther) return 0;
  const auto shares = shares_of(call);
  if (!shares) return 1;
  std::vector<Json> rows;
  for (const Json& share : *shares) {
    if (!is_wanted(share, listing)) continue;
    rows.push_back(share);
    rows.back()["depth"] = 0;
  }
  return print(call, given->settings, listing.format, rows);
}

int sshare(Call& call) {
  const auto given = call.given({kShareOptions, kShareSynopsis});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  const auto shares = shares_of(call);
  if (!shares) return 1;
  std::vector<Json> rows;
  const bool is_for_programs = settings.has("parsable") || settings.has("parsable2");
  for (const Json& share : *shares) {
    if (!is_wanted(share, settings)) continue;
    rows.push_back(share);
    if (is_for_programs) rows.back()["depth"] = 0;
  }
  const std::string format = settings.has("format")
                                 ? settings.value("format")
                                 : "Account%-20,User,RawShares,NormShares%11,NormUsage%11,"
                                   "EffectvUsage%13,FairShare";
  return print(call, settings, format, rows);
}

}  // namespace gpu_platform::shims
