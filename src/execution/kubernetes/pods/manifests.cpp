#include "execution/kubernetes/pods/manifests.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/letters.h"
#include "base/utf8.h"
#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/job_namespace.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/call_times.h"
#include "model/container.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxDnsLabel = 63;
constexpr std::string_view kOurScheduler = "gpu-platform";
constexpr std::string_view kFreesDevices = "resource.kubernetes.io/delete-protection";
// An API server takes 1.5 MiB, and notes beside each variable which of its clients has set it.
constexpr std::size_t kMaxTexts = std::size_t{1} << 20;
constexpr std::size_t kNoteBytes = 64;

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The value of a label, and the name of one without a prefix. A name is not empty.
bool is_label_text(std::string_view text) {
  const auto is_allowed = [](char c) {
    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  };
  if (text.empty()) return true;
  return text.size() <= kMaxDnsLabel && is_letter_or_digit(text.front()) &&
         is_letter_or_digit(text.back()) && std::ranges::all_of(text, is_allowed);
}

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    if (bytes.front() == '\0' || base::take_character(bytes) == base::kNotUtf8) return false;
  }
  return true;
}

// Kubernetes replaces "$(NAME)" in commands and variables, and "$$" by "$".
std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) out.append(c == '$' ? 2 : 1, c);
  return out;
}

Json labels_of(const StartOrder& order, const KubernetesSettings& settings) {
  return {{kClusterLabel, settings.cluster},
          {kJobLabel, fmt::format("{}", order.attempt.job.value)},
          {kAttemptLabel, fmt::format("{}", order.attempt.attempt)}};
}

void put_person(Json& metadata, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  const bool is_label = is_label_text(value);
  metadata[is_label ? "labels" : "annotations"][std::string(key)] = printable_line(value);
}

void put_labels(Json& metadata, const model::JobSpec& spec) {
  Json others = Json::object();
  for (const model::Label& label : spec.labels) {
    if (!label.key.empty() && is_label_text(label.key) && is_label_text(label.value)) {
      metadata["labels"][std::string(kJobLabelPrefix) + label.key] = label.value;
    } else {
      others[printable_line(label.key)] = printable_line(label.value);
    }
  }
  if (!others.empty()) metadata["annotations"][std::string(kOtherLabels)] = others.dump();
}

Json metadata_of(const StartOrder& order, std::string name, const KubernetesSettings& settings) {
  return {{"name", std::move(name)},
          {"namespace", namespace_of(*order.spec, settings)},
          {"labels", labels_of(order, settings)}};
}

Json metadata_of_rank(const StartOrder& order, std::uint32_t rank,
                      const KubernetesSettings& settings) {
  Json metadata = metadata_of(order, object_name(settings.cluster, order.attempt, rank), settings);
  metadata["labels"][std::string(kRankLabel)] = fmt::format("{}", rank);
  return metadata;
}

// Before the platform's own, which win. The core has let only those pass that the site names.
base::Status put_annotations(Json& metadata, const model::JobSpec& spec) {
  for (const model::Label& annotation : spec.annotations) {
    if (!is_text(annotation.key) || !is_text(annotation.value)) {
      return base::invalid("annotations",
                           "an annotation contains a NUL or is not UTF-8, and Kubernetes takes no "
                           "other");
    }
    metadata["annotations"][annotation.key] = annotation.value;
  }
  return {};
}

base::Result<Json> metadata_of_pod(const StartOrder& order, std::uint32_t rank,
                                   const KubernetesSettings& settings) {
  Json metadata = metadata_of_rank(order, rank, settings);
  TRY(put_annotations(metadata, *order.spec));
  put_labels(metadata, *order.spec);
  put_person(metadata, kUserLabel, order.spec->user);
  put_person(metadata, kTeamLabel, order.spec->team);
  if (!order.spec->name.empty()) {
    metadata["annotations"][std::string(kJobName)] = printable_line(order.spec->name);
  }
  metadata["finalizers"] = Json::array({kFinalizer});
  return metadata;
}

Json on_node(std::string_view node) {
  const Json field = {
      {"key", "metadata.name"}, {"operator", "In"}, {"values", Json::array({node})}};
  const Json term = {{"matchFields", Json::array({field})}};
  return {{"nodeSelectorTerms", Json::array({term})}};
}

