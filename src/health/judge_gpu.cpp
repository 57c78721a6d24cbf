#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "base/utc.h"
#include "health/evidence_words.h"
#include "health/gpu_case.h"
#include "health/nvlink_registers.h"
#include "health/verdict.h"

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

constexpr base::Duration kSympathy = base::minutes(2);
constexpr std::int64_t kManyCorrected = 1000;
constexpr std::int64_t kManyRows = 8;
constexpr std::int64_t kManyPages = 15;
constexpr std::int64_t kManyReplays = 100;
constexpr std::int64_t kManyLinkErrors = 100;
constexpr std::int64_t kSlowPercent = 90;
constexpr std::size_t kFlaps = 3;
constexpr std::int64_t kVeryHot = 90;
// An idle GPU narrows its link for a moment to save power; a busy node answers late.
constexpr base::Duration kWidthPatience = base::minutes(5);
constexpr base::Duration kSlowPatience = base::minutes(10);  // a checkpoint is written
constexpr base::Duration kLinkPatience = base::seconds(30);
constexpr base::Duration kAnswerPatience = base::seconds(45);

std::string_view recovery_rule(std::uint32_t number) {
  constexpr std::string_view kNames[] = {
      "recovery-none",        "recovery-reset",           "recovery-reboot",
      "recovery-drain-peers", "recovery-drain-and-reset", "recovery-imex"};
  if (number == 7) return "recovery-reboot";  // SYSTEM_REBOOT of newer drivers
  return number < std::size(kNames) ? kNames[number] : "recovery-unknown";
}

// The state of a level: its latest piece, and since when it lasts.
struct Level {
  const Evidence* latest = nullptr;
  base::Instant since;     // of the piece that lasts
  std::size_t begins = 0;  // within the window
  bool lasts() const { return latest != nullptr && !latest->is_over; }
};

Level level_of(std::span<const Evidence> pieces, EvidenceKind kind, base::Instant after) {
  Level level;
  bool was_over = true;
  for (const Evidence& piece : pieces) {
    if (piece.kind != kind) continue;
    if (!piece.is_over && was_over) level.since = piece.at;
    if (!piece.is_over && piece.at >= after) ++level.begins;
    was_over = piece.is_over;
    if (level.latest == nullptr || piece.last >= level.latest->last) level.latest = &piece;
  }
  return level;
}

class GpuJudgement {
 public:
  explicit GpuJudgement(const GpuCase& gpu) : gpu_(gpu) {}

