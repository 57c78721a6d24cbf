#include <algorithm>
#include <expected>
#include <optional>
#include <set>
#include <span>

#include <fmt/format.h>

#include "cli/text/json_view.h"
#include "cli/text/text.h"
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
#include "shims/views/manager_listing.h"
#include "shims/views/manager_rows.h"

// sacctmgr: what there is. ManagedKind it would change in a database of Slurm stands in the
// configuration.

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
  const ManagedKind what = listing.entity->what;
  if (what == ManagedKind::kClusters) {
    auto nodes = nodes_of(call);
    if (!nodes) return std::nullopt;
    managed.nodes = std::move(*nodes);
    return cluster_rows(managed);
  }
  if (what == ManagedKind::kAssociations) return association_rows(managed);
  const bool by_association =
      listing.has("withassoc") || std::ranges::any_of(listing.wishes, [&](const Wish& wish) {
        return wish.title == (what == ManagedKind::kUsers ? "Account" : "User");
      });
  if (what == ManagedKind::kAccounts) {
    auto rows = account_rows(managed);
    return by_association ? joined_rows(association_rows(managed), rows, "Account") : rows;
  }
  auto rows = user_rows(managed);
  if (!by_association) return rows;
  // Programs ask for a user's accounts and refuse others. If any name is one, there is no list.
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
    case ManagedKind::kAccounts:
    case ManagedKind::kAssociations:
    case ManagedKind::kClusters:
    case ManagedKind::kUsers:
      return rows_of_accounts(call, listing);
    case ManagedKind::kQos: {
      const auto site = names_of_site(call);
      return site ? std::optional(qos_rows(*site)) : std::nullopt;
    }
    case ManagedKind::kTres:
      return tres_rows();
    case ManagedKind::kEvents: {
      const auto nodes = nodes_of(call);
      return nodes ? std::optional(event_rows(*nodes, call.around().now())) : std::nullopt;
    }
    case ManagedKind::kReservations:
      return rows_of_reservations(call);
    default:
      return std::vector<ManagedRow>{};
  }
}

// Nothing for the kinds that Slurm has no document of.
std::optional<Json> document_of(const ManagedEntity& entity, DocumentForm form,
                                const std::vector<ManagedRow>& rows) {
  switch (entity.what) {
    case ManagedKind::kAccounts:
      return accounts_document(rows);
    case ManagedKind::kAssociations:
      return associations_document(form, rows);
    case ManagedKind::kUsers:
      return users_document(rows);
    case ManagedKind::kClusters:
      return clusters_document(rows);
    case ManagedKind::kQos:
      return qos_document(form, rows);
    case ManagedKind::kTres:
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
    if (listing.entity->what == ManagedKind::kWcKeys && column.title == "WCKeys")
      column.title = "WCKey";
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
    case ManagedKind::kConfiguration:
      return show_configuration(call);
    case ManagedKind::kStatistics:
      return show_statistics(call);
    case ManagedKind::kRunawayJobs:
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
  if (begins_name("list", 3, verb) || begins_name("show", 3, verb))
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
