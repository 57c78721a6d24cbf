#include <algorithm>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"
#include "health/gpu_judgement.h"

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

namespace {

std::string_view what_happens(const Finding& finding) {
  if (finding.is_condition && finding.action == Action::kDegrade) {
    return "it gets no new work without --accept-degraded until that has ended";
  }
  if (finding.is_condition && finding.action == Action::kDrain) {
    return "it gets no new work until that has ended";
  }
  switch (finding.action) {
    case Action::kNone:
    case Action::kCount:
      return "it goes on working";
    case Action::kAvoid:
      return "it gets no new work until that has ended";
    case Action::kDegrade:
      return "it gets no new work without --accept-degraded until it has passed a check";
    case Action::kDrain:
      return "it gets no new work until a person has looked at it";
    case Action::kReset:
      return "it gets no new work until it has been reset";
    case Action::kOffline:
      return "it is out, and what ran on it is lost";
    case Action::kReboot:
      return "it is out until its node has been restarted";
  }
  return {};
}

std::string_view what_helps(const Finding& finding) {
  const Action action = finding.action;
  const std::string_view rule = finding.rule->name;
  const bool is_held = action == Action::kDegrade || action == Action::kDrain;
  if (finding.is_condition && is_held) {
    return "repair its node; it comes back when the condition ends, or with 'gpu-platform online'";
  }
  if (rule == "often-reset" || rule == "often-fatal") {
    return "ask its vendor for a replacement; then run 'gpu-platform online'";
  }
  if (rule == "xid-54") return "connect its power, then run 'gpu-platform online'";
  if (rule == "pcie-width") return "reseat it, then run 'gpu-platform online'";
  if (rule == "remap-failed" && action == Action::kOffline) return "replace it";
  switch (action) {
    case Action::kNone:
    case Action::kCount:
      return {};
    case Action::kAvoid:
      return "it comes back by itself";
    case Action::kDegrade:
      return "run 'gpu-platform health check'; it comes back after a passed check";
    case Action::kDrain:
      return "repair it, then run 'gpu-platform online'";
    case Action::kReset:
      return "run 'gpu-platform reset'; it comes back after a passed check";
    case Action::kOffline:
      return "repair it, then run 'gpu-platform online'";
    case Action::kReboot:
      return "restart its node";
  }
  return {};
}

}  // namespace

GpuVerdict GpuJudgement::judge() {
  find_xids();
  find_recovery_action();
  find_levels();
  find_counters();
  find_driver_events();
  find_node_faults();
  find_repairs();
  find_suspicions(gpu_, findings_);
  find_complaints(gpu_, findings_);
  return verdict();
}

// Resets of healthy GPUs, for a program's errors or by custom, leave nothing to be proven.
bool GpuJudgement::had_fault_by(base::Instant at) const {
  return std::ranges::any_of(gpu_.pieces(), [&](const Evidence& piece) {
    if (piece.at > at) return false;
    if (piece.kind == EvidenceKind::kXid) {
      const FaultClass fault = gpu_.xid(piece.code).fault;
      return fault == FaultClass::kHardware || fault == FaultClass::kDriver;
    }
    return piece.kind < EvidenceKind::kJobStarted || piece.kind == EvidenceKind::kComplaint ||
           model::is_failed_trial(piece);
  });
}

