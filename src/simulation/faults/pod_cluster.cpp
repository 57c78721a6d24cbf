#include "simulation/faults/pod_cluster.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "execution/kubernetes/pods/ranks.h"

namespace gpu_platform::simulation {

namespace {

using execution::CallAnswer;
using execution::CallKind;
using execution::Disruption;
using execution::PodPhase;
using execution::PodView;
using model::AttemptId;

constexpr std::int32_t kAfterTerm = 128 + 15;
constexpr std::int32_t kAfterKill = 128 + 9;
constexpr base::Duration kSchedulerPause = base::seconds(15);

CallAnswer made(bool is_new, std::string uid = {}) {
  if (is_new) return {.status = 201, .uid = std::move(uid)};
  return {.status = 409, .reason = "AlreadyExists"};
}

std::int32_t code_of(const model::Exit& exit) {
  if (exit.code) return *exit.code;
  return 128 + exit.signal.value_or(0);
}

model::Exit exit_of(std::int32_t code) {
  return {.code = static_cast<std::uint8_t>(code), .signal = {}, .lost = model::Lost::kNo};
}

std::string_view reason_of(std::int32_t code, model::EndReason reason) {
  if (reason == model::EndReason::kOutOfMemory) return "OOMKilled";
  return code == 0 ? "Completed" : "Error";
}

// As Kubernetes tells times.
base::Instant whole_second(base::Instant at) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return base::Instant(at.unix_ns() / kSecond * kSecond);
}

}  // namespace

// ---- time

void PodCluster::advance(base::Instant now) {
  while (!due_.empty() && due_.begin()->first <= now) {
    const auto [at, name] = *due_.begin();
    due_.erase(due_.begin());
    now_ = std::max(now_, at);
    Pod& pod = pods_.at(name);
    pod.act_at = {};
    act(pod);
    collect();
  }
  now_ = std::max(now_, now);
}

std::optional<base::Instant> PodCluster::next_event() const {
  if (due_.empty()) return std::nullopt;
  return due_.begin()->first;
}

// Mostly within two seconds, sometimes much later.
base::Instant PodCluster::soon() {
  const std::uint64_t max_ms = !is_healed_ && random_.chance(1, 20) ? 60'000 : 2'000;
  return now_ + base::milliseconds(static_cast<std::int64_t>(1 + random_.below(max_ms)));
}

// The earlier of two appointments is kept.
void PodCluster::schedule(Pod& pod, base::Instant at) {
  if (pod.act_at.is_set() && pod.act_at <= at) return;
  if (pod.act_at.is_set()) due_.erase({pod.act_at, pod.view.name});
  pod.act_at = at;
  due_.insert({at, pod.view.name});
}

void PodCluster::tell(const Pod& pod, bool is_gone) {
  pod_events_.push_back({pod.view, is_gone, soon()});
}

void PodCluster::tell(const Claim& claim, bool is_there) {
  claim_events_.push_back({claim.seen, soon()});
  claim_events_.back().claim.is_there = is_there;
}

void PodCluster::change(PodNode& node) {
  ++node.version;
  node.told_at = soon();
}

// ---- the API

CallAnswer PodCluster::apply(const PodRequest& request) {
  CallAnswer answer;
  switch (request.call.kind) {
    case CallKind::kMakePod:
      answer = make_pod(request);
      break;
    case CallKind::kMakeClaim:
      answer = make_claim(request);
      break;
    case CallKind::kMakeService:
      answer = make_service(request);
      break;
    case CallKind::kDeleteClaim:
      answer = delete_claim(request.call.name);
      break;
    default:
      answer = change_pod(request);
  }
  collect();
  return answer;
}

CallAnswer PodCluster::make_pod(const PodRequest& request) {
  const execution::Call& call = request.call;
  if (pods_.contains(call.name)) return made(false);
  if (!made_.insert({call.attempt, call.rank}).second) {
    findings_.violated(
        "made-once", fmt::format("rank {} of attempt {} of job {} gets another pod, {}", call.rank,
                                 call.attempt.attempt, call.attempt.job.value, call.name));
  }
  Pod pod;
  pod.order = *request.order;
  const std::vector<execution::Rank> ranks = execution::ranks_of(pod.order);
  for (const auto& gpu : ranks.at(call.rank).gpus) pod.devices.push_back(gpu.info.uuid);
  pod.view.name = call.name;
  pod.view.namespace_name = call.namespace_name;
  pod.view.uid = fmt::format("uid-{}", ++last_uid_);
  pod.view.attempt = call.attempt;
  pod.view.rank = call.rank;
  // Others may have put entries of their own before the platform's.
  if (plant_ != Plant::kEarlyFinalizer) {
    pod.view.finalizer_at = static_cast<std::uint32_t>(random_.below(2));
  }
  if (ranks.size() > 1) pod.view.gang_gate_at = static_cast<std::uint32_t>(random_.below(2));
  Pod& kept = pods_.emplace(call.name, std::move(pod)).first->second;
  tell(kept);
  schedule(kept, soon());
  return made(true, kept.view.uid);
}

