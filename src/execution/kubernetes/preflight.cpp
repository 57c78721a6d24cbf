#include "execution/kubernetes/preflight.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/lease.h"
#include "os/clock.h"

namespace gpu_platform::execution {

namespace {

using base::ErrorCode;
using kubernetes::Answer;
using kubernetes::Method;
using kubernetes::Request;
using Json = nlohmann::json;

// Calls one after the other, within one deadline.
class Caller {
 public:
  Caller(kubernetes::Client& client, base::Duration patience)
      : client_(client), end_ns_(os::monotonic_ns() + patience.value()) {}

  Answer call(Request request) {
    std::optional<Answer> answer;
    request.timeout = std::min(request.timeout, left());
    client_.send(std::move(request), [&answer](const Answer& came) { answer = came; });
    while (!answer) {
      client_.poll(base::milliseconds(100));
      if (!answer && left() <= base::Duration()) return {.failure = "no answer in time"};
    }
    return *std::move(answer);
  }
  base::Duration left() const { return base::nanoseconds(end_ns_ - os::monotonic_ns()); }
  void wait(base::Duration time) {
    const std::int64_t until = std::min(end_ns_, os::monotonic_ns() + time.value());
    while (os::monotonic_ns() < until) {
      client_.poll(base::nanoseconds(until - os::monotonic_ns()));
    }
  }

 private:
  kubernetes::Client& client_;
  std::int64_t end_ns_;
};

base::Status failure_of(const Answer& answer, std::string_view what) {
  const std::string said = fmt::format("{}: {}", what, kubernetes::complaint_of(answer));
  if (answer.status == 401) return base::fail(ErrorCode::kUnauthenticated, said);
  if (answer.status == 403) return base::fail(ErrorCode::kPermissionDenied, said);
  if (answer.status == 0 || answer.status >= 500 || answer.status == 429) {
    return base::fail(ErrorCode::kUnavailable, said);
  }
  return base::fail(ErrorCode::kFailedPrecondition, said);
}

Json review_of(const Right& right, const std::string& namespace_name) {
  Json attributes = {{"verb", right.verb}, {"group", right.group}, {"resource", right.resource}};
  if (!right.subresource.empty()) attributes["subresource"] = right.subresource;
  if (!right.is_everywhere) attributes["namespace"] = namespace_name;
  return {{"apiVersion", "authorization.k8s.io/v1"},
          {"kind", "SelfSubjectAccessReview"},
          {"spec", {{"resourceAttributes", attributes}}}};
}

bool is_allowed(const Answer& answer) {
  return flag_at(Json::parse(answer.body, nullptr, false), {"status", "allowed"});
}

std::string words_for(const Right& right, const std::string& namespace_name) {
  std::string what = right.resource;
  if (!right.subresource.empty()) what += "/" + right.subresource;
  if (!right.group.empty()) what += "." + right.group;
  return right.is_everywhere
             ? fmt::format("{} {} in all namespaces", right.verb, what)
             : fmt::format("{} {} in namespace {}", right.verb, what, namespace_name);
}

// A namespace of each team's own is looked at when its first job starts.
base::Status check_rights(Caller& caller, const KubernetesSettings& settings) {
  const std::string& pattern = settings.namespace_name;
  const bool is_per_team = pattern.find('{') != std::string::npos;
  std::vector<std::string> missing;
  for (Right right : needed_rights(settings)) {
    right.is_everywhere = right.is_everywhere || is_per_team;
    const Answer answer =
        caller.call({.method = Method::kPost,
                     .path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
                     .body = review_of(right, pattern).dump()});
    if (!answer.is_ok()) return failure_of(answer, "asking for the platform's rights");
    if (!is_allowed(answer)) missing.push_back(words_for(right, pattern));
  }
  if (missing.empty()) return {};
  return base::fail(ErrorCode::kPermissionDenied,
                    fmt::format("the platform's user in Kubernetes lacks rights: {}; apply "
                                "deploy/kubernetes/rbac.yaml or give it these",
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
    const std::string body = lease_manifest(terms, state, os::wall_now()).dump();
    const Answer written =
        got.status == 404
            ? caller.call({.method = Method::kPost, .path = leases_path(terms), .body = body})
            : caller.call({.method = Method::kPut, .path = lease_path(terms), .body = body});
    if (written.is_ok()) return {};
    if (written.status != 409) return failure_of(written, "taking the lease " + terms.name);
  }
}

}  // namespace

std::vector<Right> needed_rights(const KubernetesSettings& settings) {
  std::vector<Right> rights;
  const auto add = [&](std::initializer_list<const char*> verbs, const char* group,
                       const char* resource, const char* subresource, bool is_everywhere) {
    for (const char* verb : verbs) {
      rights.push_back({verb, group, resource, subresource, is_everywhere});
    }
  };
  add({"list", "watch"}, "", "nodes", "", true);
  add({"list", "watch"}, "", "pods", "", true);
  add({"create", "patch", "delete"}, "", "pods", "", false);
  add({"get"}, "", "pods", "log", false);
  add({"create", "delete"}, "", "services", "", false);
  if (settings.devices == DeviceMode::kCounts) return rights;
  add({"list", "watch"}, "resource.k8s.io", "resourceslices", "", true);
  add({"list", "watch"}, "resource.k8s.io", "resourceclaims", "", true);
  add({"create", "delete"}, "resource.k8s.io", "resourceclaims", "", false);
  if (settings.devices != DeviceMode::kOwned) return rights;
  add({"create"}, "", "pods", "binding", false);
  add({"patch"}, "resource.k8s.io", "resourceclaims", "status", false);
  // Since 1.36; the server asks for it cluster-wide.
  add({"patch"}, "resource.k8s.io", "resourceclaims", "binding", true);
  return rights;
}

base::Status check_cluster(kubernetes::Client& client, const KubernetesSettings& settings,
                           const LeaseTerms& lease, base::Duration patience) {
  Caller caller(client, patience);
  const Answer version = caller.call({.path = "/version"});
  if (!version.is_ok()) return failure_of(version, "asking for the server's version");
  TRY(check_rights(caller, settings));
  TRY(check_devices(caller, settings));
  return take_lease(caller, lease);
}

}  // namespace gpu_platform::execution
