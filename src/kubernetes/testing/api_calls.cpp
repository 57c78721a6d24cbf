#include "kubernetes/testing/api_calls.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "kubernetes/testing/json_access.h"
#include "kubernetes/testing/object_rules.h"
#include "kubernetes/testing/selection.h"

namespace gpu_platform::kubernetes {

namespace {

using nlohmann::json;

struct KnownKind {
  std::string_view resource;
  std::string_view kind;
};
// Those whose kind is not the resource without its "s", with a capital letter.
constexpr std::array kKinds = {KnownKind{"resourceclaims", "ResourceClaim"},
                               KnownKind{"resourceclaimtemplates", "ResourceClaimTemplate"},
                               KnownKind{"resourceslices", "ResourceSlice"},
                               KnownKind{"deviceclasses", "DeviceClass"},
                               KnownKind{"devicetaintrules", "DeviceTaintRule"},
                               KnownKind{"configmaps", "ConfigMap"},
                               KnownKind{"serviceaccounts", "ServiceAccount"},
                               KnownKind{"priorityclasses", "PriorityClass"},
                               KnownKind{"networkpolicies", "NetworkPolicy"}};

constexpr std::string_view kModified =
    "the object has been modified; please apply your changes to the latest version and try again";

json parse_body(const ApiRequest& request) {
  if (request.body.empty()) return json::object();
  return json::parse(request.body, nullptr, false);
}

ApiAnswer bad_request(std::string message) {
  return error_answer({.code = 400, .message = std::move(message)});
}

ApiAnswer unknown_path() {
  return error_answer({.code = 404, .message = "the server could not find the requested resource"});
}

std::uint64_t number_of(const std::string& text, std::uint64_t otherwise) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : otherwise;
}

// The place where a list goes on: the version that its first page had, and the last object told.
struct ContinueToken {
  std::uint64_t version = 0;
  std::string namespace_name;
  std::string name;

