#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "health/evidence_words.h"
#include "health/gpu_case.h"

// What no single piece shows: the same faults under different jobs, and how those jobs did
// elsewhere. A program that fails on other GPUs in the same way is to blame itself.

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

constexpr base::Duration kExplains = base::minutes(10);  // a fault explains others around it
constexpr std::size_t kMaxCompared = 64;                 // GPUs that are looked at for one program
constexpr std::size_t kManyGpus = 4;
constexpr std::int64_t kManySigns = 100;
constexpr std::size_t kLemonJobs = 3;  // of programs that fail nowhere else
constexpr base::Duration kHalfDay = base::hours(12);
constexpr std::size_t kJobsInARow = 5;
constexpr base::Duration kMonthOfJobs = base::hours(24 * 31);

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

// One program's failures on this GPU.
struct Program {
  std::string_view user;
  std::string_view program;
  model::JobId job;  // if the program has no name
  std::vector<Burst> bursts;
  std::set<model::JobId> jobs;
  std::set<std::uint32_t> xids;
  bool tells_hardware = false;
  bool never_started = false;
  bool did_well = false;  // elsewhere
  std::size_t hangs = 0;
  std::size_t alone = 0;  // failures of jobs with many GPUs that only this one had

  bool is_known() const { return !user.empty() || !program.empty() || job.valid(); }
};

struct Elsewhere {
  bool did_well = false;
  bool failed = false;      // on another GPU, without a fault of that one
  bool failed_far = false;  // on another node
  bool did_well_far = false;
};

auto key_of(const Evidence& piece) {
  const bool has_program = !piece.program.empty();
  return std::tuple(std::string_view(piece.user), std::string_view(piece.program),
                    has_program ? model::JobId() : piece.job);
}

bool is_same_program(const Evidence& piece, const Program& program) {
  return key_of(piece) == std::tuple(program.user, program.program, program.job);
}

class Suspicions {
 public:
  Suspicions(const GpuCase& gpu, std::vector<Finding>& findings) : gpu_(gpu), findings_(findings) {}

  void find() {
    bool is_needed = false;
    for (const Evidence& piece : gpu_.pieces()) {
      is_needed = is_needed || is_exception(piece) || is_failure(piece);
    }
    if (!is_needed) return;
    find_lemon_node();
    find_exceptions();
    find_failing_jobs();
  }

 private:
  bool is_exception(const Evidence& piece) const {
    return piece.kind == EvidenceKind::kXid && gpu_.xid(piece.code).repeat == Repeat::kJobs &&
           gpu_.xid(piece.code).mode != RuleMode::kOff;
  }
  static bool is_failure(const Evidence& piece) {
    return (piece.kind == EvidenceKind::kJobEnded && piece.code != 0) ||
           piece.kind == EvidenceKind::kStartFailed || piece.kind == EvidenceKind::kJobHung;
  }
  bool counts(const Evidence& piece) const {
    return gpu_.is_recent(piece.last, kWeek) && !gpu_.is_answered(piece.last);
  }

  // Whether a fault of another GPU of the job, or of this one, explains the piece.
  bool is_explained(const Evidence& piece) const {
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
  bool has_fault_near(std::span<const Evidence> pieces, const Evidence& piece) const {
    return std::ranges::any_of(pieces, [&](const Evidence& other) {
      return gpu_.is_hard(other) && other.at <= piece.last + kExplains &&
             piece.at <= other.last + kExplains;
    });
  }

  // How many GPUs the job has that the records know of, and whether another one had such an XID.
  struct Gang {
    std::size_t gpus = 1;
    bool others_had_it = false;
  };
  Gang gang_of(const Evidence& piece) const {
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

  Elsewhere look_elsewhere(const Program& program, bool by_exceptions) const {
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

  static Program& program_of(std::vector<Program>& programs, const Evidence& piece) {
    for (Program& each : programs) {
      if (is_same_program(piece, each)) return each;
    }
    Program fresh;
    std::tie(fresh.user, fresh.program, fresh.job) = key_of(piece);
    programs.push_back(std::move(fresh));
    return programs.back();
  }

  // Whether another GPU of the job is more to blame: it alone had exceptions, or more other jobs
  // failed on it.
  bool points_elsewhere(const Evidence& piece) const {
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
  // Conditions that are no proof, and make one GPU of several the likelier one.
  bool has_signs(std::span<const Evidence> pieces) const {
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
  bool had_exception(model::JobId job) const {
    return std::ranges::any_of(gpu_.pieces(), [&](const Evidence& piece) {
      return job.valid() && piece.job == job && is_exception(piece);
    });
  }
  std::size_t failed_jobs(std::span<const Evidence> pieces) const {
    std::set<model::JobId> jobs;
    for (const Evidence& piece : pieces) {
      if (is_failure(piece) && piece.at <= gpu_.now() && counts(piece) &&
          !tells_of_application(piece.text)) {
        jobs.insert(piece.job);
      }
    }
    return jobs.size();
  }

  void find_exceptions();
  void find_failing_jobs();
  bool is_lemon() const;
  void find_lemon_node();
  bool same_unit_again() const;
  bool has_weak_signs(base::Instant at) const;
  bool neighbours_are_clean(base::Instant at) const;
  bool stands_out(std::size_t bursts) const;
  void report(std::string_view rule, const Evidence& last, std::uint32_t confidence,
              std::string text) {
    report(gpu_.rule(rule), last, confidence, std::move(text));
  }
  void report(const Rule& rule, const Evidence& last, std::uint32_t confidence, std::string text) {
    findings_.push_back({&rule, std::max(rule.action, rule.repeated), confidence, std::move(text),
                         last.last, last.last + kWeek});
  }

  const GpuCase& gpu_;
  std::vector<Finding>& findings_;
};

// Signs of weak memory or links near that time, none of which would take the GPU out alone.
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

// No other GPU of the node had such XIDs in the same day; false if the node has no other.
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

// Whether it has clearly more such XIDs than the other GPUs of its node in this week. Where they
// have them, too, a course or a new version of a library is the likelier cause.
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

// XID 13 named the same unit in two bursts or more, and no other unit.
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

// A node where GPU after GPU has a fault, and with which jobs fail that do well without it.
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

// Whether, among jobs that did well here, some failed in a month whose programs do well elsewhere
// and fail nowhere else.
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

void find_suspicions(const GpuCase& gpu, std::vector<Finding>& findings) {
  Suspicions(gpu, findings).find();
}

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