std::int64_t whole_seconds_up(base::Duration duration) {
  constexpr std::int64_t kSecond = base::seconds(1).value();
  return duration.value() / kSecond + (duration.value() % kSecond > 0 ? 1 : 0);
}

// A node that is away for a moment keeps its pods for as long as the platform keeps its jobs.
Json tolerations_of(const KubernetesSettings& settings) {
  Json tolerations = Json::array();
  for (const char* const key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}) {
    tolerations.push_back({{"key", key},
                           {"operator", "Exists"},
                           {"effect", "NoExecute"},
                           {"tolerationSeconds", whole_seconds_up(settings.lost_after)}});
  }
  for (const std::string& key : settings.tolerated_taints) {
    tolerations.push_back({{"key", key}, {"operator", "Exists"}});
  }
  return tolerations;
}

Json security_of_pod(const model::JobSpec& spec, const KubernetesSettings& settings) {
  Json security = {{"runAsNonRoot", true}, {"seccompProfile", {{"type", "RuntimeDefault"}}}};
  if (settings.runs_as_user) {
    security["runAsUser"] = spec.uid;
    security["runAsGroup"] = spec.gid;
  }
  return security;
}

std::string_view pull_policy(model::ImagePull pull) {
  switch (pull) {
    case model::ImagePull::kMissing:
      return "IfNotPresent";
    case model::ImagePull::kAlways:
      return "Always";
    case model::ImagePull::kNever:
      return "Never";
  }
  return "IfNotPresent";
}

// CPUs and memory that a job did not ask for are a share for planning: they are kept for it, and do
// not limit it.
Json resources_of(const model::JobSpec& spec, const Rank& rank,
                  const KubernetesSettings& settings) {
  Json resources = {{"requests", Json::object()}};
  if (rank.cpus > 0) resources["requests"]["cpu"] = fmt::format("{}", rank.cpus);
  if (rank.memory.value() > 0) {
    resources["requests"]["memory"] = fmt::format("{}", rank.memory.value());
  }
  const auto limit = [&](const char* name, bool is_asked) {
    if (!is_asked || !resources["requests"].contains(name)) return;
    resources["limits"][name] = resources["requests"][name];
  };
  limit("cpu", spec.request.cpus.has_value());
  limit("memory", spec.request.memory.has_value());
  if (rank.gpus.empty()) return resources;
  if (settings.devices == DeviceMode::kCounts) {
    resources["limits"][settings.resource] = fmt::format("{}", rank.gpus.size());
  } else {
    resources["claims"].push_back({{"name", "gpus"}});
  }
  return resources;
}

void put_folder(Json& spec, std::string_view name, std::string_view path, base::Bytes size) {
  const Json in_memory = {{"medium", "Memory"}, {"sizeLimit", fmt::format("{}", size.value())}};
  spec["volumes"].push_back({{"name", name}, {"emptyDir", in_memory}});
  spec["containers"][0]["volumeMounts"].push_back({{"name", name}, {"mountPath", path}});
}

base::Status put_folders(Json& spec, const model::JobSpec& job) {
  if (job.shm_size.value() > 0) put_folder(spec, "shm", "/dev/shm", job.shm_size);
  for (std::size_t i = 0; i < job.tmpfs.size(); ++i) {
    TRY_ASSIGN(const model::ContainerTmpfs tmpfs, model::parse_container_tmpfs(job.tmpfs[i]));
    put_folder(spec, fmt::format("tmpfs-{}", i), tmpfs.target, tmpfs.size);
  }
  return {};
}

// A name that Kubernetes does not take is no variable that a program could ask for by mistake: the
// functions that shells pass on have such names.
bool is_variable_name(std::string_view name) {
  return std::ranges::all_of(name, [](char c) { return c > ' ' && c <= '~'; });
}

base::Result<Json> variables_of(const std::vector<std::string>& environment) {
  Json variables = Json::array();
  for (const std::string& entry : environment) {
    const std::size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) continue;
    const std::string_view name = std::string_view(entry).substr(0, equals);
    if (!is_variable_name(name)) continue;
    const std::string_view value = std::string_view(entry).substr(equals + 1);
    if (!is_text(value)) {
      return base::invalid(
          "environment",
          fmt::format("the value of {} is not UTF-8, and Kubernetes takes no other", name));
    }
    variables.push_back({{"name", name}, {"value", literal(value)}});
  }
  return variables;
}

