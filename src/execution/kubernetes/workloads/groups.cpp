#include "execution/kubernetes/workloads/groups.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpu_platform::execution {

namespace {

// A condition of a waiting workload changes no more often.
constexpr base::Duration kConditionPause = base::seconds(10);
// That pods come passes within a moment, and is told only when it does not.
constexpr base::Duration kCollectingPause = base::seconds(2);
// An owner is read again after this time while its pods are missing.
constexpr base::Duration kOwnerPause = base::seconds(5);
// A workload whose owner cannot be read is gone when it had no pod for so long.
constexpr base::Duration kGoneTimeout = base::seconds(30);
// Whether admitted pods are still alive is looked at again after this time.
constexpr base::Duration kLivePause = base::seconds(2);
constexpr base::Duration kFirstRefusalPause = base::seconds(15);
constexpr base::Duration kLastRefusalPause = base::minutes(5);

constexpr std::string_view kCollectingReason = "Collecting";

std::string_view why_withdrawn(OwnerEnd end) {
  if (end == OwnerEnd::kDeleted) return kWorkloadDeleted;
  return end == OwnerEnd::kSuspended ? kWorkloadSuspended : kWorkloadFinished;
}

base::Duration pause_after_refusals(int refusals) {
  base::Duration pause = kFirstRefusalPause;
  for (int i = 1; i < refusals && pause < kLastRefusalPause; ++i) pause = pause * 2;
  return std::min(pause, kLastRefusalPause);
}

}  // namespace

WorkloadGroups::WorkloadGroups(KubernetesSettings settings, Nodes nodes, AdmittedOf admitted_of)
    : settings_(std::move(settings)),
      nodes_(std::move(nodes)),
      admitted_of_(std::move(admitted_of)) {}

// ---- time

void WorkloadGroups::wake_at(Group& group, const std::string& key, base::Instant at) {
  if (group.timer.is_set() && group.timer <= at) return;
  if (group.timer.is_set()) timers_.erase({group.timer, key});
  group.timer = at;
  timers_.insert({at, key});
}

void WorkloadGroups::advance(base::Instant now) {
  while (!timers_.empty() && timers_.begin()->first <= now) {
    const std::string key = timers_.begin()->second;
    timers_.erase(timers_.begin());
    if (const auto found = groups_.find(key); found != groups_.end()) found->second.timer = {};
    dirty_.insert(key);
  }
  if (!are_namespaces_listed_ || !are_pods_listed_) return;
  for (const std::string& key : std::exchange(dirty_, {})) {
    const auto found = groups_.find(key);
    if (found == groups_.end()) continue;
    Group& group = found->second;
    step(key, group, now);
    const bool has_job = group.phase == Phase::kWaiting || group.phase == Phase::kActive ||
                         group.phase == Phase::kSubmitted;
    if (!group.pods.empty() || has_job || group.is_owner_asked) continue;
    if (group.timer.is_set()) timers_.erase({group.timer, key});
    groups_.erase(found);
  }
}

base::Instant WorkloadGroups::next_due() const {
  if (!are_namespaces_listed_ || !are_pods_listed_) return {};
  if (!dirty_.empty()) return base::Instant(1);
  return timers_.empty() ? base::Instant() : timers_.begin()->first;
}

void WorkloadGroups::step(const std::string& key, Group& group, base::Instant now) {
  const bool has_changed = std::exchange(group.is_changed, false);
  if (has_changed) group.changed_at = now;
  if (group.pods.empty()) {
    judge_empty(key, group, now);
    return;
  }
  group.is_withdrawn = false;
  if (group.phase == Phase::kRefused) {
    if (!group.try_again_at.is_set()) {
      group.try_again_at = now + pause_after_refusals(group.refusals);
    }
    // Other pods than those that were refused are another question.
    const bool is_due = now >= group.try_again_at || has_changed;
    if (is_due && group.refusals > 0) group.phase = Phase::kCollecting;
    if (!is_due) wake_at(group, key, group.try_again_at);
  }
  if (group.phase == Phase::kCollecting) collect(key, group, now);
  tell_pods(key, group, now);
}

void WorkloadGroups::collect(const std::string& key, Group& group, base::Instant now) {
  if (group.owner && !group.owner->obstacle.empty()) {
    return refuse(group, key, group.owner->obstacle, now);
  }
  if (auto why = why_incomplete(key, group, now)) {
    group.wanted = *std::move(why);
    return;
  }
  submit(key, group, now);
}

