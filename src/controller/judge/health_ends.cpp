#include "controller/judge/health_ends.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "controller/health_records.h"
#include "controller/judge/health_evidence.h"
#include "controller/judge/preflight.h"
#include "health/evidence_words.h"
#include "health/verdict.h"
#include "model/policy.h"

namespace gpu_platform::controller {

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

std::string name_of(const State& state, model::GpuRef place) {
  return fmt::format("GPU {} of node {}", place.index, state.nodes.find(place.node.value)->name);
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
  if (!seen.unfit_gpus.empty()) return std::nullopt;  // their checks tell
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
    const model::Gpu& gpu = gpu_of(state, place);
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

std::optional<HardwareBlame> blame_of_end(const State& state, const execution::Ended& seen,
                                          const health::Rules& rules, base::Instant now) {
  const model::Attempt* const attempt = find_attempt(state, seen.attempt);
  if (attempt == nullptr || !model::may_have_processes(attempt->state)) return std::nullopt;
  if (!seen.unfit_gpus.empty()) return blame_unfit(state, seen.unfit_gpus);
  const bool is_stopped = attempt->stop_reason == model::EndReason::kGpuFault;
  const bool judges = model::mode_of(*state.policy) == HealthMode::kExecute;
  if (!is_stopped && !(judges && failed_by_itself(*attempt, seen))) return std::nullopt;
  HardwareBlame blame;
  const auto accuse = [&](model::GpuRef place, std::string_view how) {
    blame.suspects.push_back(gpu_of(state, place).info.uuid);
    if (blame.text.empty()) blame.text = fmt::format("{} failed: {}", name_of(state, place), how);
  };
  const std::vector<model::GpuRef> gpus = gpus_of(attempt->allocation);
  if (is_stopped) {
    for (const model::GpuRef place : gpus) {
      const Taint* const own = model::find_taint(gpu_of(state, place).taints, TaintSource::kHealth);
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
  const health::JobVerdict verdict = health::judge_job(HealthRecords(state), failed, rules);
  if (verdict.fault != health::FaultClass::kHardware) return std::nullopt;
  const std::string why = verdict.reasons.empty() ? std::string() : verdict.reasons.front();
  for (const model::GpuRef place : gpus) {
    const std::string& uuid = gpu_of(state, place).info.uuid;
    if (std::ranges::find(verdict.suspect_gpus, uuid) != verdict.suspect_gpus.end()) {
      accuse(place, why);
    }
  }
  if (blame.text.empty()) blame.text = fmt::format("the hardware failed: {}", why);
  return blame;
}

}  // namespace gpu_platform::controller
