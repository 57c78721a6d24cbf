#include "execution/kubernetes/workloads/requests.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utc.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/manifests.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;
using kubernetes::Method;
using kubernetes::Request;

std::string text_of_json(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string pod_path_of(std::string_view namespace_name, std::string_view pod) {
  return fmt::format("/api/v1/namespaces/{}/pods/{}", namespace_name, pod);
}

// A part of a JSON pointer.
std::string escaped(std::string_view key) {
  std::string out;
  for (const char c : key) {
    if (c == '~') {
      out += "~0";
    } else if (c == '/') {
      out += "~1";
    } else {
      out.push_back(c);
    }
  }
  return out;
}

Json added(std::string path, Json value) {
  return {{"op", "add"}, {"path", std::move(path)}, {"value", std::move(value)}};
}

Json tested(std::string path, Json value) {
  return {{"op", "test"}, {"path", std::move(path)}, {"value", std::move(value)}};
}

// Of the pod, and of its claim.
Json labels_of_attempt(const WorkloadCall& call, const KubernetesSettings& settings) {
  Json labels = {{kAdoptedLabel, settings.cluster},
                 {kJobLabel, fmt::format("{}", call.attempt.job.value)},
                 {kAttemptLabel, fmt::format("{}", call.attempt.attempt)},
                 {kRankLabel, fmt::format("{}", call.rank)}};
  // What a pod without it uses of its node counts as use by others.
  if (call.is_counted) labels[std::string(kClusterLabel)] = settings.cluster;
  return labels;
}

std::string claims_path_of(std::string_view namespace_name) {
  return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims", namespace_name);
}

Request admission(const WorkloadCall& call, const KubernetesSettings& settings) {
  constexpr std::string_view kHostname = "kubernetes.io/hostname";
  const std::string gate = fmt::format("/spec/schedulingGates/{}", call.gate_at);
  Json patch = Json::array({tested("/metadata/uid", call.uid),
                            tested(gate + "/name", kAdmissionGate),
                            {{"op", "remove"}, {"path", gate}}});
  if (!call.node.empty()) {
    if (!call.has_node_selector) patch.push_back(added("/spec/nodeSelector", Json::object()));
    patch.push_back(added("/spec/nodeSelector/" + escaped(kHostname), call.node));
  }
  if (!call.has_labels) patch.push_back(added("/metadata/labels", Json::object()));
  const Json labels = labels_of_attempt(call, settings);
  for (const auto& [key, value] : labels.items()) {
    patch.push_back(added("/metadata/labels/" + escaped(key), value));
  }
  return {.method = Method::kPatch,
          .path = pod_path_of(call.namespace_name, call.name),
          .body = text_of_json(patch),
          .content_type = "application/json-patch+json"};
}

Request deletion(const WorkloadCall& call) {
  const Json options = {{"kind", "DeleteOptions"},
                        {"apiVersion", "v1"},
                        {"gracePeriodSeconds", call.grace_seconds},
                        {"preconditions", {{"uid", call.uid}}}};
  return {.method = Method::kDelete,
          .path = pod_path_of(call.namespace_name, call.name),
          .body = text_of_json(options)};
}

Request condition_patch(const GroupCall& call, const std::string& now) {
  const Json condition = {{"type", kAdmittedCondition},
                          {"status", call.condition.is_admitted ? "True" : "False"},
                          {"reason", call.condition.reason},
                          {"message", call.condition.message},
                          {"lastTransitionTime", now}};
  const Json patch = {{"metadata", {{"uid", call.uid}}},
                      {"status", {{"conditions", Json::array({condition})}}}};
  return {.method = Method::kPatch,
          .path = pod_path_of(call.namespace_name, call.name) + "/status",
          .body = text_of_json(patch),
          .content_type = "application/strategic-merge-patch+json"};
}

Request event_creation(const GroupCall& call, base::Instant at) {
  const std::string now = base::utc(at);
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"namespace", call.namespace_name},
                    {"name", call.name},
                    {"uid", call.uid}};
  const Json event = {
      {"apiVersion", "v1"},
      {"kind", "Event"},
      {"metadata",
       {{"name", fmt::format("{}.{:x}", call.name, static_cast<std::uint64_t>(at.unix_ns()))},
        {"namespace", call.namespace_name}}},
      {"involvedObject", pod},
      {"type", call.is_warning ? "Warning" : "Normal"},
      {"reason", call.condition.reason},
      {"message", call.condition.message},
      {"source", {{"component", "gpu-platform"}}},
      {"reportingComponent", "gpu-platform"},
      {"firstTimestamp", now},
      {"lastTimestamp", now},
      {"count", 1}};
  return {.method = Method::kPost,
          .path = fmt::format("/api/v1/namespaces/{}/events", call.namespace_name),
          .body = text_of_json(event)};
}

}  // namespace

Request request_of(const WorkloadCall& call, const KubernetesSettings& settings) {
  switch (call.kind) {
    case WorkloadCallKind::kMakeClaim:
      return {.method = Method::kPost,
              .path = claims_path_of(call.namespace_name),
              .body = text_of_json(adopted_claim_manifest(call.namespace_name, call.claim,
                                                          labels_of_attempt(call, settings),
                                                          call.gpus, settings))};
    case WorkloadCallKind::kDeleteClaim:
      return {.method = Method::kDelete,
              .path = claims_path_of(call.namespace_name) + "/" + call.claim};
    case WorkloadCallKind::kAdmitPod:
      return admission(call, settings);
    case WorkloadCallKind::kDeletePod:
      break;
  }
  return deletion(call);
}

Request request_of(const GroupCall& call, base::Instant now) {
  switch (call.kind) {
    case GroupCallKind::kReadOwner:
      return {.path = call.path};
    case GroupCallKind::kSetCondition:
      return condition_patch(call, base::utc(now));
    case GroupCallKind::kMakeEvent:
      break;
  }
  return event_creation(call, now);
}

}  // namespace gpu_platform::execution
