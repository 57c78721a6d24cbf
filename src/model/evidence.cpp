#include "model/evidence.h"

#include <algorithm>
#include <cctype>

namespace gpu_platform::model {

namespace {

constexpr std::string_view kKinds[kEvidenceKinds] = {"XID",
                                                     "RECOVERY_ACTION",
                                                     "UNAVAILABLE",
                                                     "POISON",
                                                     "ECC_CORRECTED",
                                                     "ECC_UNCORRECTED",
                                                     "ROWS_REMAPPED",
                                                     "PAGES_RETIRED",
                                                     "PCIE_REPLAYS",
                                                     "NVLINK_ERRORS",
                                                     "REMAP_PENDING",
                                                     "REMAP_FAILED",
                                                     "RETIREMENT_PENDING",
                                                     "HEAT",
                                                     "MEMORY_HEAT",
                                                     "SLOWDOWN",
                                                     "PCIE_WIDTH",
                                                     "NVLINK_DOWN",
                                                     "NOT_ANSWERING",
                                                     "LOST",
                                                     "SLOW",
                                                     "JOB_STARTED",
                                                     "JOB_ENDED",
                                                     "START_FAILED",
                                                     "JOB_HUNG",
                                                     "NODE_CONDITION",
                                                     "NODE_RESTARTED",
                                                     "RESET",
                                                     "CHECK",
                                                     "COMPLAINT",
                                                     "CLEARED"};
constexpr std::string_view kSources[kEvidenceSources] = {"DRIVER",  "READING",  "KERNEL_LOG", "JOB",
                                                         "CLUSTER", "PLATFORM", "PERSON"};

bool is_same_word(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](char x, char y) { return std::toupper(static_cast<unsigned char>(x)) == y; });
}

bool is_trial(const Evidence& piece) {
  return piece.kind == EvidenceKind::kReset || piece.kind == EvidenceKind::kCheck;
}

bool has_code(const Evidence& piece, TrialCode code) {
  return piece.code == static_cast<std::uint32_t>(code);
}

}  // namespace

std::string_view to_string(EvidenceKind kind) {
  return kKinds[static_cast<std::size_t>(kind)];
}

std::optional<EvidenceKind> parse_evidence_kind(std::string_view name) {
  for (std::size_t i = 0; i < kEvidenceKinds; ++i) {
    if (is_same_word(name, kKinds[i])) return static_cast<EvidenceKind>(i);
  }
  return std::nullopt;
}

bool is_level(EvidenceKind kind) {
  return (kind >= EvidenceKind::kRemapPending && kind <= EvidenceKind::kSlow) ||
         kind == EvidenceKind::kNodeCondition;
}

std::string_view to_string(EvidenceSource source) {
  return kSources[static_cast<std::size_t>(source)];
}

bool is_untried_trial(const Evidence& piece) {
  return is_trial(piece) && has_code(piece, TrialCode::kUntried);
}

bool is_refused_trial(const Evidence& piece) {
  return is_untried_trial(piece) || (is_trial(piece) && has_code(piece, TrialCode::kRefused));
}

bool is_failed_trial(const Evidence& piece) {
  return is_trial(piece) && !has_code(piece, TrialCode::kPassed) && !is_refused_trial(piece);
}

}  // namespace gpu_platform::model
