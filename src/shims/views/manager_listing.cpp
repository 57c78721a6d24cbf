#include "shims/views/manager_listing.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

// KEY=VALUE keeps the rows that have one of the values in a column.
struct Condition {
  std::string_view name;
  std::size_t least;       // letters of the name that must be there
  std::string_view title;  // empty: accepted, and no row is left out
};

constexpr ManagedEntity kManagedEntities[] = {
    {"accounts", 2, ManagedKind::kAccounts, "Account,Description,Organization", "Account"},
    {"associations", 2, ManagedKind::kAssociations,
     "Cluster,Account,User,Partition,Share,Priority,GrpJobs,GrpTRES,GrpSubmit,GrpWall,GrpTRESMins,"
     "MaxJobs,MaxTRES,MaxTRESPerNode,MaxSubmit,MaxWall,MaxTRESMins,QOS,DefaultQOS,GrpTRESRunMins",
     "ID"},
    {"clusters", 2, ManagedKind::kClusters,
     "Cluster,ControlHost,ControlPort,RPC,Share,GrpJobs,GrpTRES,GrpSubmit,MaxJobs,MaxTRES,"
     "MaxSubmit,MaxWall,QOS,DefaultQOS",
     "Cluster"},
    {"configuration", 2, ManagedKind::kConfiguration, "", ""},
    {"events", 1, ManagedKind::kEvents, "Cluster,NodeName,TimeStart,TimeEnd,State,Reason,User",
     "Event"},
    {"federations", 1, ManagedKind::kFederations, "Federation,Cluster,ID%2,Features,FedState",
     "Federation"},
    {"instances", 1, ManagedKind::kInstances,
     "Cluster,NodeName,TimeStart,TimeEnd,InstanceId,InstanceType,Extra", ""},
    {"problems", 1, ManagedKind::kProblems, "Cluster,Account,User,Problem", ""},
    {"qos", 1, ManagedKind::kQos,
     "Name,Priority,GraceTime,Preempt,PreemptExemptTime,PreemptMode,Flags%40,UsageThreshold,"
     "UsageFactor,GrpTRES,GrpTRESMins,GrpTRESRunMins,GrpJobs,GrpSubmit,GrpWall,MaxTRES,"
     "MaxTRESPerNode,MaxTRESMins,MaxWall,MaxTRESPU,MaxJobsPU,MaxSubmitPU,MaxTRESPA,"
     "MaxTRESRunMinsPA%22,MaxTRESRunMinsPU%22,MaxJobsPA,MaxSubmitPA,MinTRES",
     "Name"},
    {"reservations", 4, ManagedKind::kReservations,
     "Cluster,Name%15,TRES%30,TimeStart,TimeEnd,UnusedWall", "Name"},
    {"resources", 4, ManagedKind::kResources,
     "Name,Server,Type,Count,LastConsumed,Allocated,ServerType,Flags", "Name"},
    {"runawayjobs", 2, ManagedKind::kRunawayJobs, "", ""},
    {"lostjobs", 1, ManagedKind::kRunawayJobs, "", ""},
    {"stats", 1, ManagedKind::kStatistics, "", ""},
    {"transactions", 1, ManagedKind::kTransactions, "Time,Action,Actor,Where,Info", "ID"},
    {"tres", 3, ManagedKind::kTres, "Type,Name%15,ID", "Type"},
    {"users", 1, ManagedKind::kUsers, "User,DefaultAccount,AdminLevel", "User"},
    {"wckeys", 1, ManagedKind::kWcKeys, "WCKeys%10,Cluster,User", "WCKeys"},
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

std::span<const Condition> conditions_of(ManagedKind what) {
  switch (what) {
    case ManagedKind::kAccounts:
    case ManagedKind::kAssociations:
    case ManagedKind::kClusters:
    case ManagedKind::kUsers:
      return kAccountConditions;
    case ManagedKind::kQos:
      return kQosConditions;
    case ManagedKind::kTres:
      return kTresConditions;
    case ManagedKind::kEvents:
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

// A word that is no KEY=VALUE: what is shown, or a name. Whether it makes sense.
bool take_plain_word(const std::string& word, Listing& listing) {
  const std::string plain = lower_case(word);
  for (const auto& [flag, least] : kFlags) {
    if (!begins_name(flag, least, plain)) continue;
    listing.flags.insert(flag);
    return true;
  }
  if (listing.entity->words.empty() || (listing.entity->what == ManagedKind::kAssociations &&
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

// KEY=VALUE. ManagedKind is wrong with it, as Slurm says it.
std::optional<std::string> take_pair(CommandCall& call, const std::string& word, Listing& listing) {
  const std::size_t equals = word.find('=');
  std::string key = lower_case(std::string_view(word).substr(0, equals));
  if (key.ends_with('+') || key.ends_with('-') || key.ends_with('!')) key.pop_back();
  const std::string_view value = std::string_view(word).substr(equals + 1);
  if (begins_name("format", 2, key)) {
    listing.format += (listing.format.empty() ? "" : ",") + unquoted(value);
    if (listing.format.empty()) listing.format = ",";
    return std::nullopt;
  }
  for (const Condition& condition : conditions_of(listing.entity->what)) {
    if (!begins_name(condition.name, condition.least, key)) continue;
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

// With the accounts below an account that is named.
bool is_below(const ManagedRow& row, const Wish& wish) {
  const std::string lineage = lower_case(cell_of(row, "Lineage"));
  return std::ranges::any_of(wish.values, [&](const std::string& value) {
    return lineage.find("/" + value + "/") != std::string::npos;
  });
}

}  // namespace

bool begins_name(std::string_view name, std::size_t least, std::string_view word) {
  return word.size() >= least && name.starts_with(word);
}

int fail_with(CommandCall& call, std::string_view text) {
  call.console().err(text);
  return 1;
}

std::expected<Listing, int> listing_of(CommandCall& call, std::span<const std::string> words) {
  Listing listing;
  const std::string name = words.empty() ? "" : lower_case(words.front());
  for (const ManagedEntity& entity : kManagedEntities) {
    if (listing.entity == nullptr && !name.empty() && begins_name(entity.name, entity.least, name))
      listing.entity = &entity;
  }
  if (listing.entity == nullptr) return std::unexpected(fail_with(call, kNoEntity));
  for (const std::string& word : words.subspan(1)) {
    const bool is_pair = word.find('=') != std::string::npos;
    const auto mistake = is_pair ? take_pair(call, word, listing) : std::nullopt;
    if (mistake) return std::unexpected(fail_with(call, *mistake));
    if (!is_pair && !take_plain_word(word, listing)) {
      return std::unexpected(fail_with(call, mistake_in(word)));
    }
  }
  return listing;
}

std::string usual_columns(const Listing& listing) {
  std::string columns(listing.entity->columns);
  const auto add = [&](std::string_view more) { columns += fmt::format(",{}", more); };
  const ManagedKind what = listing.entity->what;
  if (listing.has("withassoc") && what == ManagedKind::kUsers) add(kColumnsOfAssociation);
  if (listing.has("withassoc") && what == ManagedKind::kAccounts)
    add(kColumnsOfAccountsAssociation);
  if (listing.has("withcoordinator")) add("Coordinators");
  if (listing.has("withclusters")) add("Cluster,Allowed");
  const bool is_short = listing.has("wolimits") && what == ManagedKind::kAssociations;
  if (is_short) columns = "Cluster,Account,User,Partition";
  if (listing.has("tree") && what == ManagedKind::kAssociations)
    columns.replace(columns.find("Account"), 7, "Account%-20");
  return columns;
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

}  // namespace gpu_platform::shims
