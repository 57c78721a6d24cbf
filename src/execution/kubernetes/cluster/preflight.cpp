#include "execution/kubernetes/cluster/preflight.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/job_namespace.h"
#include "execution/kubernetes/lease/lease.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/pod_view.h"
#include "kubernetes/resource_path.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using base::ErrorCode;
using kubernetes::Answer;
using kubernetes::Method;
using kubernetes::Request;
using Json = nlohmann::json;

// The namespace that a right counts in; empty: all.
std::string namespace_of_right(const Right& right, const KubernetesSettings& settings,
                               const LeaseTerms& lease) {
  if (right.where == Right::Where::kLease) return lease.namespace_name;
  return right.where == Right::Where::kEverywhere ? std::string() : settings.namespace_name;
}

// A namespace of each team's own is not known before its first job.
bool can_be_asked(const Right& right, const KubernetesSettings& settings) {
  const bool is_per_team = settings.namespace_name.contains('{');
  return right.where != Right::Where::kJobs || !is_per_team;
}

std::string words_for(const Right& right, const std::string& namespace_name) {
  std::string what = right.resource;
  if (!right.subresource.empty()) what += "/" + right.subresource;
  if (!right.group.empty()) what += "." + right.group;
  return namespace_name.empty()
             ? fmt::format("{} {} in all namespaces", right.verb, what)
             : fmt::format("{} {} in namespace {}", right.verb, what, namespace_name);
}

base::Status check_rights(Caller& caller, const KubernetesSettings& settings,
                          const LeaseTerms& lease) {
  std::vector<std::string> missing;
  for (const Right& right : needed_rights(settings)) {
    if (!can_be_asked(right, settings)) continue;
    const std::string name = namespace_of_right(right, settings, lease);
    const Answer answer = caller.call(review_of(right, name));
    if (!answer.is_ok()) return failure_of(answer, "asking for the platform's rights");
    if (!is_allowed(answer)) missing.push_back(words_for(right, name));
  }
  if (missing.empty()) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("the platform's user in Kubernetes lacks rights: {}; apply "
                                "deploy/kubernetes/rbac.yaml and bind its roles, as the README "
                                "beside it says, or give it these",
                                fmt::join(missing, ", ")));
}

base::Status check_devices(Caller& caller, const KubernetesSettings& settings) {
  if (settings.devices == DeviceMode::kCounts) return {};
  const Answer answer = caller.call({.path = "/apis/resource.k8s.io/v1"});
  if (answer.status == 404) {
    return base::fail(ErrorCode::kFailedPrecondition,
                      "the cluster does not serve resource.k8s.io/v1 (Kubernetes 1.34 and later): "
                      "the platform cannot choose devices there; with engines.kubernetes.devices: "
                      "counts the kubelet chooses them",
                      "engines.kubernetes.devices");
  }
  return answer.is_ok() ? base::Status() : failure_of(answer, "looking for resource.k8s.io/v1");
}

std::unexpected<base::Error> held_by(const LeaseTerms& terms, const LeaseState& state) {
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("another controller has this cluster: lease {}/{} is held and renewed "
                  "by {}; end that one, or give this one another "
                  "engines.kubernetes.cluster",
                  terms.namespace_name, terms.name, state.holder));
}

base::Status take_lease(Caller& caller, const LeaseTerms& terms) {
  std::string seen;  // the renewal that was seen first
  std::int64_t seen_ns = 0;
  while (true) {
    const Answer got = caller.call({.path = lease_path(terms)});
    if (!got.is_ok() && got.status != 404)
      return failure_of(got, "reading the lease " + terms.name);
    const LeaseState state =
        got.is_ok() ? state_of_lease(Json::parse(got.body, nullptr, false)) : LeaseState();
    const bool is_others = !state.holder.empty() && state.holder != terms.identity;
    if (is_others && seen.empty()) {
      seen = state.renewed.empty() ? "never" : state.renewed;
      seen_ns = os::monotonic_ns();
    }
    const bool is_renewed = is_others && !state.renewed.empty() && seen != state.renewed;
    if (is_renewed) return held_by(terms, state);
    if (is_others && os::monotonic_ns() - seen_ns < terms.duration.value()) {
      if (caller.left() <= base::Duration()) return held_by(terms, state);
      caller.wait(base::milliseconds(500));
      continue;
    }
    const Answer written = caller.call(lease_write(terms, state, got.is_ok(), os::wall_now()));
    if (written.is_ok()) return {};
    if (written.status != 409) return failure_of(written, "taking the lease " + terms.name);
  }
}