void GpuJudgement::find_repairs() {
  const Evidence* failed_check = nullptr;
  const Evidence* failed_reset = nullptr;
  const Evidence* refused_check = nullptr;
  std::size_t resets = 0;
  for (const std::span<const Evidence> pieces : {gpu_.node_pieces(), gpu_.pieces()}) {
    for (const Evidence& piece : pieces) {
      if (model::is_refused_trial(piece)) {
        if (piece.kind == EvidenceKind::kCheck) refused_check = &piece;
        continue;
      }
      if (piece.kind == EvidenceKind::kCheck && piece.code != 0) failed_check = &piece;
      if (piece.kind != EvidenceKind::kReset) continue;
      if (piece.code != 0) failed_reset = &piece;
      if (gpu_.is_recent(piece.last, kWeek)) resets += piece.count;
    }
  }
  if (failed_check != nullptr && failed_check->last > gpu_.checked_at()) {
    const Rule& rule = gpu_.rule("check-failed");
    add(rule, rule.action, failed_check->last,
        failed_check->text.empty() ? std::string(rule.what)
                                   : fmt::format("{}: {}", rule.what, failed_check->text));
  }
  if (failed_reset != nullptr && failed_reset->last > gpu_.reset_at() &&
      !gpu_.is_cured(failed_reset->last, Action::kReboot)) {
    const Rule& rule = gpu_.rule("reset-failed");
    add(rule, rule.action, failed_reset->last,
        failed_reset->text.empty() ? std::string(rule.what)
                                   : fmt::format("{}: {}", rule.what, failed_reset->text));
  }
  if (gpu_.reset_at().is_set() && gpu_.checked_at() < gpu_.reset_at() &&
      gpu_.restarted_at() < gpu_.reset_at() && had_fault_by(gpu_.reset_at()) &&
      !gpu_.has_worked_since(gpu_.reset_at())) {
    const Rule& rule = gpu_.rule("unchecked");
    std::string text(rule.what);
    const bool was_refused = refused_check != nullptr && refused_check->last >= gpu_.reset_at();
    if (was_refused) text += fmt::format(" ({})", refused_check->text);
    add(rule, rule.action, gpu_.reset_at(), std::move(text));
  }
  if (resets >= kResetsInAWeek) {
    const Rule& rule = gpu_.rule("often-reset");
    add(rule, rule.action, gpu_.reset_at(), fmt::format("{} resets in a week", resets));
  }
  std::vector<Burst> fatal;
  for (const Evidence& piece : gpu_.pieces()) {
    if (piece.kind != EvidenceKind::kXid || piece.code == 31 || piece.code == 45) continue;
    const Rule& rule = gpu_.xid(piece.code);
    if (rule.action < Action::kDegrade || !gpu_.is_recent(piece.last, kWeek)) continue;
    add_to_bursts(fatal, piece, kBurst);
  }
  if (max_within(fatal, kDay) >= kFatalInADay) {
    const Rule& rule = gpu_.rule("often-fatal");
    add(rule, rule.action, fatal.back().end,
        fmt::format("fatal errors {} times in a day", max_within(fatal, kDay)));
  }
}

GpuVerdict GpuJudgement::verdict() {
  GpuVerdict verdict;
  std::erase_if(findings_, [](const Finding& each) { return each.rule->mode == RuleMode::kOff; });
  const auto rank = [](const Finding& each) {
    const bool acts = each.rule->mode == RuleMode::kExecute;
    return std::tuple(acts, each.action, each.confidence_percent, each.at);
  };
  std::ranges::stable_sort(findings_,
                           [&](const Finding& a, const Finding& b) { return rank(a) > rank(b); });
  std::uint64_t doubt = 100;
  for (const Finding& each : findings_) {
    if (each.again_at > gpu_.now() &&
        (!verdict.again_at.is_set() || each.again_at < verdict.again_at)) {
      verdict.again_at = each.again_at;
    }
    const bool is_shadow = each.rule->mode == RuleMode::kShadow;
    if (each.action == Action::kNone) continue;
    verdict.reasons.push_back(
        fmt::format("{}{} at {}.", is_shadow ? "In shadow: " : "", each.text, base::utc(each.at)));
    if (!is_shadow && takes_out(each.action)) {
      doubt = doubt * (100 - std::min<std::uint64_t>(each.confidence_percent, 100)) / 100;
    }
  }
  if (findings_.empty() || findings_.front().rule->mode != RuleMode::kExecute) return verdict;
  const Finding& decisive = findings_.front();
  if (decisive.action == Action::kNone) return verdict;
  verdict.action = decisive.action;
  verdict.fault = decisive.rule->fault;
  // That it happens here and not elsewhere makes an application's error the GPU's.
  if (takes_out(decisive.action) &&
      (verdict.fault == FaultClass::kApplication || verdict.fault == FaultClass::kUnknown)) {
    verdict.fault = FaultClass::kHardware;
  }
  verdict.confidence_percent =
      takes_out(decisive.action)
          ? std::clamp<std::uint32_t>(100 - static_cast<std::uint32_t>(doubt), 1, 99)
          : decisive.confidence_percent;
  verdict.rule = decisive.rule->name;
  verdict.text =
      fmt::format("{} at {}: {}", decisive.text, base::utc(decisive.at), what_happens(decisive));
  verdict.next = what_helps(decisive);
  return verdict;
}

GpuVerdict judge_gpu(const Records& records, const GpuKey& gpu, const Rules& rules,
                     base::Instant now) {
  const GpuCase known(records, gpu, rules, now);
  if (known.pieces().empty() && known.node_pieces().empty()) return {};
  return GpuJudgement(known).judge();
}

}  // namespace gpu_platform::health
