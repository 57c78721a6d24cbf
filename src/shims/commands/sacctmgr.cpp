#include <algorithm>
#include <expected>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>

#include "cli/json_view.h"
#include "cli/text.h"
#include "client/answer.h"
#include "gpu_platform/v1/statistics.pb.h"
#include "shims/command_call.h"
#include "shims/documents/manager_json.h"
#include "shims/documents/slurm_document.h"
#include "shims/steps/step_variables.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/accounts.h"
#include "shims/views/job_view.h"
#include "shims/views/manager_rows.h"

// sacctmgr: what there is. What it would change in a database of Slurm stands in the configuration.

namespace gpu_platform::shims {

namespace {

using cli::Json;

constexpr std::string_view kManagerSynopsis = "[options] list|show WHAT [KEY=VALUE…]";

constexpr Option kManagerOptions[] = {
    {"noheader", 'n', Take::kNothing, Rule::kHonoured, "", ""},
    {"associations", 's', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable", 'p', Take::kNothing, Rule::kHonoured, "", ""},
    {"parsable2", 'P', Take::kNothing, Rule::kHonoured, "", ""},
    {"immediate", 'i', Take::kNothing, Rule::kAccepted, "", ""},
    {"oneliner", 'o', Take::kNothing, Rule::kAccepted, "", ""},
    {"quiet", 'Q', Take::kNothing, Rule::kAccepted, "", ""},
    {"readonly", 'r', Take::kNothing, Rule::kAccepted, "", ""},
    {"verbose", 'v', Take::kNothing, Rule::kAccepted, "", ""},
    {"json", 0, Take::kMayHaveValue, Rule::kHonoured,
     "the document of Slurm 24.11 of accounts, associations, clusters, qos, tres and users", ""},
    {"yaml", 0, Take::kMayHaveValue, Rule::kHonoured, "the same document", ""},
    {"help", 'h', Take::kNothing, Rule::kHonoured, "", ""},
    {"usage", 0, Take::kNothing, Rule::kHonoured, "", ""},
    {"version", 'V', Take::kNothing, Rule::kHonoured, "", ""},
};

// KEY=VALUE keeps the rows that have one of the values in a column.
struct Condition {
  std::string_view name;
  std::size_t least;       // letters of the name that must be there
  std::string_view title;  // empty: accepted, and no row is left out
};

enum class What : std::uint8_t {
  kAccounts,
  kAssociations,
  kClusters,
  kConfiguration,
  kEvents,
  kFederations,
  kInstances,
  kProblems,
  kQos,
  kReservations,
  kResources,
  kRunawayJobs,
  kStatistics,
  kTransactions,
  kTres,
  kUsers,
  kWcKeys,
};

struct ManagedEntity {
  std::string_view name;
  std::size_t least;
  What what;
  std::string_view columns;  // that are shown where none are named
  std::string_view words;    // the column of words that are no KEY=VALUE
};

constexpr ManagedEntity kManagedEntities[] = {
    {"accounts", 2, What::kAccounts, "Account,Description,Organization", "Account"},
    {"associations", 2, What::kAssociations,
     "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,"
     "MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins",
     "ID"},
    {"clusters", 2, What::kClusters,
     "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,"
     "MaxSubmit,MaxWall,QOS,DefaultQOS",
     "Cluster"},
    {"configuration", 2, What::kConfiguration, "", ""},
    {"events", 1, What::kEvents, "Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User", "Event"},
    {"federations", 1, What::kFederations, "Federation,Cluster,ID%2,Features,FedState",
     "Federation"},
    {"instances", 1, What::kInstances,
     "Cluster,NodeName,TimeStart,TimeEnd,InstanceId,InstanceType,Extra", ""},
    {"problems", 1, What::kProblems, "Cluster,Account,User,Problem", ""},
    {"qos", 1, What::kQos,
     "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThreshold,"
     "UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,"
     "MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,"
     "MaxTRESRunMinsPA%22,MaxTRESRunMinsPU%22,MaxJobsPA,MaxSubmitPA,MinTRES",
     "Name"},
    {"reservations", 4, What::kReservations, "Cluster,Name%15,TRES%30,TimeStart,TimeEnd,UnusedWall",
     "Name"},
    {"resources", 4, What::kResources,
     "Name,Server,Type,Count,LastConsumed,Allocated,ServerType,Flags", "Name"},
    {"runawayjobs", 2, What::kRunawayJobs, "", ""},
    {"lostjobs", 1, What::kRunawayJobs, "", ""},
    {"stats", 1, What::kStatistics, "", ""},
    {"transactions", 1, What::kTransactions, "Time,Action,Actor,Where,Info", "ID"},
    {"tres", 3, What::kTres, "Type,Name%15,ID", "Type"},
    {"users", 1, What::kUsers, "User,DefaultAccount,AdminLevel", "User"},
    {"wckeys", 1, What::kWcKeys, "WCKeys%10,Cluster,User", "WCKeys"},
};

constexpr std::string_view kColumnsOfAssociation =
    "Cluster,Account,Partition,Share,Priority,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,"
    "MaxCPUMins,QOS,DefaultQOS";
constexpr std::string_view kColumnsOfAccountsAssociation =
    "Cluster,ParentName,User,Share,Priority,GrpJobs,GrpNodes,GrpCPUs,GrpMemory,GrpSubmit,GrpWall,"
    "GrpCPUMins,MaxJobs,MaxNodes,MaxCPUs,MaxSubmit,MaxWall,MaxCPUMins,QOS,DefaultQOS";

// Of associations, and of accounts, users and clusters.
constexpr Condition kAccountConditions[] = {
    {"accounts", 3, "Account"},
    {"acct", 4, "Account"},
    {"adminlevel", 2, "Admin"},
    {"associations", 2, "ID"},
    {"classification", 3, "Class"},
    {"clusters", 1, "Cluster"},
    {"defaultaccount", 8, "Def Acct"},
    {"defaultqos", 8, "Def QOS"},
    {"defaultwckey", 8, "Def WCKey"},
    {"descriptions", 3, "Descr"},
    {"federations", 2, "Federation"},
    {"flags", 2, "Flags"},
    {"fairshare", 2, "Share"},
    {"ids", 2, "ID"},
    {"names", 1, "="},
    {"organizations", 1, "Org"},
    {"parents", 4, "ParentName"},
    {"partitions", 4, "Partition"},
    {"qoslevel", 1, "QOS"},
    {"rpc", 1, "RPC"},
    {"shares", 1, "Share"},
    {"users", 1, "User"},
    {"wckeys", 2, "WCKeys"},
};
constexpr Condition kQosConditions[] = {
    {"descriptions", 1, "Descr"},      {"ids", 1, "ID"},        {"names", 1, "Name"},
    {"preemptmode", 8, "PreemptMode"}, {"qoslevel", 1, "Name"},
};
constexpr Condition kTresConditions[] = {
    {"ids", 1, "ID"}, {"names", 1, "Name"}, {"types", 1, "Type"}};
constexpr Condition kEventConditions[] = {
    {"clusters", 1, "Cluster"}, {"condflags", 2, ""},
    {"events", 2, "Event"},     {"end", 1, ""},
    {"maxcpus", 2, ""},         {"mincpus", 2, ""},
    {"names", 1, "NodeName"},   {"nodes", 1, "NodeName"},
    {"reason", 1, "Reason"},    {"start", 4, ""},
    {"states", 4, "State"},     {"users", 1, "User"},
};
constexpr Condition kOtherConditions[] = {
    {"accounts", 3, "Account"},
    {"action", 4, "Action"},
    {"actors", 4, "Actor"},
    {"clusters", 1, "Cluster"},
    {"count", 3, "Count"},
    {"descriptions", 1, "Descr"},
    {"end", 1, ""},
    {"extra", 2, "Extra"},
    {"federations", 2, "Federation"},
    {"flags", 2, "Flags"},
    {"ids", 1, "ID"},
    {"info", 3, "Info"},
    {"instanceid", 9, "InstanceId"},
    {"instancetype", 9, "InstanceType"},
    {"names", 2, "="},
    {"nodes", 2, "NodeName"},
    {"partitions", 4, "Partition"},
    {"server", 3, "Server"},
    {"servertype", 10, "ServerType"},
    {"start", 2, ""},
    {"types", 1, "Type"},
    {"users", 1, "User"},
    {"wckeys", 1, "WCKeys"},
};

std::span<const Condition> conditions_of(What what) {
  switch (what) {
    case What::kAccounts:
    case What::kAssociations:
    case What::kClusters:
    case What::kUsers:
      return kAccountConditions;
    case What::kQos:
      return kQosConditions;
    case What::kTres:
      return kTresConditions;
    case What::kEvents:
      return kEventConditions;
    default:
      return kOtherConditions;
  }
}

// Words that say what is shown.
constexpr std::pair<std::string_view, std::size_t> kFlags[] = {{"where", 3},
                                                               {"set", 3},
                                                               {"tree", 4},
                                                               {"withassoc", 5},
                                                               {"withassociations", 5},
                                                               {"withclusters", 6},
                                                               {"withcoordinator", 5},
                                                               {"withdeleted", 5},
                                                               {"withrawqoslevel", 5},
                                                               {"withsubaccounts", 5},
                                                               {"wolimits", 3},
                                                               {"wopinfo", 4},
                                                               {"woplimits", 4},
                                                               {"onlydefaults", 4},
                                                               {"all_clusters", 5},
                                                               {"all_time", 5}};

struct Wish {
  std::string_view title;
  std::vector<std::string> values;  // in small letters; one that is empty: rows without a value
};

struct Listing {
  const ManagedEntity* entity = nullptr;
  std::set<std::string_view> flags;
  std::vector<Wish> wishes;
  std::string format;

  bool has(std::string_view flag) const { return flags.contains(flag); }
};

// "'a b'" and "\"a\"" are what stands within the quotes; what follows them is not read.
std::string unquoted(std::string_view text) {
  if (!text.starts_with('"') && !text.starts_with('\'')) return std::string(text);
  const char quote = text.front();
  text.remove_prefix(1);
  return std::string(text.substr(0, text.find(quote)));
}

std::vector<std::string> values_in(std::string_view text) {
  std::vector<std::string> values = comma_separated(lower_case(unquoted(text)));
  if (values.empty()) values.emplace_back();
  return values;
}

bool begins(std::string_view name, std::size_t least, std::string_view word) {
  return word.size() >= least && name.starts_with(word);
}

// A word that is no KEY=VALUE: what is shown, or a name. Whether it makes sense.
bool take_word(const std::string& word, Listing& listing) {
  const std::string plain = lower_case(word);
  for (const auto& [flag, least] : kFlags) {
    if (!begins(flag, least, plain)) continue;
    listing.flags.insert(flag);
    return true;
  }
  if (listing.entity->words.empty() || (listing.entity->what == What::kAssociations &&
                                        plain.find_first_not_of("0123456789,") != plain.npos)) {
    return false;
  }
  listing.wishes.push_back({listing.entity->words, values_in(word)});
  return true;
}

std::string mistake_in(const std::string& word) {
  return fmt::format(" Unknown condition: {}\n Use keyword 'set' to modify SLURM_PRINT_VALUE\n",
                     cli::harmless(word));
}

// KEY=VALUE. What is wrong with it, as Slurm says it.
std::optional<std::string> take_pair(CommandCall& call, const std::string& word, Listing& listing) {
  const std::size_t equals = word.find('=');
  std::string key = lower_case(std::string_view(word).substr(0, equals));
  if (key.ends_with('+') || key.ends_with('-') || key.ends_with('!')) key.pop_back();
  const std::string_view value = std::string_view(word).substr(equals + 1);
  if (begins("format", 2, key)) {
    listing.format += (listing.format.empty() ? "" : ",") + unquoted(value);
    if (listing.format.empty()) listing.format = ",";
    return std::nullopt;
  }
  for (const Condition& condition : conditions_of(listing.entity->what)) {
    if (!begins(condition.name, condition.least, key)) continue;
    const bool is_time = condition.name == "start" || condition.name == "end";
    if (is_time) {
      const auto at = parse_time_expression("", unquoted(value), call.around().now());
      if (!at)
        call.console().err(
            fmt::format("Invalid time specification (pos=0): {}\n", cli::harmless(value)));
    }
    const std::string_view title = condition.title == "=" ? listing.entity->words : condition.title;
    if (!title.empty()) listing.wishes.push_back({title, values_in(value)});
    return std::nullopt;
  }
  return mistake_in(word);
}

constexpr std::string_view kNoEntity =
    "No valid entity in list command\n"
    "Input line must include \"Account\", \"Association\", \"Cluster\", \"Configuration\",\n"
    "\"Event\", \"Federation\", \"Problem\", \"QOS\", \"Resource\", \"Reservation\",\n"
    "\"RunAwayJobs\", \"Stats\", \"Transaction\", \"TRES\", \"User\", or \"WCKey\"\n";

int fail_with(CommandCall& call, std::string_view text) {
  call.console().err(text);
  return 1;
}

// `words` behind "list".
std::expected<Listing, int> listing_of(CommandCall& call, std::span<const std::string> words) {
  Listing listing;
  const std::string name = words.empty() ? "" : lower_case(words.front());
  for (const ManagedEntity& entity : kManagedEntities) {
    if (listing.entity == nullptr && !name.empty() && begins(entity.name, entity.least, name))
      listing.entity = &entity;
  }
  if (listing.entity == nullptr) return std::unexpected(fail_with(call, kNoEntity));
  for (const std::string& word : words.subspan(1)) {
    const bool is_pair = word.find('=') != std::string::npos;
    const auto mistake = is_pair ? take_pair(call, word, listing) : std::nullopt;
    if (mistake) return std::unexpected(fail_with(call, *mistake));
    if (!is_pair && !take_word(word, listing)) {
      return std::unexpected(fail_with(call, mistake_in(word)));
    }
  }
  return listing;
}

std::string usual_columns(const Listing& listing) {
  std::string columns(listing.entity->columns);
  const auto add = [&](std::string_view more) { columns += fmt::format(",{}", more); };
  const What what = listing.entity->what;
  if (listing.has("withassoc") && what == What::kUsers) add(kColumnsOfAssociation);
  if (listing.has("withassoc") && what == What::kAccounts) add(kColumnsOfAccountsAssociation);
  if (listing.has("withcoordinator")) add("Coordinators");
  if (listing.has("withclusters")) add("Cluster,Allowed");
  const bool is_short = listing.has("wolimits") && what == What::kAssociations;
  if (is_short) columns = "Cluster,Account,User,Partition";
  if (listing.has("tree") && what == What::kAssociations)
    columns.replace(columns.find("Account"), 7, "Account%-20");
  return columns;
}

// With the accounts below an account that is named.
bool is_below(const ManagedRow& row, const Wish& wish) {
  const std::string lineage = lower_case(cell_of(row, "Lineage"));
  return std::ranges::any_of(wish.values, [&](const std::string& value) {
    return lineage.find("/" + value + "/") != std::string::npos;
  });
}

bool is_wished(const ManagedRow& row, const Listing& listing) {
  return std::ranges::all_of(listing.wishes, [&](const Wish& wish) {
    const std::string value = lower_case(cell_of(row, wish.title));
    if (wish.title == "Account" && listing.has("withsubaccounts") && is_below(row, wish))
      return true;
    const bool is_one = std::ranges::find(wish.values, value) != wish.values.end();
    // Of several in one column, such as QOS, and "root(0)".
    const std::string name = value.substr(0, value.find('('));
    return is_one || std::ranges::any_of(wish.values, [&](const std::string& wanted) {
             return !wanted.empty() && (wanted == name || is_listed(wanted, value));
           });
  });
}

void indent_accounts(std::vector<ManagedRow>& rows) {
  for (ManagedRow& row : rows) {
    const auto depth = std::ranges::count(cell_of(row, "Lineage"), '/') - 1;
    row["Account"].insert(0, static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, depth)), ' ');
  }
}

// The account that a user's jobs are of without -A is the one that is listed first.
void keep_defaults(std::vector<ManagedRow>& rows) {
  std::set<std::string> users;
  std::erase_if(rows, [&](const ManagedRow& row) {
    const std::string user = cell_of(row, "User");
    return user.empty() || !users.insert(user).second;
  });
}

std::optional<std::vector<NodeView>> nodes_of(CommandCall& call) {
  auto client = call.client();
  if (!client) return std::nullopt;
  auto nodes = list_nodes(*client);
  if (nodes) return std::move(*nodes);
  call.fail(nodes.error());
  return std::nullopt;
}

std::optional<Site> names_of_site(CommandCall& call) {
  auto client = call.client();
  if (!client) return std::nullopt;
  auto site = site_of(*client);
  if (site) return std::move(*site);
  call.fail(site.error());
  return std::nullopt;
}

// Of accounts, associations, users and clusters.
std::optional<std::vector<ManagedRow>> rows_of_accounts(CommandCall& call, const Listing& listing) {
  const auto shares = shares_of(call);
  if (!shares) return std::nullopt;
  const auto site = names_of_site(call);
  if (!site) return std::nullopt;
  ManagedSite managed{*shares, *site, {}};
  const What what = listing.entity->what;
  if (what == What::kClusters) {
    auto nodes = nodes_of(call);
    if (!nodes) return std::nullopt;
    managed.nodes = std::move(*nodes);
    return cluster_rows(managed);
  }
  if (what == What::kAssociations) return association_rows(managed);
  const bool by_association =
      listing.has("withassoc") || std::ranges::any_of(listing.wishes, [&](const Wish& wish) {
        return wish.title == (what == What::kUsers ? "Account" : "User");
      });
  if (what == What::kAccounts) {
    auto rows = account_rows(managed);
    return by_association ? joined_rows(association_rows(managed), rows, "Account") : rows;
  }
  auto rows = user_rows(managed);
  if (!by_association) return rows;
  // Programs ask for a user's accounts and refuse others. Where any name is one, there is no list.
  if (!has_teams(managed)) return std::vector<ManagedRow>{};
  auto associations = association_rows(managed);
  std::erase_if(associations, [](const ManagedRow& row) { return cell_of(row, "User").empty(); });
  std::ranges::stable_sort(associations, {},
                           [](const ManagedRow& row) { return cell_of(row, "User"); });
  return joined_rows(std::move(associations), rows, "User");
}

std::optional<std::vector<ManagedRow>> rows_of_reservations(CommandCall& call) {
  const auto nodes = nodes_of(call);
  if (!nodes) return std::nullopt;
  auto client = call.client();
  if (!client) return std::nullopt;
  const auto body = client->get("/v1/reservations");
  if (!body) {
    call.fail(body.error());
    return std::nullopt;
  }
  const auto list = client::message_of<v1::ListReservationsResponse>(*body);
  return reservation_rows(list.value_or(v1::ListReservationsResponse()), *nodes);
}

// There is nothing of the other kinds here: no licenses, no federations, no wckeys, and changes of
// the configuration are in the audit trail.
std::optional<std::vector<ManagedRow>> rows_of(CommandCall& call, const Listing& listing) {
  switch (listing.entity->what) {
    case What::kAccounts:
    case What::kAssociations:
    case What::kClusters:
    case What::kUsers:
      return rows_of_accounts(call, listing);
    case What::kQos: {
      const auto site = names_of_site(call);
      return site ? std::optional(qos_rows(*site)) : std::nullopt;
    }
    case What::kTres:
      return tres_rows();
    case What::kEvents: {
      const auto nodes = nodes_of(call);
      return nodes ? std::optional(event_rows(*nodes, call.around().now())) : std::nullopt;
    }
    case What::kReservations:
      return rows_of_reservations(call);
    default:
      return std::vector<ManagedRow>{};
  }
}

// Nothing for the kinds that Slurm has no document of.
std::optional<Json> document_of(const ManagedEntity& entity, DocumentForm form,
                                const std::vector<ManagedRow>& rows) {
  switch (entity.what) {
    case What::kAccounts:
      return accounts_document(rows);
    case What::kAssociations:
      return associations_document(form, rows);
    case What::kUsers:
      return users_document(rows);
    case What::kClusters:
      return clusters_document(rows);
    case What::kQos:
      return qos_document(form, rows);
    case What::kTres:
      return tres_document(rows);
    default:
      return std::nullopt;
  }
}

int print_text(CommandCall& call, const std::string& text) {
  call.console().out(text);
  return call.console().out_failed() ? 1 : 0;
}

int show_table(CommandCall& call, const Settings& settings, const Listing& listing,
               const std::optional<DocumentStyle>& style) {
  auto columns = chosen_columns(listing.format.empty() ? usual_columns(listing) : listing.format);
  if (!columns) return fail_with(call, cli::harmless(columns.error().message) + "\n");
  for (ChosenColumn& column : *columns) {
    if (listing.entity->what == What::kWcKeys && column.title == "WCKeys") column.title = "WCKey";
  }
  auto rows = rows_of(call, listing);
  if (!rows) return 1;
  std::erase_if(*rows, [&](const ManagedRow& row) { return !is_wished(row, listing); });
  if (listing.has("onlydefaults")) keep_defaults(*rows);
  if (style) {
    const auto document = document_of(*listing.entity, style->form, *rows);
    if (document) return print_document(call, *style, *document);
  }
  if (listing.has("tree")) indent_accounts(*rows);
  const bool is_for_programs = settings.has("parsable") || settings.has("parsable2");
  return print_text(call, managed_table(*columns, *rows,
                                        {!settings.has("noheader"), is_for_programs ? "|" : "",
                                         settings.has("parsable")}));
}

int show_configuration(CommandCall& call) {
  const std::pair<std::string_view, std::string_view> values[] = {
      {"AccountingStorageBackupHost ", "(null)"},
      {"AccountingStorageHost ", "localhost"},
      {"AccountingStorageParameters", "(null)"},
      {"AccountingStoragePass ", "(null)"},
      {"AccountingStoragePort ", "0"},
      {"AccountingStorageType ", "accounting_storage/gpu-platform"},
      {"AccountingStorageUser ", "N/A"},
      {"AuthType", "auth/peer-credentials"},
      {"MessageTimeout", "10 sec"},
      {"PluginDir", "(null)"},
      {"PrivateData", "none"},
      {"SlurmUserId", "root(0)"},
      {"SLURM_CONF", "(null)"},
      {"SLURM_VERSION", kSlurmVersion},
      {"TCPTimeout", "2 sec"},
      {"TrackWCKey", "No"},
  };
  std::string text =
      fmt::format("Configuration data as of {}\n", slurm_time(call.around().now(), "Unknown"));
  for (const auto& [key, value] : values) text += fmt::format("{:<22} = {}\n", key, value);
  return print_text(call, text);
}

// "Fri Nov 27 08:17:21 2026 (1795767441)"
std::string date_and_seconds(base::Instant at) {
  std::string date = date_line(at);
  date.pop_back();
  return fmt::format("{} ({})", date, at.unix_ns() / 1'000'000'000);
}

int show_statistics(CommandCall& call) {
  auto client = call.client();
  if (!client) return 1;
  const auto body = client->get("/v1/statistics");
  if (!body) return call.fail(body.error());
  const auto statistics = client::message_of<v1::Statistics>(*body).value_or(v1::Statistics());
  const base::Instant now = call.around().now();
  const std::string since = date_and_seconds(client::time_of(statistics.since()).value_or(now));
  const std::string line(67, '*');
  std::string text = fmt::format(
      "{}\nsacctmgr show stats output at {}\nData since                    {}\n"
      "All statistics are in microseconds\n{}\n\n"
      "Internal DBD rollup last ran {}\n\tLast cycle:   0\n\tMax cycle:    0\n\tTotal time:   0\n"
      "\tTotal cycles: 0\n\nRemote Procedure Call statistics by message type\n",
      line, date_and_seconds(client::time_of(statistics.at()).value_or(now)), since, line, since);
  for (const v1::CallStatistics& each : statistics.calls()) {
    const auto count = std::max<std::uint64_t>(1, each.count());
    const double total = each.total_seconds() * 1e6;
    text += fmt::format("\t{:<25}({:>5}) count:{:<6} ave_time:{:<6.0f} total_time:{:.0f}\n",
                        each.call(), 0, count, total / static_cast<double>(count), total);
  }
  return print_text(call, text + "\nRemote Procedure Call statistics by user\n");
}

int show_entity(CommandCall& call, const Settings& settings, std::span<const std::string> words) {
  const auto style = document_style(call, settings);
  if (!style) return style.error();
  auto listing = listing_of(call, words);
  if (!listing) return listing.error();
  if (settings.has("associations")) listing->flags.insert("withassoc");
  if (listing->has("withassociations")) listing->flags.insert("withassoc");
  switch (listing->entity->what) {
    case What::kConfiguration:
      return show_configuration(call);
    case What::kStatistics:
      return show_statistics(call);
    case What::kRunawayJobs:
      return print_text(
          call, fmt::format("Runaway Jobs: No runaway jobs found on cluster {}\n", kCluster));
    default:
      return show_table(call, settings, *listing, *style);
  }
}

int ping_accounting(CommandCall& call) {
  auto client = call.client();
  if (!client) return 1;
  const bool is_up = client->get("/v1/health").has_value();
  const int code = print_text(
      call, fmt::format("slurmdbd(primary) at localhost is {}\n", is_up ? "UP" : "DOWN"));
  return is_up ? code : 1;
}

}  // namespace

std::span<const Option> sacctmgr_options() {
  return kManagerOptions;
}

int sacctmgr(CommandCall& call) {
  const auto given = call.given({kManagerOptions, kManagerSynopsis, true});
  if (!given) return given.error();
  const std::vector<std::string>& words = given->words;
  if (words.empty()) return call.fail(fmt::format("no command: {}", kManagerSynopsis));
  const std::string verb = lower_case(words.front());
  if (begins("list", 3, verb) || begins("show", 3, verb))
    return show_entity(call, given->settings, std::span(words).subspan(1));
  if (verb == "ping") return ping_accounting(call);
  if (verb == "version") return print_text(call, version_line());
  constexpr std::string_view kChanges[] = {"add",         "archive", "clear",    "create",
                                           "delete",      "dump",    "load",     "modify",
                                           "reconfigure", "remove",  "shutdown", "update"};
  if (std::ranges::find(kChanges, std::string_view(verb)) != std::end(kChanges)) {
    return call.fail(fmt::format(
        "'{}' is not supported: accounts are the teams of the configuration (teams:), and so are "
        "qualities of service (slurm.qos:)",
        verb));
  }
  return fail_with(call, fmt::format("invalid keyword: {}\n", cli::harmless(verb)));
}

}  // namespace gpu_platform::shims
