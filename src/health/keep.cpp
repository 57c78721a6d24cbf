#include <algorithm>
#include <cstdint>
#include <limits>

#include "health/rule_table.h"
#include "health/rules.h"
#include "health/verdict.h"

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

bool is_equal(const Evidence& a, const Evidence& b) {
  return a.kind == b.kind && a.code == b.code && a.is_over == b.is_over && a.job == b.job &&
         a.user == b.user && a.program == b.program && a.gpu_instance == b.gpu_instance &&
         a.registers == b.registers && a.source == b.source;
}

// Words differ from piece to piece where they tell something: conditions, complaints, checks, and
// the units of XID 13.
bool has_telling_text(const Evidence& piece) {
  if (model::is_untried_trial(piece)) return false;
  switch (piece.kind) {
    case EvidenceKind::kNodeCondition:
    case EvidenceKind::kComplaint:
    case EvidenceKind::kCheck:
      return true;
    case EvidenceKind::kXid:
      return piece.code == 13 || piece.code == 74 || piece.code == 154;
    default:
      return false;
  }
}

base::Duration join_gap(const Evidence& piece) {
  if (model::is_untried_trial(piece)) return kUntriedGap;
  return piece.kind == EvidenceKind::kXid && piece.code == 13 ? kExceptionBurst : kSameTime;
}

bool joins(const Evidence& a, const Evidence& b) {
  if (a.kind == EvidenceKind::kCleared || !is_equal(a, b)) return false;
  if (has_telling_text(a) && a.text != b.text) return false;
  return b.at - a.last <= join_gap(a) && a.at - b.last <= join_gap(a);
}

// A person brought the GPU online between the two: what was before does not count, and would hide
// what came after.
bool are_parted(const std::vector<Evidence>& kept, const Evidence& a, const Evidence& b) {
  const Evidence& earlier = a.at <= b.at ? a : b;
  const Evidence& later = a.at <= b.at ? b : a;
  return std::ranges::any_of(kept, [&](const Evidence& piece) {
    return piece.kind == EvidenceKind::kCleared && piece.at >= earlier.last && piece.at < later.at;
  });
}

std::uint32_t add(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t sum = std::uint64_t{a} + b;
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(sum, std::numeric_limits<std::uint32_t>::max()));
}

void join(Evidence& into, const Evidence& piece) {
  const bool is_counter =
      piece.kind >= EvidenceKind::kEccCorrected && piece.kind <= EvidenceKind::kNvlinkErrors;
  if (is_counter) {
    std::int64_t sum = 0;
    into.value = __builtin_add_overflow(into.value, piece.value, &sum)
                     ? std::numeric_limits<std::int64_t>::max()
                     : sum;
  } else {
    into.value = std::max(into.value, piece.value);
  }
  into.count = add(into.count, piece.count);
  into.at = std::min(into.at, piece.at);
  into.last = std::max(into.last, piece.last);
  if (into.text.empty()) into.text = piece.text;
  if (into.pid == 0) into.pid = piece.pid;
}

// What may be forgotten first is lowest.
int weight(const std::vector<Evidence>& kept, std::size_t index) {
  const Evidence& piece = kept[index];
  if (model::is_level(piece.kind)) {
    const bool has_later = std::any_of(
        kept.begin() + static_cast<std::ptrdiff_t>(index) + 1, kept.end(),
        [&](const Evidence& later) {
          return later.kind == piece.kind &&
                 (piece.kind != EvidenceKind::kNodeCondition || later.text == piece.text);
        });
    return has_later || piece.is_over ? 1 : 9;
  }
  switch (piece.kind) {
    case EvidenceKind::kJobStarted:
      return 0;
    case EvidenceKind::kJobEnded:
      return piece.code == 0 ? 0 : 1;
    case EvidenceKind::kXid: {
      const auto rows = xid_rows();
      const auto found = std::ranges::lower_bound(rows, piece.code, {}, &Rule::code);
      if (found == rows.end() || found->code != piece.code) return 2;
      return found->action == Action::kNone ? 0 : found->action >= Action::kDegrade ? 4 : 1;
    }
    case EvidenceKind::kEccCorrected:
    case EvidenceKind::kPcieReplays:
    case EvidenceKind::kNvlinkErrors:
      return 1;
    case EvidenceKind::kCleared:
    case EvidenceKind::kReset:
    case EvidenceKind::kCheck:
    case EvidenceKind::kNodeRestarted:
      return 3;
    case EvidenceKind::kEccUncorrected:
    case EvidenceKind::kRecoveryAction:
    case EvidenceKind::kUnavailable:
    case EvidenceKind::kPoison:
      return 4;
    default:
      return 2;
  }
}

void forget_one(std::vector<Evidence>& kept) {
  std::size_t least = 0;
  int least_weight = weight(kept, 0);
  for (std::size_t i = 1; i < kept.size() && least_weight > 0; ++i) {
    const int each = weight(kept, i);
    if (each < least_weight) {
      least = i;
      least_weight = each;
    }
  }
  kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(least));
}

}  // namespace

bool keep(std::vector<Evidence>& kept, Evidence piece) {
  piece.last = std::max(piece.last, piece.at);
  piece.count = std::max<std::uint32_t>(piece.count, 1);
  bool was_joined = false;
  // Backwards: news joins the latest. All that it joins becomes one, so that the order in which
  // pieces arrive leaves no trace.
  for (std::size_t i = kept.size(); i-- > 0;) {
    if (!joins(kept[i], piece) || are_parted(kept, kept[i], piece)) continue;
    join(piece, kept[i]);
    kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
    was_joined = true;
  }
  const auto place = std::ranges::upper_bound(kept, piece.at, {}, &Evidence::at);
  kept.insert(place, std::move(piece));
  if (kept.size() > kMaxKept) forget_one(kept);
  return was_joined;
}

}  // namespace gpu_platform::health
