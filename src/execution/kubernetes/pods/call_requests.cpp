#include "execution/kubernetes/pods/call_requests.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/names.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;
using kubernetes::Method;
using kubernetes::Request;

constexpr std::string_view kJsonPatch = "application/json-patch+json";
constexpr std::string_view kMergePatch = "application/merge-patch+json";

std::string core_path(const Call& call, std::string_view plural) {
  return fmt::format("/api/v1/namespaces/{}/{}", call.namespace_name, plural);
}

std::string claims_path(const Call& call) {
  return fmt::format("/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims", call.namespace_name);
}

std::string json_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Request post(std::string path, const Json& body) {
  return {.method = Method::kPost, .path = std::move(path), .body = json_text(body)};
}

// Takes the platform's entry out of a list of entries of several owners. If another entry stands at
// its place by now, nothing is changed.
Request without(std::string path, std::string_view list, std::uint32_t place, std::string_view key,
                std::string_view entry) {
  const std::string at = fmt::format("{}/{}", list, place);
  const Json patch = {{{"op", "test"}, {"path", fmt::format("{}{}", at, key)}, {"value", entry}},
                      {{"op", "remove"}, {"path", at}}};
  return {.method = Method::kPatch,
          .path = std::move(path),
          .body = json_text(patch),
          .content_type = std::string(kJsonPatch)};
}

Request removal(std::string path, std::uint32_t grace, const std::string& uid) {
  Json options = {{"kind", "DeleteOptions"},
                  {"apiVersion", "v1"},
                  {"gracePeriodSeconds", grace},
                  {"propagationPolicy", "Background"}};
  if (!uid.empty()) options["preconditions"] = {{"uid", uid}};
  return {.method = Method::kDelete, .path = std::move(path), .body = json_text(options)};
}

Request binding(const Call& call, const CallContext& context) {
  const LaunchNode& node = context.order->nodes[ranks_of(*context.order)[call.rank].node];
  Json metadata = {{"name", call.name}};
  if (!context.pod_uid.empty()) metadata["uid"] = context.pod_uid;
  return post(core_path(call, "pods/" + call.name + "/binding"),
              {{"apiVersion", "v1"},
               {"kind", "Binding"},
               {"metadata", metadata},
               {"target", {{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node.node_name}}}});
}

Request allocation(const Call& call, const CallContext& context,
                   const KubernetesSettings& settings) {
  const StartOrder& order = *context.order;
  Json status = claim_status(order, call.rank, context.devices, context.pod_uid, settings);
  if (context.configs != nullptr) {
    const Json claim = claim_manifest(order, call.rank, settings);
    Json config = context.configs->of_allocation(
        fmt::format("{}/{}", call.namespace_name, call.name), claim["spec"]["devices"]["requests"]);
    if (!config.empty()) status["allocation"]["devices"]["config"] = std::move(config);
  }
  return {.method = Method::kPatch,
          .path = claims_path(call) + "/" + call.name + "/status",
          .body = json_text({{"status", std::move(status)}}),
          .content_type = std::string(kMergePatch)};
}

base::Result<Request> pod(const Call& call, const CallContext& context,
                          const KubernetesSettings& settings) {
  const std::size_t ranks = ranks_of(*context.order).size();
  PodOptions options;
  options.rank = call.rank;
  options.environment = pod_environment(*context.order, call.rank, *context.environment, settings);
  options.has_gate = ranks > 1;
  TRY_ASSIGN(const Json manifest, pod_manifest(*context.order, options, settings));
  return post(core_path(call, "pods"), manifest);
}

// Kubernetes removes it with the gang's first pod.
Request service(const Call& call, const CallContext& context, const KubernetesSettings& settings) {
  Json manifest = service_manifest(*context.order, settings);
  manifest["metadata"]["ownerReferences"] = {
      {{"apiVersion", "v1"},
       {"kind", "Pod"},
       {"name", object_name(settings.cluster, call.attempt, call.rank)},
       {"uid", context.pod_uid}}};
  return post(core_path(call, "services"), manifest);
}

}  // namespace

std::string output_path_of(const Call& call, std::uint64_t limit_bytes, bool follows) {
  std::string path = core_path(call, "pods/" + call.name + "/log?container=main");
  if (limit_bytes != 0) path += fmt::format("&limitBytes={}", limit_bytes);
  if (follows) path += "&follow=true";
  return path;
}

std::string latest_output_path_of(const std::string& namespace_name, const std::string& pod) {
  return fmt::format(
      "/api/v1/namespaces/{}/pods/{}/log?container=main&tailLines=200&limitBytes=1048576",
      namespace_name, pod);
}

namespace {

base::Result<Request> request_without_turn(const Call& call, const CallContext& context,
                                           const KubernetesSettings& settings) {
  const std::string pod_path = core_path(call, "pods/" + call.name);
  switch (call.kind) {
    case CallKind::kMakeService:
      return service(call, context, settings);
    case CallKind::kMakeClaim:
      return post(claims_path(call), claim_manifest(*context.order, call.rank, settings));
    case CallKind::kMakePod:
      return pod(call, context, settings);
    case CallKind::kAllocate:
      return allocation(call, context, settings);
    case CallKind::kBind:
      return binding(call, context);
    case CallKind::kLiftGate:
      return without(pod_path, "/spec/schedulingGates", call.place, "/name", kGangGate);
    case CallKind::kDeletePod:
      return removal(pod_path, call.grace_seconds, context.pod_uid);
    case CallKind::kFetchOutput:
      return Request{.path = output_path_of(call, context.output_bytes, false)};
    case CallKind::kDeleteClaim:
      return removal(claims_path(call) + "/" + call.name, 0, {});
    case CallKind::kReleasePod:
      break;
  }
  return without(pod_path, "/metadata/finalizers", call.place, {}, kFinalizer);
}

// The engine looks at allocations and at the configuration that a claim got; of others at the uid.
bool is_metadata_enough(const Call& call, const KubernetesSettings& settings) {
  if (call.kind == CallKind::kMakeClaim) return settings.devices != DeviceMode::kOwned;
  return call.kind != CallKind::kAllocate && call.kind != CallKind::kFetchOutput;
}

// Of thousands of starts those that have begun are completed first, so that kube-scheduler has
// something to do, and what frees devices does not wait for what needs them.
kubernetes::Turn turn_of(const Call& call, const KubernetesSettings& settings) {
  const bool is_first_of_start =
      call.kind == CallKind::kMakeClaim ||
      (call.kind == CallKind::kMakePod && settings.devices == DeviceMode::kCounts);
  return is_first_of_start ? kubernetes::Turn::kInOrder : kubernetes::Turn::kNext;
}

}  // namespace

base::Result<Request> request_of(const Call& call, const CallContext& context,
                                 const KubernetesSettings& settings) {
  TRY_ASSIGN(Request request, request_without_turn(call, context, settings));
  request.turn = turn_of(call, settings);
  request.wants_metadata = is_metadata_enough(call, settings);
  return request;
}

}  // namespace gpu_platform::execution