CallAnswer PodCluster::make_claim(const PodRequest& request) {
  const execution::Call& call = request.call;
  if (claims_.contains(call.name)) return made(false);
  Claim claim;
  claim.seen = {call.namespace_name, call.attempt, call.rank, true};
  const std::vector<execution::Rank> ranks = execution::ranks_of(*request.order);
  for (const auto& gpu : ranks.at(call.rank).gpus) claim.devices.push_back(gpu.info.uuid);
  tell(claims_.emplace(call.name, std::move(claim)).first->second, true);
  return made(true);
}

CallAnswer PodCluster::make_service(const PodRequest& request) {
  return made(services_.emplace(request.call.name, request.pod_uid).second);
}

CallAnswer PodCluster::delete_claim(const std::string& name) {
  const auto claim = claims_.find(name);
  if (claim == claims_.end()) return {.status = 404};
  claim->second.is_deleted = true;
  return {.status = 200};
}

CallAnswer PodCluster::change_pod(const PodRequest& request) {
  const auto found = pods_.find(request.call.name);
  if (found == pods_.end()) return {.status = 404};
  Pod& pod = found->second;
  std::optional<std::uint32_t>* entry = nullptr;
  switch (request.call.kind) {
    case CallKind::kFetchOutput:
      return {.status = 200};
    case CallKind::kDeletePod:
      if (!request.pod_uid.empty() && request.pod_uid != pod.view.uid) {
        return {.status = 409, .reason = "Conflict"};
      }
      if (plant_ == Plant::kEarlyClaim) claims_.erase(request.call.name);
      remove(pod, request.call.grace_seconds);
      return {.status = 200};
    case CallKind::kLiftGate:
      entry = &pod.view.gang_gate_at;
      break;
    case CallKind::kReleasePod:
      entry = &pod.view.finalizer_at;
      break;
    default:
      return {.status = 400};
  }
  if (*entry != request.call.place) return {.status = 422};
  entry->reset();
  tell(pod);
  schedule(pod, soon());
  return {.status = 200};
}

std::vector<PodView> PodCluster::pods() const {
  std::vector<PodView> views;
  for (const auto& [name, pod] : pods_) views.push_back(pod.view);
  return views;
}

std::vector<execution::ClaimSeen> PodCluster::claims() const {
  std::vector<execution::ClaimSeen> seen;
  for (const auto& [name, claim] : claims_) seen.push_back(claim.seen);
  return seen;
}

std::string PodCluster::contents() const {
  return fmt::format("{} pods, {} claims and {} services", pods_.size(), claims_.size(),
                     services_.size());
}

// ---- the life of a pod

void PodCluster::act(Pod& pod) {
  if (pod.view.is_over()) return;
  if (pod.view.node.empty()) return bind(pod);
  if (pod.is_running) return run(pod);
  const PodNode& node = nodes_.at(pod.view.node);
  if (!node.is_there || !node.is_reachable) return;  // its return wakes the pod
  if (pod.outcome) return say_how_it_ended(pod);
  begin(pod);
}

// kube-scheduler and its allocator.
void PodCluster::bind(Pod& pod) {
  if (pod.view.is_being_deleted || pod.view.gang_gate_at) return;
  std::string why = unschedulable(pod);
  if (!why.empty()) {
    if (std::exchange(pod.view.waiting, std::move(why)) != pod.view.waiting) tell(pod);
    return schedule(pod, now_ + kSchedulerPause);
  }
  if (!pod.devices.empty()) claims_.at(pod.view.name).reserved_for = pod.view.uid;
  pod.view.waiting.clear();
  const std::vector<execution::Rank> ranks = execution::ranks_of(pod.order);
  pod.view.node = pod.order.nodes.at(ranks.at(pod.view.rank).node).node_name;
  tell(pod);
  schedule(pod, soon());
}

