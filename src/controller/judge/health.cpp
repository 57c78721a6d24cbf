#include "controller/judge/health.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "controller/health_records.h"
#include "controller/judge/gpu_resets.h"
#include "controller/judge/health_breaker.h"
#include "controller/judge/health_ends.h"
#include "controller/judge/health_evidence.h"
#include "controller/node_conditions.h"
#include "health/policy_rules.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"

namespace gpu_platform::controller {

using health::Action;
using model::Evidence;
using model::HealthMode;
using model::Taint;
using model::TaintEffect;
using model::TaintSource;

namespace {

std::optional<TaintEffect> effect_of(Action action) {
  switch (action) {
    case Action::kNone:
    case Action::kCount:
      return std::nullopt;
    case Action::kAvoid:
      return TaintEffect::kAvoided;
    case Action::kDegrade:
      return TaintEffect::kDegraded;
    case Action::kDrain:
    case Action::kReset:
      return TaintEffect::kNoNewWork;
    case Action::kOffline:
    case Action::kReboot:
      return TaintEffect::kOut;
  }
  return std::nullopt;
}

int severity_of(std::optional<TaintEffect> effect) {
  if (!effect) return 0;
  switch (*effect) {
    case TaintEffect::kAvoided:
      return 1;
    case TaintEffect::kDegraded:
      return 2;
    case TaintEffect::kNoNewWork:
      return 3;
    case TaintEffect::kOut:
      break;
  }
  return 4;
}

// A version without evidence set the taint, or a party that told of none: nothing that is kept
// explains it, so an operator lifts it.
bool is_unexplained(const Taint& own, const model::Node& node, const model::Gpu& gpu) {
  const auto explains = [&](const Evidence& piece) { return piece.at <= own.at; };
  return std::ranges::none_of(*gpu.evidence, explains) &&
         std::ranges::none_of(*node.evidence, explains);
}

Taint taint_of(TaintEffect effect, const std::string& text, const Taint* own) {
  Taint taint{TaintSource::kHealth, effect, text, "health", {}};
  // Other words for the same are no new time.
  if (own != nullptr && own->effect == effect) taint.at = own->at;
  return taint;
}

model::Event lifted(model::GpuRef place) {
  return model::TaintChanged{
      place.node, place.index, {TaintSource::kHealth, {}, {}, "health", {}}, true};
}

// What the GPU runs is lost: it begins anew elsewhere.
void stop_what_runs_on(const State& state, const model::Gpu& gpu, Events& events) {
  for (const model::GpuHolder& holder : gpu.holders) {
    if (is_told_to_stop(state, holder.attempt)) continue;
    events.push_back(
        model::StopRequested{holder.attempt, model::EndReason::kGpuFault, true, "health"});
  }
}

void withhold(model::GpuRef place, const model::Gpu& gpu, std::string text, Events& events) {
  if (gpu.withheld_verdict == text) return;
  events.push_back(model::VerdictWithheld{place, std::move(text)});
}

}  // namespace

std::vector<model::EvidenceRecorded> GpuHealth::take(const State& state,
                                                     const execution::EvidenceObserved& seen,
                                                     base::Instant now) {
  if (model::mode_of(*state.policy) == HealthMode::kOff) return {};
  const auto known = state.node_ids.find(seen.node_name);
  if (known == state.node_ids.end()) return {};
  model::GpuRef place{known->second, PacerOfEvidence::kNodeItself};
  if (!seen.gpu_uuid.empty()) {
    const auto index = model::index_of_gpu(*state.nodes.find(place.node.value), seen.gpu_uuid);
    if (!index) return {};
    place.index = *index;
  }
  return take(state, place, seen.evidence, now);
}

std::vector<model::EvidenceRecorded> GpuHealth::take(const State& state, model::GpuRef place,
                                                     const Evidence& piece, base::Instant now) {
  std::optional<std::uint32_t> gpu;
  if (place.index != PacerOfEvidence::kNodeItself) gpu = place.index;
  const Evidence news = completed_evidence(state, place.node, gpu, piece, now);
  const KnownConditions known{kept_evidence(state, place.node, gpu), pacer_.put_off_of(place),
                              restarted_at(*state.nodes.find(place.node.value))};
  if (is_of_cluster(news) && is_known(news, known)) return {};
  const auto recorded = [&](Evidence each) {
    return model::EvidenceRecorded{place.node, gpu, std::move(each)};
  };
  if (!may_be_put_off(news) || pacer_.take_turn(place, now)) return {recorded(news)};
  const model::Node& node = *state.nodes.find(place.node.value);
  std::vector<Evidence> trial = gpu ? *node.gpus.at(*gpu).evidence : *node.evidence;
  for (const Evidence& each : pacer_.put_off_of(place)) health::keep(trial, each);
  const bool is_joined = health::keep(trial, news);
  if (!is_joined && gpu) {
    const health::GpuKey key = key_of(state, place);
    const health::Rules& rules = rules_of(state);
    const Action before = health::judge_gpu(HealthRecords(state), key, rules, now).action;
    const HealthRecords with(state, place.node, gpu, std::move(trial));
    if (health::judge_gpu(with, key, rules, now).action != before) {
      std::vector<model::EvidenceRecorded> all;
      for (Evidence& each : pacer_.take_put_off(place)) all.push_back(recorded(std::move(each)));
      all.push_back(recorded(news));
      return all;
    }
  }
  pacer_.put_off(place, news);
  return {};
}

std::optional<model::EvidenceRecorded> GpuHealth::next_put_off(const State& state,
                                                               base::Instant now) {
  while (auto due = pacer_.next(now)) {
    const model::Node* const node = state.nodes.find(due->place.node.value);
    const bool is_node = due->place.index == PacerOfEvidence::kNodeItself;
    if (node == nullptr || (!is_node && due->place.index >= node->gpus.size())) continue;
    std::optional<std::uint32_t> gpu;
    if (!is_node) gpu = due->place.index;
    return model::EvidenceRecorded{due->place.node, gpu, std::move(due->piece)};
  }
  return std::nullopt;
}

std::set<model::GpuRef> GpuHealth::touched_by(const State& state,
                                              const model::EvidenceRecorded& recorded) {
  std::set<model::GpuRef> touched;
  const model::Node& node = *state.nodes.find(recorded.node.value);
  for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
    if (!recorded.gpu || !node.gpus[i].evidence->empty()) touched.insert({node.id, i});
  }
  if (recorded.gpu) touched.insert({node.id, *recorded.gpu});
  // Elsewhere it may only clear a GPU: the fault follows the job.
  const auto add_if_judged = [&](const std::vector<model::GpuRef>& places) {
    for (const model::GpuRef place : places) {
      const model::Gpu& gpu = gpu_of(state, place);
      const bool is_judged = model::find_taint(gpu.taints, TaintSource::kHealth) != nullptr ||
                             !gpu.withheld_verdict.empty();
      if (is_judged) touched.insert(place);
    }
  };
  const Evidence& piece = recorded.evidence;
  if (piece.job.valid()) add_if_judged(state.health.with_job(piece.job));
  if (!piece.program.empty()) {
    add_if_judged(state.health.with_program(piece.user, piece.program));
  }
  return touched;
}

