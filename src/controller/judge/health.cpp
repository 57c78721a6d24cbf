#include "controller/judge/health.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "controller/health_records.h"
#include "controller/judge/gpu_resets.h"
#include "controller/judge/health_breaker.h"
#include "controller/node_conditions.h"
#include "health/evidence_words.h"
#include "health/policy_rules.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"

namespace gpu_platform::controller {

using health::Action;
using model::Evidence;
using model::EvidenceKind;
using model::HealthMode;
using model::Taint;
using model::TaintEffect;
using model::TaintSource;

namespace {

// A job on more GPUs than this tells of its end only those that have other evidence.
constexpr std::uint32_t kMaxGpusOfAnEnd = 64;
// What is older does not make the ends of jobs news.
constexpr base::Duration kRecent = base::hours(24 * 7);

const model::Gpu& gpu_at(const State& state, model::GpuRef place) {
  return state.nodes.find(place.node.value)->gpus.at(place.index);
}

std::string name_of(const State& state, model::GpuRef place) {
  return fmt::format("GPU {} of node {}", place.index, state.nodes.find(place.node.value)->name);
}

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

void name_job(const model::Job& job, Evidence& piece) {
  piece.job = job.id;
  if (piece.user.empty()) piece.user = job.spec->user;
  if (piece.program.empty()) piece.program = model::program_of(*job.spec);
}

const std::vector<Evidence>& kept_of(const State& state, model::NodeId node,
                                     std::optional<std::uint32_t> gpu) {
  if (gpu) return *gpu_at(state, {node, *gpu}).evidence;
  return *state.nodes.find(node.value)->evidence;
}

// One that ends ends after it began, although the clock of its probe was set back meanwhile.
void put_after_its_begin(Evidence& over, const std::vector<Evidence>& kept) {
  for (const Evidence& piece : kept) {
    if (piece.kind != over.kind || piece.is_over || piece.last < over.at) continue;
    over.at = piece.last + base::nanoseconds(1);
    over.last = std::max(over.last, over.at);
  }
}

// The clocks of probes may be ahead. What names no job is laid to the one that held the GPU.
Evidence completed(const State& state, model::NodeId node, std::optional<std::uint32_t> gpu,
                   Evidence piece, base::Instant now) {
  if (!piece.at.is_set() || piece.at > now) piece.at = now;
  piece.last = std::clamp(piece.last, piece.at, now);
  if (piece.is_over) put_after_its_begin(piece, kept_of(state, node, gpu));
  if (piece.job.valid()) {
    const model::Job* const job = find_job(state, piece.job);
    if (job != nullptr) name_job(*job, piece);
    return piece;
  }
  if (!gpu) return piece;
  const model::Gpu& seen = gpu_at(state, {node, *gpu});
  if (seen.holders.size() != 1) return piece;
  const model::AttemptId holder = seen.holders.front().attempt;
  if (piece.at >= find_attempt(state, holder)->requested_at) {
    name_job(*find_job(state, holder.job), piece);
  }
  return piece;
}

// What people say and what the platform did is always written at once.
bool may_be_put_off(const Evidence& piece) {
  return piece.source != model::EvidenceSource::kPerson &&
         piece.source != model::EvidenceSource::kPlatform;
}

// It is not the good end of a job, nor a start.
bool tells_of_trouble(const Evidence& piece) {
  return piece.kind != EvidenceKind::kJobStarted &&
         !(piece.kind == EvidenceKind::kJobEnded && piece.code == 0);
}

bool has_recent_trouble(const model::Gpu& gpu, base::Instant now) {
  return std::ranges::any_of(*gpu.evidence, [&](const Evidence& piece) {
    return tells_of_trouble(piece) && now - piece.last <= kRecent;
  });
}

// Returns whether the good end of a job is news: it clears the GPU of what was seen since the last
// one, or, for a program that had trouble elsewhere, that one.
bool is_news(const model::Gpu& gpu, const Evidence& end, bool has_known_program,
             base::Instant now) {
  base::Instant did_well;
  base::Instant trouble;
  bool program_did_well = false;
  for (const Evidence& piece : *gpu.evidence) {
    if (now - piece.last > kRecent) continue;
    base::Instant& latest = tells_of_trouble(piece) ? trouble : did_well;
    latest = std::max(latest, piece.last);
    program_did_well |= !tells_of_trouble(piece) && piece.program == end.program &&
                        piece.user == end.user && now - piece.last <= base::hours(1);
  }
  if (trouble.is_set() && trouble >= did_well) return true;
  return has_known_program && !program_did_well;
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

// Returns whether it failed by itself, as far as its exit tells.
bool failed_by_itself(const model::Attempt& attempt, const execution::Ended& seen) {
  if (attempt.stop_reason != model::EndReason::kNone) return false;
  if (seen.exit.lost != model::Lost::kNo) return false;
  if (seen.reason == model::EndReason::kLaunchFailed) return !seen.exit.code.has_value();
  return seen.reason == model::EndReason::kNone && seen.exit.code != 0;
}

std::vector<model::GpuRef> gpus_of(const model::Allocation& allocation) {
  std::vector<model::GpuRef> gpus;
  for (const model::NodeAllocation& part : allocation.nodes) {
    for (const model::GpuGrant& grant : part.grants) gpus.push_back({part.node, grant.gpu_index});
  }
  return gpus;
}

std::uint32_t code_of(const model::Exit& exit) {
  if (exit.signal) return 128U + *exit.signal;
  return exit.code.value_or(0);
}

}  // namespace

std::optional<EndOnGpus> end_on_gpus(const State& state, const execution::Ended& seen,
                                     base::Instant now) {
  const model::Attempt* const attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || !model::may_have_processes(attempt->state)) return std::nullopt;
  if (model::mode_of(*state.policy) == HealthMode::kOff) return std::nullopt;
  EndOnGpus end;
  end.gpus = gpus_of(attempt->allocation);
  const bool has_failed = failed_by_itself(*attempt, seen);
  const bool did_well = seen.exit.code == 0 && seen.reason == model::EndReason::kNone &&
                        attempt->stop_reason == model::EndReason::kNone;
  if (end.gpus.empty() || !(has_failed || did_well)) return std::nullopt;
  const model::Job& job = *find_job(state, seen.attempt.job);
  name_job(job, end.evidence);
  const bool is_known =
      did_well && !state.health.with_program(end.evidence.user, end.evidence.program).empty();
  const bool has_many = end.gpus.size() > kMaxGpusOfAnEnd;
  std::erase_if(end.gpus, [&](model::GpuRef place) {
    const model::Gpu& gpu = gpu_at(state, place);
    if (did_well) return !is_news(gpu, end.evidence, is_known, now);
    return has_many && !has_recent_trouble(gpu, now);
  });
  if (end.gpus.empty()) return std::nullopt;
  const bool never_began = seen.reason == model::EndReason::kLaunchFailed;
  // Most starts fail by files and folders, which tell nothing of GPUs.
  if (never_began && !health::tells_of_hardware(seen.detail)) return std::nullopt;
  end.evidence.kind = never_began ? EvidenceKind::kStartFailed : EvidenceKind::kJobEnded;
  end.evidence.source = model::EvidenceSource::kJob;
  end.evidence.at = seen.at.is_set() ? std::min(seen.at, now) : now;
  end.evidence.last = end.evidence.at;
  end.evidence.code = code_of(seen.exit);
  if (never_began) end.evidence.text = seen.detail;
  return end;
}

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
  const Evidence news = completed(state, place.node, gpu, piece, now);
  const KnownConditions known{kept_of(state, place.node, gpu), pacer_.put_off_of(place),
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
      const model::Gpu& gpu = gpu_at(state, place);
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
  if (verdict.again_at > now) look_again(place, verdict.again_at);
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
  const model::Attempt* const attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || !model::may_have_processes(attempt->state)) return std::nullopt;
  const bool is_stopped = attempt->stop_reason == model::EndReason::kGpuFault;
  const bool judges = model::mode_of(*state.policy) == HealthMode::kExecute;
  if (!is_stopped && !(judges && failed_by_itself(*attempt, seen))) return std::nullopt;
  HardwareBlame blame;
  const auto accuse = [&](model::GpuRef place, std::string_view how) {
    blame.suspects.push_back(gpu_at(state, place).info.uuid);
    if (blame.text.empty()) blame.text = fmt::format("{} failed: {}", name_of(state, place), how);
  };
  const std::vector<model::GpuRef> gpus = gpus_of(attempt->allocation);
  if (is_stopped) {
    for (const model::GpuRef place : gpus) {
      const Taint* const own = model::find_taint(gpu_at(state, place).taints, TaintSource::kHealth);
      if (own != nullptr && own->effect == TaintEffect::kOut) accuse(place, own->text);
    }
    if (blame.text.empty()) blame.text = "a GPU failed under it";
    return blame;
  }
  if (gpus.empty()) return std::nullopt;
  const model::Job& job = *find_job(state, seen.attempt.job);
  const std::string_view program = model::program_of(*job.spec);
  health::FailedJob failed{job.id, job.spec->user, program, {}, {}, {}};
  for (const model::GpuRef place : gpus) failed.gpus.push_back(key_of(state, place));
  failed.started_at = attempt->started_at.is_set() ? attempt->started_at : attempt->requested_at;
  failed.ended_at = seen.at.is_set() ? std::min(seen.at, now) : now;
  const health::JobVerdict verdict =
      health::judge_job(HealthRecords(state), failed, rules_of(state));
  if (verdict.fault != health::FaultClass::kHardware) return std::nullopt;
  const std::string why = verdict.reasons.empty() ? std::string() : verdict.reasons.front();
  for (const model::GpuRef place : gpus) {
    const std::string& uuid = gpu_at(state, place).info.uuid;
    if (std::ranges::find(verdict.suspect_gpus, uuid) != verdict.suspect_gpus.end()) {
      accuse(place, why);
    }
  }
  if (blame.text.empty()) blame.text = fmt::format("the hardware failed: {}", why);
  return blame;
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

std::vector<model::EvidenceRecorded> restart_of(const State& state, model::NodeId id,
                                                base::Instant now) {
  const model::Node& node = *state.nodes.find(id.value);
  const bool matters =
      !node.evidence->empty() ||
      std::ranges::any_of(node.gpus, [](const model::Gpu& gpu) { return !gpu.evidence->empty(); });
  if (!matters || model::mode_of(*state.policy) == HealthMode::kOff) return {};
  Evidence piece;
  piece.kind = EvidenceKind::kNodeRestarted;
  piece.source = model::EvidenceSource::kPlatform;
  piece.at = now;
  piece.last = now;
  return {{id, std::nullopt, std::move(piece)}};
}

bool is_silent(const model::Gpu& gpu) {
  const auto lasts = [&](EvidenceKind kind) {
    const auto latest = std::find_if(gpu.evidence->rbegin(), gpu.evidence->rend(),
                                     [&](const Evidence& piece) { return piece.kind == kind; });
    return latest != gpu.evidence->rend() && !latest->is_over;
  };
  return lasts(EvidenceKind::kLost) || lasts(EvidenceKind::kNotAnswering);
}

bool does_not_answer(const model::Gpu& gpu) {
  const Taint* const own = model::find_taint(gpu.taints, TaintSource::kHealth);
  return own != nullptr && own->effect == TaintEffect::kOut && is_silent(gpu);
}

Evidence cleared_by(const std::string& user, const std::string& reason, base::Instant now) {
  Evidence piece;
  piece.kind = EvidenceKind::kCleared;
  piece.source = model::EvidenceSource::kPerson;
  piece.at = now;
  piece.last = now;
  piece.text = reason.empty() ? user : fmt::format("{}: {}", user, reason);
  return piece;
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