// Empty: it has a place.
std::string PodCluster::unschedulable(const Pod& pod) const {
  const std::vector<execution::Rank> ranks = execution::ranks_of(pod.order);
  const auto node = nodes_.find(pod.order.nodes.at(ranks.at(pod.view.rank).node).node_name);
  const bool takes_pods = node != nodes_.end() && node->second.is_there &&
                          node->second.is_reachable && !node->second.is_cordoned;
  if (!takes_pods) return "Unschedulable: the node takes no pods";
  if (pod.devices.empty()) return {};
  const auto claim = claims_.find(pod.view.name);
  if (claim == claims_.end() || claim->second.is_deleted) return "Unschedulable: no claim";
  for (const std::string& device : pod.devices) {
    const bool is_held = std::ranges::any_of(claims_, [&](const auto& other) {
      return other.first != claim->first && !other.second.reserved_for.empty() &&
             std::ranges::find(other.second.devices, device) != other.second.devices.end();
    });
    if (is_held || node->second.lent.contains(device)) return "Unschedulable: device in use";
  }
  return {};
}

const execution::VirtualRun& PodCluster::run_of(const execution::StartOrder& order) {
  const auto [found, is_new] = runs_.try_emplace(order.attempt);
  if (is_new) found->second = script_.run_of(order);
  return found->second;
}

// The kubelet takes the pod up.
void PodCluster::begin(Pod& pod) {
  if (pod.view.is_being_deleted) return fail(pod, {}, {});
  pod.run = run_of(pod.order);
  if (!pod.run.launch_error.empty()) {
    if (pod.run.exit.code) {
      const bool is_missing = *pod.run.exit.code == 127;
      return fail(pod, "StartError",
                  is_missing ? "no such file or directory" : "permission denied");
    }
    pod.view.is_image_error = true;
    if (std::exchange(pod.view.waiting, "ImagePullBackOff: the registry does not answer").empty()) {
      tell(pod);
    }
    return;  // its deletion wakes it
  }
  start(pod);
}

void PodCluster::start(Pod& pod) {
  pod.is_running = true;
  pod.view.phase = PodPhase::kRunning;
  pod.view.waiting.clear();
  pod.view.started_at = whole_second(now_);
  pod.ends_at = now_ + pod.run.duration + base::milliseconds(pod.view.rank);
  truth_.rank_started(pod.order, {pod.view.rank, execution::ranks_of(pod.order).size()},
                      pod.devices, now_);
  tell(pod);
  schedule(pod, pod.ends_at);
}

// SIGTERM, and SIGKILL after the grace; a shorter grace counts from when it is seen.
void PodCluster::obey(Pod& pod) {
  const bool is_new = !pod.is_told_to_end || pod.grace_seconds < pod.told_grace;
  if (!pod.view.is_being_deleted || !is_new || !nodes_.at(pod.view.node).is_reachable) return;
  if (!pod.is_told_to_end && !pod.run.ignores_term) pod.term_at = now_ + pod.run.term_delay;
  const base::Instant kill_at = now_ + base::seconds(pod.grace_seconds);
  pod.kill_at = pod.kill_at.is_set() ? std::min(pod.kill_at, kill_at) : kill_at;
  pod.is_told_to_end = true;
  pod.told_grace = pod.grace_seconds;
}

void PodCluster::run(Pod& pod) {
  obey(pod);
  if (pod.ends_at <= now_) return end(pod, code_of(pod.run.exit));
  if (pod.term_at.is_set() && pod.term_at <= now_) return end(pod, kAfterTerm);
  if (pod.kill_at.is_set() && pod.kill_at <= now_) return end(pod, kAfterKill);
  base::Instant next = pod.ends_at;
  if (pod.term_at.is_set()) next = std::min(next, pod.term_at);
  if (pod.kill_at.is_set()) next = std::min(next, pod.kill_at);
  schedule(pod, next);
}

// The container has ended; the kubelet says so later.
void PodCluster::end(Pod& pod, std::int32_t code) {
  pod.is_running = false;
  pod.outcome = code;
  pod.ended_at = now_;
  truth_.rank_ended(pod.view.attempt, pod.view.rank, exit_of(code), now_);
  schedule(pod, soon());
}

