#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "health/evidence_words.h"
#include "health/suspicions.h"

// XIDs that are mostly a program's own fault: when they are the GPU's.

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

namespace {

// The letters of a program's name, without its folder and its ending.
std::string letters_of(std::string_view program) {
  program.remove_prefix(program.find_last_of('/') + 1);
  if (const auto dot = program.rfind('.'); dot != 0) program = program.substr(0, dot);
  std::string letters;
  for (const char c : program) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) {
      letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return letters;
}

// Whether the names look like those of versions of one program: "train-3.py", "train_v4.py".
bool are_versions(std::string_view a, std::string_view b) {
  const std::string one = letters_of(a);
  const std::string other = letters_of(b);
  return one.starts_with(other) || other.starts_with(one);
}

}  // namespace

bool Suspicions::has_weak_signs(base::Instant at) const {
  return std::ranges::any_of(gpu_.pieces(), [&](const Evidence& piece) {
    if (piece.last + kDay < at || at + kDay < piece.at) return false;
    switch (piece.kind) {
      case EvidenceKind::kRowsRemapped:
      case EvidenceKind::kPagesRetired:
      case EvidenceKind::kSlow:
        return true;
      case EvidenceKind::kEccCorrected:
      case EvidenceKind::kPcieReplays:
      case EvidenceKind::kNvlinkErrors:
        return piece.value >= 10;
      case EvidenceKind::kXid:
        return piece.code == 121 || piece.code == 160 || piece.code == 161;
      default:
        return false;
    }
  });
}

bool Suspicions::neighbours_are_clean(base::Instant at) const {
  std::size_t others = 0;
  for (const std::string_view uuid : gpu_.records().gpus_of_node(gpu_.gpu().node)) {
    if (uuid == gpu_.gpu().uuid) continue;
    ++others;
    for (const Evidence& piece : gpu_.records().of_gpu(uuid)) {
      if (is_exception(piece) && piece.at <= at + kDay && at <= piece.last + kDay) return false;
    }
  }
  return others > 0;
}

bool Suspicions::stands_out(std::size_t bursts) const {
  std::size_t others = 0;
  std::size_t touched = 0;
  std::size_t sum = 0;
  for (const std::string_view uuid : gpu_.records().gpus_of_node(gpu_.gpu().node)) {
    if (uuid == gpu_.gpu().uuid) continue;
    ++others;
    std::vector<Burst> theirs;
    const auto pieces = gpu_.records().of_gpu(uuid);
    for (const Evidence& piece : pieces) {
      if (!is_exception(piece) || piece.at > gpu_.now() || !counts(piece)) continue;
      if (!has_fault_near(pieces, piece)) add_to_bursts(theirs, piece, kBurst);
    }
    touched += theirs.empty() ? 0 : 1;
    sum += theirs.size();
  }
  const bool is_common = touched >= 2 && touched * 4 >= others;
  return !is_common || bursts * touched >= 3 * sum;
}

bool Suspicions::same_unit_again() const {
  std::optional<Unit> first;
  std::vector<Burst> bursts;
  for (const Evidence& piece : gpu_.pieces()) {
    if (piece.kind != EvidenceKind::kXid || piece.code != 13 || !counts(piece)) continue;
    const auto unit = unit_of(piece.text);
    if (!unit) continue;
    if (first && *first != *unit) return false;
    first = unit;
    add_to_bursts(bursts, piece, kBurst);
  }
  return bursts.size() >= 2;
}