Events GpuHealth::judge(const State& state, model::GpuRef place, base::Instant now) {
  Events events;
  look_again(place, {});
  const HealthMode mode = model::mode_of(*state.policy);
  const model::Node& node = *state.nodes.find(place.node.value);
  const model::Gpu& gpu = node.gpus.at(place.index);
  const bool has_evidence = !gpu.evidence->empty() || !node.evidence->empty();
  if (mode == HealthMode::kOff || !has_evidence) return events;
  const health::GpuVerdict verdict =
      health::judge_gpu(HealthRecords(state), key_of(state, place), rules_of(state), now);
  // What is due by now is in the verdict.
  base::Instant again_at = verdict.again_at > now ? verdict.again_at : base::Instant();
  for (const auto kind : {model::EvidenceKind::kReset, model::EvidenceKind::kCheck}) {
    const base::Instant tried_again = refused_until(gpu, kind);
    if (state.policy->health_reset != model::HealthReset::kAuto || tried_again <= now) continue;
    again_at = again_at.is_set() ? std::min(again_at, tried_again) : tried_again;
  }
  if (again_at.is_set()) look_again(place, again_at);
  const std::optional<TaintEffect> effect = effect_of(verdict.action);
  const Taint* const own = model::find_taint(gpu.taints, TaintSource::kHealth);
  std::optional<TaintEffect> present;
  if (own != nullptr) present = own->effect;
  if (mode == HealthMode::kShadow) {
    withhold(place, gpu,
             effect ? fmt::format("{} (not done: health.mode is shadow)", verdict.text) : "",
             events);
    if (own != nullptr && !is_unexplained(*own, node, gpu)) events.push_back(lifted(place));
    return events;
  }
  if (own != nullptr && severity_of(effect) < severity_of(present) &&
      is_unexplained(*own, node, gpu)) {
    return events;
  }
  if (const auto refusal = refusal_of_breaker(state, place, effect)) {
    withhold(place, gpu, fmt::format("{} (not done: {})", verdict.text, *refusal), events);
    return events;
  }
  withhold(place, gpu, "", events);
  if (!effect) {
    if (own != nullptr) events.push_back(lifted(place));
    return events;
  }
  if (own == nullptr || own->effect != *effect || own->text != verdict.text) {
    events.push_back(
        model::TaintChanged{place.node, place.index, taint_of(*effect, verdict.text, own)});
  }
  if (effect == TaintEffect::kOut) stop_what_runs_on(state, gpu, events);
  if (verdict.action == Action::kReset && may_reset_by_itself(state, place, now)) {
    for (model::Event& event : order_resets(state, {place}, verdict.text, "health")) {
      events.push_back(std::move(event));
    }
  }
  return events;
}