base::Status check_texts(const model::JobSpec& spec, const std::vector<std::string>& environment) {
  std::size_t bytes = spec.entrypoint.size();
  for (const std::string& text : spec.command) bytes += text.size() + 1;
  for (const std::string& entry : environment) {
    bytes += entry.size() + std::min(entry.find('='), entry.size()) + kNoteBytes;
  }
  if (bytes > kMaxTexts) {
    return base::fail(
        base::ErrorCode::kResourceExhausted,
        fmt::format("command and environment together take {} bytes in a pod, at most "
                    "{} can be handed to it",
                    bytes, kMaxTexts));
  }
  const bool is_command = std::ranges::all_of(spec.command, is_text) && is_text(spec.entrypoint);
  if (is_command) return {};
  return base::invalid("command",
                       "the command contains a NUL or is not UTF-8, and Kubernetes takes no other");
}

// Kubernetes passes the end of input on where it closes the input with the first connection alone:
// PodStreams holds that one until the end of input or of the job. A terminal stays open.
void put_input(Json& container, const model::JobSpec& spec) {
  if (!spec.takes_input) return;
  const bool has_terminal = spec.terminal.has_value();
  container["stdin"] = true;
  container["tty"] = has_terminal;
  container["stdinOnce"] = !has_terminal;
}

base::Result<Json> container_of(const model::JobSpec& spec, const Rank& rank,
                                const PodOptions& options, const KubernetesSettings& settings) {
  TRY(check_texts(spec, options.environment));
  TRY_ASSIGN(Json variables, variables_of(options.environment));
  Json container = {
      {"name", kMainContainer},
      {"image", spec.image},
      {"imagePullPolicy", pull_policy(spec.pull)},
      {"env", std::move(variables)},
      {"resources", resources_of(spec, rank, settings)},
      {"securityContext",
       {{"allowPrivilegeEscalation", false}, {"capabilities", {{"drop", Json::array({"ALL"})}}}}},
  };
  // A command without an entry point of the job's own goes to that of the image.
  if (!spec.entrypoint.empty()) container["command"].push_back(literal(spec.entrypoint));
  for (const std::string& text : spec.command) container["args"].push_back(literal(text));
  if (!spec.container_workdir.empty()) container["workingDir"] = spec.container_workdir;
  put_input(container, spec);
  return container;
}

void put_gang(Json& pod, const StartOrder& order, std::uint32_t rank,
              const KubernetesSettings& settings) {
  pod["hostname"] = host_name(rank);
  pod["subdomain"] = service_name(settings.cluster, order.attempt);
}

void put_site(Json& pod, const KubernetesSettings& settings) {
  if (!settings.priority_class.empty()) pod["priorityClassName"] = settings.priority_class;
  for (const std::string& name : settings.image_pull_secrets) {
    pod["imagePullSecrets"].push_back({{"name", name}});
  }
  // We bind such pods ourselves; kube-scheduler must not allocate their claims before.
  if (settings.devices == DeviceMode::kOwned) pod["schedulerName"] = kOurScheduler;
}

void put_claim(Json& pod, const std::string& claim) {
  pod["resourceClaims"].push_back({{"name", "gpus"}, {"resourceClaimName", claim}});
}

// Text in quotes, as CEL writes it.
std::string cel_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + '"';
}

std::string request_name(std::size_t index) {
  return fmt::format("gpu-{}", index);
}

Rank rank_at(const StartOrder& order, std::uint32_t rank) {
  std::vector<Rank> ranks = ranks_of(order);
  CHECK(rank < ranks.size());
  return std::move(ranks[rank]);
}

}  // namespace