// "gpu-platform/cluster=default"
std::string selector_of(const KubernetesSettings& settings) {
  return fmt::format("{}={}", kClusterLabel, settings.cluster);
}

// The first of them in any namespace, as "pod jobs/gp-default-1-1-0"; empty: there is none. Every
// user may write the label where nothing keeps users from it: it alone makes no pod the platform's.
base::Result<std::string> first_left(Caller& caller, std::string_view kind, const std::string& path,
                                     const KubernetesSettings& settings) {
  const std::string query =
      fmt::format("{}?labelSelector=gpu-platform%2Fcluster%3D{}&limit=500", path, settings.cluster);
  std::string next;
  do {
    const Answer answer = caller.call(
        {.path = next.empty() ? query : query + "&continue=" + kubernetes::query_value(next)});
    if (!answer.is_ok()) {
      const std::string what = fmt::format("looking for {}s of {}", kind, selector_of(settings));
      return std::unexpected(failure_of(answer, what).error());
    }
    const Json list = Json::parse(answer.body, nullptr, false);
    for (const Json& item : list_at(list, {"items"})) {
      if (is_of_platform(item, settings)) return fmt::format("{} {}", kind, key_of(item));
    }
    next = text_at(list, {"metadata", "continue"});
  } while (!next.empty());
  return std::string();
}

// The engine would take a pod of the old job 1 for that of the new one, and end all others.
base::Status check_for_leftovers(Caller& caller, const KubernetesSettings& settings) {
  TRY_ASSIGN(std::string left, first_left(caller, "pod", "/api/v1/pods", settings));
  const bool has_claims = settings.devices != DeviceMode::kCounts;
  if (left.empty() && has_claims) {
    TRY_ASSIGN(left,
               first_left(caller, "claim", "/apis/resource.k8s.io/v1/resourceclaims", settings));
  }
  if (left.empty()) return {};
  return base::fail(
      ErrorCode::kFailedPrecondition,
      fmt::format("{} belongs to jobs that are not in this data directory, and it has the label {} "
                  "of this daemon's jobs. If a data directory was lost, restore it with its file "
                  "kubernetes-identity; or choose another engines.kubernetes.cluster; or delete "
                  "what is left, which ends what still runs: kubectl delete {} --all-namespaces "
                  "--wait=false --selector {} (docs/kubernetes.md, \"A lost data directory\", has "
                  "the command for pods that stay)",
                  left, selector_of(settings), has_claims ? "pods,resourceclaims" : "pods",
                  selector_of(settings)),
      "engines.kubernetes.cluster");
}

}  // namespace

base::Status failure_of(const Answer& answer, std::string_view what) {
  const std::string said = fmt::format("{}: {}", what, kubernetes::error_message_of(answer));
  if (answer.status == 401) {
    return base::fail(ErrorCode::kUnauthenticated,
                      said +
                          "; the API server does not accept this token or certificate, or it has "
                          "expired: make a new one (kubectl create token)");
  }
  if (answer.status == 403) return base::fail(ErrorCode::kPermissionDenied, said);
  if (answer.status == 0 || answer.status >= 500 || answer.status == 429) {
    return base::fail(ErrorCode::kUnavailable, said);
  }
  return base::fail(ErrorCode::kFailedPrecondition, said);
}

Request review_of(const Right& right, const std::string& namespace_name) {
  Json attributes = {{"verb", right.verb}, {"group", right.group}, {"resource", right.resource}};
  if (!right.subresource.empty()) attributes["subresource"] = right.subresource;
  if (!namespace_name.empty()) attributes["namespace"] = namespace_name;
  const Json review = {{"apiVersion", "authorization.k8s.io/v1"},
                       {"kind", "SelfSubjectAccessReview"},
                       {"spec", {{"resourceAttributes", attributes}}}};
  return {.method = Method::kPost,
          .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
          .body = review.dump()};
}

bool is_allowed(const Answer& review) {
  return flag_at(Json::parse(review.body, nullptr, false), {"status", "allowed"});
}

Right right_of_queue() {
  return {"patch", "", "pods", "status"};
}

