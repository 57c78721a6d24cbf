#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "health/evidence_words.h"
#include "health/gpu_judgement.h"

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

namespace {

constexpr std::int64_t kSlowPercent = 90;
constexpr std::size_t kFlaps = 3;
constexpr std::int64_t kVeryHot = 90;
// An idle GPU narrows its link for a moment to save power; a busy node answers late.
constexpr base::Duration kWidthPatience = base::minutes(5);
constexpr base::Duration kSlowPatience = base::minutes(10);  // a checkpoint is written
constexpr base::Duration kLinkPatience = base::seconds(30);
constexpr base::Duration kAnswerPatience = base::seconds(45);

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

}  // namespace

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

}  // namespace gpu_platform::health
