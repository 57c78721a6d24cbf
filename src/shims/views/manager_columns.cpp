#include "shims/views/manager_columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "cli/text/text.h"
#include "shims/text/columns.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

// The first of them that a word may stand for counts.
constexpr ManagerColumn kColumns[] = {
    {"Account", 3, "Account", 10},
    {"Acct", 3, "Account", 10},
    {"ActionRaw", 7, "ActionRaw", 10},
    {"Action", 4, "Action", 20},
    {"Actor", 4, "Actor", 10},
    {"AdminLevel", 2, "Admin", 9},
    {"Allocated", 7, "Allocated", 9},
    {"Allowed", 2, "Allowed", 8},
    {"Associations", 2, "Assocs", 10},
    {"Classification", 3, "Class", 9},
    {"Cluster", 2, "Cluster", 10},
    {"ClusterNodes", 8, "Cluster Nodes", 20},
    {"Clusters", 2, "Cluster", 10},
    {"Coordinators", 3, "Coord Accounts", 20},
    {"ControlHost", 8, "ControlHost", 15},
    {"ControlPort", 8, "ControlPort", 12},
    {"Count", 3, "Count", 6},
    {"CountAllowed", 6, "# Allowed", 10},
    {"CountUsed", 6, "# Used", 10},
    {"CPUCount", 2, "CPU Cnt", 7},
    {"DefaultAccount", 8, "Def Acct", 10},
    {"DefaultQOS", 8, "Def QOS", 9},
    {"DefaultWCKey", 8, "Def WCKey", 10},
    {"Description", 3, "Descr", 20},
    {"Duration", 2, "Duration", 13},
    {"End", 2, "TimeEnd", 19},
    {"EventRaw", 6, "EventRaw", 8},
    {"Event", 2, "Event", 7},
    {"Extra", 2, "Extra", 20},
    {"Fairshare", 2, "Share", 9},
    {"Features", 3, "Features", 20},
    {"Federation", 3, "Federation", 10},
    {"FedState", 4, "FedState", 12},
    {"FedStateRaw", 9, "FedStateRaw", 11},
    {"Flags", 2, "Flags", 20},
    {"GraceTime", 3, "GraceTime", 10},
    {"GrpCPUs", 6, "GrpCPUs", 8},
    {"GrpCPUMins", 7, "GrpCPUMins", 11},
    {"GrpCPURunMins", 7, "GrpCPURunMins", 13},
    {"GrpTRES", 7, "GrpTRES", 13},
    {"GrpTRESMins", 8, "GrpTRESMins", 13},
    {"GrpTRESRunMins", 8, "GrpTRESRunMins", 13},
    {"GrpJobs", 4, "GrpJobs", 7},
    {"GrpJobsAccrue", 8, "GrpJobsAccrue", 13},
    {"GrpMemory", 4, "GrpMem", 7},
    {"GrpNodes", 4, "GrpNodes", 8},
    {"GrpSubmit", 4, "GrpSubmit", 9},
    {"GrpSubmitJobs", 4, "GrpSubmit", 9},
    {"GrpWall", 4, "GrpWall", 11},
    {"ID", 2, "ID", 6},
    {"Info", 3, "Info", 20},
    {"InstanceId", 9, "InstanceId", 20},
    {"InstanceType", 9, "InstanceType", 20},
    {"LastConsumed", 8, "LastConsumed", 12},
    {"RGT", 2, "RGT", 6},
    {"LimitFactor", 6, "LimitFactor", 11},
    {"Lineage", 1, "Lineage", 20},
    {"MaxCPUMinsPerJob", 7, "MaxCPUMins", 11},
    {"MaxCPURunMinsPerUser", 7, "MaxCPURunMinsPU", 15},
    {"MaxCPUsPerJob", 7, "MaxCPUs", 8},
    {"MaxCPUsPerUser", 11, "MaxCPUsPU", 9},
    {"MaxTRES", 7, "MaxTRES", 13},
    {"MaxTRESPJ", 9, "MaxTRES", 13},
    {"MaxTRESPerJob", 11, "MaxTRES", 13},
    {"MaxTRESPerNode", 11, "MaxTRESPerNode", 14},
    {"MaxTRESPN", 9, "MaxTRESPerNode", 14},
    {"MaxTRESMins", 8, "MaxTRESMins", 13},
    {"MaxTRESMinsPJ", 8, "MaxTRESMins", 13},
    {"MaxTRESMinsPerJob", 8, "MaxTRESMins", 13},
    {"MaxTRESRunMinsPerAccount", 18, "MaxTRESRunMinsPA", 16},
    {"MaxTRESRunMinsPerAcct", 18, "MaxTRESRunMinsPA", 16},
    {"MaxTRESRunMinsPA", 15, "MaxTRESRunMinsPA", 16},
    {"MaxTRESRunMinsPerUser", 8, "MaxTRESRunMinsPU", 16},
    {"MaxTRESRunMinsPU", 8, "MaxTRESRunMinsPU", 16},
    {"MaxTRESPerAccount", 11, "MaxTRESPA", 13},
    {"MaxTRESPerAcct", 11, "MaxTRESPA", 13},
    {"MaxTRESPA", 9, "MaxTRESPA", 13},
    {"MaxTRESPerUser", 11, "MaxTRESPU", 13},
    {"MaxTRESPU", 9, "MaxTRESPU", 13},
    {"MaxJobs", 4, "MaxJobs", 7},
    {"MaxJobsPerAccount", 11, "MaxJobsPA", 9},
    {"MaxJobsPerAcct", 11, "MaxJobsPA", 9},
    {"MaxJobsPA", 9, "MaxJobsPA", 9},
    {"MaxJobsPerUser", 11, "MaxJobsPU", 9},
    {"MaxJobsPU", 9, "MaxJobsPU", 9},
    {"MaxJobsAccrue", 8, "MaxJobsAccrue", 13},
    {"MaxJobsAccruePerAccount", 17, "MaxJobsAccruePA", 15},
    {"MaxJobsAccruePerAcct", 17, "MaxJobsAccruePA", 15},
    {"MaxJobsAccruePA", 15, "MaxJobsAccruePA", 15},
    {"MaxJobsAccruePerUser", 17, "MaxJobsAccruePU", 15},
    {"MaxJobsAccruePU", 15, "MaxJobsAccruePU", 15},
    {"MaxNodesPerJob", 4, "MaxNodes", 8},
    {"MaxNodes", 4, "MaxNodes", 8},
    {"MaxNodesPerUser", 12, "MaxNodesPU", 10},
    {"MaxNodesPU", 10, "MaxNodesPU", 10},
    {"MaxSubmit", 4, "MaxSubmit", 9},
    {"MaxSubmitJobs", 4, "MaxSubmit", 9},
    {"MaxSubmitJobsPerAccount", 17, "MaxSubmitPA", 11},
    {"MaxSubmitJobsPerAcct", 17, "MaxSubmitPA", 11},
    {"MaxSubmitJobsPA", 15, "MaxSubmitPA", 11},
    {"MaxSubmitPA", 11, "MaxSubmitPA", 11},
    {"MaxSubmitJobsPerUser", 14, "MaxSubmitPU", 11},
    {"MaxSubmitJobsPU", 14, "MaxSubmitPU", 11},
    {"MaxSubmitPU", 10, "MaxSubmitPU", 11},
    {"MaxWall", 4, "MaxWall", 11},
    {"MaxWallDurationPerJob", 4, "MaxWall", 11},
    {"MinCPUsPerJob", 7, "MinCPUs", 8},
    {"MinPrioThreshold", 4, "MinPrioThres", 12},
    {"MinTRES", 7, "MinTRES", 13},
    {"MinTRESPerJob", 7, "MinTRES", 13},
    {"Name", 2, "Name", 10},
    {"NodeCount", 5, "NodeCount", 9},
    {"NodeNames", 5, "NodeName", -15},
    {"NodeInx", 5, "NodeInx", 9},
    {"Organization", 1, "Org", 20},
    {"ParentID", 7, "ParentID", 8},
    {"ParentName", 7, "ParentName", 10},
    {"Partition", 4, "Partition", 10},
    {"PreemptMode", 8, "PreemptMode", 11},
    {"PreemptExemptTime", 8, "PreemptExemptTime", 19},
    {"Preempt", 7, "Preempt", 10},
    {"Priority", 3, "Priority", 10},
    {"Problem", 1, "Problem", 40},
    {"QOS", 3, "QOS", 20},
    {"QOSLevel", 3, "QOS", 20},
    {"QOSRAWLevel", 4, "QOS_RAW", 10},
    {"QosRaw", 4, "QOS_RAW", 10},
    {"Reason", 1, "Reason", 30},
    {"RPC", 2, "RPC", 5},
    {"Server", 3, "Server", 10},
    {"ServerType", 10, "ServerType", 10},
    {"Share", 1, "Share", 9},
    {"StateRaw", 6, "StateRaw", 8},
    {"State", 2, "State", 6},
    {"Start", 4, "TimeStart", 19},
    {"Time", 2, "Time", 19},
    {"TimeStamp", 2, "Time", 19},
    {"TimeStart", 8, "TimeStart", 19},
    {"TimeEnd", 6, "TimeEnd", 19},
    {"TimeEligible", 6, "TimeEligible", 19},
    {"TimeSubmit", 6, "TimeSubmit", 19},
    {"TRES", 2, "TRES", 20},
    {"Type", 2, "Type", 8},
    {"UnusedWall", 2, "UnusedWall", 10},
    {"UsageFactor", 6, "UsageFactor", 11},
    {"UsageThreshold", 6, "UsageThres", 10},
    {"User", 1, "User", 10},
    {"WCKeys", 2, "WCKeys", 20},
    {"WCKey", 2, "WCKeys", 20},
    {"Where", 2, "Where", 20},
    {"MaxCPUsPU", 9, "MaxCPUsPU", 9},
};

