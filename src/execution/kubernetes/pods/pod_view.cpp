#include "execution/kubernetes/pods/pod_view.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "execution/kubernetes/names.h"

namespace gpu_platform::execution {

namespace {

using Json = nlohmann::json;

template <class Number>
std::optional<Number> number_of(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

template <class Number>
std::optional<Number> label_number(const Json& pod, std::string_view label) {
  return number_of<Number>(text_at(pod, {"metadata", "labels", label}));
}

// The place of the first entry that says the text; entries are texts, or objects with a name.
std::optional<std::uint32_t> place_of(const Json& list, std::string_view text) {
  const auto is_it = [&](const Json& one) { return one == text || text_at(one, {"name"}) == text; };
  const auto found = std::ranges::find_if(list, is_it);
  if (found == list.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - list.begin());
}

// Of a list of objects, the one whose `key` is `value`; null if there is none.
const Json& find_by(const Json& list, std::string_view key, std::string_view value) {
  static const Json kNone;
  const auto is_it = [&](const Json& one) { return text_at(one, {key}) == value; };
  const auto found = std::ranges::find_if(list, is_it);
  return found == list.end() ? kNone : *found;
}

bool is_adopted(const Json& pod) {
  return at(pod, {"metadata", "labels", kAdoptedLabel}).is_string();
}

// Of a pod of others: the container that decides about it.
const Json& decisive_status(const Json& statuses) {
  static const Json kNone;
  const auto has_failed = [](const Json& status) {
    return number_at(status, {"state", "terminated", "exitCode"}) != 0;
  };
  const auto failed = std::ranges::find_if(statuses, has_failed);
  if (failed != statuses.end()) return *failed;
  return statuses.empty() ? kNone : statuses.front();
}

const Json& main_status(const Json& pod) {
  const Json& statuses = list_at(pod, {"status", "containerStatuses"});
  return is_adopted(pod) ? decisive_status(statuses) : find_by(statuses, "name", kMainContainer);
}

// A phase that is not known says nothing; whether the main container runs does.
PodPhase phase_of(const Json& pod) {
  const std::string_view phase = text_at(pod, {"status", "phase"});
  if (phase == "Running") return PodPhase::kRunning;
  if (phase == "Succeeded") return PodPhase::kSucceeded;
  if (phase == "Failed") return PodPhase::kFailed;
  if (phase == "Pending") return PodPhase::kPending;
  const bool runs = at(main_status(pod), {"state", "running"}).is_object();
  return runs ? PodPhase::kRunning : PodPhase::kPending;
}

void read_main_container(PodView& view, const Json& pod) {
  const Json& status = main_status(pod);
  const Json& ended = at(status, {"state", "terminated"});
  if (!ended.is_object()) {
    view.started_at = parse_time(text_at(status, {"state", "running", "startedAt"}));
    return;
  }
  view.started_at = parse_time(text_at(ended, {"startedAt"}));
  view.finished_at = parse_time(text_at(ended, {"finishedAt"}));
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::min();
  const std::int64_t code = number_at(ended, {"exitCode"}, kNone);
  if (code >= std::numeric_limits<std::int32_t>::min() &&
      code <= std::numeric_limits<std::int32_t>::max()) {
    view.exit_code = static_cast<std::int32_t>(code);
  }
  view.end_reason = line_at(ended, {"reason"});
  view.end_message = line_at(ended, {"message"});
}

// The pod's own reason says why its containers were ended, so it counts more than theirs.
void read_end_of_pod(PodView& view, const Json& pod) {
  if (!view.is_over()) return;
  const std::string reason = line_at(pod, {"status", "reason"});
  const std::string message = line_at(pod, {"status", "message"});
  if (!reason.empty()) {
    view.end_reason = reason;
    view.end_message = message;
  } else if (view.end_message.empty()) {
    view.end_message = message;
  }
}

// The kubelet ends a pod for lack of something on the node, for its shutdown, or for a critical
// pod.
Disruption disruption_by_kubelet(std::string_view pod_reason) {
  constexpr std::array<std::string_view, 4> kNotForPressure = {"Terminated", "NodeShutdown",
                                                               "Shutdown", "Preempting"};
  const bool is_for_pressure =
      std::ranges::find(kNotForPressure, pod_reason) == kNotForPressure.end();
  return is_for_pressure ? Disruption::kPressure : Disruption::kPreempted;
}

Disruption disruption_of(std::string_view reason, std::string_view pod_reason) {
  if (reason == "TerminationByKubelet") return disruption_by_kubelet(pod_reason);
  if (reason == "DeletionByPodGC") return Disruption::kNodeLost;
  // The scheduler, the eviction API, a taint, and what else may come: others wanted its place.
  return Disruption::kPreempted;
}

// A pod that is evicted without this condition has used more than its own limits allow: that is its
// own failure.
void read_disruption(PodView& view, const Json& pod) {
  const std::string_view pod_reason = text_at(pod, {"status", "reason"});
  if (pod_reason == "NodeLost") {
    view.disruption = Disruption::kNodeLost;
    view.disruption_text = printable_line(pod_reason, text_at(pod, {"status", "message"}));
  }
  const Json& target = find_by(list_at(pod, {"status", "conditions"}), "type", "DisruptionTarget");
  if (text_at(target, {"status"}) != "True") return;
  const std::string_view reason = text_at(target, {"reason"});
  if (view.disruption == Disruption::kNone) view.disruption = disruption_of(reason, pod_reason);
  view.disruption_text = printable_line(reason, text_at(target, {"message"}));
}

bool is_about_image(std::string_view reason) {
  constexpr std::array<std::string_view, 7> kReasons = {
      "ErrImagePull",      "ImagePullBackOff",    "InvalidImageName",         "ErrImageNeverPull",
      "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"};
  return std::ranges::find(kReasons, reason) != kReasons.end();
}

// "ContainerCreating" and "PodInitializing" are the ordinary way to a start.
bool is_ordinary(std::string_view reason) {
  return reason.empty() || reason == "ContainerCreating" || reason == "PodInitializing";
}

// The state of the first container that waits for more than its turn; null if none does.
const Json& waiting_state(const Json& pod) {
  static const Json kNone;
  for (const std::string_view list : {"containerStatuses", "initContainerStatuses"}) {
    for (const Json& status : list_at(pod, {"status", list})) {
      const Json& waiting = at(status, {"state", "waiting"});
      if (!is_ordinary(text_at(waiting, {"reason"}))) return waiting;
    }
  }
  return kNone;
}

void read_waiting(PodView& view, const Json& pod) {
  if (view.phase != PodPhase::kPending) return;
  const Json& waiting = waiting_state(pod);
  if (waiting.is_object()) {
    const std::string_view reason = text_at(waiting, {"reason"});
    view.is_image_error = is_about_image(reason);
    view.waiting = printable_line(reason, text_at(waiting, {"message"}));
    return;
  }
  const Json& scheduled = find_by(list_at(pod, {"status", "conditions"}), "type", "PodScheduled");
  if (text_at(scheduled, {"status"}) != "False") return;
  view.waiting = printable_line(text_at(scheduled, {"reason"}), text_at(scheduled, {"message"}));
}

// The resources that matter here, by what a pod asks for.
struct Amounts {
  std::int64_t milli_cpus = 0;
  std::int64_t memory = 0;
  std::int64_t gpus = 0;
};

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? std::numeric_limits<std::int64_t>::max() : result;
}

Amounts operator+(const Amounts& a, const Amounts& b) {
  return {sum(a.milli_cpus, b.milli_cpus), sum(a.memory, b.memory), sum(a.gpus, b.gpus)};
}

Amounts larger(const Amounts& a, const Amounts& b) {
  return {std::max(a.milli_cpus, b.milli_cpus), std::max(a.memory, b.memory),
          std::max(a.gpus, b.gpus)};
}

// A number in place of a text is a quantity, too.
std::string quantity_text(const Json& value) {
  if (value.is_number_integer()) return value.dump();
  return value.is_string() ? value.get<std::string>() : std::string();
}

Amounts amounts_of(const Json& list, std::string_view gpu_resource) {
  Amounts amounts;
  amounts.milli_cpus = parse_quantity_milli(quantity_text(at(list, {"cpu"}))).value_or(0);
  amounts.memory = parse_quantity(quantity_text(at(list, {"memory"}))).value_or(0);
  amounts.gpus = parse_quantity(quantity_text(at(list, {gpu_resource}))).value_or(0);
  return amounts;
}

// While a container is resized, the largest of what it asks for, is promised and has counts.
Amounts amounts_of_container(const Json& container, const Json& statuses,
                             std::string_view gpu_resource) {
  const Json& status = find_by(statuses, "name", text_at(container, {"name"}));
  Amounts asked = amounts_of(at(container, {"resources", "requests"}), gpu_resource);
  // A limit alone is a request, too.
  const Amounts most = amounts_of(at(container, {"resources", "limits"}), gpu_resource);
  asked.gpus = std::max(asked.gpus, most.gpus);
  const Amounts promised = amounts_of(at(status, {"allocatedResources"}), gpu_resource);
  const Amounts given = amounts_of(at(status, {"resources", "requests"}), gpu_resource);
  return larger(asked, larger(promised, given));
}

// Init containers run one after another, and sidecars beside all that come after them.
Amounts amounts_of_pod(const Json& pod, std::string_view gpu_resource) {
  const Json& init_statuses = list_at(pod, {"status", "initContainerStatuses"});
  Amounts sidecars;
  Amounts most;
  for (const Json& container : list_at(pod, {"spec", "initContainers"})) {
    const Amounts own = amounts_of_container(container, init_statuses, gpu_resource);
    if (text_at(container, {"restartPolicy"}) == "Always") {
      sidecars = sidecars + own;
      most = larger(most, sidecars);
    } else {
      most = larger(most, sidecars + own);
    }
  }
  Amounts running = sidecars;
  const Json& statuses = list_at(pod, {"status", "containerStatuses"});
  for (const Json& container : list_at(pod, {"spec", "containers"})) {
    running = running + amounts_of_container(container, statuses, gpu_resource);
  }
  Amounts total = larger(most, running);
  // What is asked for the pod as a whole stands for what its containers ask for.
  const Json& whole = at(pod, {"spec", "resources", "requests"});
  const Amounts of_whole = amounts_of(whole, gpu_resource);
  if (!at(whole, {"cpu"}).is_null()) total.milli_cpus = of_whole.milli_cpus;
  if (!at(whole, {"memory"}).is_null()) total.memory = of_whole.memory;
  return total + amounts_of(at(pod, {"spec", "overhead"}), gpu_resource);
}

std::uint32_t bounded(std::int64_t value) {
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp(value, std::int64_t{0}, kMost));
}

bool has_own_name(const Json& object, std::string_view cluster, model::AttemptId attempt,
                  std::uint32_t rank) {
  return rank < kMaxRanks &&
         text_at(object, {"metadata", "name"}) == object_name(cluster, attempt, rank);
}

// Nothing if its labels do not name an attempt.
std::optional<PodView> view_of_labelled(const Json& pod) {
  const auto job = label_number<std::uint64_t>(pod, kJobLabel);
  const auto attempt = label_number<std::uint32_t>(pod, kAttemptLabel);
  const auto rank = label_number<std::uint32_t>(pod, kRankLabel);
  if (!job || !attempt || !rank || !model::JobId(*job).valid()) return std::nullopt;
  PodView view;
  view.name = line_at(pod, {"metadata", "name"});
  view.namespace_name = line_at(pod, {"metadata", "namespace"});
  view.uid = line_at(pod, {"metadata", "uid"});
  view.attempt = {model::JobId(*job), *attempt};
  view.rank = *rank;
  view.node = line_at(pod, {"spec", "nodeName"});
  view.phase = phase_of(pod);
  view.gang_gate_at = place_of(list_at(pod, {"spec", "schedulingGates"}), kGangGate);
  view.is_being_deleted = at(pod, {"metadata", "deletionTimestamp"}).is_string();
  view.finalizer_at = place_of(list_at(pod, {"metadata", "finalizers"}), kFinalizer);
  view.ip = line_at(pod, {"status", "podIP"});
  read_main_container(view, pod);
  read_end_of_pod(view, pod);
  read_disruption(view, pod);
  read_waiting(view, pod);
  return view;
}

// Nothing if its labels do not name an attempt.
std::optional<OwnClaim> labelled_claim_of(const Json& claim) {
  const auto job = label_number<std::uint64_t>(claim, kJobLabel);
  const auto attempt = label_number<std::uint32_t>(claim, kAttemptLabel);
  const auto rank = label_number<std::uint32_t>(claim, kRankLabel);
  if (!job || !attempt || !rank) return std::nullopt;
  return OwnClaim{std::string(text_at(claim, {"metadata", "namespace"})),
                  {model::JobId(*job), *attempt},
                  *rank};
}

}  // namespace