base::Result<Json> pod_manifest(const StartOrder& order, const PodOptions& options,
                                const KubernetesSettings& settings) {
  const model::JobSpec& spec = *order.spec;
  if (settings.runs_as_user && spec.uid == 0) {
    return base::invalid("user", "a pod does not run as root: submit the job as another user");
  }
  const std::size_t ranks = ranks_of(order).size();
  if (ranks > kMaxRanks) {
    return base::invalid("nodes", fmt::format("a job has at most {} pods", kMaxRanks));
  }
  const Rank rank = rank_at(order, options.rank);
  TRY_ASSIGN(Json metadata, metadata_of_pod(order, options.rank, settings));
  TRY_ASSIGN(Json container, container_of(spec, rank, options, settings));
  Json pod = {
      {"restartPolicy", "Never"},
      {"automountServiceAccountToken", false},
      {"enableServiceLinks", false},
      {"terminationGracePeriodSeconds", grace_in_seconds(order.stop_grace)},
      {"securityContext", security_of_pod(spec, settings)},
      {"affinity",
       {{"nodeAffinity",
         {{"requiredDuringSchedulingIgnoredDuringExecution",
           on_node(order.nodes[rank.node].node_name)}}}}},
      {"tolerations", tolerations_of(settings)},
      {"containers", Json::array({std::move(container)})},
  };
  TRY(put_folders(pod, spec));
  put_site(pod, settings);
  if (ranks > 1) put_gang(pod, order, options.rank, settings);
  if (options.has_gate) pod["schedulingGates"].push_back({{"name", kGangGate}});
  if (!rank.gpus.empty() && settings.devices != DeviceMode::kCounts) {
    put_claim(pod, object_name(settings.cluster, order.attempt, options.rank));
  }
  return Json{{"apiVersion", "v1"},
              {"kind", "Pod"},
              {"metadata", std::move(metadata)},
              {"spec", std::move(pod)}};
}

namespace {

Json requests_for(const std::vector<LaunchGpu>& gpus, const KubernetesSettings& settings) {
  Json requests = Json::array();
  for (const LaunchGpu& gpu : gpus) {
    const std::string expression = fmt::format("device.attributes[{}].uuid == {}",
                                               cel_text(settings.driver), cel_text(gpu.info.uuid));
    const bool is_mig = gpu.info.uuid.starts_with("MIG-");
    const Json selector = {{"cel", {{"expression", expression}}}};
    requests.push_back(
        {{"name", request_name(requests.size())},
         {"exactly",
          {{"deviceClassName", is_mig ? settings.mig_device_class : settings.device_class},
           {"allocationMode", "ExactCount"},
           {"count", 1},
           {"selectors", Json::array({selector})}}}});
  }
  return requests;
}

Json claim_of(Json metadata, Json requests) {
  return {{"apiVersion", "resource.k8s.io/v1"},
          {"kind", "ResourceClaim"},
          {"metadata", std::move(metadata)},
          {"spec", {{"devices", {{"requests", std::move(requests)}}}}}};
}

}  // namespace

Json claim_manifest(const StartOrder& order, std::uint32_t rank,
                    const KubernetesSettings& settings) {
  Json metadata = metadata_of_rank(order, rank, settings);
  if (settings.devices == DeviceMode::kOwned) metadata["finalizers"] = Json::array({kFreesDevices});
  return claim_of(std::move(metadata), requests_for(rank_at(order, rank).gpus, settings));
}

Json adopted_claim_manifest(std::string_view namespace_name, std::string_view name,
                            const Json& labels, const std::vector<LaunchGpu>& gpus,
                            const KubernetesSettings& settings) {
  return claim_of({{"name", name}, {"namespace", namespace_name}, {"labels", labels}},
                  requests_for(gpus, settings));
}

Json claim_status(const StartOrder& order, std::uint32_t rank,
                  const std::vector<DeviceName>& devices, std::string_view pod_uid,
                  const KubernetesSettings& settings) {
  const Rank of = rank_at(order, rank);
  CHECK(devices.size() == of.gpus.size());
  Json results = Json::array();
  for (const DeviceName& device : devices) {
    results.push_back({{"request", request_name(results.size())},
                       {"driver", device.driver},
                       {"pool", device.pool},
                       {"device", device.device}});
  }
  const Json reservation = {{"resource", "pods"},
                            {"name", object_name(settings.cluster, order.attempt, rank)},
                            {"uid", pod_uid}};
  return {{"allocation",
           {{"devices", {{"results", std::move(results)}}},
            {"nodeSelector", on_node(order.nodes[of.node].node_name)}}},
          {"reservedFor", Json::array({reservation})}};
}

Json service_manifest(const StartOrder& order, const KubernetesSettings& settings) {
  return {{"apiVersion", "v1"},
          {"kind", "Service"},
          {"metadata", metadata_of(order, service_name(settings.cluster, order.attempt), settings)},
          {"spec",
           {{"clusterIP", "None"},
            // Ranks look for each other before any of them could be ready.
            {"publishNotReadyAddresses", true},
            {"selector", labels_of(order, settings)}}}};
}

}  // namespace gpu_platform::execution