void Suspicions::find_exceptions() {
  std::vector<Program> programs;
  std::vector<Burst> all;
  const Evidence* last = nullptr;
  const Rule* rule = nullptr;
  for (const Evidence& piece : gpu_.pieces()) {
    if (!is_exception(piece) || !counts(piece) || is_explained(piece)) continue;
    last = &piece;
    const Rule& its = gpu_.xid(piece.code);
    // What stopped the channel (43) says less than the fault itself.
    if (rule == nullptr || rule->code == 43) rule = &its;
    add_to_bursts(all, piece, kBurst);
    Program& program = program_of(programs, piece);
    add_to_bursts(program.bursts, piece, kBurst);
    program.jobs.insert(piece.job);
    program.xids.insert(piece.code);
    const Gang gang = gang_of(piece);
    if (gang.gpus >= kManyGpus && !gang.others_had_it) ++program.alone;
  }
  if (last == nullptr) return;

  std::vector<Program> innocent;  // that are not known to fail on other GPUs
  std::size_t proven = 0;         // of these, that did well elsewhere
  bool unknown = false;
  bool was_application = false;
  for (const Program& program : programs) {
    if (!program.is_known()) {
      unknown = true;
      continue;
    }
    const Elsewhere elsewhere = look_elsewhere(program, true);
    if (elsewhere.failed && !(elsewhere.did_well_far && !elsewhere.failed_far)) {
      was_application = true;
      continue;
    }
    proven += elsewhere.did_well ? 1 : 0;
    innocent.push_back(program);
    innocent.back().did_well = elsewhere.did_well;
  }

  // One person who tries one version of a program after the other proves nothing, unless one of
  // them is known to do well.
  const auto are_others = [&](std::size_t a, std::size_t b) {
    return innocent[a].user != innocent[b].user || innocent[a].user.empty() ||
           innocent[a].did_well || innocent[b].did_well ||
           !are_versions(innocent[a].program, innocent[b].program);
  };
  const bool is_one_person = !innocent.empty() && !innocent.front().user.empty() && proven == 0 &&
                             std::ranges::all_of(innocent, [&](const Program& each) {
                               return each.user == innocent[0].user;
                             });
  const std::string what = fmt::format("XID {} ({})", rule->code, rule->what);
  bool within_hour = false;
  for (std::size_t i = 0; i < innocent.size(); ++i) {
    for (std::size_t k = i + 1; k < innocent.size(); ++k) {
      for (const Burst& a : innocent[i].bursts) {
        for (const Burst& b : innocent[k].bursts) {
          const base::Duration apart = a.begin < b.begin ? b.begin - a.begin : a.begin - b.begin;
          within_hour = within_hour || (apart <= kJobsWindow && are_others(i, k));
        }
      }
    }
  }
  if (within_hour && stands_out(all.size())) {
    return report(*rule, *last, 85,
                  fmt::format("{} under {} different jobs within an hour", what, innocent.size()));
  }
  if (innocent.size() >= 3 && !is_one_person && stands_out(all.size())) {
    return report(*rule, *last, 80,
                  fmt::format("{} under {} different jobs in a week", what, innocent.size()));
  }
  // Two in more than an hour may be chance where programs fail now and then.
  if (innocent.size() == 2 && proven == 2 && !is_one_person && neighbours_are_clean(last->at)) {
    return report(*rule, *last, 72,
                  fmt::format("{} under two different jobs, and not on other GPUs", what));
  }
  for (const Program& program : innocent) {
    if (!stands_out(all.size())) break;
    const bool is_proven = look_elsewhere(program, true).did_well;
    if (is_proven && program.bursts.size() >= 2) {
      return report(
          *rule, *last, 70,
          fmt::format("{} again and again under a program that did well on other GPUs", what));
    }
    if (program.alone >= 2 && program.bursts.size() >= 2 &&
        (program.jobs.size() >= 2 || program.bursts.size() >= 3)) {
      return report(*rule, *last, 65,
                    fmt::format("{} {} times under jobs with many GPUs, always on this one", what,
                                program.bursts.size()));
    }
  }
  if (was_application && innocent.empty()) {
    findings_.push_back({rule,
                         Action::kCount,
                         20,
                         what + " under a program that fails on other GPUs in the same way",
                         last->last,
                         {}});
    return;
  }
  if (same_unit_again() && (unknown || (innocent.size() > 1 && !is_one_person))) {
    return report(*rule, *last, 65, "XID 13 again and again in the same unit of the GPU");
  }
  if (unknown && max_within(all, kDay) >= 2 && neighbours_are_clean(last->at)) {
    return report(
        *rule, *last, 62,
        fmt::format("{} {} times in a day, and on no other GPU of the node", what, all.size()));
  }
  if (unknown && all.size() >= 3 && neighbours_are_clean(last->at)) {
    return report(
        *rule, *last, 60,
        fmt::format("{} {} times in a week, and on no other GPU of the node", what, all.size()));
  }
  // A record of this one GPU alone: only many times over half a day say something.
  const bool is_alone = gpu_.records().gpus_of_node(gpu_.gpu().node).size() <= 1;
  if (unknown && is_alone && innocent.empty() && !was_application && all.size() >= 3 &&
      all.back().begin - all.front().begin >= kHalfDay) {
    return report(*rule, *last, 55, fmt::format("{} {} times in a week", what, all.size()));
  }
  if (has_weak_signs(last->at)) {
    return report(*rule, *last, 65, what + " beside errors of its memory or links");
  }
  findings_.push_back(
      {rule, rule->action, 30, what + ": mostly the program's fault", last->last, {}});
}

}  // namespace gpu_platform::health
