#include "shims/views/manager_rows.h"

#include <algorithm>
#include <map>
#include <tuple>

#include <fmt/format.h>

#include "client/answer.h"
#include "shims/steps/step_variables.h"
#include "shims/text/host_list.h"
#include "shims/text/slurm_times.h"
#include "shims/text/slurm_values.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_view.h"

namespace gpu_platform::shims {

namespace {

std::string qos_list(const Site& site, bool is_raw) {
  std::string list;
  for (std::size_t i = 0; i < site.qos.size(); ++i) {
    if (i > 0) list += ",";
    list += is_raw ? fmt::format("{}", i + 1) : site.qos[i].name;
  }
  return list;
}

// The associations of accounts and users, numbered in the order in which they are listed.
class Associations {
 public:
  explicit Associations(const Site& site) : site_(site) {
    AccountShare root;
    root.share.set_shares(1);
    add(kRootAccount, "", "", root);
    add(kRootAccount, kRootAccount, "", root);
  }

  bool has(std::string_view account, std::string_view user) const {
    return std::ranges::any_of(rows_, [&](const ManagedRow& row) {
      return cell_of(row, "Account") == account && cell_of(row, "User") == user;
    });
  }

  void add(std::string_view account, std::string_view user, std::string_view parent,
           const AccountShare& limits) {
    const bool is_account = user.empty();
    const bool is_root = account == kRootAccount && is_account;
    Place above = place_of(is_account ? (parent.empty() ? kRootAccount : parent) : account);
    if (is_root) above = {0, ""};
    const std::string id = fmt::format("{}", rows_.size() + 1);
    const std::string lineage =
        above.lineage +
        (is_account ? (is_root ? "/" : std::string(account) + "/") : fmt::format("0-{}/", user));
    if (is_account) places_[std::string(account)] = {rows_.size() + 1, lineage};
    rows_.push_back({{"Account", std::string(account)},
                     {"User", std::string(user)},
                     {"Cluster", std::string(kCluster)},
                     {"ID", id},
                     {"ParentID", fmt::format("{}", above.id)},
                     {"Lineage", lineage},
                     {"Flags", "None"},
                     {"Share", fmt::format("{}", limits.share.shares())},
                     {"GrpJobs", limits.grp_jobs},
                     {"GrpSubmit", limits.grp_submit},
                     {"GrpTRES", limits.grp_tres},
                     {"GrpTRESMins", limits.grp_tres_mins},
                     {"QOS", qos_list(site_, false)},
                     {"QOS_RAW", qos_list(site_, true)}});
    ManagedRow& row = rows_.back();
    if (is_account && !is_root)
      row["ParentName"] = parent.empty() ? kRootAccount : std::string_view(parent);
    if (qos_named(site_, "normal") != nullptr) row["Def QOS"] = "normal";
  }

  std::vector<ManagedRow> rows() && { return std::move(rows_); }

 private:
  struct Place {
    std::size_t id = 0;
    std::string lineage;
  };
  Place place_of(std::string_view account) const {
    const auto found = places_.find(std::string(account));
    return found == places_.end() ? Place{} : found->second;
  }

