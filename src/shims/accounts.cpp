#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/letters.h"
#include "cli/json_view.h"
#include "shims/call.h"
#include "shims/columns.h"
#include "shims/job_view.h"
#include "shims/site.h"
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
constexpr std::string_view kShareUsual =
    "Account%-20,User,RawShares,NormShares%11,RawUsage%11,EffectvUsage%13,FairShare";
constexpr std::string_view kShareLong =
    "Account%-20,User,RawShares,NormShares%11,RawUsage%11,NormUsage%11,EffectvUsage%13,FairShare,"
    "LevelFS,GrpTRESMins%30,TRESRunMins%30";
constexpr std::string_view kQosUsual =
    "Name%10,QosPriority%10,GraceTime%10,PreemptMode%11,UsageFactor%11,QosMaxTRES%13,QosMaxWall%11";

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
    {"long", 'l', Take::kNothing, Rule::kHonoured, "", ""},
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

// GPU-seconds that count at present; empty where usage is not counted.
std::string raw_usage(const Json& share) {
  const auto seconds = cli::number_at(share, "use_gpu_seconds");
  return seconds ? fmt::format("{:.0f}", *seconds) : std::string();
}

std::string raw_minutes(const Json& share) {
  const auto seconds = cli::number_at(share, "use_gpu_seconds");
  return seconds ? fmt::format("gres/gpu={:.0f}", *seconds / 60) : std::string();
}

// "gres/gpu", "gres/gpu:h100".
std::string gpu_resource(const std::string& type) {
  return type.empty() ? "gres/gpu" : "gres/gpu:" + base::to_lower(type);
}

// What its running jobs may still use by their time limits: "gres/gpu=90,gres/gpu:h100=90".
std::string running_minutes(const Json& share) {
  double all = 0;
  std::string by_type;
  for (const Json& each : cli::list_at(share, "running")) {
    const double seconds = cli::number_at(each, "gpu_seconds").value_or(0);
    const std::string type = text_at(each, "gpu_type");
    all += seconds;
    if (!type.empty()) by_type += fmt::format(",{}={:.0f}", gpu_resource(type), seconds / 60);
  }
  return fmt::format("gres/gpu={:.0f}{}", all / 60, by_type);
}

// Its shares relative to its use: above 1 it has used less than its part.
std::string level_of(const Json& share) {
  const double use = cli::number_at(share, "effective_use").value_or(0);
  const double part = cli::number_at(share, "normalized_shares").value_or(0);
  return use > 0 ? fmt::format("{:.6f}", part / use) : "inf";
}

// With 'fair_share' the order is that of Slurm's Fair Tree, whose sshare shows parts of a level:
// the shares beside those of the siblings, the usage beside that of the parent, and for users
// their turn. Sources: sshare(1) and "Fair Tree Fairshare Algorithm" of Slurm 22.05.
void show_levels(std::vector<Json>& rows) {
  const auto users = std::ranges::count_if(rows, is_user);
  const auto is_top = [](const Json& share) {
    return cli::integer_at(share, "depth").value_or(0) == 0;
  };
  std::map<std::string, double> shares_at;
  std::map<std::string, double> use_of;  // of a team; of the organisation: the empty name
  for (const Json& share : rows) {
    if (!is_top(share))
      shares_at[text_at(share, "parent")] += cli::number_at(share, "shares").value_or(0);
    if (!is_user(share)) use_of[text_at(share, "team")] = cli::number_at(share, "use").value_or(0);
  }
  for (Json& share : rows) {
    if (is_top(share)) continue;
    const std::string level = text_at(share, "parent");
    const double above = use_of[level];
    const double use = cli::number_at(share, "use").value_or(0);
    share["normalized_shares"] = cli::number_at(share, "shares").value_or(0) / shares_at[level];
    share["effective_use"] = above > 0 ? use / above : 0;
    const auto place = cli::integer_at(share, "place").value_or(0);
    if (place > 0) {
      share["fair_share"] = static_cast<double>(users - place + 1) / static_cast<double>(users);
    }
  }
}

