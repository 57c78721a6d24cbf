#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "execution/kubernetes/job_namespace.h"
#include "execution/kubernetes/names.h"
#include "execution/kubernetes/pods/call_times.h"
#include "execution/kubernetes/pods/pod_attempt_state.h"
#include "execution/kubernetes/pods/pod_attempts.h"
#include "model/job_spec.h"

// The calls of PodAttempts: what each rank needs next, and what the answers mean.

namespace gpu_platform::execution {

namespace {

// Output that the cluster does not give: tried so often.
constexpr int kOutputTries = 4;

}  // namespace

Call PodAttempts::call_of(const Attempt& attempt, std::uint32_t rank, CallKind kind) const {
  Call call;
  call.kind = kind;
  call.attempt = attempt.id;
  call.rank = rank;
  call.namespace_name =
      attempt.has_order ? namespace_of(*attempt.order.spec, settings_) : attempt.namespace_seen;
  call.name = kind == CallKind::kMakeService ? service_name(settings_.cluster, attempt.id)
                                             : object_name(settings_.cluster, attempt.id, rank);
  call.grace_seconds = attempt.stop_grace;
  return call;
}

std::optional<Call> PodAttempts::next_creation(const Attempt& attempt, std::uint32_t index) const {
  const Rank& rank = attempt.ranks[index];
  const auto call = [&](CallKind kind) { return call_of(attempt, index, kind); };
  const bool has_claim =
      settings_.devices != DeviceMode::kCounts && !attempt.shape[index].gpus.empty();
  if (attempt.may_begin && !rank.is_pod_made) {
    if (has_claim && !rank.is_claim_made) return call(CallKind::kMakeClaim);
    return call(CallKind::kMakePod);
  }
  if (!rank.is_pod_made) return std::nullopt;
  const bool is_bound_by_us = settings_.devices == DeviceMode::kOwned;
  const bool all_made =
      std::ranges::all_of(attempt.ranks, [](const Rank& each) { return each.is_pod_made; });
  if (!all_made || (rank.pod && rank.pod->is_being_deleted)) return std::nullopt;
  if (attempt.is_gang() && !rank.is_gate_lifted) {
    if (attempt.is_service_made) {
      // Webhooks may have added gates of others: where ours stands is known when the pod is seen.
      if (!rank.pod || !rank.pod->gang_gate_at) return std::nullopt;
      Call lifting = call(CallKind::kLiftGate);
      lifting.place = *rank.pod->gang_gate_at;
      return lifting;
    }
    const bool is_known = index == 0 && !rank.pod_uid.empty();
    return is_known ? std::optional(call(CallKind::kMakeService)) : std::nullopt;
  }
  if (is_bound_by_us && has_claim && !rank.is_bound) {
    return call(rank.is_allocated ? CallKind::kBind : CallKind::kAllocate);
  }
  return std::nullopt;
}

// Of a pod that has ended.
bool PodAttempts::wants_output(const Attempt& attempt, const Rank& rank) {
  const bool has_run = rank.pod && rank.pod->started_at.is_set();
  return has_run && rank.is_there && !rank.is_output_kept && !attempt.is_orphan &&
         rank.pod->is_over();
}

bool PodAttempts::awaits_output(model::AttemptId id) const {
  const Attempt* attempt = attempts_.find(id);
  return attempt != nullptr && std::ranges::any_of(attempt->ranks, [&](const Rank& rank) {
           return wants_output(*attempt, rank);
         });
}

std::optional<Call> PodAttempts::next_removal(const Attempt& attempt, std::uint32_t index,
                                              base::Instant now) const {
  const Rank& rank = attempt.ranks[index];
  const auto call = [&](CallKind kind) { return call_of(attempt, index, kind); };
  if (wants_output(attempt, rank)) return call(CallKind::kFetchOutput);
  if (rank.is_claim_there) {
    // It goes when Kubernetes has seen that its pod is over.
    const bool is_asked = rank.claim_asked_at.is_set() && now < rank.claim_asked_at + kClaimRepeat;
    return is_asked ? std::nullopt : std::optional(call(CallKind::kDeleteClaim));
  }
  if (!attempt.is_forgotten) return std::nullopt;
  if (rank.is_there) {
    if (!rank.is_released) {
      if (now < rank.kept_until) return std::nullopt;
      Call release = call(CallKind::kReleasePod);
      release.place = rank.pod->finalizer_at.value_or(0);
      return release;
    }
    // Also if it is being deleted: the API server marks it first, and a request that was cut off
    // between the two leaves it so.
    if (!rank.is_delete_sent) {
      Call removal = call(CallKind::kDeletePod);
      removal.grace_seconds = 0;
      return removal;
    }
    return std::nullopt;
  }
  return std::nullopt;
}

std::optional<Call> PodAttempts::next_call(const Attempt& attempt, std::uint32_t index,
                                           base::Instant now) const {
  const Rank& rank = attempt.ranks[index];
  if (attempt.ended) {
    const bool lives = rank.is_there && rank.pod && !is_dead(*rank.pod);
    if (!lives) return next_removal(attempt, index, now);
  }
  const bool must_go = attempt.stop || !attempt.failed_start.empty() || attempt.ended.has_value() ||
                       is_failing(attempt);
  if (!must_go) {
    return index < attempt.shape.size() ? next_creation(attempt, index) : std::nullopt;
  }
  const bool lives = rank.is_there ? !is_dead(*rank.pod) : rank.awaits_sight;
  if (!lives) return std::nullopt;
  const std::uint32_t grace = std::max<std::uint32_t>(attempt.stop_grace, 1);
  const bool is_asked = rank.is_delete_sent && rank.delete_grace <= grace;
  if (is_asked) return std::nullopt;
  Call removal = call_of(attempt, index, CallKind::kDeletePod);
  removal.grace_seconds = grace;
  return removal;
}

void PodAttempts::make_calls(Attempt& attempt, base::Instant now) {
  for (std::uint32_t index = 0; index < attempt.ranks.size(); ++index) {
    Rank& rank = attempt.ranks[index];
    if (rank.under_way != 0) continue;
    std::optional<Call> call = next_call(attempt, index, now);
    if (!call && rank.is_claim_there && rank.claim_asked_at.is_set()) {
      attempts_.wake_at(attempt, rank.claim_asked_at + kClaimRepeat);
    }
    if (!call && attempt.is_forgotten && now < rank.kept_until) {
      attempts_.wake_at(attempt, rank.kept_until);
    }
    if (!call) continue;
    if (now < rank.not_before) {
      attempts_.wake_at(attempt, rank.not_before);
      continue;
    }
    call->id = attempts_.next_call_id();
    rank.under_way = call->id;
    under_way_[call->id] = {attempt.id, index};
    kinds_[call->id] = call->kind;
    if (call->kind == CallKind::kMakePod) rank.kept_until = attempt.former_calls_until;
    if (call->kind == CallKind::kDeletePod) {
      rank.is_delete_sent = true;
      rank.delete_grace = call->grace_seconds;
    }
    calls_.push_back(*std::move(call));
  }
}

void PodAttempts::answer(std::uint64_t id, const CallAnswer& answer, base::Instant now) {
  const auto place = under_way_.find(id);
  if (place == under_way_.end()) return;
  const auto [attempt_id, index] = place->second;
  const CallKind kind = kinds_[id];
  under_way_.erase(place);
  kinds_.erase(id);
  Attempt* attempt = attempts_.find(attempt_id);
  if (attempt == nullptr || attempt->ranks.size() <= index) return;
  Rank& rank = attempt->ranks[index];
  rank.under_way = 0;
  attempts_.touch(attempt_id);
  const bool is_ok = answer.status >= 200 && answer.status < 300;
  const bool is_making =
      kind == CallKind::kMakeClaim || kind == CallKind::kMakePod || kind == CallKind::kMakeService;
  const bool is_there_already =
      is_making && answer.status == 409 && answer.reason == "AlreadyExists";
  const bool is_gone_already = !is_making && answer.status == 404;
  if (!is_ok && !is_there_already && !is_gone_already) {
    return refuse(*attempt, rank, kind, answer, now);
  }
  rank.tries = 0;
  rank.not_before = {};
  settle(*attempt, rank, kind, answer, now);
}

// What the platform asked for is so.
void PodAttempts::settle(Attempt& attempt, Rank& rank, CallKind kind, const CallAnswer& answer,
                         base::Instant now) {
  const bool is_gone = answer.status == 404;
  switch (kind) {
    case CallKind::kMakeService:
      attempt.is_service_made = true;
      break;
    case CallKind::kMakeClaim:
      rank.is_claim_made = true;
      rank.is_claim_there = true;
      break;
    case CallKind::kMakePod:
      rank.is_pod_made = true;
      rank.awaits_sight = !rank.is_there && !rank.was_gone;
      if (!answer.uid.empty()) rank.pod_uid = answer.uid;
      break;
    case CallKind::kAllocate:
      rank.is_allocated = !is_gone;
      break;
    case CallKind::kBind:
      rank.is_bound = true;
      break;
    case CallKind::kLiftGate:
      rank.is_gate_lifted = true;
      break;
    case CallKind::kDeletePod:
      if (is_gone) {
        rank.was_gone = rank.is_there;
        rank.is_there = false;
        rank.awaits_sight = false;
      }
      break;
    case CallKind::kFetchOutput:
      rank.is_output_kept = true;
      break;
    case CallKind::kDeleteClaim:
      rank.is_claim_there = !is_gone && rank.is_claim_there;
      rank.claim_asked_at = now;
      break;
    case CallKind::kReleasePod:
      rank.is_released = true;
      if (is_gone) rank.is_there = false;
      break;
  }
}

// A refusal that another try may overcome is tried again; the job waits with the server's words.
// What the server will never take ends the start.
void PodAttempts::refuse(Attempt& attempt, Rank& rank, CallKind kind, const CallAnswer& answer,
                         base::Instant now) {
  ++rank.tries;
  rank.not_before = now + pause_after(rank.tries);
  if (kind == CallKind::kDeletePod) rank.is_delete_sent = false;
  if (kind == CallKind::kFetchOutput && ++rank.output_tries >= kOutputTries) {
    rank.is_output_kept = true;
    return;
  }
  const std::string said =
      answer.text.empty() ? fmt::format("HTTP {}", answer.status) : answer.text;
  const bool is_start = kind == CallKind::kMakeClaim || kind == CallKind::kMakePod ||
                        kind == CallKind::kMakeService || kind == CallKind::kAllocate ||
                        kind == CallKind::kBind;
  if (!is_start) return;
  const bool is_final =
      answer.status == 400 || answer.status == 413 || answer.status == 422 || answer.status == 404;
  if (is_final && attempt.failed_start.empty()) {
    attempt.failed_start = fmt::format("Kubernetes refused it: {}", said);
    return;
  }
  attempts_.set_step(attempt, answer.status == 0
                                  ? fmt::format("the API server does not answer: {}", said)
                                  : fmt::format("Kubernetes refuses it: {}", said));
}

}  // namespace gpu_platform::execution
