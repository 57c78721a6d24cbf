#include "execution/kubernetes/workloads/pod.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/api_values.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/pod_view.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

constexpr std::string_view kPriorityAnnotation = "gpu-platform/priority";
constexpr std::string_view kGpusAnnotation = "gpu-platform/gpus";
constexpr std::int64_t kMaxTimeLimit = std::int64_t{365} * 24 * 3600;  // seconds

std::string label_of_pod(const Json& pod, std::string_view label) {
  return line_at(pod, {"metadata", "labels", label});
}

const Json& controller_of(const Json& pod) {
  static const Json kNone;
  for (const Json& owner : list_at(pod, {"metadata", "ownerReferences"})) {
    if (flag_at(owner, {"controller"})) return owner;
  }
  return kNone;
}

// A kind of workload that is known by a label which its controller sets.
struct LabelledKind {
  std::string_view label;
  std::string_view uid_label;  // empty: the uid is the controlling owner's
  std::string_view kind;       // empty: the controlling owner's
  std::string_view api;        // empty: the controlling owner's
};
constexpr std::array kLabelledKinds = {
    LabelledKind{"jobset.sigs.k8s.io/jobset-name", "jobset.sigs.k8s.io/jobset-uid", "JobSet",
                 "jobset.x-k8s.io/v1alpha2"},
    LabelledKind{"training.kubeflow.org/job-name", "", "", ""},
    LabelledKind{"ray.io/cluster", "", "RayCluster", "ray.io/v1"},
    LabelledKind{"batch.kubernetes.io/job-name", "batch.kubernetes.io/controller-uid", "Job",
                 "batch/v1"},
    LabelledKind{"job-name", "controller-uid", "Job", "batch/v1"},
};

std::string first_of_both(std::string_view preferred, std::string other) {
  return preferred.empty() ? std::move(other) : std::string(preferred);
}

bool read_labelled_kind(const LabelledKind& known, const Json& pod, WorkloadPod& view) {
  const std::string name = label_of_pod(pod, known.label);
  if (name.empty()) return false;
  const Json& owner = controller_of(pod);
  std::string uid = known.uid_label.empty() ? std::string() : label_of_pod(pod, known.uid_label);
  view.workload.kind = first_of_both(known.kind, line_at(owner, {"kind"}));
  // The pods of a JobSet belong to its Jobs: their uids would make a workload of each.
  if (uid.empty() && text_at(owner, {"kind"}) == view.workload.kind) uid = line_at(owner, {"uid"});
  view.owner_api = first_of_both(known.api, line_at(owner, {"apiVersion"}));
  view.workload.name = name;
  view.workload.uid = uid;
  return !view.workload.kind.empty();
}

// The owner says what it is, as long as it is not the replica set of a service: each pod of that is
// a workload of its own.
void read_alone(const Json& pod, WorkloadPod& view) {
  view.workload.kind = "Pod";
  view.workload.name = line_at(pod, {"metadata", "name"});
  view.workload.uid = line_at(pod, {"metadata", "uid"});
}

void read_workload(const Json& pod, WorkloadPod& view) {
  view.workload.namespace_name = view.namespace_name;
  if (const std::string group = label_of_pod(pod, kGroupLabel); !group.empty()) {
    // Pods without an owner have no uid in common; a group of the same name is the same workload.
    view.workload.kind = "group";
    view.workload.name = group;
    view.workload.uid = line_at(controller_of(pod), {"uid"});
    return;
  }
  const bool is_known = std::ranges::any_of(kLabelledKinds, [&](const LabelledKind& known) {
    return read_labelled_kind(known, pod, view);
  });
  if (!is_known) read_alone(pod, view);
}

bool read_gates(const Json& pod, WorkloadPod& view) {
  bool has_ours = false;
  std::uint32_t place = 0;
  for (const Json& gate : list_at(pod, {"spec", "schedulingGates"})) {
    std::string name = line_at(gate, {"name"});
    if (name == kAdmissionGate) {
      has_ours = true;
      view.gate_at = place;
    } else {
      view.foreign_gates.push_back(std::move(name));
    }
    ++place;
  }
  return has_ours;
}

void read_condition(const Json& pod, WorkloadPod& view) {
  for (const Json& condition : list_at(pod, {"status", "conditions"})) {
    if (text_at(condition, {"type"}) != kAdmittedCondition) continue;
    view.condition =
        AdmissionCondition{text_at(condition, {"status"}) == "True", line_at(condition, {"reason"}),
                           line_at(condition, {"message"})};
  }
}

