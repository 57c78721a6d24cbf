#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "health/evidence_words.h"
#include "health/suspicions.h"

// Jobs that fail, hang or do not start on a GPU or a node, and do well elsewhere.

namespace gpu_platform::health {

using model::Evidence;
using model::EvidenceKind;

void Suspicions::find_lemon_node() {
  const Evidence* last = nullptr;
  for (const Evidence& piece : gpu_.pieces()) {
    if (is_failure(piece) && !gpu_.is_answered(piece.last)) last = &piece;
  }
  if (last == nullptr || !gpu_.is_recent(last->last, kMonthOfJobs)) return;
  std::size_t faulty = 0;
  std::vector<Program> programs;
  for (const std::string_view uuid : gpu_.records().gpus_of_node(gpu_.gpu().node)) {
    bool has_fault = false;
    for (const Evidence& piece : gpu_.records().of_gpu(uuid)) {
      if (piece.at > gpu_.now() || !gpu_.is_recent(piece.last, kMonthOfJobs)) continue;
      has_fault = has_fault || gpu_.is_hard(piece);
      if (is_failure(piece) && !tells_of_application(piece.text)) {
        program_of(programs, piece).jobs.insert(piece.job);
      }
    }
    faulty += has_fault ? 1 : 0;
  }
  if (faulty < 2) return;
  std::size_t jobs = 0;
  for (const Program& program : programs) {
    const Elsewhere elsewhere = look_elsewhere(program, false);
    if (elsewhere.did_well_far && !elsewhere.failed_far) jobs += program.jobs.size();
  }
  if (jobs < kLemonJobs) return;
  report(
      "node-fault", *last, 75,
      fmt::format("its node: faults of {} GPUs in a month, and {} failed jobs of programs that do "
                  "well elsewhere",
                  faulty, jobs));
}

bool Suspicions::is_lemon() const {
  std::vector<Program> programs;
  for (const Evidence& piece : gpu_.pieces()) {
    if (!is_failure(piece) || gpu_.is_answered(piece.last)) continue;
    if (!gpu_.is_recent(piece.last, kMonthOfJobs) || tells_of_application(piece.text)) continue;
    if (is_explained(piece) || points_elsewhere(piece)) continue;
    program_of(programs, piece).jobs.insert(piece.job);
  }
  std::size_t jobs = 0;
  for (const Program& program : programs) {
    const Elsewhere elsewhere = look_elsewhere(program, false);
    const bool did_well = elsewhere.did_well || elsewhere.did_well_far;
    if (did_well && !elsewhere.failed) jobs += program.jobs.size();
  }
  return jobs >= kLemonJobs;
}

void Suspicions::find_failing_jobs() {
  std::vector<Program> programs;
  const Evidence* last = nullptr;
  bool direct = false;
  std::vector<Burst> exceptions;
  for (const Evidence& piece : gpu_.pieces()) {
    if (is_exception(piece) && counts(piece)) add_to_bursts(exceptions, piece, kBurst);
  }
  const bool is_noisy = !exceptions.empty() && !stands_out(exceptions.size());
  for (const Evidence& piece : gpu_.pieces()) {
    // A job that did well here: what failed before it is no longer a row of failures.
    if (piece.kind == EvidenceKind::kJobEnded && piece.code == 0) {
      programs.clear();
      last = nullptr;
    }
    if (!is_failure(piece) || !counts(piece)) continue;
    if (is_explained(piece) || tells_of_application(piece.text)) continue;
    if (points_elsewhere(piece)) continue;
    if (is_noisy && had_exception(piece.job)) continue;
    last = &piece;
    direct |= names_a_fault(piece.text) && gang_of(piece).gpus == 1;
    Program& program = program_of(programs, piece);
    add_to_bursts(program.bursts, piece, kBurst);
    program.jobs.insert(piece.job);
    program.tells_hardware |= tells_of_hardware(piece.text);
    program.never_started |= piece.kind == EvidenceKind::kStartFailed;
    program.hangs += piece.kind == EvidenceKind::kJobHung ? 1 : 0;
  }
  if (last == nullptr) return;

  std::set<std::string_view> users;
  std::size_t suspicious = 0;
  std::size_t proven = 0;
  std::size_t hung = 0;
  std::size_t unstarted = 0;
  std::size_t told = 0;
  std::size_t again = 0;
  for (const Program& program : programs) {
    const Elsewhere elsewhere = look_elsewhere(program, false);
    if (elsewhere.failed && !(elsewhere.did_well_far && !elsewhere.failed_far)) continue;
    ++suspicious;
    users.insert(program.user);
    const bool well = elsewhere.did_well || elsewhere.did_well_far;
    proven += well ? 1 : 0;
    hung += program.hangs > 0 ? 1 : 0;
    unstarted += program.never_started ? 1 : 0;
    told += program.tells_hardware ? 1 : 0;
    if (well && program.jobs.size() >= 3) ++again;
    if (well && program.hangs >= 2) ++again;
    if (well && program.tells_hardware) ++again;
  }
  const auto count = [&](std::string_view rule, std::string text) {
    findings_.push_back(
        {&gpu_.rule(rule), gpu_.rule(rule).action, 30, std::move(text), last->last, {}});
  };
  if (hung >= 2)
    return report("hung-jobs", *last, 68, fmt::format("{} different jobs hung on it", hung));
  if (unstarted >= 2) {
    return report(
        "failed-starts", *last, 75,
        fmt::format("{} different jobs could not start on it, and none did well since", unstarted));
  }
  if (direct) {
    return report("failing-jobs", *last, 85,
                  "a job on it alone failed with words of the driver "
                  "that name a fault of the GPU");
  }
  if (told >= 2) {
    return report("failing-jobs", *last, 80, "different jobs failed with the words of a sick GPU");
  }
  if (proven >= kLemonJobs || (proven >= 2 && told > 0) || again > 0) {
    return report("failing-jobs", *last, 72,
                  "jobs fail on it that did well on other GPUs, and none did well on it since");
  }
  if (is_lemon()) {
    return report("failing-jobs", *last, 68,
                  "again and again jobs fail on it whose programs fail on no other GPU");
  }
  if (suspicious >= kJobsInARow && users.size() >= 3) {
    return report("failing-jobs", *last, 65,
                  fmt::format("{} different jobs in a row failed on it", suspicious));
  }
  if (hung == 1) return count("hung-jobs", "a job hung on it");
  if (unstarted == 1) return count("failed-starts", "a job could not start on it");
}

}  // namespace gpu_platform::health
