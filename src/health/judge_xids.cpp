#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "health/evidence_words.h"
#include "health/gpu_judgement.h"
#include "health/nvlink_registers.h"

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

namespace {

constexpr base::Duration kSympathy = base::minutes(2);

std::string_view recovery_rule(std::uint32_t number) {
  constexpr std::string_view kNames[] = {
      "recovery-none",        "recovery-reset",           "recovery-reboot",
      "recovery-drain-peers", "recovery-drain-and-reset", "recovery-imex"};
  if (number == 7) return "recovery-reboot";  // SYSTEM_REBOOT of newer drivers
  return number < std::size(kNames) ? kNames[number] : "recovery-unknown";
}

std::string named(const Rule& rule) {
  return rule.code != 0 ? fmt::format("XID {} ({})", rule.code, rule.what) : std::string(rule.what);
}

}  // namespace

// The latest word of the driver about its recovery, if it came with the fault or after it.
bool GpuJudgement::driver_wants_nothing(base::Instant at) const {
  const Evidence* latest = nullptr;
  for (const Evidence& piece : gpu_.pieces()) {
    if (piece.kind == EvidenceKind::kRecoveryAction && piece.last + kSameTime >= at) {
      latest = &piece;
    }
  }
  return latest != nullptr && latest->code == 0;
}

// Others report errors of their links to a GPU that falls off the bus.
bool GpuJudgement::another_gpu_is_lost(base::Instant at) const {
  for (const std::string_view uuid : gpu_.records().gpus_of_node(gpu_.gpu().node)) {
    if (uuid == gpu_.gpu().uuid) continue;
    for (const Evidence& piece : gpu_.records().of_gpu(uuid)) {
      const bool is_lost = (piece.kind == EvidenceKind::kXid && piece.code == 79) ||
                           (piece.kind == EvidenceKind::kLost && !piece.is_over);
      if (is_lost && piece.at <= at + kSympathy && at <= piece.last + kSympathy) return true;
    }
  }
  return false;
}

// The same program has had the same XID on another GPU.
bool GpuJudgement::had_it_elsewhere(const Evidence& piece) const {
  if (piece.program.empty()) return false;
  for (const std::string_view uuid : gpu_.records().gpus_with_program(piece.user, piece.program)) {
    if (uuid == gpu_.gpu().uuid) continue;
    for (const Evidence& other : gpu_.records().of_gpu(uuid)) {
      if (other.kind == EvidenceKind::kXid && other.code == piece.code &&
          other.user == piece.user && other.program == piece.program) {
        return true;
      }
    }
  }
  return false;
}

void GpuJudgement::find_xids() {
  std::map<std::uint32_t, std::vector<const Evidence*>> by_code;
  for (const Evidence& piece : gpu_.pieces()) {
    if (piece.kind == EvidenceKind::kXid) by_code[piece.code].push_back(&piece);
  }
  // 162 takes back what 163 has said.
  if (const auto disengaged = by_code.find(163); disengaged != by_code.end()) {
    const auto again = by_code.find(162);
    if (again != by_code.end() && again->second.back()->last >= disengaged->second.back()->at) {
      by_code.erase(disengaged);
    }
  }
  std::vector<const Evidence*> unknown;
  for (const auto& [code, pieces] : by_code) {
    const Rule& rule = gpu_.xid(code);
    if (rule.code == 0) {
      unknown.insert(unknown.end(), pieces.begin(), pieces.end());
    } else if (code == 74 && rule.changed_by.empty()) {
      find_nvlink(rule, pieces);
    } else {
      find_xid(rule, pieces);
    }
  }
  std::ranges::sort(unknown, {}, &Evidence::at);
  if (!unknown.empty()) find_xid(gpu_.rule("xid-unknown"), unknown);
}