// Columns that Slurm fills where a site sets such limits in its database. They are empty here.
constexpr std::pair<std::string_view, std::string_view> kEmptyColumns[] = {
    {"Partition", "Partition"},
    {"Priority", "Priority"},
    {"GrpSubmit", "GrpSubmit"},
    {"GrpWall", "GrpWall"},
    {"GrpTRESRunMins", "GrpTRESRunMin"},
    {"MaxJobs", "MaxJobs"},
    {"MaxTRES", "MaxTRES"},
    {"MaxTRESPerNode", "MaxTRESPerNode"},
    {"MaxSubmit", "MaxSubmit"},
    {"MaxWall", "MaxWall"},
    {"MaxTRESMins", "MaxTRESMins"},
    {"RPC", "RPC"}};

std::string always_empty(const Json& /*share*/) {
  return {};
}

std::span<const Field<Json>> share_fields() {
  static const std::vector<Field<Json>> kFields = [] {
    std::vector<Field<Json>> share_fields = {
        {0, "Account", "Account", indented_account},
        {0, "User", "User", [](const Json& share) { return text_at(share, "user"); }},
        {0, "Cluster", "Cluster", [](const Json&) { return std::string(kCluster); }},
        {0, "ParentName", "Par Name", [](const Json& share) { return text_at(share, "parent"); }},
        {0, "DefaultAccount", "Def Acct", account_of},
        {0, "Description", "Descr", [](const Json& s) { return account_of(s); }},
        {0, "Organization", "Org", [](const Json& s) { return text_at(s, "parent"); }},
        {0, "AdminLevel", "Admin",
         [](const Json& s) {
           return std::string(text_at(s, "user") == "root" ? "Administrator" : "None");
         }},
        {0, "RawUsage", "RawUsage", raw_usage},
        {0, "LevelFS", "LevelFS", level_of},
        {0, "QOS", "QOS", [](const Json&) { return std::string("normal"); }},
        {0, "DefaultQOS", "Def QOS", [](const Json&) { return std::string("normal"); }},
        {0, "GrpJobs", "GrpJobs", [](const Json& s) { return text_at(s, "grp_jobs"); }},
        {0, "GrpTRES", "GrpTRES", [](const Json& s) { return text_at(s, "grp_tres"); }},
        {0, "GrpTRESMins", "GrpTRESMins",
         [](const Json& s) { return text_at(s, "grp_tres_mins"); }},
        {0, "GrpTRESRaw", "GrpTRESRaw", raw_minutes},
        {0, "TRESRunMins", "TRESRunMins", running_minutes},
        {0, "ControlHost", "ControlHost", [](const Json&) { return std::string("localhost"); }},
        {0, "ControlPort", "ControlPort", [](const Json&) { return std::string("0"); }},
        {0, "Type", "Type", [](const Json& s) { return text_at(s, "type"); }},
        {0, "Name", "Name", [](const Json& s) { return text_at(s, "name"); }},
        {0, "ID", "ID", [](const Json& s) { return text_at(s, "id"); }},
        {0, "PreemptMode", "PreemptMode", [](const Json&) { return std::string("cluster"); }},
        {0, "UsageFactor", "UsageFactor", [](const Json&) { return std::string("1.000000"); }},
        {0, "GraceTime", "GraceTime", [](const Json&) { return std::string("00:00:00"); }},
        {0, "QosPriority", "Priority", [](const Json& s) { return text_at(s, "priority"); }},
        {0, "QosMaxWall", "MaxWall", [](const Json& s) { return text_at(s, "max_wall"); }},
        {0, "QosMaxTRES", "MaxTRES", [](const Json& s) { return text_at(s, "max_tres"); }},
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
    for (const auto& [name, title] : kEmptyColumns)
      share_fields.push_back({0, name, title, always_empty});
    return share_fields;
  }();
  return kFields;
}

base::Result<std::vector<Bound<Json>>> share_columns(std::string_view format) {
  TRY_ASSIGN(const auto columns, named_columns(format, '%', kWidth));
  return bound(columns, share_fields());
}

// Puts the limits of a team or user into its row: "gres/gpu=16,gres/gpu:h100=8". A user's limits
// are for all of their accounts together.
void add_limits(const Json& quotas, Json& share) {
  const std::string_view holder = is_user(share) ? "user" : "team";
  const std::string name = text_at(share, holder);
  if (name.empty()) return;
  std::string gpus;
  std::string minutes;
  const auto add = [](std::string& list, const std::string& type, std::int64_t number) {
    list += fmt::format("{}{}={}", list.empty() ? "" : ",", gpu_resource(type), number);
  };
  for (const Json& quota : quotas) {
    if (text_at(quota, "holder") != holder || text_at(quota, "name") != name) continue;
    const std::string type = text_at(quota, "gpu_type");
    if (type.empty()) share["grp_jobs"] = text_at(quota, "max_running_jobs");
    if (const auto most = cli::integer_at(quota, "max_gpus")) add(gpus, type, *most);
    if (const auto hours = cli::integer_at(quota, "gpu_hours")) add(minutes, type, *hours * 60);
  }
  share["grp_tres"] = gpus;
  share["grp_tres_mins"] = minutes;
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
    call.fail("the list of shares is not a JSON object");
    return std::nullopt;
  }
  const Json& shares = cli::list_at(*document, "shares");
  std::vector<Json> rows(shares.begin(), shares.end());
  for (Json& row : rows) add_limits(cli::list_at(*document, "quotas"), row);
  if (text_at(*document, "order") == "fair_share") show_levels(rows);
  return rows;
}

