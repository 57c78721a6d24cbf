#include "health/suspicions.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "health/evidence_words.h"

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

namespace {

auto key_of(const Evidence& piece) {
  const bool has_program = !piece.program.empty();
  return std::tuple(std::string_view(piece.user), std::string_view(piece.program),
                    has_program ? model::JobId() : piece.job);
}

}  // namespace

void Suspicions::find() {
  bool is_needed = false;
  for (const Evidence& piece : gpu_.pieces()) {
    is_needed = is_needed || is_exception(piece) || is_failure(piece);
  }
  if (!is_needed) return;
  find_lemon_node();
  find_exceptions();
  find_failing_jobs();
}

bool Suspicions::is_exception(const Evidence& piece) const {
  return piece.kind == EvidenceKind::kXid && gpu_.xid(piece.code).repeat == Repeat::kJobs &&
         gpu_.xid(piece.code).mode != RuleMode::kOff;
}

bool Suspicions::is_failure(const Evidence& piece) {
  return (piece.kind == EvidenceKind::kJobEnded && piece.code != 0) ||
         piece.kind == EvidenceKind::kStartFailed || piece.kind == EvidenceKind::kJobHung;
}

bool Suspicions::counts(const Evidence& piece) const {
  return gpu_.is_recent(piece.last, kWeek) && !gpu_.is_answered(piece.last);
}

bool Suspicions::is_explained(const Evidence& piece) const {
  if (has_fault_near(gpu_.pieces(), piece)) return true;
  if (has_fault_near(gpu_.node_pieces(), piece)) return true;
  if (!piece.job.valid()) return false;
  const auto others = gpu_.records().gpus_with_job(piece.job);
  for (std::size_t i = 0; i < others.size() && i < kMaxCompared; ++i) {
    if (others[i] == gpu_.gpu().uuid) continue;
    if (has_fault_near(gpu_.records().of_gpu(others[i]), piece)) return true;
  }
  return false;
}

bool Suspicions::has_fault_near(std::span<const Evidence> pieces, const Evidence& piece) const {
  return std::ranges::any_of(pieces, [&](const Evidence& other) {
    return gpu_.is_hard(other) && other.at <= piece.last + kExplains &&
           piece.at <= other.last + kExplains;
  });
}

bool Suspicions::is_same_program(const Evidence& piece, const Program& program) {
  return key_of(piece) == std::tuple(program.user, program.program, program.job);
}

Suspicions::Program& Suspicions::program_of(std::vector<Program>& programs, const Evidence& piece) {
  for (Program& each : programs) {
    if (is_same_program(piece, each)) return each;
  }
  Program fresh;
  std::tie(fresh.user, fresh.program, fresh.job) = key_of(piece);
  programs.push_back(std::move(fresh));
  return programs.back();
}

Suspicions::Gang Suspicions::gang_of(const Evidence& piece) const {
  Gang gang;
  if (!piece.job.valid()) return gang;
  const auto others = gpu_.records().gpus_with_job(piece.job);
  for (std::size_t i = 0; i < others.size() && i < kMaxCompared; ++i) {
    if (others[i] == gpu_.gpu().uuid) continue;
    ++gang.gpus;
    for (const Evidence& other : gpu_.records().of_gpu(others[i])) {
      gang.others_had_it = gang.others_had_it || (other.job == piece.job && is_exception(other));
    }
  }
  return gang;
}