kubernetes::JsonFields fields_of_pods() {
  return {"metadata.name",
          "metadata.namespace",
          "metadata.uid",
          "metadata.labels",
          "metadata.finalizers",
          "metadata.deletionTimestamp",
          "spec.nodeName",
          "spec.schedulingGates.name",
          "spec.overhead",
          "spec.resources.requests",
          "spec.containers.name",
          "spec.containers.resources.requests",
          "spec.containers.resources.limits",
          "spec.initContainers.name",
          "spec.initContainers.restartPolicy",
          "spec.initContainers.resources.requests",
          "spec.initContainers.resources.limits",
          "status.phase",
          "status.reason",
          "status.message",
          "status.podIP",
          "status.conditions.type",
          "status.conditions.status",
          "status.conditions.reason",
          "status.conditions.message",
          "status.containerStatuses.name",
          "status.containerStatuses.state",
          "status.containerStatuses.allocatedResources",
          "status.containerStatuses.allocatedResourcesStatus",
          "status.containerStatuses.resources.requests",
          "status.initContainerStatuses.name",
          "status.initContainerStatuses.state.waiting",
          "status.initContainerStatuses.allocatedResources",
          "status.initContainerStatuses.resources.requests"};
}

bool is_final_image_error(const PodView& pod) {
  return pod.is_image_error &&
         (pod.waiting.contains("InvalidImageName") || pod.waiting.contains("not found") ||
          pod.waiting.contains("unauthorized") || pod.waiting.contains("denied") ||
          pod.waiting.contains("manifest unknown"));
}