int print_shares(Call& call, const Settings& settings, std::string_view format,
                 const std::vector<Json>& rows) {
  const auto columns = share_columns(format);
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
  enum class Kind : std::uint8_t {
    kAccounts,
    kUsers,
    kAssociations,
    kQos,
    kTres,
    kCluster,
    kOther
  };

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
  if (name.starts_with("qos")) return Listing::Kind::kQos;
  if (name.starts_with("tres")) return Listing::Kind::kTres;
  if (name.starts_with("clus")) return Listing::Kind::kCluster;
  return name.starts_with("ass") ? Listing::Kind::kAssociations : Listing::Kind::kOther;
}

std::string_view usual_listing(Listing::Kind kind) {
  switch (kind) {
    case Listing::Kind::kAccounts:
      return "Account,Description%20,Organization%20";
    case Listing::Kind::kUsers:
      return "User,DefaultAccount,AdminLevel%9";
    case Listing::Kind::kQos:
      return kQosUsual;
    case Listing::Kind::kTres:
      return "Type%8,Name%15,ID%6";
    case Listing::Kind::kCluster:
      return "Cluster,ControlHost%15,ControlPort%12,RPC%5,Share%9,GrpJobs%7,GrpTRES%13,"
             "GrpSubmit%9,MaxJobs%7,MaxTRES%13,MaxSubmit%9,MaxWall%11,QOS%20,DefaultQOS%9";
    default:
      return "Cluster,Account,User,Partition,Share%9,Priority%10,GrpJobs%7,GrpTRES%13,GrpSubmit%9,"
             "GrpWall%11,GrpTRESMins%13,MaxJobs%7,MaxTRES%13,MaxTRESPerNode%14,MaxSubmit%9,"
             "MaxWall%11,MaxTRESMins%13,QOS%20,DefaultQOS%9,GrpTRESRunMins%13";
  }
}

