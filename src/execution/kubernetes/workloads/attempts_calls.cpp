#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "execution/kubernetes/pods/call_times.h"
#include "execution/kubernetes/workloads/attempt_state.h"
#include "execution/kubernetes/workloads/attempts.h"

// The calls of WorkloadAttempts: what each pod slot needs next, and what the answers mean.

namespace gpu_platform::execution {

void WorkloadAttempts::make_call(Attempt& attempt, PodSlot& slot, WorkloadCall call) {
  call.id = attempts_.next_call_id();
  call.attempt = attempt.id;
  call.rank = slot.rank;
  slot.under_way = call.id;
  under_way_[call.id] = call;
  calls_.push_back(std::move(call));
}

// What the waiting pod that gets the slot needs next.
std::optional<WorkloadCall> WorkloadAttempts::next_of_offer(const Attempt& attempt,
                                                            const PodSlot& slot) const {
  if (!slot.offer) return std::nullopt;
  const WorkloadPod& pod = *slot.offer;
  WorkloadCall call;
  call.namespace_name = pod.namespace_name;
  call.name = pod.name;
  call.uid = pod.uid;
  call.is_counted = slot.rank < attempt.holders();
  if (call.is_counted && !pod.claim.empty() && !slot.is_claim_made) {
    call.kind = WorkloadCallKind::kMakeClaim;
    call.claim = pod.claim;
    call.gpus = attempt.gpus_of(slot.rank);
    return call;
  }
  call.kind = WorkloadCallKind::kAdmitPod;
  if (call.is_counted) call.node = attempt.node_of(slot.rank);
  call.gate_at = pod.gate_at;
  call.has_labels = pod.has_labels;
  call.has_node_selector = pod.has_node_selector;
  return call;
}

std::optional<WorkloadCall> WorkloadAttempts::next_call(Attempt& attempt, PodSlot& slot,
                                                        bool is_surplus, base::Instant now) {
  const bool must_go = attempt.must_go();
  if (!must_go && !is_surplus) return next_of_offer(attempt, slot);
  WorkloadCall call;
  if (slot.is_alive()) {
    const std::uint32_t grace = std::max<std::uint32_t>(
        attempt.stop ? attempt.stop_grace : grace_in_seconds(attempt.order.stop_grace), 1);
    if (slot.is_delete_sent && slot.delete_grace <= grace) return std::nullopt;
    call.kind = WorkloadCallKind::kDeletePod;
    call.namespace_name = slot.pod->namespace_name;
    call.name = slot.pod->name;
    call.uid = slot.pod->uid;
    call.grace_seconds = grace;
    slot.is_delete_sent = true;
    slot.delete_grace = grace;
    return call;
  }
  if (slot.claim.empty() || !attempt.ended) return std::nullopt;
  // It goes when Kubernetes has seen that its pod is over.
  const base::Instant again = slot.claim_asked_at + kClaimRepeat;
  if (slot.claim_asked_at.is_set() && now < again) {
    attempts_.wake_at(attempt, again);
    return std::nullopt;
  }
  call.kind = WorkloadCallKind::kDeleteClaim;
  call.namespace_name = slot.claim_namespace;
  call.claim = slot.claim;
  return call;
}

void WorkloadAttempts::make_calls(Attempt& attempt, base::Instant now) {
  // Which pods are its own is not known yet.
  if (!attempt.has_order && !attempt.is_orphan) return;
  const auto call_for = [&](PodSlot& slot, bool is_surplus) {
    if (slot.under_way != 0) return;
    if (now < slot.not_before) return attempts_.wake_at(attempt, slot.not_before);
    if (auto call = next_call(attempt, slot, is_surplus, now)) {
      make_call(attempt, slot, *std::move(call));
    }
  };
  for (auto& [rank, slot] : attempt.slots) call_for(slot, false);
  for (PodSlot& slot : attempt.surplus) call_for(slot, true);
}

void WorkloadAttempts::answer(std::uint64_t id, const CallAnswer& answer, base::Instant now) {
  const auto place = under_way_.find(id);
  if (place == under_way_.end()) return;
  const WorkloadCall call = std::move(place->second);
  under_way_.erase(place);
  Attempt* attempt = attempts_.find(call.attempt);
  if (attempt == nullptr) return;
  attempts_.touch(call.attempt);
  attempt->is_changed = true;
  PodSlot* slot = nullptr;
  for (auto& [rank, each] : attempt->slots) {
    if (each.under_way == id) slot = &each;
  }
  for (PodSlot& each : attempt->surplus) {
    if (each.under_way == id) slot = &each;
  }
  if (slot == nullptr) return;
  slot->under_way = 0;
  const bool is_ok = answer.status >= 200 && answer.status < 300;
  const bool is_gone = answer.status == 404 && call.kind != WorkloadCallKind::kMakeClaim;
  if (is_ok || is_gone) return settle(*attempt, *slot, call, is_gone, now);
  ++slot->tries;
  slot->not_before = now + pause_after(slot->tries);
  // Another pod of that name: a watch will tell that the one that was meant is gone.
  if (call.kind == WorkloadCallKind::kDeletePod) slot->is_delete_sent = answer.status == 409;
  const bool is_start =
      call.kind == WorkloadCallKind::kAdmitPod || call.kind == WorkloadCallKind::kMakeClaim;
  if (!is_start) return;
  const std::string said =
      answer.text.empty() ? fmt::format("HTTP {}", answer.status) : answer.text;
  attempts_.set_step(*attempt, fmt::format("Kubernetes does not admit its pod: {}", said));
}

// What was asked for is so, or is not needed: its pod is gone.
void WorkloadAttempts::settle(Attempt& attempt, PodSlot& slot, const WorkloadCall& call,
                              bool is_gone, base::Instant now) {
  slot.tries = 0;
  switch (call.kind) {
    case WorkloadCallKind::kDeletePod:
      break;
    case WorkloadCallKind::kMakeClaim:
      slot.is_claim_made = true;
      slot.claim = call.claim;
      slot.claim_namespace = call.namespace_name;
      break;
    case WorkloadCallKind::kDeleteClaim:
      slot.claim_asked_at = now;
      if (is_gone) slot.claim.clear();
      break;
    case WorkloadCallKind::kAdmitPod: {
      slot.offer.reset();
      const bool is_seen = slot.is_there && slot.pod->uid == call.uid;
      if (is_gone || is_seen || attempt.gone.contains(call.uid)) break;
      slot.awaited = call.uid;
      slot.awaited_since = now;
      attempt.was_admitted = true;
      break;
    }
  }
}

}  // namespace gpu_platform::execution