void PodCluster::say_how_it_ended(Pod& pod) {
  pod.view.exit_code = pod.outcome;
  pod.view.finished_at = whole_second(pod.ended_at);
  pod.view.phase = *pod.outcome == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  const bool is_own = pod.outcome == code_of(pod.run.exit);
  pod.view.end_reason = reason_of(*pod.outcome, is_own ? pod.run.reason : model::EndReason::kNone);
  tell(pod);
}

// It is over without an exit code.
void PodCluster::fail(Pod& pod, std::string reason, std::string message) {
  pod.view.phase = PodPhase::kFailed;
  pod.view.finished_at = whole_second(now_);
  pod.view.end_reason = std::move(reason);
  pod.view.end_message = std::move(message);
  pod.view.waiting.clear();
  tell(pod);
}

// ---- deletion and disruption

void PodCluster::remove(Pod& pod, std::uint32_t grace_seconds) {
  const bool was_being_deleted = std::exchange(pod.view.is_being_deleted, true);
  pod.grace_seconds =
      was_being_deleted ? std::min(pod.grace_seconds, grace_seconds) : grace_seconds;
  if (!was_being_deleted) tell(pod);
  schedule(pod, soon());
}

void PodCluster::disrupt(Pod& pod, Disruption why) {
  if (pod.view.is_over()) return;
  pod.view.disruption = why;
  pod.view.disruption_text = "its cluster says so";
  if (why != Disruption::kPressure) return remove(pod, 30);
  if (pod.is_running) end(pod, kAfterKill);
  if (pod.outcome) return say_how_it_ended(pod);
  fail(pod, "Evicted", "the node was low on memory");
}

// Its machine is gone or begins anew: nothing of it runs any more.
void PodCluster::die(Pod& pod) {
  if (!pod.is_running) return;
  pod.is_running = false;
  truth_.rank_ended(pod.view.attempt, pod.view.rank,
                    {.code = {}, .signal = {}, .lost = model::Lost::kNodeLost}, now_);
}

// The controllers that collect what nothing holds any more.
void PodCluster::collect() {
  for (auto it = pods_.begin(); it != pods_.end();) {
    Pod& pod = it->second;
    const PodView& view = pod.view;
    const bool goes =
        view.is_being_deleted && !view.finalizer_at && execution::is_dead(view) && !pod.is_running;
    if (goes) tell(pod, true);
    if (goes && pod.act_at.is_set()) due_.erase({pod.act_at, view.name});
    it = goes ? pods_.erase(it) : std::next(it);
  }
  for (auto it = claims_.begin(); it != claims_.end();) {
    const auto pod = pods_.find(it->first);
    const bool is_held = pod != pods_.end() && pod->second.view.uid == it->second.reserved_for &&
                         !pod->second.view.is_over();
    const bool goes = it->second.is_deleted && !is_held;
    if (goes) tell(it->second, false);
    it = goes ? claims_.erase(it) : std::next(it);
  }
  std::erase_if(services_, [this](const auto& service) {
    return std::ranges::none_of(
        pods_, [&](const auto& pod) { return pod.second.view.uid == service.second; });
  });
  for (const auto& [name, pod] : pods_) {
    if (!pod.is_running || pod.devices.empty() || claims_.contains(name)) continue;
    findings_.violated("claimed", fmt::format("pod {} runs and its claim is gone", name));
  }
}

void PodCluster::evict_one() {
  std::vector<Pod*> bound;
  for (auto& [name, pod] : pods_) {
    if (!pod.view.node.empty() && !pod.view.is_over()) bound.push_back(&pod);
  }
  if (bound.empty()) return;
  findings_.count(FaultKind::kPodEvicted);
  Pod& pod = *bound[random_.below(bound.size())];
  const bool is_there = nodes_.at(pod.view.node).is_reachable;
  disrupt(pod, is_there && random_.chance(1, 4) ? Disruption::kPressure : Disruption::kPreempted);
  collect();
}

bool PodCluster::finish(AttemptId attempt, const model::Exit& exit) {
  for (auto& [name, pod] : pods_) {
    if (pod.view.attempt != attempt || !pod.is_running) continue;
    pod.run.exit = exit;
    pod.run.reason = model::EndReason::kNone;
    end(pod, code_of(exit));
    return true;
  }
  return false;
}

std::vector<AttemptId> PodCluster::live_attempts() const {
  std::set<AttemptId> live;
  for (const auto& [name, pod] : pods_) {
    if (!pod.view.is_over()) live.insert(pod.view.attempt);
  }
  return {live.begin(), live.end()};
}