// Nothing if all of its pods are there and wait for us alone.
std::optional<AdmissionCondition> WorkloadGroups::why_incomplete(const std::string& key,
                                                                 Group& group, base::Instant now) {
  for (const auto& [uid, pod] : group.pods) {
    if (pod.foreign_gates.empty()) continue;
    return not_admitted("OtherGates", fmt::format("pod {} has scheduling gates of others: {}",
                                                  pod.name, fmt::join(pod.foreign_gates, ", ")));
  }
  const WorkloadPod& first = group.pods.begin()->second;
  std::optional<std::uint32_t> expected = first.group_size;
  if (group.workload.is_single_pod()) expected = 1;
  if (!expected && !owner_path(group.workload, group.owner_api).empty()) {
    if (!group.is_owner_known) {
      ask_owner(key, group, now);
      return not_admitted(kCollectingReason, "its owner is asked how many pods it will have");
    }
    if (group.owner && group.owner->is_there) expected = group.owner->pods;
  }
  if (expected && *expected > 0) {
    if (group.pods.size() >= *expected) return std::nullopt;
    // It may have been scaled.
    if (group.owner_asked_at.is_set() && !first.group_size) {
      if (now >= group.owner_asked_at + kOwnerPause) ask_owner(key, group, now);
      wake_at(group, key, std::max(now, group.owner_asked_at) + kOwnerPause);
    }
    return not_admitted(kCollectingReason,
                        fmt::format("{} of its {} pods are there", group.pods.size(), *expected));
  }
  const base::Instant settled = group.changed_at + settings_.workload_settles;
  if (now >= settled) return std::nullopt;
  wake_at(group, key, settled);
  return not_admitted(kCollectingReason, "it is complete when no further pod comes");
}

void WorkloadGroups::ask_owner(const std::string& key, Group& group, base::Instant now) {
  if (group.is_owner_asked) return;
  group.is_owner_asked = true;
  group.owner_asked_at = now;
  GroupCall call;
  call.kind = GroupCallKind::kReadOwner;
  call.key = key;
  call.path = owner_path(group.workload, group.owner_api);
  calls_.push_back(std::move(call));
}

void WorkloadGroups::refuse(Group& group, const std::string& key, const std::string& why,
                            base::Instant now) {
  group.phase = Phase::kRefused;
  ++group.refusals;
  group.try_again_at = now + pause_after_refusals(group.refusals);
  group.wanted = not_admitted(kRefusedReason, why);
  wake_at(group, key, group.try_again_at);
}

void WorkloadGroups::submit(const std::string& key, Group& group, base::Instant now) {
  const NamespaceTerms& terms = terms_[group.workload.namespace_name];
  const WorkloadPod& first = group.pods.begin()->second;
  const std::string& queue = first.queue.empty() ? terms.queue : first.queue;
  if (queue != kDefaultQueue) {
    return refuse(group, key,
                  fmt::format("the label gpu-platform/queue is '{}', and the platform has one "
                              "queue: {}",
                              queue, kDefaultQueue),
                  now);
  }
  const std::string& user = terms.user.empty() ? settings_.workloads_user : terms.user;
  if (user.empty()) {
    return refuse(
        group, key,
        fmt::format("namespace {} has no label gpu-platform/user, and the platform has no "
                    "engines.kubernetes.workloads.user",
                    group.workload.namespace_name),
        now);
  }
  if (without_rights_.contains(group.workload.namespace_name)) {
    return refuse(group, key,
                  fmt::format("the platform may not admit pods in namespace {}: bind its role "
                              "gpu-platform-queue there",
                              group.workload.namespace_name),
                  now);
  }
  std::vector<WorkloadPod> pods;
  for (const auto& [uid, pod] : group.pods) {
    if (!pod.uncounted.empty()) {
      return refuse(group, key,
                    fmt::format("pod {} asks for devices that the queue does not count, {}",
                                pod.name, pod.uncounted),
                    now);
    }
    if (!pod.claim.empty() && settings_.devices == DeviceMode::kCounts) {
      return refuse(
          group, key,
          fmt::format("pod {} has the annotation gpu-platform/gpus, and the platform makes "
                      "no ResourceClaims here (engines.kubernetes.devices: counts)",
                      pod.name),
          now);
    }
    pods.push_back(pod);
  }
  const base::Duration limit = group.owner ? group.owner->time_limit : base::Duration();
  const std::vector<NodeSize> all = nodes_();
  const std::vector<NodeSize> nodes = nodes_for(*holders_of(pods).front(), all);
  auto spec = spec_of_workload(pods, limit, nodes);
  if (!spec) return refuse(group, key, spec.error().message, now);
  group.phase = Phase::kSubmitted;
  group.wanted = not_admitted("Submitted", "it is handed to the queue");
  WorkloadSubmission submission{key, user, terms.team, *std::move(spec), {}};
  if (nodes.size() < all.size()) {
    for (const NodeSize& node : nodes) submission.nodes.push_back(node.name);
  }
  submissions_.push_back(std::move(submission));
}

