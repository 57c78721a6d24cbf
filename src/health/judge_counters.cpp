#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "health/evidence_words.h"
#include "health/gpu_judgement.h"

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

namespace {

constexpr std::int64_t kManyCorrected = 1000;
constexpr std::int64_t kManyRows = 8;
constexpr std::int64_t kManyPages = 15;
constexpr std::int64_t kManyReplays = 100;
constexpr std::int64_t kManyLinkErrors = 100;

}  // namespace

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

}  // namespace gpu_platform::health