  const Site& site_;
  std::vector<ManagedRow> rows_;
  std::map<std::string, Place> places_;
};

// "0" of nothing.
std::string of_nodes(const std::vector<NodeView>& nodes) {
  std::int64_t cpus = 0;
  std::int64_t memory = 0;
  std::int64_t gpus = 0;
  for (const NodeView& node : nodes) {
    cpus += node.cpus;
    memory += node.memory_mib;
    for (const NodeGpus& of_type : node.gpus) gpus += of_type.total;
  }
  return fmt::format(
      "billing={},cpu={},energy=0,fs/disk=0,gres/gpu={},mem={},node={},pages=0,vmem=0", cpus, cpus,
      gpus, slurm_memory(memory * base::kMiB.value()), nodes.size());
}

std::string state_of_event(const NodeView& node) {
  std::string state = upper_case(compact_state(node));
  if (state.starts_with("DRNG") || state.starts_with("DRAIN")) state = "DRAIN";
  return state;
}

}  // namespace

bool has_teams(const ManagedSite& site) {
  return std::ranges::any_of(site.shares,
                             [](const AccountShare& row) { return !row.share.team().empty(); });
}

std::vector<ManagedRow> association_rows(const ManagedSite& site) {
  Associations list(site.site);
  for (const AccountShare& row : site.shares) {
    const v1::Share& share = row.share;
    if (!share.team().empty() && !list.has(share.team(), share.user()))
      list.add(share.team(), share.user(), share.parent(), row);
  }
  return std::move(list).rows();
}

std::vector<ManagedRow> account_rows(const ManagedSite& site) {
  std::vector<ManagedRow> rows;
  for (const ManagedRow& of_all : association_rows(site)) {
    if (!cell_of(of_all, "User").empty()) continue;
    const std::string account = cell_of(of_all, "Account");
    const std::string parent = cell_of(of_all, "ParentName");
    const bool is_root = account == kRootAccount;
    const bool is_below = !parent.empty() && parent != kRootAccount;
    rows.push_back({{"Account", account},
                    {"Descr", is_root ? "default root account" : account},
                    {"Flags", "None"},
                    {"Org", is_below ? parent : account}});
  }
  std::ranges::sort(rows, {}, [](const ManagedRow& row) { return cell_of(row, "Account"); });
  return rows;
}

std::vector<ManagedRow> user_rows(const ManagedSite& site) {
  std::map<std::string, ManagedRow> users;
  for (const ManagedRow& association : association_rows(site)) {
    const std::string user = cell_of(association, "User");
    if (user.empty()) continue;
    users.try_emplace(user, ManagedRow{{"User", user},
                                       {"Def Acct", cell_of(association, "Account")},
                                       {"Admin", user == kRootAccount ? "Administrator" : "None"}});
  }
  std::vector<ManagedRow> rows;
  for (auto& [name, row] : users) rows.push_back(std::move(row));
  return rows;
}

std::vector<ManagedRow> cluster_rows(const ManagedSite& site) {
  std::vector<std::string> names;
  for (const NodeView& node : site.nodes) names.push_back(node.name);
  constexpr std::string_view kProtocolOfSlurm = "10752";  // of 24.11
  ManagedRow row = association_rows(site).front();
  for (const char* title : {"User", "Flags", "ParentName", "Def QOS"}) row.erase(title);
  row["ID"] = "0";
  row["Cluster Nodes"] = host_list(names);
  row["NodeCount"] = fmt::format("{}", names.size());
  row["ControlHost"] = "127.0.0.1";
  row["ControlPort"] = "0";
  row["RPC"] = kProtocolOfSlurm;
  row["FedState"] = "NA";
  row["FedStateRaw"] = "0";
  row["Flags"] = "None";
  row["TRES"] = of_nodes(site.nodes);
  return {row};
}

std::vector<ManagedRow> qos_rows(const Site& site) {
  constexpr std::string_view kClasses[] = {"LOW", "MEDIUM", "HIGH", "CRITICAL"};
  std::vector<ManagedRow> rows;
  for (const Qos& qos : site.qos) {
    const auto rank = std::ranges::find(kClasses, std::string_view(qos.priority)) - kClasses;
    ManagedRow row{{"Name", qos.name},
                   {"Descr", qos.name == "normal" ? "Normal QOS default" : qos.name},
                   {"ID", fmt::format("{}", rows.size() + 1)},
                   {"Priority", fmt::format("{}", rank % 4 * 1000)},
                   {"GraceTime", "00:00:00"},
                   {"PreemptMode", "cluster"},
                   {"UsageFactor", "1.000000"}};
    if (qos.max_time) row["MaxWall"] = long_elapsed(*qos.max_time);
    if (qos.max_gpus) row["MaxTRES"] = fmt::format("gres/gpu={}", *qos.max_gpus);
    // A job beyond a limit is refused at its submission.
    if (qos.max_time || qos.max_gpus) row["Flags"] = "DenyOnLimit";
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ManagedRow> tres_rows() {
  constexpr std::tuple<std::string_view, std::string_view, std::string_view> kAll[] = {
      {"cpu", "", "1"},  {"mem", "", "2"},     {"energy", "", "3"},
      {"node", "", "4"}, {"billing", "", "5"}, {"fs", "disk", "6"},
      {"vmem", "", "7"}, {"pages", "", "8"},   {"gres", "gpu", "1001"}};
  std::vector<ManagedRow> rows;
  for (const auto& [type, name, id] : kAll)
    rows.push_back(
        {{"Type", std::string(type)}, {"Name", std::string(name)}, {"ID", std::string(id)}});
  return rows;
}

std::vector<ManagedRow> event_rows(const std::vector<NodeView>& nodes, base::Instant now) {
  std::vector<ManagedRow> rows;
  for (const NodeView& node : nodes) {
    const bool is_away = node.is_draining || node.is_silent || node.base_state == "down";
    if (!is_away) continue;
    ManagedRow row{{"Cluster", std::string(kCluster)},
                   {"NodeName", node.name},
                   {"Event", "Node"},
                   {"EventRaw", "2"},
                   {"State", state_of_event(node)},
                   {"Reason", node.reason},
                   {"CPU Cnt", fmt::format("{}", node.cpus)},
                   {"TRES", trackable_of(node)}};
    if (node.reason_at) {
      row["TimeStart"] = slurm_time(node.reason_at, "Unknown");
      row["Duration"] = long_elapsed(now - *node.reason_at);
    }
    const std::string user = node.reason_user.empty() ? "root" : node.reason_user;
    row["User"] = fmt::format("{}({})", user, user_number(user));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<ManagedRow> reservation_rows(const v1::ListReservationsResponse& reservations,
                                         const std::vector<NodeView>& nodes) {
  std::vector<ManagedRow> rows;
  for (const v1::Reservation& reservation : reservations.reservations()) {
    std::int64_t cpus = 0;
    for (const v1::ReservedNode& part : reservation.nodes()) {
      const auto node = std::ranges::find(nodes, part.node(), &NodeView::name);
      if (node != nodes.end() && part.whole_node()) cpus += node->cpus;
    }
    const auto gpus = reservation.gpu_count();
    rows.push_back({{"Cluster", std::string(kCluster)},
                    {"Name", reservation.name()},
                    {"ID", fmt::format("{}", rows.size() + 1)},
                    {"NodeName", nodes_of_reservation(reservation)},
                    {"Flags", "SPEC_NODES"},
                    {"TRES", fmt::format("cpu={}", cpus) +
                                 (gpus > 0 ? fmt::format(",gres/gpu={}", gpus) : "")},
                    {"TimeStart", slurm_time(client::time_of(reservation.begin()), "Unknown")},
                    {"TimeEnd", slurm_time(client::time_of(reservation.end()), "Unknown")},
                    {"UnusedWall", "0.000000"}});
  }
  return rows;
}

std::vector<ManagedRow> joined_rows(std::vector<ManagedRow> wide,
                                    const std::vector<ManagedRow>& narrow, std::string_view title) {
  for (ManagedRow& row : wide) {
    const auto found = std::ranges::find_if(narrow, [&](const ManagedRow& other) {
      return cell_of(other, title) == cell_of(row, title);
    });
    if (found == narrow.end()) continue;
    for (const auto& [name, value] : *found) row.try_emplace(name, value);
  }
  return wide;
}

}  // namespace gpu_platform::shims
