#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/reservations.pb.h"
#include "shims/views/accounts.h"
#include "shims/views/manager_columns.h"
#include "shims/views/node_view.h"
#include "shims/views/partitions.h"

// What sacctmgr lists: the teams of the configuration and their users as accounts and associations,
// the site's qualities of service, the cluster and what happened to its nodes. Pure.

namespace gpu_platform::shims {

// What the rows are made of.
struct ManagedSite {
  std::vector<AccountShare> shares;  // as shares_of() has them
  Site site;
  std::vector<NodeView> nodes;
};

// Without teams any name is an account.
bool has_teams(const ManagedSite& site);

// The accounts of the site: "root", and the teams below it.
std::vector<ManagedRow> account_rows(const ManagedSite& site);
// One for each account, and one for each user in it. A site without teams has those of a Slurm that
// was just set up: "root", and the user root in it.
std::vector<ManagedRow> association_rows(const ManagedSite& site);
// One for each user.
std::vector<ManagedRow> user_rows(const ManagedSite& site);
std::vector<ManagedRow> cluster_rows(const ManagedSite& site);
std::vector<ManagedRow> qos_rows(const Site& site);
std::vector<ManagedRow> tres_rows();
// The nodes that are drained or down.
std::vector<ManagedRow> event_rows(const std::vector<NodeView>& nodes, base::Instant now);
std::vector<ManagedRow> reservation_rows(const v1::ListReservationsResponse& reservations,
                                         const std::vector<NodeView>& nodes);

// Each row of `wide` with what the row of `narrow` has whose column `title` is the same.
std::vector<ManagedRow> joined_rows(std::vector<ManagedRow> wide,
                                    const std::vector<ManagedRow>& narrow, std::string_view title);

}  // namespace gpu_platform::shims