constexpr int kWidestColumn = 4096;

// "Preempt" of "preempt", which is also the beginning of another name, is that itself.
const ManagerColumn* column_named(std::string_view name) {
  const std::string word = lower_case(name);
  const auto found = std::ranges::find_if(kColumns, [&](const ManagerColumn& column) {
    return word.size() >= column.least && lower_case(column.name).starts_with(word);
  });
  return found == std::end(kColumns) ? nullptr : &*found;
}

ColumnSpec spec_of(const ChosenColumn& column) {
  ColumnSpec spec;
  spec.width = static_cast<std::size_t>(std::abs(column.width));
  spec.is_right = column.width > 0;
  return spec;
}

}  // namespace

std::span<const ManagerColumn> manager_columns() {
  return kColumns;
}

base::Result<std::vector<ChosenColumn>> chosen_columns(std::string_view format) {
  std::vector<ChosenColumn> columns;
  for (const std::string& item : comma_separated(format)) {
    const std::size_t percent = std::min(item.find('%'), item.size());
    const ManagerColumn* column = column_named(std::string_view(item).substr(0, percent));
    if (column == nullptr || percent == 0)
      return base::invalid({}, fmt::format("Unknown field '{}'", lower_case(item)));
    int width = 0;
    std::from_chars(item.data() + std::min(percent + 1, item.size()), item.data() + item.size(),
                    width);
    if (width == 0) width = column->width;
    columns.push_back({column->title, std::clamp(width, -kWidestColumn, kWidestColumn)});
  }
  if (columns.empty()) return base::invalid({}, "Unknown field ''");
  return columns;
}