Suspicions::Elsewhere Suspicions::look_elsewhere(const Program& program, bool by_exceptions) const {
  Elsewhere found;
  if (program.program.empty() && program.user.empty()) return found;
  const auto here = gpu_.records().gpus_of_node(gpu_.gpu().node);
  const auto gpus = gpu_.records().gpus_with_program(program.user, program.program);
  for (std::size_t i = 0; i < gpus.size() && i < kMaxCompared; ++i) {
    if (gpus[i] == gpu_.gpu().uuid) continue;
    const bool is_far = std::ranges::find(here, gpus[i]) == here.end();
    const auto pieces = gpu_.records().of_gpu(gpus[i]);
    for (const Evidence& piece : pieces) {
      if (!is_same_program(piece, program) || piece.at > gpu_.now()) continue;
      const bool well = piece.kind == EvidenceKind::kJobEnded && piece.code == 0;
      bool failed = is_exception(piece);
      // The end of a job is told of each of its GPUs: that of a job that was here, too, says
      // nothing of the others.
      if (!by_exceptions && is_failure(piece)) failed = !program.jobs.contains(piece.job);
      if (by_exceptions && is_failure(piece) && !program.jobs.contains(piece.job)) failed = true;
      failed = failed && !has_fault_near(pieces, piece);
      found.did_well |= well && !program.jobs.contains(piece.job);
      found.did_well_far |= well && is_far;
      found.failed |= failed;
      found.failed_far |= failed && is_far;
    }
  }
  return found;
}

bool Suspicions::points_elsewhere(const Evidence& piece) const {
  if (!piece.job.valid()) return false;
  const auto has_exception = [&](std::span<const Evidence> pieces) {
    return std::ranges::any_of(pieces, [&](const Evidence& other) {
      return other.job == piece.job && is_exception(other);
    });
  };
  const bool is_here = has_exception(gpu_.pieces());
  const bool has_signs_here = has_signs(gpu_.pieces());
  const std::size_t failed_here = failed_jobs(gpu_.pieces());
  const auto others = gpu_.records().gpus_with_job(piece.job);
  for (std::size_t i = 0; i < others.size() && i < kMaxCompared; ++i) {
    if (others[i] == gpu_.gpu().uuid) continue;
    const auto pieces = gpu_.records().of_gpu(others[i]);
    if (!is_here && has_exception(pieces)) return true;
    if (!has_signs_here && has_signs(pieces)) return true;
    if (failed_jobs(pieces) > failed_here) return true;
  }
  return false;
}

bool Suspicions::had_exception(model::JobId job) const {
  return std::ranges::any_of(gpu_.pieces(), [&](const Evidence& piece) {
    return job.valid() && piece.job == job && is_exception(piece);
  });
}

std::size_t Suspicions::failed_jobs(std::span<const Evidence> pieces) const {
  std::set<model::JobId> jobs;
  for (const Evidence& piece : pieces) {
    if (is_failure(piece) && piece.at <= gpu_.now() && counts(piece) &&
        !tells_of_application(piece.text)) {
      jobs.insert(piece.job);
    }
  }
  return jobs.size();
}

bool Suspicions::has_signs(std::span<const Evidence> pieces) const {
  return std::ranges::any_of(pieces, [&](const Evidence& piece) {
    if (piece.at > gpu_.now() || !counts(piece)) return false;
    switch (piece.kind) {
      case EvidenceKind::kNvlinkErrors:
      case EvidenceKind::kPcieReplays:
      case EvidenceKind::kEccCorrected:
        return piece.value >= kManySigns;
      case EvidenceKind::kRowsRemapped:
      case EvidenceKind::kRemapPending:
      case EvidenceKind::kPcieWidth:
      case EvidenceKind::kSlow:
      case EvidenceKind::kComplaint:
        return true;
      default:
        return false;
    }
  });
}

void Suspicions::report(std::string_view rule, const Evidence& last, std::uint32_t confidence,
                        std::string text) {
  report(gpu_.rule(rule), last, confidence, std::move(text));
}

void Suspicions::report(const Rule& rule, const Evidence& last, std::uint32_t confidence,
                        std::string text) {
  findings_.push_back({&rule, std::max(rule.action, rule.repeated), confidence, std::move(text),
                       last.last, last.last + kWeek});
}

void find_suspicions(const GpuCase& gpu, std::vector<Finding>& findings) {
  Suspicions(gpu, findings).find();
}

}  // namespace gpu_platform::health