std::optional<std::uint32_t> small_number(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// A pod that names a claim which the platform is to make says how many devices that has.
void read_claim(const Json& pod, WorkloadPod& view) {
  const Json& claims = list_at(pod, {"spec", "resourceClaims"});
  if (claims.empty()) return;
  const auto gpus = small_number(line_at(pod, {"metadata", "annotations", kGpusAnnotation}));
  std::string name = line_at(claims.front(), {"resourceClaimName"});
  // The devices of any other claim are chosen by its user.
  if (claims.size() > 1 || name.empty() || gpus.value_or(0) == 0 || view.gpus > 0) {
    view.uncounted = fmt::format(
        "by its resource claims; name a single one that does not exist yet, with the annotation "
        "{}, "
        "or ask for a number of GPUs",
        kGpusAnnotation);
    return;
  }
  view.claim = std::move(name);
  view.gpus = *gpus;
}

// Shares and instances of GPUs, and the names that each DeviceClass has by itself.
bool is_of_gpus(std::string_view resource) {
  return resource.starts_with("nvidia.com/") ||
         resource.starts_with("deviceclass.resource.kubernetes.io/");
}

void read_uncounted(const Json& object, std::string_view gpu_resource, WorkloadPod& view) {
  for (const char* const list : {"limits", "requests"}) {
    for (const auto& [name, amount] : map_at(object, {"resources", list}).items()) {
      if (is_of_gpus(name) && name != gpu_resource) {
        view.uncounted = fmt::format("as {}; ask for {}", printable_line(name), gpu_resource);
      }
    }
  }
}

void read_uncounted_of_all(const Json& pod, std::string_view gpu_resource, WorkloadPod& view) {
  for (const char* const list : {"containers", "initContainers"}) {
    for (const Json& container : list_at(pod, {"spec", list})) {
      read_uncounted(container, gpu_resource, view);
    }
  }
  read_uncounted(at(pod, {"spec"}), gpu_resource, view);
}

// Its first container is what people know it by.
void read_program(const Json& pod, WorkloadPod& view) {
  const Json& containers = list_at(pod, {"spec", "containers"});
  if (containers.empty()) return;
  view.image = line_at(containers.front(), {"image"});
  for (const char* list : {"command", "args"}) {
    for (const Json& word : list_at(containers.front(), {list})) {
      if (word.is_string()) view.command.push_back(printable_line(word.get<std::string>()));
    }
  }
}

}  // namespace

AdmissionCondition not_admitted(std::string_view reason, std::string_view message) {
  return {false, std::string(reason), printable_line(message)};
}

std::string WorkloadRef::key() const {
  return fmt::format("{}/{}/{}/{}", namespace_name, kind, name, uid);
}

std::optional<WorkloadRef> workload_of_key(std::string_view key) {
  std::array<std::string, 4> parts;
  std::size_t part = 0;
  for (const char c : key) {
    if (c != '/') {
      parts.at(part).push_back(c);
    } else if (++part == parts.size()) {
      return std::nullopt;
    }
  }
  if (part + 1 != parts.size() || parts[0].empty() || parts[1].empty()) return std::nullopt;
  return WorkloadRef{parts[0], parts[1], parts[2], parts[3]};
}

std::optional<WorkloadPod> view_of_workload_pod(const Json& pod, std::string_view gpu_resource) {
  WorkloadPod view;
  const std::string_view phase = text_at(pod, {"status", "phase"});
  const bool is_over = phase == "Succeeded" || phase == "Failed";
  if (is_over || at(pod, {"metadata", "deletionTimestamp"}).is_string()) return std::nullopt;
  if (!read_gates(pod, view)) return std::nullopt;
  view.name = line_at(pod, {"metadata", "name"});
  view.namespace_name = line_at(pod, {"metadata", "namespace"});
  view.uid = line_at(pod, {"metadata", "uid"});
  if (view.name.empty() || view.namespace_name.empty() || view.uid.empty()) return std::nullopt;
  read_workload(pod, view);
  view.created_at = parse_time(text_at(pod, {"metadata", "creationTimestamp"}));
  view.has_labels = at(pod, {"metadata", "labels"}).is_object();
  view.has_node_selector = at(pod, {"spec", "nodeSelector"}).is_object();
  for (const auto& [name, value] : map_at(pod, {"spec", "nodeSelector"}).items()) {
    if (value.is_string()) view.node_selector[name] = value.get<std::string>();
  }
  const OtherPod asked = amounts_asked_by(pod, gpu_resource);
  view.gpus = asked.counted_gpus;
  read_claim(pod, view);
  read_uncounted_of_all(pod, gpu_resource, view);
  view.milli_cpus = asked.milli_cpus;
  view.memory = asked.memory;
  view.group_size = small_number(label_of_pod(pod, kGroupSizeLabel));
  view.queue = label_of_pod(pod, kQueueLabel);
  view.priority = line_at(pod, {"metadata", "annotations", kPriorityAnnotation});
  view.time_limit = base::seconds(std::clamp<std::int64_t>(
      number_at(pod, {"spec", "activeDeadlineSeconds"}), 0, kMaxTimeLimit));
  read_program(pod, view);
  read_condition(pod, view);
  return view;
}

}  // namespace gpu_platform::execution