std::string cell_of(const ManagedRow& row, std::string_view title) {
  const auto found = row.find(title);
  if (found != row.end()) return found->second;
  constexpr std::string_view kTimes[] = {"Time", "TimeStart", "TimeEnd", "TimeEligible",
                                         "TimeSubmit"};
  return std::ranges::find(kTimes, title) == std::end(kTimes) ? "" : "Unknown";
}

std::string managed_table(const std::vector<ChosenColumn>& columns,
                          const std::vector<ManagedRow>& rows, const TableStyle& style) {
  std::string text;
  const auto add_line = [&](bool marks_cuts, auto&& value_in) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (!style.delimiter.empty()) {
        if (i > 0) text += style.delimiter;
        text += cli::harmless(value_in(columns[i]));
        continue;
      }
      ColumnSpec spec = spec_of(columns[i]);
      spec.marks_cuts = marks_cuts;
      text += in_column(spec, value_in(columns[i])) + " ";
    }
    text += style.ends_with_delimiter ? style.delimiter + "\n" : "\n";
  };
  if (style.has_header) {
    add_line(false, [](const ChosenColumn& column) { return std::string(column.title); });
    if (style.delimiter.empty()) {
      add_line(false, [](const ChosenColumn& column) {
        return std::string(static_cast<std::size_t>(std::abs(column.width)), '-');
      });
    }
  }
  for (const ManagedRow& row : rows)
    add_line(true, [&](const ChosenColumn& column) { return cell_of(row, column.title); });
  return text;
}

}  // namespace gpu_platform::shims