  GpuVerdict judge() {
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

 private:
  void find_xids();
  void find_xid(const Rule& rule, std::span<const Evidence* const> pieces);
  void find_nvlink(const Rule& rule, std::span<const Evidence* const> pieces);
  void find_recovery_action();
  void find_levels();
  void find_heat(std::string_view name, EvidenceKind kind);
  void find_slowdown();
  void find_counters();
  void find_counter(std::string_view name, EvidenceKind kind, std::int64_t many,
                    base::Duration window);
  void find_driver_events();
  void find_node_faults();
  void find_repairs();
  GpuVerdict verdict();

  bool driver_wants_nothing(base::Instant at) const;
  bool another_gpu_is_lost(base::Instant at) const;
  bool had_it_elsewhere(const Evidence& piece) const;
  void add(const Rule& rule, Action action, base::Instant at, std::string text,
           base::Instant again_at = {}) {
    findings_.push_back({&rule, action, rule.confidence_percent, std::move(text), at, again_at});
  }
  // One that lasts, told with the words that came with it.
  struct Cure {
    Action by = Action::kNone;     // what ends the level, even if no piece says so
    base::Duration patience = {};  // a level that is over sooner is no fault
    std::string_view unit;
  };
  void add_level(std::string_view name, EvidenceKind kind, const Cure& cure);

  const GpuCase& gpu_;
  std::vector<Finding> findings_;
};

std::string named(const Rule& rule) {
  return rule.code != 0 ? fmt::format("XID {} ({})", rule.code, rule.what) : std::string(rule.what);
}

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

void GpuJudgement::add_level(std::string_view name, EvidenceKind kind, const Cure& cure) {
  const Level level = level_of(gpu_.pieces(), kind, {});
  if (!level.lasts()) return;
  const Rule& rule = gpu_.rule(name);
  // A passed check does not end what is measured.
  const base::Instant ended = cure.by == Action::kReboot ? gpu_.restarted_at()
                              : cure.by == Action::kReset
                                  ? std::max(gpu_.reset_at(), gpu_.restarted_at())
                                  : base::Instant();
  if (ended.is_set() && level.latest->last < ended) return;
  std::string text(rule.what);
  if (level.latest->value != 0 && !cure.unit.empty()) {
    text += fmt::format(" ({} {})", level.latest->value, cure.unit);
  }
  if (!level.latest->text.empty()) text += fmt::format(": {}", level.latest->text);
  const base::Instant patience = level.since + cure.patience;
  if (gpu_.now() < patience && level.latest->last < patience &&
      !tells_of_hardware(level.latest->text)) {
    return add(rule, std::min(rule.action, Action::kCount), level.since, std::move(text), patience);
  }
  add(rule, rule.action, level.since, std::move(text));
}

void GpuJudgement::find_levels() {
  add_level("remap-pending", EvidenceKind::kRemapPending, {Action::kReset, {}, {}});
  add_level("retirement-pending", EvidenceKind::kRetirementPending, {Action::kReset, {}, {}});
  add_level("pcie-width", EvidenceKind::kPcieWidth, {Action::kNone, kWidthPatience, "lanes"});
  add_level("nvlink-down", EvidenceKind::kNvlinkDown, {Action::kReset, kLinkPatience, "links"});
  add_level("not-answering", EvidenceKind::kNotAnswering, {Action::kReboot, kAnswerPatience, {}});
  add_level("lost", EvidenceKind::kLost, {Action::kReboot, {}, {}});
  find_heat("heat", EvidenceKind::kHeat);
  find_heat("memory-heat", EvidenceKind::kMemoryHeat);
  find_slowdown();

  const Level failed = level_of(gpu_.pieces(), EvidenceKind::kRemapFailed, {});
  if (failed.lasts()) {
    const Rule& rule = gpu_.rule("remap-failed");
    const bool stays = gpu_.reset_at().is_set() && failed.since < gpu_.reset_at();
    add(rule, stays ? rule.repeated : rule.action, failed.since,
        stays ? fmt::format("{}, and a reset did not help", rule.what) : std::string(rule.what));
  }
  const Level slow = level_of(gpu_.pieces(), EvidenceKind::kSlow, {});
  if (slow.lasts() && !gpu_.is_answered(slow.latest->last)) {
    const Rule& rule = gpu_.rule("slow");
    const base::Instant patience = slow.since + kSlowPatience;
    const bool is_short = gpu_.now() < patience && slow.latest->last < patience;
    const bool is_little = slow.latest->value > kSlowPercent || is_short;
    std::string text(rule.what);
    if (slow.latest->value != 0) text += fmt::format(" ({} %)", slow.latest->value);
    add(rule, is_little ? Action::kCount : rule.action, slow.since, std::move(text),
        is_short ? patience : base::Instant());
  }
  for (const auto& [name, kind] : {std::pair("not-answering", EvidenceKind::kNotAnswering),
                                   std::pair("lost", EvidenceKind::kLost)}) {
    const std::size_t enough = kind == EvidenceKind::kLost ? 2 : kFlaps;
    const base::Duration window = kind == EvidenceKind::kLost ? kWeek : kDay;
    const Level level =
        level_of(gpu_.pieces(), kind,
                 std::max(base::Instant(), gpu_.now() + base::nanoseconds(-window.value())));
    if (level.latest == nullptr || level.lasts() || gpu_.is_answered(level.latest->last)) continue;
    const Rule& rule = gpu_.rule(name);
    if (level.begins >= enough) {
      add(rule, Action::kDegrade, level.latest->last,
          fmt::format("{} {} times, and back", rule.what, level.begins),
          level.latest->last + window);
    } else if (level.begins > 0) {
      add(rule, Action::kCount, level.latest->last, fmt::format("{} once, and back", rule.what));
    }
  }
}

void GpuJudgement::find_heat(std::string_view name, EvidenceKind kind) {
  const Rule& rule = gpu_.rule(name);
  const base::Instant day_ago = gpu_.now() + base::nanoseconds(-kDay.value());
  const Level level = level_of(gpu_.pieces(), kind, std::max(base::Instant(), day_ago));
  if (level.latest == nullptr) return;
  const std::string degrees =
      level.latest->value != 0 ? fmt::format(" ({} °C)", level.latest->value) : std::string();
  if (level.lasts()) add(rule, rule.action, level.since, std::string(rule.what) + degrees);
  if (level.begins >= kFlaps && level.latest->value >= kVeryHot &&
      !gpu_.is_answered(level.latest->last)) {
    add(rule, rule.repeated, level.latest->last,
        fmt::format("{}{}, {} times in a day: its cooling", rule.what, degrees, level.begins),
        level.latest->last + kDay);
  }
}

void GpuJudgement::find_slowdown() {
  const Rule& rule = gpu_.rule("slowdown");
  const base::Instant day_ago = gpu_.now() + base::nanoseconds(-kDay.value());
  const Level level =
      level_of(gpu_.pieces(), EvidenceKind::kSlowdown, std::max(base::Instant(), day_ago));
  if (level.latest == nullptr) return;
  if (is_chosen_cap(level.latest->text)) return;
  std::string text(rule.what);
  if (!level.latest->text.empty()) text += fmt::format(": {}", level.latest->text);
  const base::Instant patience = level.since + kSlowdownPatience;
  const bool lasts_long =
      level.lasts() && (gpu_.now() >= patience || level.latest->last >= patience);
  if (lasts_long) {
    add(rule, rule.repeated, level.since, text + ", for more than five minutes");
  } else if (level.begins >= kFlaps && !gpu_.is_answered(level.latest->last)) {
    add(rule, rule.repeated, level.latest->last,
        fmt::format("{}, {} times in a day", text, level.begins), level.latest->last + kDay);
  } else if (level.lasts()) {
    add(rule, rule.action, level.since, std::move(text), patience);
  }
}

void GpuJudgement::find_counter(std::string_view name, EvidenceKind kind, std::int64_t many,
                                base::Duration window) {
  const Rule& rule = gpu_.rule(name);
  std::int64_t sum = 0;
  const Evidence* last = nullptr;
  for (const Evidence& piece : gpu_.pieces()) {
    if (piece.kind != kind || piece.value <= 0) continue;
    if (!gpu_.is_recent(piece.last, window) || gpu_.is_answered(piece.last)) continue;
    sum += std::min<std::int64_t>(piece.value, std::int64_t{1} << 40);
    last = &piece;
  }
  if (last == nullptr) return;
  add(rule, sum >= many ? rule.repeated : rule.action, last->last,
      fmt::format("{} {}", sum, rule.what), last->last + window);
}

void GpuJudgement::find_counters() {
  find_counter("ecc-corrected", EvidenceKind::kEccCorrected, kManyCorrected, kDay);
  find_counter("rows-remapped", EvidenceKind::kRowsRemapped, kManyRows, base::hours(24 * 30));
  find_counter("pages-retired", EvidenceKind::kPagesRetired, kManyPages, base::hours(24 * 365));
  find_counter("pcie-replays", EvidenceKind::kPcieReplays, kManyReplays, kDay);
  find_counter("nvlink-errors", EvidenceKind::kNvlinkErrors, kManyLinkErrors, kDay);
}

void GpuJudgement::find_driver_events() {
  for (const auto& [name, kind] : {std::pair("ecc-uncorrected", EvidenceKind::kEccUncorrected),
                                   std::pair("unavailable", EvidenceKind::kUnavailable),
                                   std::pair("poison", EvidenceKind::kPoison)}) {
    const Rule& rule = gpu_.rule(name);
    const Evidence* last = nullptr;
    std::int64_t sum = 0;
    for (const Evidence& piece : gpu_.pieces()) {
      if (piece.kind != kind || piece.value < 0 || gpu_.is_cured(piece.last, rule.action)) continue;
      sum += std::min<std::int64_t>(std::max<std::int64_t>(piece.value, 1), 1'000'000'000);
      last = &piece;
    }
    if (last == nullptr) continue;
    add(rule, rule.action, last->last,
        kind == EvidenceKind::kEccUncorrected ? fmt::format("{} {}", sum, rule.what)
                                              : std::string(rule.what));
  }
}

void GpuJudgement::find_node_faults() {
  for (const std::span<const Evidence> pieces : {gpu_.node_pieces(), gpu_.pieces()}) {
    const bool is_of_node = pieces.data() == gpu_.node_pieces().data();
    std::map<std::string_view, const Evidence*> conditions;
    for (const Evidence& piece : pieces) {
      if (piece.kind != EvidenceKind::kNodeCondition) continue;
      const Evidence*& latest = conditions[condition_name(piece.text)];
      if (latest == nullptr || piece.last >= latest->last) latest = &piece;
    }
    for (const auto& [name, piece] : conditions) {
      if (piece->is_over || gpu_.is_cured(piece->last, Action::kReboot)) continue;
      const ConditionMeaning meaning = gpu_.condition(piece->text);
      add(*meaning.rule, meaning.action, piece->at,
          fmt::format("{}{}", is_of_node ? "its node: " : "", piece->text));
      findings_.back().is_condition = true;
    }
  }
}

void GpuJudgement::find_repairs() {
  const Evidence* failed_check = nullptr;
  const Evidence* failed_reset = nullptr;
  std::size_t resets = 0;
  for (const std::span<const Evidence> pieces : {gpu_.node_pieces(), gpu_.pieces()}) {
    for (const Evidence& piece : pieces) {
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
      gpu_.restarted_at() < gpu_.reset_at() && !gpu_.has_worked_since(gpu_.reset_at())) {
    const Rule& rule = gpu_.rule("unchecked");
    add(rule, rule.action, gpu_.reset_at(), std::string(rule.what));
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

}  // namespace

GpuVerdict judge_gpu(const Records& records, const GpuKey& gpu, const Rules& rules,
                     base::Instant now) {
  const GpuCase known(records, gpu, rules, now);
  if (known.pieces().empty() && known.node_pieces().empty()) return {};
  return GpuJudgement(known).judge();
}

}  // namespace gpu_platform::health