// Its job waits, or waits for pods, and there are none.
void WorkloadGroups::judge_empty(const std::string& key, Group& group, base::Instant now) {
  const bool is_active = group.phase == Phase::kActive;
  if ((group.phase != Phase::kWaiting && !is_active) || group.is_withdrawn) return;
  const Admitted admitted = admitted_of_(key);
  // An attempt that has pods ends with them. That of a job that waits has begun or ended just now,
  // or its pods are still being deleted: the queue tells its state later.
  const bool has_attempt =
      is_active ? admitted != Admitted::kAwaited : admitted != Admitted::kNothing;
  if (has_attempt) return wake_at(group, key, now + kLivePause);
  const auto withdraw = [&](std::string_view why) {
    group.is_withdrawn = true;
    withdrawals_.push_back({key, why});
  };
  const bool is_ours = terms_.contains(group.workload.namespace_name);
  if (group.workload.is_single_pod() || !is_ours) return withdraw(kWorkloadDeleted);
  const bool is_readable = !owner_path(group.workload, group.owner_api).empty();
  const bool is_fresh = group.is_owner_known && group.owner_asked_at >= group.changed_at;
  if (is_readable && !is_fresh) return ask_owner(key, group, now);
  if (is_readable && group.owner) {
    if (const auto end = end_of_owner(*group.owner)) return withdraw(why_withdrawn(*end));
    const base::Instant again = group.owner_asked_at + kOwnerPause;
    if (now >= again) return ask_owner(key, group, now);
    return wake_at(group, key, again);
  }
  const base::Instant gone = group.changed_at + kGoneTimeout;
  if (now >= gone) return withdraw(kWorkloadDeleted);
  wake_at(group, key, gone);
}

// ---- what its pods say

void WorkloadGroups::tell_pods(const std::string& key, Group& group, base::Instant now) {
  if (group.phase == Phase::kSubmitted || group.wanted.reason.empty()) return;
  if (group.wanted.reason == kCollectingReason && now < group.changed_at + kCollectingPause) {
    return wake_at(group, key, group.changed_at + kCollectingPause);
  }
  const auto differs = [&](const auto& pod) { return pod.second.condition != group.wanted; };
  if (std::ranges::none_of(group.pods, differs)) return;
  const base::Instant due = group.told_at + kConditionPause;
  if (group.told_at.is_set() && now < due) return wake_at(group, key, due);
  group.told_at = now;
  for (auto& [uid, pod] : group.pods) {
    if (pod.condition == group.wanted) continue;
    pod.condition = group.wanted;  // until the watch tells it; what fails is told with the next
    calls_.push_back({.kind = GroupCallKind::kSetCondition,
                      .key = key,
                      .path = {},
                      .namespace_name = pod.namespace_name,
                      .name = pod.name,
                      .uid = uid,
                      .condition = group.wanted});
  }
  tell_event(key, group);
}

// On transitions alone.
void WorkloadGroups::tell_event(const std::string& key, Group& group) {
  std::string event;
  if (group.phase == Phase::kWaiting) event = "Queued";
  if (group.phase == Phase::kRefused || group.phase == Phase::kCancelled) {
    event = group.wanted.reason;
  }
  if (event.empty() || event == group.told_event) return;
  group.told_event = event;
  const WorkloadPod& first = group.pods.begin()->second;
  AdmissionCondition said = group.wanted;
  said.reason = event;
  calls_.push_back({.kind = GroupCallKind::kMakeEvent,
                    .key = key,
                    .path = {},
                    .namespace_name = first.namespace_name,
                    .name = first.name,
                    .uid = first.uid,
                    .condition = std::move(said),
                    .is_warning = event != "Queued"});
}

// ---- what goes out

std::vector<GroupCall> WorkloadGroups::take_calls() {
  return std::exchange(calls_, {});
}
std::vector<WorkloadSubmission> WorkloadGroups::take_submissions() {
  return std::exchange(submissions_, {});
}
std::vector<WorkloadWithdrawal> WorkloadGroups::take_withdrawals() {
  return std::exchange(withdrawals_, {});
}
std::vector<std::string> WorkloadGroups::take_changed_keys() {
  std::vector<std::string> keys(changed_keys_.begin(), changed_keys_.end());
  changed_keys_.clear();
  return keys;
}

std::vector<WorkloadPod> WorkloadGroups::ready_pods(const std::string& key) const {
  std::vector<WorkloadPod> ready;
  const auto found = groups_.find(key);
  if (found == groups_.end() || found->second.phase == Phase::kCancelled) return ready;
  for (const auto& [uid, pod] : found->second.pods) {
    if (pod.foreign_gates.empty()) ready.push_back(pod);
  }
  return ready;
}

}  // namespace gpu_platform::execution
