#include <optional>

#include <fmt/format.h>

#include "shims/command_call.h"
#include "shims/steps/step_variables.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_values.h"
#include "shims/views/accounts.h"
#include "shims/views/job_view.h"
#include "shims/views/partitions.h"

// sshare: what the teams and their users have used.

namespace gpu_platform::shims {

namespace {

constexpr std::string_view kShareSynopsis = "[options]";
constexpr std::size_t kWidth = 10;
constexpr std::string_view kShareUsual =
    "Account%-20,User,RawShares,NormShares%11,RawUsage%11,EffectvUsage%13,FairShare";
constexpr std::string_view kShareLong =
    "Account%-20,User,RawShares,NormShares%11,RawUsage%11,NormUsage%11,EffectvUsage%13,FairShare,"
    "LevelFS,GrpTRESMins%30,TRESRunMins%30";

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

std::string part_text(double part) {
  return fmt::format("{:.6f}", part);
}

// As deep as the account lies.
std::string indented_account(const AccountShare& row) {
  return std::string(row.share.depth(), ' ') + account_of(row.share);
}

// GPU-seconds that count at present; empty where usage is not counted.
std::string raw_usage(const AccountShare& row) {
  if (!row.share.has_use_gpu_seconds()) return {};
  return fmt::format("{:.0f}", row.share.use_gpu_seconds());
}

// Its shares relative to its use: above 1 it has used less than its part.
std::string level_of(const AccountShare& row) {
  const double use = row.share.effective_use();
  return use > 0 ? fmt::format("{:.6f}", row.share.normalized_shares() / use) : "inf";
}

std::span<const Field<AccountShare>> share_fields() {
  using Row = AccountShare;
  static const std::vector<Field<Row>> kFields = {
      {0, "Account", "Account", indented_account},
      {0, "User", "User", [](const Row& row) { return row.share.user(); }},
      {0, "Cluster", "Cluster", [](const Row&) { return std::string(kCluster); }},
      {0, "Partition", "Partition", [](const Row&) { return std::string(); }},
      {0, "RawUsage", "RawUsage", raw_usage},
      {0, "LevelFS", "LevelFS", level_of},
      {0, "GrpTRESMins", "GrpTRESMins", [](const Row& row) { return row.grp_tres_mins; }},
      {0, "GrpTRESRaw", "GrpTRESRaw", raw_minutes},
      {0, "TRESRunMins", "TRESRunMins", [](const Row& row) { return row.tres_run_mins; }},
      {0, "RawShares", "RawShares",
       [](const Row& row) { return fmt::format("{}", row.share.shares()); }},
      {0, "NormShares", "NormShares",
       [](const Row& row) { return part_text(row.share.normalized_shares()); }},
      {0, "NormUsage", "NormUsage", [](const Row& row) { return part_text(row.share.use()); }},
      {0, "EffectvUsage", "EffectvUsage",
       [](const Row& row) { return part_text(row.share.effective_use()); }},
      {0, "FairShare", "FairShare",
       [](const Row& row) {
         return is_user(row.share) ? part_text(row.share.fair_share()) : std::string();
       }},
  };
  return kFields;
}

// Returns whether sshare shows the row: with -U only users, without -a and -u only the caller.
bool is_wanted_share(const v1::Share& share, const Settings& settings) {
  const std::string& user = share.user();
  const bool is_alone = share.team().empty();
  if (settings.has("Users") && (user.empty() || is_alone)) return false;
  if (settings.has("accounts") && !is_listed(account_of(share), settings.value("accounts")))
    return false;
  if (user.empty() || settings.has("all")) return true;
  return settings.has("users") ? is_listed(user, settings.value("users")) : user == own_user();
}

}  // namespace

std::span<const Option> sshare_options() {
  return kShareOptions;
}

int sshare(CommandCall& call) {
  const auto given = call.given({kShareOptions, kShareSynopsis});
  if (!given) return given.error();
  const Settings& settings = given->settings;
  const std::string_view format = settings.has("format")
                                      ? std::string_view(settings.value("format"))
                                  : settings.has("long") ? kShareLong
                                                         : kShareUsual;
  const auto named = named_columns(format, '%', kWidth);
  if (!named) return call.fail(named.error());
  const auto columns = bound(*named, share_fields());
  if (!columns) return call.fail(columns.error());
  const auto shares = shares_of(call);
  if (!shares) return 1;
  auto client = call.client();
  if (!client) return 1;
  const auto site = site_of(*client);
  if (!site) return call.fail(site.error());
  std::vector<AccountShare> rows;
  const bool is_for_programs = settings.has("parsable") || settings.has("parsable2");
  for (const AccountShare& row : *shares) {
    if (!is_wanted_share(row.share, settings)) continue;
    rows.push_back(row);
    rows.back().tres_run_mins = running_minutes(row.share, site->weights);
    if (is_for_programs) rows.back().share.set_depth(0);
  }
  const bool has_header = !settings.has("noheader");
  call.console().out(is_for_programs
                         ? parsable(*columns, rows, has_header, {"|", settings.has("parsable")})
                         : accounted(*columns, rows, has_header));
  return call.console().out_failed() ? 1 : 0;
}

}  // namespace gpu_platform::shims
