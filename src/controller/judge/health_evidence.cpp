#include "controller/judge/health_evidence.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "health/breaker.h"

namespace gpu_platform::controller {

using model::Evidence;
using model::EvidenceKind;
using model::Taint;
using model::TaintEffect;
using model::TaintSource;

namespace {

// One that ends ends after it began, although the clock of its probe was set back meanwhile.
void put_after_its_begin(Evidence& over, const std::vector<Evidence>& kept) {
  for (const Evidence& piece : kept) {
    if (piece.kind != over.kind || piece.is_over || piece.last < over.at) continue;
    over.at = piece.last + base::nanoseconds(1);
    over.last = std::max(over.last, over.at);
  }
}

}  // namespace

const std::vector<Evidence>& kept_evidence(const State& state, model::NodeId node,
                                           std::optional<std::uint32_t> gpu) {
  if (gpu) return *gpu_of(state, {node, *gpu}).evidence;
  return *state.nodes.find(node.value)->evidence;
}

const model::Gpu& gpu_of(const State& state, model::GpuRef place) {
  return state.nodes.find(place.node.value)->gpus.at(place.index);
}

void name_job(const model::Job& job, Evidence& piece) {
  piece.job = job.id;
  if (piece.user.empty()) piece.user = job.spec->user;
  if (piece.program.empty()) piece.program = model::program_of(*job.spec);
}

Evidence completed_evidence(const State& state, model::NodeId node,
                            std::optional<std::uint32_t> gpu, Evidence piece, base::Instant now) {
  if (!piece.at.is_set() || piece.at > now) piece.at = now;
  piece.last = std::clamp(piece.last, piece.at, now);
  if (piece.is_over) put_after_its_begin(piece, kept_evidence(state, node, gpu));
  if (piece.job.valid()) {
    const model::Job* const job = find_job(state, piece.job);
    if (job != nullptr) name_job(*job, piece);
    return piece;
  }
  if (!gpu) return piece;
  const model::Gpu& seen = gpu_of(state, {node, *gpu});
  if (seen.holders.size() != 1) return piece;
  const model::AttemptId holder = seen.holders.front().attempt;
  if (piece.at >= find_attempt(state, holder)->requested_at) {
    name_job(*find_job(state, holder.job), piece);
  }
  return piece;
}

bool may_be_put_off(const Evidence& piece) {
  return piece.source != model::EvidenceSource::kPerson &&
         piece.source != model::EvidenceSource::kPlatform;
}

std::vector<model::EvidenceRecorded> restart_of(const State& state, model::NodeId id,
                                                base::Instant now) {
  const model::Node& node = *state.nodes.find(id.value);
  const bool matters =
      !node.evidence->empty() ||
      std::ranges::any_of(node.gpus, [](const model::Gpu& gpu) { return !gpu.evidence->empty(); });
  if (!matters || model::mode_of(*state.policy) == model::HealthMode::kOff) return {};
  Evidence piece;
  piece.kind = EvidenceKind::kNodeRestarted;
  piece.source = model::EvidenceSource::kPlatform;
  piece.at = now;
  piece.last = now;
  return {{id, std::nullopt, std::move(piece)}};
}

bool does_not_answer(const model::Gpu& gpu) {
  const Taint* const own = model::find_taint(gpu.taints, TaintSource::kHealth);
  return own != nullptr && own->effect == TaintEffect::kOut && health::is_silent(*gpu.evidence);
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

}  // namespace gpu_platform::controller