std::vector<Right> needed_rights(const KubernetesSettings& settings) {
  std::vector<Right> rights;
  using Where = Right::Where;
  const auto add = [&](Where where, std::initializer_list<const char*> verbs, const char* group,
                       const char* resource, const char* subresource = "") {
    for (const char* verb : verbs) rights.push_back({verb, group, resource, subresource, where});
  };
  constexpr const char* kDevices = "resource.k8s.io";
  add(Where::kLease, {"get", "create", "update"}, "coordination.k8s.io", "leases");
  add(Where::kEverywhere, {"list", "watch"}, "", "nodes");
  add(Where::kEverywhere, {"list", "watch"}, "", "pods");
  add(Where::kJobs, {"create", "patch", "delete"}, "", "pods");
  add(Where::kJobs, {"get"}, "", "pods", "log");
  add(Where::kJobs, {"create"}, "", "services");
  if (settings.admits_workloads) add(Where::kEverywhere, {"list", "watch"}, "", "namespaces");
  if (settings.devices == DeviceMode::kCounts) return rights;
  add(Where::kEverywhere, {"list", "watch"}, kDevices, "resourceslices");
  add(Where::kEverywhere, {"list", "watch"}, kDevices, "resourceclaims");
  add(Where::kJobs, {"create", "delete"}, kDevices, "resourceclaims");
  if (settings.devices != DeviceMode::kOwned) return rights;
  add(Where::kEverywhere, {"list", "watch"}, kDevices, "deviceclasses");
  add(Where::kJobs, {"create"}, "", "pods", "binding");
  add(Where::kJobs, {"patch"}, kDevices, "resourceclaims", "status");
  // Since 1.36; the server asks for it in all namespaces.
  add(Where::kEverywhere, {"patch"}, kDevices, "resourceclaims", "binding");
  return rights;
}

base::Status check_access(kubernetes::Client& client, const KubernetesSettings& settings,
                          const LeaseTerms& lease, CallLimits limits) {
  Caller caller(client, std::move(limits));
  const Answer version = caller.call({.path = "/version"});
  if (!version.is_ok()) return failure_of(version, "asking for the server's version");
  TRY(check_rights(caller, settings, lease));
  return check_devices(caller, settings);
}

base::Status check_cluster(kubernetes::Client& client, const KubernetesSettings& settings,
                           const LeaseTerms& lease, ClusterHistory history, CallLimits limits) {
  const std::int64_t end_ns = os::monotonic_ns() + limits.timeout.value();
  TRY(check_access(client, settings, lease, limits));
  limits.timeout = base::nanoseconds(end_ns - os::monotonic_ns());
  Caller caller(client, std::move(limits));
  // First, so that the pods of a controller that works are not said to be left.
  TRY(take_lease(caller, lease));
  if (history == ClusterHistory::kKnown) return {};
  const base::Status checked = check_for_leftovers(caller, settings);
  if (!checked) (void)give_lease_back(caller, lease);  // else it expires
  return checked;
}

base::Status give_lease_back(Caller& caller, const LeaseTerms& terms) {
  const Answer got = caller.call({.path = lease_path(terms)});
  if (!got.is_ok()) return failure_of(got, "reading the lease");
  const LeaseState state = state_of_lease(Json::parse(got.body, nullptr, false));
  if (state.holder != terms.identity) return {};
  LeaseTerms released = terms;
  released.identity.clear();
  const Answer written = caller.call(lease_write(released, state, true, os::wall_now()));
  return written.is_ok() ? base::Status() : failure_of(written, "releasing the lease");
}

std::string words_for_no_gpus(const KubernetesSettings& settings, std::size_t nodes) {
  if (nodes == 0) {
    return fmt::format("the cluster has no node{}; nodes are added when they come",
                       settings.node_selector.empty()
                           ? ""
                           : " with the labels of engines.kubernetes.node_selector");
  }
  if (settings.devices == DeviceMode::kCounts) {
    return "no node has a GPU: NVIDIA's device plugin reports no nvidia.com/gpu on any";
  }
  return fmt::format(
      "no node has a GPU: there is no ResourceSlice of the driver {} (engines.kubernetes.driver); "
      "if only NVIDIA's device plugin is installed, set engines.kubernetes.devices: counts",
      settings.driver);
}

}  // namespace gpu_platform::execution