// ---- nodes

template <class Visit>
void PodCluster::for_each_on(const std::string& node, Visit&& visit) {
  for (auto& [name, pod] : pods_) {
    if (pod.view.node == node) visit(pod);
  }
}

void PodCluster::put_node(const model::NodeInfo& info) {
  PodNode& node = nodes_[info.name];
  node.info = info;
  node.whole_cpus = info.cpus;
  node.uid = fmt::format("{}-{}", info.name, ++last_uid_);
  change(node);
}

void PodCluster::trouble(const std::string& name) {
  PodNode& node = nodes_.at(name);
  switch (random_.below(8)) {
    case 0:
    case 1:
      set_reachable(node, !node.is_reachable);
      break;
    case 2:
      replace(node);
      break;
    case 3:
      reboot(node);
      break;
    case 4:
      findings_.count(FaultKind::kServiceChanged);
      node.is_cordoned = !node.is_cordoned;
      break;
    case 5:
      shrink(node);
      break;
    case 6:
      findings_.count(FaultKind::kOthersCame);
      node.others_cpus = static_cast<std::uint32_t>(random_.below(node.info.cpus + 1));
      node.others_memory = base::kGiB * static_cast<std::int64_t>(random_.below(4));
      break;
    default:
      lend(node);
  }
  change(node);
  collect();
}

// Nothing runs less for it; the controllers delete what is on it after five minutes.
void PodCluster::set_reachable(PodNode& node, bool is_reachable) {
  node.is_reachable = is_reachable;
  node.unreachable_since = is_reachable ? base::Instant() : now_;
  findings_.count(is_reachable ? FaultKind::kNodeReturned : FaultKind::kNodeUnreachable);
  for_each_on(node.info.name, [&](Pod& pod) {
    if (is_reachable) schedule(pod, soon());
    if (!is_reachable && random_.chance(1, 2)) disrupt(pod, Disruption::kNodeLost);
  });
}

// The machine is gone, as spot nodes go, and another one has its name.
void PodCluster::replace(PodNode& node) {
  findings_.count(FaultKind::kPodNodeReplaced);
  for_each_on(node.info.name, [&](Pod& pod) {
    die(pod);
    if (pod.view.is_over()) return;
    pod.view.disruption = Disruption::kNodeLost;
    pod.view.disruption_text = "the node is gone";
    pod.view.is_being_deleted = true;
    fail(pod, {}, {});
  });
  node.uid = fmt::format("{}-{}", node.info.name, ++last_uid_);
  node.is_reachable = true;
  node.unreachable_since = {};
  node.is_cordoned = false;
}

// The same Node: its kubelet finds the containers dead.
void PodCluster::reboot(PodNode& node) {
  findings_.count(FaultKind::kNodeRebooted);
  for_each_on(node.info.name, [&](Pod& pod) {
    if (pod.is_running) end(pod, kAfterKill);
    schedule(pod, soon());
  });
  node.is_reachable = true;
  node.unreachable_since = {};
}

void PodCluster::shrink(PodNode& node) {
  findings_.count(FaultKind::kNodeShrunk);
  node.info.cpus = 1 + static_cast<std::uint32_t>(random_.below(node.info.cpus));
}

// A claim of others gets a device that no claim has; or gives it back.
void PodCluster::lend(PodNode& node) {
  if (node.info.gpus.empty()) return;
  const std::string& uuid = node.info.gpus[random_.below(node.info.gpus.size())].uuid;
  if (node.lent.erase(uuid) > 0) return;
  const bool is_held = std::ranges::any_of(claims_, [&](const auto& claim) {
    return !claim.second.reserved_for.empty() &&
           std::ranges::find(claim.second.devices, uuid) != claim.second.devices.end();
  });
  if (is_held) return;
  findings_.count(FaultKind::kGpuUnavailable);
  node.lent.insert(uuid);
}

void PodCluster::heal() {
  is_healed_ = true;
  for (auto& [name, node] : nodes_) {
    if (!node.is_reachable) set_reachable(node, true);
    node.is_cordoned = false;
    node.lent.clear();
    node.info.cpus = node.whole_cpus;
    node.others_cpus = 0;
    node.others_memory = {};
    change(node);
  }
}

}  // namespace gpu_platform::simulation
