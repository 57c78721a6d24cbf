#include "shims/documents/manager_json.h"

#include <charconv>

#include "shims/documents/slurm_json_parts.h"
#include "shims/text/slurm_values.h"

namespace gpu_platform::shims {

namespace {

using cli::Json;

// What has no value has no limit.
Json limit_of(const ManagedRow& row, std::string_view title) {
  const std::string value = cell_of(row, title);
  return value.empty() ? infinite_number() : set_number(number_of_document(value));
}

Json counted_in(const ManagedRow& row, std::string_view title) {
  return tres_of_document(cell_of(row, title));
}

// "04:00:00" in minutes.
Json minutes_of(const ManagedRow& row, std::string_view title) {
  const std::string value = cell_of(row, title);
  const auto limit = parse_time_limit(value);
  const bool is_limited = !value.empty() && limit && limit->has_value();
  return is_limited ? set_number(base::whole_milliseconds(**limit) / 60'000) : infinite_number();
}

Json fraction_of(const ManagedRow& row, std::string_view title) {
  const std::string value = cell_of(row, title);
  double number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return {{"set", !value.empty()}, {"infinite", value.empty()}, {"number", number}};
}

Json names_in(const ManagedRow& row, std::string_view title) {
  return comma_separated(cell_of(row, title));
}

Json place_of_association(const ManagedRow& row) {
  return {{"account", cell_of(row, "Account")},
          {"cluster", cell_of(row, "Cluster")},
          {"partition", ""},
          {"user", cell_of(row, "User")},
          {"id", number_of_document(cell_of(row, "ID"))}};
}

Json limits_of_association(const ManagedRow& row) {
  return {{"jobs",
           {{"per",
             {{"count", limit_of(row, "GrpJobs")},
              {"accruing", infinite_number()},
              {"submitted", limit_of(row, "GrpSubmit")},
              {"wall_clock", infinite_number()}}},
            {"active", limit_of(row, "MaxJobs")},
            {"accruing", infinite_number()},
            {"total", limit_of(row, "MaxSubmit")}}},
          {"tres",
           {{"total", counted_in(row, "GrpTRES")},
            {"group", {{"minutes", counted_in(row, "GrpTRESMins")}, {"active", Json::array()}}},
            {"minutes", {{"total", Json::array()}, {"per", {{"job", Json::array()}}}}},
            {"per", {{"job", counted_in(row, "MaxTRES")}, {"node", Json::array()}}}}},
          {"per", {{"account", {{"wall_clock", infinite_number()}}}}}};
}

Json both(std::string_view first, Json one, std::string_view second, Json other) {
  Json object;
  object[std::string(first)] = std::move(one);
  object[std::string(second)] = std::move(other);
  return object;
}

Json limits_of_qos(DocumentForm form, const ManagedRow& row) {
  const bool is_newest = form >= DocumentForm::k42;
  Json jobs;
  if (is_newest) jobs["count"] = infinite_number();
  jobs["active_jobs"]["per"] =
      both("account", limit_of(row, "MaxJobsPA"), "user", limit_of(row, "MaxJobsPU"));
  jobs["per"] = both("account", limit_of(row, "MaxSubmitPA"), "user", limit_of(row, "MaxSubmitPU"));
  Json minutes;
  if (is_newest) minutes["total"] = counted_in(row, "GrpTRESMins");
  minutes["per"] = {{"qos", Json::array()},
                    {"job", counted_in(row, "MaxTRESMins")},
                    {"account", Json::array()},
                    {"user", Json::array()}};
  Json most;
  most["active_jobs"] = both("accruing", infinite_number(), "count", limit_of(row, "GrpJobs"));
  most["jobs"] = jobs;
  most["tres"] = {{"total", counted_in(row, "GrpTRES")},
                  {"minutes", minutes},
                  {"per",
                   {{"account", counted_in(row, "MaxTRESPA")},
                    {"job", counted_in(row, "MaxTRES")},
                    {"node", counted_in(row, "MaxTRESPerNode")},
                    {"user", counted_in(row, "MaxTRESPU")}}}};
  most["wall_clock"]["per"] = both("qos", infinite_number(), "job", minutes_of(row, "MaxWall"));
  most["accruing"]["per"] = both("account", infinite_number(), "user", infinite_number());
  return {{"grace_time", 0},
          {"max", most},
          {"factor", fraction_of(row, "LimitFactor")},
          {"min",
           {{"priority_threshold", infinite_number()},
            {"tres", {{"per", {{"job", counted_in(row, "MinTRES")}}}}}}}};
}

Json list_of_rows(std::string_view name) {
  Json document;
  document[std::string(name)] = Json::array();
  return document;
}

}  // namespace

Json accounts_document(const std::vector<ManagedRow>& rows) {
  Json document = list_of_rows("accounts");
  for (const ManagedRow& row : rows) {
    document["accounts"].push_back({{"associations", Json::array()},
                                    {"coordinators", Json::array()},
                                    {"description", cell_of(row, "Descr")},
                                    {"name", cell_of(row, "Account")},
                                    {"organization", cell_of(row, "Org")},
                                    {"flags", Json::array()}});
  }
  return document;
}

Json associations_document(DocumentForm form, const std::vector<ManagedRow>& rows) {
  Json document = list_of_rows("associations");
  for (const ManagedRow& row : rows) {
    const Json place = place_of_association(row);
    document["associations"].push_back({{"accounting", Json::array()},
                                        {"account", cell_of(row, "Account")},
                                        {"cluster", cell_of(row, "Cluster")},
                                        {"comment", ""},
                                        {"default", {{"qos", cell_of(row, "Def QOS")}}},
                                        {"flags", Json::array()},
                                        {"max", limits_of_association(row)},
                                        {"id", form >= DocumentForm::k41 ? place["id"] : place},
                                        {"is_default", !cell_of(row, "User").empty()},
                                        {"lineage", cell_of(row, "Lineage")},
                                        {"min", {{"priority_threshold", infinite_number()}}},
                                        {"parent_account", cell_of(row, "ParentName")},
                                        {"partition", ""},
                                        {"priority", limit_of(row, "Priority")},
                                        {"qos", names_in(row, "QOS")},
                                        {"shares_raw", number_of_document(cell_of(row, "Share"))},
                                        {"user", cell_of(row, "User")}});
  }
  return document;
}

Json users_document(const std::vector<ManagedRow>& rows) {
  Json document = list_of_rows("users");
  for (const ManagedRow& row : rows) {
    document["users"].push_back(
        {{"administrator_level", Json::array({cell_of(row, "Admin")})},
         {"associations", Json::array()},
         {"coordinators", Json::array()},
         {"default", both("account", cell_of(row, "Def Acct"), "wckey", "")},
         {"flags", Json::array({"NONE"})},
         {"name", cell_of(row, "User")},
         {"old_name", ""},
         {"wckeys", Json::array()}});
  }
  return document;
}

Json clusters_document(const std::vector<ManagedRow>& rows) {
  Json document = list_of_rows("clusters");
  for (const ManagedRow& row : rows) {
    Json root = place_of_association(row);
    root["id"] = 1;
    document["clusters"].push_back(
        {{"controller", both("host", cell_of(row, "ControlHost"), "port",
                             number_of_document(cell_of(row, "ControlPort")))},
         {"flags", Json::array()},
         {"name", cell_of(row, "Cluster")},
         {"nodes", cell_of(row, "Cluster Nodes")},
         {"select_plugin", ""},
         {"associations", {{"root", root}}},
         {"rpc_version", number_of_document(cell_of(row, "RPC"))},
         {"tres", counted_in(row, "TRES")}});
  }
  return document;
}

Json qos_document(DocumentForm form, const std::vector<ManagedRow>& rows) {
  Json document = list_of_rows("qos");
  for (const ManagedRow& row : rows) {
    const bool denies = cell_of(row, "Flags") == "DenyOnLimit";
    document["qos"].push_back({{"description", cell_of(row, "Descr")},
                               {"flags", denies ? Json::array({"DENY_LIMIT"}) : Json::array()},
                               {"id", number_of_document(cell_of(row, "ID"))},
                               {"limits", limits_of_qos(form, row)},
                               {"name", cell_of(row, "Name")},
                               {"preempt",
                                {{"list", names_in(row, "Preempt")},
                                 {"mode", Json::array({"DISABLED"})},
                                 {"exempt_time", infinite_number()}}},
                               {"priority", limit_of(row, "Priority")},
                               {"usage_factor", fraction_of(row, "UsageFactor")},
                               {"usage_threshold", fraction_of(row, "UsageThres")}});
  }
  return document;
}

Json tres_document(const std::vector<ManagedRow>& rows) {
  Json document = list_of_rows("TRES");
  for (const ManagedRow& row : rows) {
    document["TRES"].push_back({{"type", cell_of(row, "Type")},
                                {"name", cell_of(row, "Name")},
                                {"id", number_of_document(cell_of(row, "ID"))},
                                {"count", 0}});
  }
  return document;
}

}  // namespace gpu_platform::shims
