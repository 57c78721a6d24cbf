#include "health/gpu_case.h"

#include <algorithm>
#include <set>

#include "health/evidence_words.h"

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

std::span<const Evidence> until(std::span<const Evidence> pieces, base::Instant now) {
  const auto end = std::ranges::upper_bound(pieces, now, {}, &Evidence::at);
  return pieces.first(static_cast<std::size_t>(end - pieces.begin()));
}

std::span<const Evidence> since(std::span<const Evidence> pieces, base::Instant at) {
  if (!at.is_set()) return pieces;
  const auto begin = std::ranges::upper_bound(pieces, at, {}, &Evidence::at);
  return pieces.subspan(static_cast<std::size_t>(begin - pieces.begin()));
}

// Of those until then.
base::Instant latest(std::span<const Evidence> pieces, EvidenceKind kind,
                     base::Instant last = base::Instant(INT64_MAX)) {
  base::Instant at;
  for (const Evidence& piece : pieces) {
    if (piece.kind == kind && piece.code == 0 && piece.last <= last) at = std::max(at, piece.last);
  }
  return at;
}

}  // namespace

GpuCase::GpuCase(const Records& records, const GpuKey& gpu, const Rules& rules, base::Instant now)
    : records_(records), gpu_(gpu), rules_(rules), now_(now) {
  pieces_ = until(records.of_gpu(gpu.uuid), now);
  node_pieces_ = until(records.of_node(gpu.node), now);
  const base::Instant node_cleared = latest(node_pieces_, EvidenceKind::kCleared);
  const base::Instant cleared = std::max(node_cleared, latest(pieces_, EvidenceKind::kCleared));
  pieces_ = since(pieces_, cleared);
  node_pieces_ = since(node_pieces_, node_cleared);
  reset_at_ =
      std::max(latest(pieces_, EvidenceKind::kReset), latest(node_pieces_, EvidenceKind::kReset));
  restarted_at_ = std::max(latest(pieces_, EvidenceKind::kNodeRestarted),
                           latest(node_pieces_, EvidenceKind::kNodeRestarted));
  checked_at_ =
      std::max(latest(pieces_, EvidenceKind::kCheck), latest(node_pieces_, EvidenceKind::kCheck));
  repaired_at_ = std::max(latest(pieces_, EvidenceKind::kReset, checked_at_),
                          latest(node_pieces_, EvidenceKind::kReset, checked_at_));
}

// Three jobs of two users: one user's may be blind to what was wrong.
bool GpuCase::has_worked_since(base::Instant at) const {
  std::size_t jobs = 0;
  std::set<std::string_view> users;
  for (const Evidence& piece : pieces_) {
    if (piece.kind != EvidenceKind::kJobEnded || piece.code != 0 || piece.at <= at) continue;
    jobs += piece.count;
    users.insert(piece.user);
  }
  return jobs >= 3 && users.size() >= 2;
}

bool GpuCase::is_cured(base::Instant at, Action action) const {
  if (action == Action::kDegrade && has_worked_since(at)) return true;
  base::Instant cured = std::max(restarted_at_, repaired_at_);
  if (action <= Action::kDegrade) cured = std::max(cured, checked_at_);
  if (action < Action::kReboot) cured = std::max(cured, reset_at_);
  return cured.is_set() && at < cured;
}

bool GpuCase::is_hard(const Evidence& piece) const {
  return health::is_hard(piece, rules_, gpu_);
}

void add_to_bursts(std::vector<Burst>& bursts, const Evidence& piece, base::Duration gap) {
  if (!bursts.empty() && piece.at - bursts.back().end <= gap) {
    bursts.back().end = std::max(bursts.back().end, piece.last);
    return;
  }
  bursts.push_back({piece.at, piece.last});
}

std::size_t max_within(std::span<const Burst> bursts, base::Duration window) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < bursts.size(); ++i) {
    std::size_t count = 0;
    for (std::size_t k = i; k < bursts.size() && bursts[k].begin - bursts[i].begin <= window; ++k) {
      ++count;
    }
    most = std::max(most, count);
  }
  return most;
}

bool is_hard_condition(std::string_view text, const Rules& rules, const GpuKey& gpu) {
  const ConditionMeaning meaning = meaning_of_condition(text, rules, gpu.type, gpu.node);
  const FaultClass fault = meaning.rule->fault;
  return meaning.action >= Action::kDegrade &&
         (fault == FaultClass::kHardware || fault == FaultClass::kDriver);
}

bool is_hard(const Evidence& piece, const Rules& rules, const GpuKey& gpu) {
  switch (piece.kind) {
    case EvidenceKind::kXid: {
      if (piece.code == 74) return true;
      const Rule& rule = rules.of_xid(piece.code, gpu.type, gpu.node);
      if (piece.code == 63 || piece.code == 92) return false;  // no program dies of them
      // What the driver alone can tell is no proof without its word.
      if (rule.fault == FaultClass::kDriver && rule.trusts_driver) return false;
      return rule.action >= Action::kDegrade && rule.fault != FaultClass::kApplication &&
             rule.fault != FaultClass::kUnknown;
    }
    case EvidenceKind::kRecoveryAction:
      return piece.code != 0;
    case EvidenceKind::kEccUncorrected:
    case EvidenceKind::kUnavailable:
    case EvidenceKind::kPoison:
      return true;
    case EvidenceKind::kLost:
    case EvidenceKind::kNotAnswering:
    case EvidenceKind::kNvlinkDown:
    case EvidenceKind::kRemapFailed:
      return !piece.is_over;
    case EvidenceKind::kNodeCondition:
      return !piece.is_over && is_hard_condition(piece.text, rules, gpu);
    default:
      return false;
  }
}

}  // namespace gpu_platform::health