std::set<model::GpuRef> GpuHealth::take_due(const State& state, base::Instant now) {
  std::set<model::GpuRef> due;
  if (!has_looked_at_all_) {
    has_looked_at_all_ = true;
    due = state.health.with_evidence();
    due.insert(state.health.withheld().begin(), state.health.withheld().end());
    state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
      if (node.evidence->empty()) return;
      for (std::uint32_t i = 0; i < node.gpus.size(); ++i) due.insert({node.id, i});
    });
  }
  while (!again_.empty() && again_.begin()->first <= now) {
    const model::GpuRef place = again_.begin()->second;
    look_again(place, {});
    const model::Node* const node = state.nodes.find(place.node.value);
    if (node != nullptr && place.index < node->gpus.size()) due.insert(place);
  }
  return due;
}

void GpuHealth::look_again(model::GpuRef place, base::Instant at) {
  if (const auto before = again_at_.find(place); before != again_at_.end()) {
    again_.erase({before->second, place});
    again_at_.erase(before);
  }
  if (!at.is_set()) return;
  again_at_.emplace(place, at);
  again_.emplace(at, place);
}

std::optional<HardwareBlame> GpuHealth::blame(const State& state, const execution::Ended& seen,
                                              base::Instant now) {
  return blame_of_end(state, seen, rules_of(state), now);
}

std::optional<base::Instant> GpuHealth::next(const State& state) const {
  std::optional<base::Instant> next = pacer_.next_at();
  const auto consider = [&](base::Instant at) { next = std::min(next.value_or(at), at); };
  if (!again_.empty()) consider(again_.begin()->first);
  const bool has_something =
      !state.health.with_evidence().empty() || !state.health.withheld().empty();
  if (!has_looked_at_all_ && has_something) consider(state.at);
  return next;
}

const health::Rules& GpuHealth::rules_of(const State& state) {
  if (!rules_ || policy_ != state.policy) {
    rules_ = health::known_rules(*state.policy);
    policy_ = state.policy;
  }
  return *rules_;
}

Events lift_all_of_health(const State& state) {
  Events events;
  state.nodes.for_each([&](std::uint64_t, const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      const model::Gpu& gpu = node.gpus[i];
      if (model::find_taint(gpu.taints, TaintSource::kHealth) != nullptr) {
        events.push_back(lifted({node.id, i}));
      }
      withhold({node.id, i}, gpu, "", events);
    }
  });
  return events;
}

}  // namespace gpu_platform::controller
