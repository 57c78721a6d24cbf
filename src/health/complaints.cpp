#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "health/evidence_words.h"
#include "health/gpu_case.h"

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

namespace {

void count_complaints(std::span<const Evidence> pieces, const GpuCase& gpu,
                      std::set<std::string_view>& people, std::vector<Burst>& times,
                      bool& was_tried, std::size_t& total) {
  for (const Evidence& piece : pieces) {
    if (piece.kind != EvidenceKind::kComplaint) continue;
    if (!gpu.is_recent(piece.last, kComplaintsWindow) || gpu.is_answered(piece.last)) continue;
    people.insert(piece.user);
    add_to_bursts(times, piece, base::minutes(1));
    total += piece.count;
    was_tried |= was_compared(piece.text);
  }
}

}  // namespace

void find_complaints(const GpuCase& gpu, std::vector<Finding>& findings) {
  std::set<std::string_view> people;
  std::vector<Burst> times;
  bool was_tried = false;
  std::size_t total = 0;
  count_complaints(gpu.pieces(), gpu, people, times, was_tried, total);
  count_complaints(gpu.node_pieces(), gpu, people, times, was_tried, total);
  if (total == 0) return;
  std::ranges::sort(times, {}, &Burst::begin);
  const Rule& rule = gpu.rule("complaints");
  const bool is_old = times.back().begin - times.front().begin >= base::hours(24);
  // One person who has tried it elsewhere, or who is supported by other signs, is enough.
  const bool is_supported = std::ranges::any_of(gpu.pieces(), [&](const Evidence& piece) {
    return (piece.kind == EvidenceKind::kXid && piece.code != 45) ||
           piece.kind == EvidenceKind::kJobHung || piece.kind == EvidenceKind::kStartFailed ||
           piece.kind == EvidenceKind::kSlow ||
           (piece.kind == EvidenceKind::kJobEnded && piece.code != 0 &&
            !tells_of_application(piece.text));
  });
  const bool is_enough =
      people.size() >= 2 || total >= 3 || (total >= 2 && is_old) || (was_tried && is_supported);
  Finding finding{&rule,
                  is_enough ? rule.repeated : rule.action,
                  is_enough ? rule.confidence_percent : 30,
                  total == 1 ? "a person complained of it"
                             : fmt::format("{} complaints of {} {}", total, people.size(),
                                           people.size() == 1 ? "person" : "people"),
                  times.back().end,
                  {}};
  findings.push_back(std::move(finding));
}

}  // namespace gpu_platform::health