// `words` behind "list".
Listing listing_of(std::span<const std::string> words) {
  Listing listing;
  if (words.empty()) return listing;
  listing.kind = kind_of(words.front());
  listing.format = usual_listing(listing.kind);
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

bool is_wanted_share(const Json& share, const Listing& listing) {
  const std::string team = text_at(share, "team");
  if (team.empty()) return false;
  const bool is_of_kind = listing.kind == Listing::Kind::kAssociations ||
                          is_user(share) == (listing.kind == Listing::Kind::kUsers);
  const bool is_named_user =
      listing.users.empty() || is_listed(text_at(share, "user"), listing.users);
  const bool is_named_account = listing.accounts.empty() || is_listed(team, listing.accounts);
  return is_of_kind && is_named_user && is_named_account;
}

// Returns whether sshare shows the row: with -U only users, without -a and -u only the caller.
bool is_wanted_share(const Json& share, const Settings& settings) {
  const std::string user = text_at(share, "user");
  const bool is_alone = text_at(share, "team").empty();
  if (settings.has("Users") && (user.empty() || is_alone)) return false;
  if (settings.has("accounts") && !is_listed(account_of(share), settings.value("accounts")))
    return false;
  if (user.empty() || settings.has("all")) return true;
  return settings.has("users") ? is_listed(user, settings.value("users")) : user == own_user();
}

std::vector<Json> tres_rows() {
  return {Json{{"type", "cpu"}, {"name", ""}, {"id", 1}},
          Json{{"type", "mem"}, {"name", ""}, {"id", 2}},
          Json{{"type", "energy"}, {"name", ""}, {"id", 3}},
          Json{{"type", "node"}, {"name", ""}, {"id", 4}},
          Json{{"type", "billing"}, {"name", ""}, {"id", 5}},
          Json{{"type", "fs"}, {"name", "disk"}, {"id", 6}},
          Json{{"type", "vmem"}, {"name", ""}, {"id", 7}},
          Json{{"type", "pages"}, {"name", ""}, {"id", 8}},
          Json{{"type", "gres"}, {"name", "gpu"}, {"id", 1001}}};
}

// Column names that mean something else of a QOS.
std::string format_of_qos(const std::string& format) {
  std::string result;
  for (const std::string& item : comma_separated(format)) {
    const std::string name = plain_name(item.substr(0, item.find('%')));
    const bool is_own = name == "priority" || name == "maxwall" || name == "maxtres";
    result += (result.empty() ? "" : ",") + (is_own ? "Qos" + item : item);
  }
  return result;
}

std::expected<std::vector<Json>, int> qos_rows(Call& call, const Listing& listing) {
  auto client = call.client();
  if (!client) return std::unexpected(1);
  const auto site = site_of(*client);
  if (!site) return std::unexpected(call.fail(site.error()));
  constexpr std::string_view kClasses[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};
  std::vector<Json> rows;
  for (const Qos& qos : site->qos) {
    if (!listing.names.empty() && !is_listed(qos.name, listing.names)) continue;
    const auto rank = std::ranges::find(kClasses, std::string_view(qos.priority)) - kClasses;
    rows.push_back({{"name", qos.name},
                    {"id", rows.size() + 1},
                    {"priority", rank % 4 * 1000},
                    {"max_wall", qos.max_time ? long_elapsed(*qos.max_time) : ""},
                    {"max_tres", qos.max_gpus ? fmt::format("gres/gpu={}", *qos.max_gpus) : ""}});
  }
  return rows;
}

// The rows of what is no account; none for accounts, users and associations.
std::expected<std::vector<Json>, int> fixed_rows(Call& call, Listing& listing) {
  if (listing.kind == Listing::Kind::kTres) return tres_rows();
  if (listing.kind == Listing::Kind::kCluster) return std::vector<Json>{Json{{"shares", 1}}};
  if (listing.kind != Listing::Kind::kQos) return std::vector<Json>{};
  listing.format = format_of_qos(listing.format);
  return qos_rows(call, listing);
}

}  // namespace

std::span<const Option> sacctmgr_options() {
  return kManagerOptions;
}

int sacctmgr(Call& call) {
  const auto given = call.given({kManagerOptions, kManagerSynopsis, true});
  if (!given) return given.error();
  const std::vector<std::string>& words = given->words;
  const std::string verb = words.empty() ? std::string() : words.front();
  if (verb != "list" && verb != "show") {
    return call.fail(fmt::format(
        "'{}' is not supported: accounts are the teams of the configuration (teams:)", verb));
  }
  Listing listing = listing_of(std::span(words).subspan(1));
  if (listing.kind == Listing::Kind::kOther) {
    return call.fail(fmt::format(
        "'{} {}' is not supported: accounts, users, associations, qos, tres and clusters are", verb,
        words.size() > 1 ? words[1] : ""));
  }
  const auto fixed = fixed_rows(call, listing);
  if (!fixed) return fixed.error();
  if (!fixed->empty()) return print_shares(call, given->settings, listing.format, *fixed);
  const auto shares = shares_of(call);
  if (!shares) return 1;
  std::vector<Json> rows;
  for (const Json& share : *shares) {
    if (!is_wanted_share(share, listing)) continue;
    rows.push_back(share);
    rows.back()["depth"] = 0;
  }
  return print_shares(call, given->settings, listing.format, rows);
}

std::span<const Option> sshare_options() {
  return kShareOptions;
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
    if (!is_wanted_share(share, settings)) continue;
    rows.push_back(share);
    if (is_for_programs) rows.back()["depth"] = 0;
  }
  const std::string_view format = settings.has("format")
                                      ? std::string_view(settings.value("format"))
                                  : settings.has("long") ? kShareLong
                                                         : kShareUsual;
  return print_shares(call, settings, format, rows);
}

}  // namespace gpu_platform::shims
