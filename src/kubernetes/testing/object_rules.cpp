#include "kubernetes/testing/object_rules.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "kubernetes/testing/json_access.h"
#include "model/job_spec.h"

namespace gpu_platform::kubernetes {

namespace {

constexpr std::size_t kMaxNameLength = 253;

// What may change in a pod's spec at any time. Images and tolerations may, too, within limits that
// the platform does not meet.
constexpr std::array kChangeablePodFields = {"schedulingGates", "activeDeadlineSeconds",
                                             "terminationGracePeriodSeconds", "tolerations"};
// What may change as long as a pod has a gate.
constexpr std::array kChangeableGatedFields = {"nodeSelector", "affinity"};

bool is_pod_path(const ApiPath& path) {
  return path.group.empty() && path.resource == "pods";
}

bool is_claim_path(const ApiPath& path) {
  return path.group == "resource.k8s.io" && path.resource == "resourceclaims";
}

std::string compact(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ApiAnswer invalid_object(const ApiPath& path, std::string_view kind, const std::string& name,
                         const std::string& why) {
  return error_answer(
      {.code = 422,
       .message = fmt::format("{} \"{}\" is invalid: {}", path.qualified_kind(kind), name, why),
       .name = name,
       .kind = std::string(kind)});
}

// A subdomain as DNS has it.
bool is_object_name(const std::string& name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > kMaxNameLength) return false;
  if (!is_alphanumeric(name.front()) || !is_alphanumeric(name.back())) return false;
  return std::ranges::all_of(name,
                             [&](char c) { return is_alphanumeric(c) || c == '-' || c == '.'; });
}

std::set<std::string> names_of(const nlohmann::json& list) {
  std::set<std::string> names;
  for (const auto& item : list) names.insert(text_at(item, "/name"));
  return names;
}

std::string new_gate(const nlohmann::json& before, const nlohmann::json& after) {
  const std::set<std::string> old = names_of(value_at(before, "/spec/schedulingGates"));
  for (const std::string& gate : names_of(value_at(after, "/spec/schedulingGates"))) {
    if (!old.contains(gate)) return gate;
  }
  return {};
}

std::string refuse_pod_change(const nlohmann::json& before, const nlohmann::json& after) {
  if (const std::string gate = new_gate(before, after); !gate.empty()) {
    return fmt::format(
        "spec.schedulingGates: Forbidden: only deletion is allowed, but found new scheduling gate "
        "'{}'",
        gate);
  }
  nlohmann::json old = value_at(before, "/spec");
  nlohmann::json changed = value_at(after, "/spec");
  const bool is_gated = !is_empty_at(before, "/spec/schedulingGates");
  for (nlohmann::json* spec : {&old, &changed}) {
    if (!spec->is_object()) continue;
    for (const char* field : kChangeablePodFields) spec->erase(field);
    if (!is_gated) continue;
    for (const char* field : kChangeableGatedFields) spec->erase(field);
  }
  if (old == changed) return {};
  return "spec: Forbidden: pod updates may not change fields other than "
         "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"
         "`spec.tolerations` (only additions to existing tolerations)";
}

std::string refuse_claim_change(const nlohmann::json& before, const nlohmann::json& after) {
  if (value_at(before, "/spec") != value_at(after, "/spec")) {
    return fmt::format("spec: Invalid value: {}: field is immutable",
                       compact(value_at(after, "/spec")));
  }
  const nlohmann::json& old = value_at(before, "/status/allocation");
  const nlohmann::json& changed = value_at(after, "/status/allocation");
  if (!old.is_null() && !changed.is_null() && old != changed) {
    return fmt::format("status.allocation: Invalid value: {}: field is immutable",
                       compact(changed));
  }
  if (changed.is_null() && !is_empty_at(after, "/status/reservedFor")) {
    return "status.reservedFor: Forbidden: may not be specified when `allocated` is not set";
  }
  return {};
}

// A finalizer that an object gets although it is being deleted.
std::string late_finalizer(const nlohmann::json& before, const nlohmann::json& after) {
  if (value_at(before, "/metadata/deletionTimestamp").is_null()) return {};
  const nlohmann::json& old = value_at(before, "/metadata/finalizers");
  for (const auto& finalizer : value_at(after, "/metadata/finalizers")) {
    if (std::find(old.begin(), old.end(), finalizer) == old.end()) return compact(finalizer);
  }
  return {};
}

void set_default(nlohmann::json& object, const char* key, nlohmann::json value) {
  if (!object.contains(key)) object[key] = std::move(value);
}

void complete_pod(nlohmann::json& pod, const std::string& now) {
  nlohmann::json& spec = pod["spec"];
  set_default(spec, "restartPolicy", "Always");
  set_default(spec, "schedulerName", "default-scheduler");
  set_default(spec, "terminationGracePeriodSeconds", 30);
  pod["status"] = {{"phase", "Pending"}};
  if (is_empty_at(pod, "/spec/schedulingGates")) return;
  set_condition(pod,
                {.type = "PodScheduled",
                 .status = "False",
                 .reason = "SchedulingGated",
                 .message = "Scheduling is blocked due to non-empty scheduling gates"},
                now);
}

}  // namespace

bool has_status_subresource(const ApiPath& path) {
  static const std::set<std::pair<std::string_view, std::string_view>> kResources = {
      {"", "pods"},     {"", "nodes"},     {"", "namespaces"},
      {"", "services"}, {"batch", "jobs"}, {"resource.k8s.io", "resourceclaims"},
  };
  return kResources.contains({path.group, path.resource});
}

std::optional<ApiAnswer> refuse_new(const ApiPath& path, std::string_view kind,
                                    const nlohmann::json& object) {
  const std::string name = text_at(object, "/metadata/name");
  if (name.empty()) {
    return invalid_object(path, kind, name,
                          "metadata.name: Required value: name or generateName is required");
  }
  if (!is_object_name(name)) {
    return invalid_object(
        path, kind, name,
        fmt::format("metadata.name: Invalid value: \"{}\": a lowercase RFC 1123 subdomain must "
                    "consist of lower case alphanumeric characters, '-' or '.', and must start and "
                    "end with an alphanumeric character",
                    name));
  }
  const std::string in_body = text_at(object, "/metadata/namespace");
  if (!in_body.empty() && in_body != path.namespace_name) {
    return error_answer({.code = 400,
                         .message = "the namespace of the provided object does not match the "
                                    "namespace sent on the request"});
  }
  if (!is_pod_path(path)) return std::nullopt;
  if (is_empty_at(object, "/spec/containers")) {
    return invalid_object(path, kind, name, "spec.containers: Required value");
  }
  if (!is_empty_at(object, "/spec/nodeName") && !is_empty_at(object, "/spec/schedulingGates")) {
    return invalid_object(path, kind, name,
                          "spec.nodeName: Forbidden: cannot be set until all schedulingGates have "
                          "been cleared");
  }
  return std::nullopt;
}

void complete_new(const ApiPath& path, nlohmann::json& object, const std::string& now) {
  if (is_pod_path(path)) {
    complete_pod(object, now);
  } else if (is_claim_path(path)) {
    object["status"] = nlohmann::json::object();
  } else if (path.group.empty() && path.resource == "namespaces") {
    object["status"] = {{"phase", "Active"}};
  }
}

std::optional<ApiAnswer> refuse_change(const ApiPath& path, std::string_view kind,
                                       const nlohmann::json& before, const nlohmann::json& after) {
  const std::string name = text_at(before, "/metadata/name");
  if (const std::string finalizer = late_finalizer(before, after); !finalizer.empty()) {
    return invalid_object(path, kind, name,
                          fmt::format("metadata.finalizers: Forbidden: no new finalizers can be "
                                      "added if the object is being deleted, found new finalizers "
                                      "[]string{{{}}}",
                                      finalizer));
  }
  const std::string why = is_pod_path(path)     ? refuse_pod_change(before, after)
                          : is_claim_path(path) ? refuse_claim_change(before, after)
                                                : std::string();
  if (why.empty()) return std::nullopt;
  return invalid_object(path, kind, name, why);
}

bool is_pod_over(const nlohmann::json& pod) {
  const std::string phase = text_at(pod, "/status/phase");
  return phase == "Succeeded" || phase == "Failed";
}

void set_condition(nlohmann::json& object, const Condition& condition, const std::string& now) {
  nlohmann::json wanted = {{"type", condition.type}, {"status", condition.status}};
  if (!condition.reason.empty()) wanted["reason"] = condition.reason;
  if (!condition.message.empty()) wanted["message"] = condition.message;
  nlohmann::json& conditions = object["status"]["conditions"];
  if (!conditions.is_array()) conditions = nlohmann::json::array();
  auto place = std::find_if(conditions.begin(), conditions.end(), [&](const nlohmann::json& other) {
    return text_at(other, "/type") == condition.type;
  });
  if (place == conditions.end()) {
    conditions.push_back(nullptr);
    place = conditions.end() - 1;
  } else {
    nlohmann::json old = *place;
    old.erase("lastTransitionTime");
    if (old == wanted) return;
  }
  wanted["lastTransitionTime"] = now;
  *place = std::move(wanted);
}

}  // namespace gpu_platform::kubernetes