void GpuJudgement::find_xid(const Rule& rule, std::span<const Evidence* const> pieces) {
  const Evidence& last = *pieces.back();
  if (rule.action == Action::kNone) return;
  // Statistics speak for those that are mostly the program's fault; a profile may be stricter.
  if (rule.repeat == Repeat::kJobs && rule.action < Action::kDegrade) return;
  std::vector<Burst> bursts;
  for (const Evidence* piece : pieces) add_to_bursts(bursts, *piece, kBurst);
  const bool is_again = rule.repeat == Repeat::kTwice && max_within(bursts, kDay) >= 2;
  Action action = is_again ? std::max(rule.action, rule.repeated) : rule.action;
  if (action >= Action::kDegrade && gpu_.is_cured(last.last, action)) return;
  std::string text =
      rule.code != 0 ? named(rule) : fmt::format("XID {}, which no list explains", last.code);
  const bool is_link_event = rule.code >= 144 && rule.code <= 150;
  if (rule.trusts_driver && is_link_event && is_harmless_link_event(last.text)) {
    action = Action::kCount;
    text += ", not fatal";
  } else if (rule.fault == FaultClass::kDriver && is_again && rule.action == Action::kCount &&
             had_it_elsewhere(last)) {
    action = Action::kCount;
    text += " under a program that has it on other GPUs, too";
  } else if (rule.trusts_driver && driver_wants_nothing(last.at)) {
    action = Action::kCount;
    text += ", and the driver asks for nothing";
  } else if (is_again) {
    text += fmt::format(", {} times in a day", max_within(bursts, kDay));
  }
  // What a driver's error leaves behind is suspicion, which passes; hardware does not heal.
  const bool passes = action == Action::kDegrade && rule.fault != FaultClass::kHardware;
  if (passes && !gpu_.is_recent(last.last, kWeek)) return;
  add(rule, action, last.last, std::move(text), passes ? last.last + kWeek : base::Instant());
}

void GpuJudgement::find_nvlink(const Rule& rule, std::span<const Evidence* const> pieces) {
  const Evidence& last = *pieces.back();
  const NvlinkFault fault = read_nvlink_registers(registers_of(last));
  std::vector<Burst> bursts;
  for (const Evidence* piece : pieces) add_to_bursts(bursts, *piece, kBurst);
  const bool is_again = max_within(bursts, kDay) >= 2;
  Action action = is_again ? rule.repeated : rule.action;
  std::string text = named(rule);
  using Kind = NvlinkFault::Kind;
  if (fault.kind != Kind::kUnread) text += fmt::format(": {}", fault.text);
  if (fault.kind == Kind::kDriver && !is_again) action = Action::kCount;
  if (fault.kind == Kind::kHardware && !fault.on_repeat) action = rule.repeated;
  if (another_gpu_is_lost(last.at) && !is_again) {
    action = Action::kCount;
    text += ", as another GPU of the node fell off the bus";
  } else if (driver_wants_nothing(last.at) && !is_again) {
    action = Action::kCount;
    text += ", and the driver asks for nothing";
  }
  if (action >= Action::kDegrade && gpu_.is_cured(last.last, action)) return;
  add(rule, action, last.last, std::move(text));
}

void GpuJudgement::find_recovery_action() {
  const Evidence* latest = nullptr;
  std::uint32_t number = 0;
  for (const Evidence& piece : gpu_.pieces()) {
    if (piece.kind == EvidenceKind::kRecoveryAction) {
      latest = &piece;
      number = piece.code;
    } else if (piece.kind == EvidenceKind::kXid && piece.code == 154) {
      const auto told = recovery_action_of(piece.text);
      if (!told) continue;
      latest = &piece;
      number = *told;
    }
  }
  if (latest == nullptr || number == 0) return;
  const Rule& rule = gpu_.rule(recovery_rule(number));
  if (gpu_.is_cured(latest->last, rule.action)) return;
  std::string text(rule.what);
  if (rule.name == "recovery-unknown") text += fmt::format(" (number {})", number);
  add(rule, rule.action, latest->last, std::move(text));
}

}  // namespace gpu_platform::health