std::optional<PodView> view_of_pod(const Json& pod, std::string_view cluster) {
  if (text_at(pod, {"metadata", "labels", kClusterLabel}) != cluster || is_adopted(pod)) {
    return std::nullopt;
  }
  std::optional<PodView> view = view_of_labelled(pod);
  const bool is_own = view && has_own_name(pod, cluster, view->attempt, view->rank);
  return is_own ? std::move(view) : std::nullopt;
}

std::optional<PodView> view_of_adopted_pod(const Json& pod, std::string_view cluster) {
  if (text_at(pod, {"metadata", "labels", kAdoptedLabel}) != cluster) return std::nullopt;
  return view_of_labelled(pod);
}

std::string key_of(const Json& object) {
  return fmt::format("{}/{}", line_at(object, {"metadata", "namespace"}),
                     line_at(object, {"metadata", "name"}));
}

std::optional<OwnClaim> own_claim_of(const Json& claim, std::string_view cluster) {
  if (text_at(claim, {"metadata", "labels", kClusterLabel}) != cluster || is_adopted(claim)) {
    return std::nullopt;
  }
  std::optional<OwnClaim> own = labelled_claim_of(claim);
  const bool is_own = own && has_own_name(claim, cluster, own->attempt, own->rank);
  return is_own ? std::move(own) : std::nullopt;
}

std::optional<OwnClaim> adopted_claim_of(const Json& claim, std::string_view cluster) {
  if (text_at(claim, {"metadata", "labels", kAdoptedLabel}) != cluster) return std::nullopt;
  return labelled_claim_of(claim);
}

OtherPod amounts_asked_by(const Json& pod, std::string_view gpu_resource) {
  OtherPod view;
  view.key = key_of(pod);
  view.node = line_at(pod, {"spec", "nodeName"});
  const Amounts amounts = amounts_of_pod(pod, gpu_resource);
  view.milli_cpus = bounded(amounts.milli_cpus);
  view.memory = base::Bytes(amounts.memory);
  view.counted_gpus = bounded(amounts.gpus);
  return view;
}

std::optional<OtherPod> view_of_other_pod(const Json& pod, std::string_view gpu_resource) {
  const std::string_view phase = text_at(pod, {"status", "phase"});
  if (phase == "Succeeded" || phase == "Failed") return std::nullopt;
  OtherPod view = amounts_asked_by(pod, gpu_resource);
  return view.node.empty() ? std::nullopt : std::optional(std::move(view));
}

}  // namespace gpu_platform::execution