  std::string text() const { return fmt::format("{}|{}|{}", version, namespace_name, name); }
};

std::optional<ContinueToken> parse_continue(const std::string& text) {
  const std::size_t first = text.find('|');
  const std::size_t second = first == std::string::npos ? first : text.find('|', first + 1);
  if (second == std::string::npos) return std::nullopt;
  return ContinueToken{.version = number_of(text.substr(0, first), 0),
                       .namespace_name = text.substr(first + 1, second - first - 1),
                       .name = text.substr(second + 1)};
}

ApiAnswer expired_continue(ContinueToken token, std::uint64_t version) {
  json status = status_object(
      {.code = 410,
       .message = "The provided continue parameter is too old to display a consistent list "
                  "result. You can start a new list without the continue parameter, or use the "
                  "continue token in this response to retrieve the remainder of the results."});
  token.version = version;
  status["metadata"]["continue"] = token.text();
  return json_answer(410, status);
}

// Of lists, a strategic merge patch knows conditions, which are merged by their types.
void merge_conditions(const json& before, const json& patch, json& after) {
  const json& changed = value_at(patch, "/status/conditions");
  if (!changed.is_array()) return;
  json merged = value_at(before, "/status/conditions");
  if (!merged.is_array()) merged = json::array();
  for (const json& condition : changed) {
    const auto is_it = [&](const json& other) {
      return text_at(other, "/type") == text_at(condition, "/type");
    };
    const auto place = std::find_if(merged.begin(), merged.end(), is_it);
    if (place == merged.end()) {
      merged.push_back(condition);
    } else {
      place->merge_patch(condition);
    }
  }
  after["status"]["conditions"] = std::move(merged);
}

// A merge patch; a JSON patch whose test fails, or which does not fit, is nothing.
std::optional<json> patched(const json& before, const json& patch, const std::string& type) {
  json after = before;
  if (!type.starts_with("application/json-patch+json")) {
    after.merge_patch(patch);
    if (type.starts_with("application/strategic-merge-patch+json")) {
      merge_conditions(before, patch, after);
    }
    return after;
  }
  try {
    return after.patch(patch);
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// The grace that a deletion has: what is asked for, or the pod's own. A pod without a process has
// none.
std::int64_t grace_of(const ApiPath& path, const json& object, const json& options) {
  if (path.resource != "pods" || !path.group.empty()) return 0;
  if (text_at(object, "/spec/nodeName").empty() || is_pod_over(object)) return 0;
  return number_at(options, "/gracePeriodSeconds",
                   number_at(object, "/spec/terminationGracePeriodSeconds", 30));
}

// Metadata that the server alone writes is as it was.
void keep_server_fields(const json& before, json& after) {
  constexpr std::array kServerFields = {
      "uid",  "creationTimestamp", "deletionTimestamp",          "generation",
      "name", "namespace",         "deletionGracePeriodSeconds", "resourceVersion"};
  json& metadata = after["metadata"];
  for (const char* field : kServerFields) {
    metadata.erase(field);
    const auto old = before["metadata"].find(field);
    if (old != before["metadata"].end()) metadata[field] = *old;
  }
}

}  // namespace

void ApiCalls::set_served(const std::string& group_version, bool is_served) {
  if (is_served) {
    unserved_.erase(group_version);
  } else {
    unserved_.insert(group_version);
  }
}

bool ApiCalls::is_served(const ApiPath& path) const {
  if (path.resource == "devicetaintrules" && path.version != taint_rules_) return false;
  return !unserved_.contains(path.group_version());
}

std::string ApiCalls::kind_of(const ApiPath& path) const {
  const auto told = kinds_.find(path.qualified_resource());
  if (told != kinds_.end()) return told->second;
  for (const KnownKind& known : kKinds) {
    if (known.resource == path.resource) return std::string(known.kind);
  }
  std::string kind = path.resource;
  if (kind.ends_with('s')) kind.pop_back();
  if (!kind.empty() && kind[0] >= 'a' && kind[0] <= 'z') kind[0] = static_cast<char>(kind[0] - 32);
  return kind;
}

json ApiCalls::shown(const ApiPath& path, const json& object) const {
  json whole = object;
  whole["kind"] = kind_of(path);
  whole["apiVersion"] = path.group_version();
  return whole;
}

ApiAnswer ApiCalls::not_found(const ApiPath& path) const {
  return error_answer(
      {.code = 404,
       .message = fmt::format("{} \"{}\" not found", path.qualified_resource(), path.name),
       .name = path.name,
       .kind = path.resource});
}

ApiAnswer ApiCalls::conflict(const ApiPath& path, const std::string& why) const {
  return error_answer({.code = 409,
                       .message = fmt::format("Operation cannot be fulfilled on {} \"{}\": {}",
                                              path.qualified_resource(), path.name, why),
                       .name = path.name,
                       .kind = path.resource});
}

ApiAnswer ApiCalls::handle(const ApiRequest& request) {
  const std::optional<ApiPath> path = parse_api_path(request.path);
  if (!path) return discover(request);
  if (!is_served(*path)) return unknown_path();
  if (path->subresource == "binding") return bind(request, *path);
  if (path->subresource == "eviction") return evict(request, *path);
  if (!path->subresource.empty() && path->subresource != "status") return unknown_path();
  if (path->resource == "selfsubjectaccessreviews") return review(request);
  if (request.method == "POST") return create(request, *path);
  if (request.method == "DELETE") return remove(request, *path);
  if (request.method == "PUT") return replace(request, *path);
  if (request.method == "PATCH") return patch(request, *path);
  if (request.method != "GET") {
    return error_answer({.code = 405,
                         .message = "the server does not allow this method on the requested "
                                    "resource"});
  }
  if (path->name.empty()) return list(request, *path);
  const ObjectPtr object = store_.find(key_of(*path));
  return object ? json_answer(200, shown(*path, *object)) : not_found(*path);
}

// What a client may: it is answered, and no object is stored.
ApiAnswer ApiCalls::review(const ApiRequest& request) const {
  json answer = parse_body(request);
  if (!answer.is_object()) return bad_request("the body is not a JSON object");
  const std::string part = text_at(answer, "/spec/resourceAttributes/subresource");
  const std::string resource = text_at(answer, "/spec/resourceAttributes/resource") +
                               (part.empty() ? std::string() : "/" + part);
  const std::string verb = text_at(answer, "/spec/resourceAttributes/verb");
  answer["status"] = {{"allowed", !lacking_.contains({verb, resource})}};
  return json_answer(201, answer);
}

ApiAnswer ApiCalls::discover(const ApiRequest& request) const {
  if (request.method != "GET") return unknown_path();
  const std::string& path = request.path;
  if (path == "/readyz" || path == "/livez" || path == "/healthz") {
    return {.status = 200, .body = "ok", .content_type = "text/plain; charset=utf-8"};
  }
  if (path == "/version") {
    return json_answer(200, {{"major", "1"}, {"minor", "36"}, {"gitVersion", "v1.36.3"}});
  }
  const std::string kGroup = "resource.k8s.io";
  const std::string kVersion = kGroup + "/v1";
  if (unserved_.contains(kVersion)) return unknown_path();
  if (path == "/apis/" + kGroup) {
    const json version = {{"groupVersion", kVersion}, {"version", "v1"}};
    return json_answer(200, {{"kind", "APIGroup"},
                             {"apiVersion", "v1"},
                             {"name", kGroup},
                             {"versions", json::array({version})},
                             {"preferredVersion", version}});
  }
  json resources = json::array();
  if (path == "/apis/" + kVersion) {
    for (const char* name : {"deviceclasses", "resourceclaims", "resourceslices"}) {
      resources.push_back({{"name", name}});
    }
  }
  if (!taint_rules_.empty() && path == fmt::format("/apis/{}/{}", kGroup, taint_rules_)) {
    resources.push_back({{"name", "devicetaintrules"}});
  }
  if (resources.empty()) return unknown_path();
  return json_answer(200, {{"kind", "APIResourceList"},
                           {"apiVersion", "v1"},
                           {"groupVersion", path.substr(std::string_view("/apis/").size())},
                           {"resources", resources}});
}

ApiAnswer ApiCalls::list(const ApiRequest& request, const ApiPath& path) const {
  const auto selection =
      parse_selection(request.asked("labelSelector"), request.asked("fieldSelector"));
  if (!selection) return bad_request(selection.error().message);
  ContinueToken token{.version = store_.version()};
  const std::string asked = request.asked("continue");
  if (!asked.empty()) {
    const auto parsed = parse_continue(asked);
    if (!parsed) return bad_request("continue key is not valid");
    token = *parsed;
    if (token.version < oldest_version_) return expired_continue(token, store_.version());
  } else if (request.asked("resourceVersionMatch") == "Exact") {
    token.version = number_of(request.asked("resourceVersion"), store_.version());
  }
  const std::uint64_t limit =
      number_of(request.asked("limit"), std::numeric_limits<std::uint64_t>::max());
  json items = json::array();
  json metadata = {{"resourceVersion", std::to_string(token.version)}};
  ContinueToken last = token;
  std::uint64_t left = 0;
  for (const StoredObject& stored : store_.list_at(collection_of(path), token.version)) {
    const bool is_told = !asked.empty() && std::pair(stored.key.namespace_name, stored.key.name) <=
                                               std::pair(token.namespace_name, token.name);
    if (is_told || !selection->matches(*stored.object)) continue;
    if (limit > 0 && items.size() >= limit) {
      ++left;
      continue;
    }
    items.push_back(*stored.object);
    last = {token.version, stored.key.namespace_name, stored.key.name};
  }
  if (left > 0) {
    metadata["continue"] = last.text();
    if (selection->is_everything()) metadata["remainingItemCount"] = left;
  }
  return json_answer(200, {{"kind", kind_of(path) + "List"},
                           {"apiVersion", path.group_version()},
                           {"metadata", metadata},
                           {"items", items}});
}

ApiAnswer ApiCalls::create(const ApiRequest& request, const ApiPath& path) {
  json object = parse_body(request);
  if (!object.is_object()) return bad_request("the body is not a JSON object");
  if (!path.namespace_name.empty() && !store_.find({"", "namespaces", "", path.namespace_name})) {
    ApiPath space = path;
    space.group.clear();
    space.resource = "namespaces";
    space.name = path.namespace_name;
    return not_found(space);
  }
  const std::string kind = text_at(object, "/kind");
  if (!kind.empty()) kinds_.emplace(path.qualified_resource(), kind);
  if (auto refusal = refuse_new(path, kind_of(path), object)) return *std::move(refusal);
  ApiPath place = path;
  place.name = text_at(object, "/metadata/name");
  if (store_.find(key_of(place))) {
    return error_answer(
        {.code = 409,
         .reason = "AlreadyExists",
         .message = fmt::format("{} \"{}\" already exists", path.qualified_resource(), place.name),
         .name = place.name,
         .kind = path.resource});
  }
  json& metadata = object["metadata"];
  if (!path.namespace_name.empty()) metadata["namespace"] = path.namespace_name;
  metadata["uid"] = fmt::format("00000000-0000-4000-8000-{:012x}", ++made_);
  metadata["creationTimestamp"] = now_(0);
  metadata["generation"] = 1;
  complete_new(path, object, now_(0));
  return json_answer(201, shown(path, *store_.put(key_of(place), std::move(object))));
}

ApiAnswer ApiCalls::replace(const ApiRequest& request, const ApiPath& path) {
  const ObjectPtr before = store_.find(key_of(path));
  if (!before) return not_found(path);
  json after = parse_body(request);
  if (!after.is_object()) return bad_request("the body is not a JSON object");
  const std::string name = text_at(after, "/metadata/name");
  if (!name.empty() && name != path.name) {
    return bad_request(fmt::format(
        "the name of the object ({}) does not match the name on the URL ({})", name, path.name));
  }
  if (path.resource == "leases" && text_at(after, "/metadata/resourceVersion").empty()) {
    return error_answer({.code = 422,
                         .message = "metadata.resourceVersion: Invalid value: 0x0: must be "
                                    "specified for an update"});
  }
  return change(path, *before, std::move(after));
}

ApiAnswer ApiCalls::patch(const ApiRequest& request, const ApiPath& path) {
  const std::string& type = request.content_type;
  const bool is_json_patch = type.starts_with("application/json-patch+json");
  const bool is_apply = type.starts_with("application/apply-patch");
  if (!is_json_patch && !is_apply && !type.starts_with("application/merge-patch+json") &&
      !type.starts_with("application/strategic-merge-patch+json")) {
    return error_answer({.code = 415,
                         .message = "the body of the request was in an unknown format - accepted "
                                    "media types include: application/json-patch+json, "
                                    "application/merge-patch+json"});
  }
  const ObjectPtr before = store_.find(key_of(path));
  if (!before && is_apply && path.subresource.empty()) {
    ApiPath collection = path;
    collection.name.clear();
    return create(request, collection);
  }
  if (!before) return not_found(path);
  const json body = parse_body(request);
  if (body.is_discarded()) return bad_request("the body is not JSON");
  std::optional<json> after = patched(*before, body, type);
  if (!after || !after->is_object()) {
    return error_answer(
        {.code = 422, .message = "the server rejected our request due to an error in our request"});
  }
  return change(path, *before, *std::move(after));
}

std::optional<ApiAnswer> ApiCalls::refuse_versions(const ApiPath& path, const json& before,
                                                   const json& after) const {
  const std::string uid = text_at(after, "/metadata/uid");
  if (!uid.empty() && uid != text_at(before, "/metadata/uid")) {
    return conflict(path, fmt::format("Precondition failed: UID in precondition: {}, UID in object "
                                      "meta: {}",
                                      uid, text_at(before, "/metadata/uid")));
  }
  const std::string version = text_at(after, "/metadata/resourceVersion");
  if (!version.empty() && version != text_at(before, "/metadata/resourceVersion")) {
    return conflict(path, std::string(kModified));
  }
  return std::nullopt;
}

std::optional<ApiAnswer> ApiCalls::refuse_rights(const ApiPath& path, const json& before,
                                                 const json& after) const {
  if (has_claim_binding_right_ || path.resource != "resourceclaims") return std::nullopt;
  const bool is_same =
      value_at(before, "/status/allocation") == value_at(after, "/status/allocation") &&
      value_at(before, "/status/reservedFor") == value_at(after, "/status/reservedFor");
  if (is_same) return std::nullopt;
  return error_answer(
      {.code = 422,
       .message = fmt::format(
           "ResourceClaim.resource.k8s.io \"{}\" is invalid: status.allocation: Forbidden: "
           "changing status.allocation or status.reservedFor requires "
           "resource=\"resourceclaims/binding\", verb=\"patch\" permission: "
           "resourceclaims.resource.k8s.io is forbidden: User \"gpu-platform\" cannot patch "
           "resource \"resourceclaims/binding\" in API group \"resource.k8s.io\" at the cluster "
           "scope",
           path.name),
       .name = path.name,
       .kind = "ResourceClaim"});
}

ApiAnswer ApiCalls::change(const ApiPath& path, const json& before, json after) {
  if (auto refusal = refuse_versions(path, before, after)) return *std::move(refusal);
  if (path.subresource == "status") {
    json status = value_at(after, "/status");
    after = before;
    after["status"] = std::move(status);
  } else if (has_status_subresource(path)) {
    after.erase("status");
    if (before.contains("status")) after["status"] = before["status"];
  }
  keep_server_fields(before, after);
  after.erase("kind");
  after.erase("apiVersion");
  if (auto refusal = refuse_rights(path, before, after)) return *std::move(refusal);
  if (auto refusal = refuse_change(path, kind_of(path), before, after)) return *std::move(refusal);
  return json_answer(200, shown(path, *overwrite(path, std::move(after))));
}

ObjectPtr ApiCalls::overwrite(const ApiPath& path, json after) {
  const ObjectPtr before = store_.find(key_of(path));
  if (!before) return nullptr;
  if (is_empty_at(after, "/metadata/finalizers")) after["metadata"].erase("finalizers");
  if (after == *before) return before;
  if (value_at(*before, "/spec") != value_at(after, "/spec")) {
    after["metadata"]["generation"] = number_at(*before, "/metadata/generation", 0) + 1;
  }
  // The last finalizer of an object that is being deleted, and whose processes are gone, ends it.
  const bool is_last = !value_at(after, "/metadata/deletionTimestamp").is_null() &&
                       number_at(after, "/metadata/deletionGracePeriodSeconds", 0) == 0 &&
                       is_empty_at(after, "/metadata/finalizers");
  return is_last ? store_.remove(key_of(path), std::move(after))
                 : store_.put(key_of(path), std::move(after));
}

ApiAnswer ApiCalls::remove(const ApiRequest& request, const ApiPath& path) {
  json options = parse_body(request);
  if (!options.is_object()) return bad_request("the body is not a JSON object");
  const std::string grace = request.asked("gracePeriodSeconds");
  if (!grace.empty()) options["gracePeriodSeconds"] = number_of(grace, 0);
  if (!path.name.empty()) return remove_one(path, options);
  const auto selection =
      parse_selection(request.asked("labelSelector"), request.asked("fieldSelector"));
  if (!selection) return bad_request(selection.error().message);
  for (const StoredObject& stored : store_.list(collection_of(path))) {
    if (!selection->matches(*stored.object)) continue;
    ApiPath one = path;
    one.namespace_name = stored.key.namespace_name;
    one.name = stored.key.name;
    const ApiAnswer answer = remove_one(one, options);
    if (!answer.is_ok()) return answer;
  }
  return success_answer(200);
}

ApiAnswer ApiCalls::remove_one(const ApiPath& path, const json& options) {
  const ObjectPtr before = store_.find(key_of(path));
  if (!before) return not_found(path);
  const std::string uid = text_at(options, "/preconditions/uid");
  const std::string own_uid = text_at(*before, "/metadata/uid");
  if (!uid.empty() && uid != own_uid) {
    return conflict(path, fmt::format("the UID in the precondition ({}) does not match the UID in "
                                      "record ({}). The object might have been deleted and then "
                                      "recreated",
                                      uid, own_uid));
  }
  const std::string version = text_at(options, "/preconditions/resourceVersion");
  if (!version.empty() && version != text_at(*before, "/metadata/resourceVersion")) {
    return conflict(path, std::string(kModified));
  }
  json after = *before;
  std::int64_t grace = std::max<std::int64_t>(0, grace_of(path, after, options));
  const bool is_repeated = !value_at(after, "/metadata/deletionTimestamp").is_null();
  if (is_repeated) {
    // A deletion may be hastened, never be delayed.
    grace = std::min(grace, number_at(after, "/metadata/deletionGracePeriodSeconds", grace));
  }
  const bool is_gone = grace == 0 && is_empty_at(after, "/metadata/finalizers");
  const bool is_same =
      is_repeated && grace == number_at(after, "/metadata/deletionGracePeriodSeconds", -1);
  if (!is_gone && is_same) return json_answer(200, shown(path, after));
  if (!is_gone || is_repeated) {
    after["metadata"]["deletionTimestamp"] = now_(grace);
    after["metadata"]["deletionGracePeriodSeconds"] = grace;
  }
  if (!is_gone) return json_answer(200, shown(path, *store_.put(key_of(path), std::move(after))));
  const ObjectPtr last = store_.remove(key_of(path), std::move(after));
  if (path.resource == "pods" || path.resource == "resourceclaims") {
    return json_answer(200, shown(path, *last));
  }
  json status = success_answer(200).json();
  status["details"] = {{"name", path.name}, {"kind", path.resource}, {"uid", own_uid}};
  return json_answer(200, status);
}

ApiAnswer ApiCalls::bind(const ApiRequest& request, const ApiPath& path) {
  const ObjectPtr before = store_.find(key_of(path));
  if (!before) return not_found(path);
  const json binding = parse_body(request);
  const std::string node = binding.is_object() ? text_at(binding, "/target/name") : std::string();
  if (node.empty()) return bad_request("target.name: Required value");
  ApiPath place = path;
  place.resource += "/binding";
  json wanted = *before;
  for (const char* field : {"uid", "resourceVersion"}) {
    const json& metadata = value_at(binding, "/metadata");
    if (!metadata.contains(field)) continue;
    wanted["metadata"][field] = metadata[field];
  }
  if (auto refusal = refuse_versions(place, *before, wanted)) return *std::move(refusal);
  std::string why;
  if (!value_at(*before, "/metadata/deletionTimestamp").is_null()) {
    why = fmt::format("pod {} is being deleted, cannot be assigned to a host", path.name);
  } else if (const std::string bound = text_at(*before, "/spec/nodeName"); !bound.empty()) {
    why = fmt::format("pod {} is already assigned to node \"{}\"", path.name, bound);
  } else if (!is_empty_at(*before, "/spec/schedulingGates")) {
    why = fmt::format("pod {} has non-empty .spec.schedulingGates", path.name);
  }
  if (!why.empty()) return conflict(place, why);
  json after = *before;
  after["spec"]["nodeName"] = node;
  const json& annotations = value_at(binding, "/metadata/annotations");
  if (annotations.is_object()) after["metadata"]["annotations"].update(annotations);
  set_condition(after, {.type = "PodScheduled", .status = "True"}, now_(0));
  store_.put(key_of(path), std::move(after));
  return success_answer(201);
}

ApiAnswer ApiCalls::evict(const ApiRequest& request, const ApiPath& path) {
  const ObjectPtr before = store_.find(key_of(path));
  if (!before) return not_found(path);
  const json eviction = parse_body(request);
  if (!eviction.is_object()) return bad_request("the body is not a JSON object");
  json options = value_at(eviction, "/deleteOptions");
  if (!options.is_object()) options = json::object();
  const std::string uid = text_at(options, "/preconditions/uid");
  if (uid.empty() || uid == text_at(*before, "/metadata/uid")) {
    json after = *before;
    set_condition(after,
                  {.type = "DisruptionTarget",
                   .status = "True",
                   .reason = "EvictionByEvictionAPI",
                   .message = "Eviction API: evicting"},
                  now_(0));
    if (after != *before) store_.put(key_of(path), std::move(after));
  }
  const ApiAnswer removal = remove_one(path, options);
  return removal.is_ok() ? success_answer(201) : removal;
}

}  // namespace gpu_platform::kubernetes
