#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "base/utc.h"
#include "health/evidence_words.h"
#include "health/gpu_case.h"
#include "health/verdict.h"

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

// A hang after a fault ends with the time limit of a collective call: 10 to 30 minutes.
constexpr base::Duration kBeforeEnd = base::minutes(35);
constexpr base::Duration kAfterEnd = base::minutes(2);
constexpr base::Duration kAtTheSameTime = base::minutes(2);
constexpr base::Duration kRanForLong = base::minutes(10);
constexpr base::Duration kMonth = base::hours(24 * 31);
constexpr std::size_t kMaxGpus = 256;
constexpr std::size_t kMaxTimes = 16;

class JobJudgement {
 public:
  JobJudgement(const Records& records, const FailedJob& job, const Rules& rules)
      : records_(records), job_(job), rules_(rules) {}

  JobVerdict judge() {
    const std::size_t count = std::min(job_.gpus.size(), kMaxGpus);
    gpus_ = std::span(job_.gpus).first(count);
    read_own_words();
    if (was_hit()) return std::move(verdict_);
    compare_with_others();
    const bool fails_everywhere = failed_elsewhere_ && !did_well_elsewhere_;
    // "No device" may come of what the program was told; a memory error does not.
    if (names_a_fault(words_) || (tells_of_hardware(words_) && !fails_everywhere)) {
      return end(FaultClass::kHardware, 82, "Its output has the words of a sick GPU.");
    }
    const bool tells_mistake = tells_of_application(words_);
    // A GPU that computes wrongly or has lost memory makes the program say so.
    if (tells_mistake && is_on_sick_gpu(Sickness::kWrongResults)) return std::move(verdict_);
    if (tells_mistake) {
      return end(FaultClass::kApplication, 85, "Its output names a mistake of the program.");
    }
    if (others_ended_too()) {
      return end(FaultClass::kHardware, 80,
                 "Jobs of other programs on the same node failed in the same moment.");
    }
    if (is_on_sick_gpu(Sickness::kAny)) return std::move(verdict_);
    return own_fault();
  }

 private:
  void read_own_words() {
    for (const GpuKey& gpu : gpus_) {
      for (const Evidence& piece : records_.of_gpu(gpu.uuid)) {
        if (piece.kind == EvidenceKind::kXid && piece.job == job_.job) ++own_xids_[piece.code];
        const bool is_word =
            piece.kind == EvidenceKind::kJobEnded || piece.kind == EvidenceKind::kStartFailed;
        if (is_word && piece.job == job_.job && words_.empty()) words_ = piece.text;
      }
    }
  }
  bool was_hit();
  bool was_hit_by(std::span<const Evidence> pieces, std::string_view where, const GpuKey& gpu);
  bool others_ended_too() const;
  void compare_with_others();
  std::vector<base::Instant> later_times(const GpuKey& gpu) const;
  enum class Sickness : std::uint8_t { kAny, kWrongResults };
  bool is_on_sick_gpu(Sickness sickness);
  JobVerdict own_fault();
  JobVerdict end(FaultClass fault, std::uint32_t confidence, std::string reason) {
    verdict_.fault = fault;
    verdict_.confidence_percent = confidence;
    verdict_.reasons.push_back(std::move(reason));
    return std::move(verdict_);
  }
  bool is_mine(const Evidence& piece) const {
    return piece.user == job_.user && piece.program == job_.program &&
           (!job_.program.empty() || !job_.user.empty());
  }

  const Records& records_;
  const FailedJob& job_;
  const Rules& rules_;
  std::span<const GpuKey> gpus_;
  JobVerdict verdict_;
  std::map<std::uint32_t, std::size_t> own_xids_;
  std::string_view words_;
  bool did_well_elsewhere_ = false;
  bool failed_elsewhere_ = false;
};

// A fault of a GPU, a link or the node while it ran, shortly before its end or with it.
bool JobJudgement::was_hit_by(std::span<const Evidence> pieces, std::string_view where,
                              const GpuKey& gpu) {
  const base::Instant begin =
      std::max(job_.started_at, job_.ended_at + base::nanoseconds(-kBeforeEnd.value()));
  const base::Instant end = job_.ended_at + kAfterEnd;
  bool lost = false;
  for (const Evidence& piece : pieces) {
    const bool restarts = piece.kind == EvidenceKind::kNodeRestarted ||
                          (piece.kind == EvidenceKind::kReset && piece.code == 0);
    const bool remapped = piece.kind == EvidenceKind::kXid && piece.code == 63 &&
                          piece.at <= job_.ended_at + kAtTheSameTime &&
                          job_.ended_at - piece.last <= base::minutes(5);
    if (model::is_level(piece.kind) && piece.is_over) {
      lost = false;
      continue;
    }
    if (!restarts && !remapped && !is_hard(piece, rules_, gpu)) continue;
    // A contained error kills the program that hit it, and no other.
    if (piece.kind == EvidenceKind::kXid && piece.code == 94 && piece.job.valid() &&
        piece.job != job_.job) {
      continue;
    }
    const bool is_near = piece.at <= end && piece.last >= begin;
    // What lasts hits what starts later, too.
    lost = model::is_level(piece.kind) && piece.at <= end;
    if (!is_near && !lost) continue;
    const std::string what =
        piece.kind == EvidenceKind::kXid
            ? fmt::format("XID {} ({})", piece.code, rules_.of_xid(piece.code, gpu.type).what)
        : restarts ? std::string(piece.kind == EvidenceKind::kReset ? "a reset" : "a restart")
                   : fmt::format("{}", to_string(piece.kind));
    verdict_.reasons.push_back(fmt::format("{} had {} at {}.", where, what, base::utc(piece.at)));
    return true;
  }
  return false;
}

bool JobJudgement::was_hit() {
  std::set<std::string_view> nodes;
  for (const GpuKey& gpu : gpus_) {
    if (was_hit_by(records_.of_gpu(gpu.uuid), gpu.uuid, gpu)) {
      verdict_.suspect_gpus.emplace_back(gpu.uuid);
    }
    if (nodes.insert(gpu.node).second && was_hit_by(records_.of_node(gpu.node), gpu.node, gpu)) {
      for (const GpuKey& each : gpus_) {
        if (each.node == gpu.node) verdict_.suspect_gpus.emplace_back(each.uuid);
      }
    }
  }
  std::ranges::sort(verdict_.suspect_gpus);
  const auto [first, last] = std::ranges::unique(verdict_.suspect_gpus);
  verdict_.suspect_gpus.erase(first, last);
  if (verdict_.reasons.empty()) return false;
  verdict_.fault = FaultClass::kHardware;
  verdict_.confidence_percent = 93;
  return true;
}

// Two others at least, on two GPUs: one alone is chance. What the parts of one GPU do at the same
// time is chance, too, or the work of one of them: a fault of that GPU shows on itself.
// What short jobs do at the same time is chance.
bool JobJudgement::others_ended_too() const {
  if (job_.ended_at - job_.started_at < kRanForLong) return false;
  std::set<std::tuple<std::string_view, std::string_view, model::JobId>> others;
  std::set<std::string_view> gpus_of_others;
  std::set<std::string_view> nodes;
  for (const GpuKey& gpu : gpus_) {
    if (!nodes.insert(gpu.node).second) continue;
    for (const std::string_view uuid : records_.gpus_of_node(gpu.node)) {
      for (const Evidence& piece : records_.of_gpu(uuid)) {
        if (piece.kind != EvidenceKind::kJobEnded || piece.code == 0) continue;
        if (piece.job == job_.job || is_mine(piece)) continue;
        const base::Duration apart =
            piece.at < job_.ended_at ? job_.ended_at - piece.at : piece.at - job_.ended_at;
        if (apart > kAtTheSameTime || tells_of_application(piece.text)) continue;
        others.emplace(piece.user, piece.program,
                       piece.program.empty() ? piece.job : model::JobId());
        gpus_of_others.insert(uuid);
      }
    }
  }
  return others.size() >= 2 && gpus_of_others.size() >= 2;
}

// How the same program did on GPUs that this job did not have.
void JobJudgement::compare_with_others() {
  if (job_.program.empty() && job_.user.empty()) return;
  const auto gpus = records_.gpus_with_program(job_.user, job_.program);
  for (std::size_t i = 0; i < gpus.size() && i < kMaxGpus; ++i) {
    if (std::ranges::find(gpus_, gpus[i], &GpuKey::uuid) != gpus_.end()) continue;
    const auto pieces = records_.of_gpu(gpus[i]);
    for (const Evidence& piece : pieces) {
      if (!is_mine(piece) || piece.job == job_.job) continue;
      if (piece.kind == EvidenceKind::kJobEnded && piece.code == 0) did_well_elsewhere_ = true;
      const bool failed = (piece.kind == EvidenceKind::kJobEnded && piece.code != 0) ||
                          (piece.kind == EvidenceKind::kXid && piece.code != 45);
      if (!failed) continue;
      const bool is_explained = std::ranges::any_of(pieces, [&](const Evidence& other) {
        return is_hard(other, rules_, {}) && other.at <= piece.last + base::minutes(10) &&
               piece.at <= other.last + base::minutes(10);
      });
      failed_elsewhere_ |= !is_explained;
    }
  }
}

// The times at which the GPU is judged: after the job, and with each later piece that may convict
// it. What convicts by many jobs (failures, complaints) may come a month later, what convicts by
// this one a week.
std::vector<base::Instant> JobJudgement::later_times(const GpuKey& gpu) const {
  const base::Instant first = job_.ended_at + kAfterEnd;
  std::vector<base::Instant> times = {first};
  std::vector<base::Instant> complaints;
  bool complained_soon = false;
  bool complained_before = false;
  for (const auto pieces : {records_.of_gpu(gpu.uuid), records_.of_node(gpu.node)}) {
    for (const Evidence& piece : pieces) {
      const bool is_news = piece.kind != EvidenceKind::kJobStarted &&
                           piece.kind != EvidenceKind::kCleared &&
                           !(piece.kind == EvidenceKind::kJobEnded && piece.code == 0);
      if (is_news && piece.last > first && piece.last - first <= kMonth) {
        times.push_back(piece.last);
      }
      if (piece.kind != EvidenceKind::kComplaint) continue;
      const base::Duration apart = piece.last > first ? piece.last - first : first - piece.last;
      complained_soon = complained_soon || apart <= kMonth;
      complained_before = complained_before || piece.at <= first;
      if (piece.last > first) complaints.push_back(piece.last);
    }
  }
  std::ranges::sort(times);
  const auto [begin, end] = std::ranges::unique(times);
  times.erase(begin, end);
  // Of many, every so many: the time of a judgement is bounded.
  const std::size_t step = times.size() / kMaxTimes + 1;
  std::vector<base::Instant> some;
  for (std::size_t i = 0; i < times.size(); i += step) some.push_back(times[i]);
  if (some.back() != times.back()) some.push_back(times.back());
  // Between two complaints the GPU was as sick as at them.
  if (complained_soon || complained_before)
    some.insert(some.end(), complaints.begin(), complaints.end());
  std::ranges::sort(some);
  return some;
}

// A GPU of it is judged sick by all that is known, also by what came after the job.
bool JobJudgement::is_on_sick_gpu(Sickness sickness) {
  if (failed_elsewhere_ && !did_well_elsewhere_) return false;
  for (const GpuKey& gpu : gpus_) {
    for (const base::Instant at : later_times(gpu)) {
      const GpuVerdict verdict = judge_gpu(records_, gpu, rules_, at);
      if (verdict.action < Action::kDegrade || verdict.fault == FaultClass::kApplication) continue;
      const bool spoils = verdict.rule == "check-failed" || verdict.rule == "xid-168";
      if (sickness == Sickness::kWrongResults && !spoils) continue;
      const bool is_by_many = verdict.rule == "failing-jobs" || verdict.rule == "complaints" ||
                              verdict.rule == "failed-starts" || verdict.rule == "hung-jobs";
      // What only came a while after it did not end it.
      const bool is_repeated = rules_.of(verdict.rule, gpu.type).repeat != Repeat::kNever;
      const base::Duration reach = verdict.rule == "complaints" ? kComplaintsWindow
                                   : is_by_many                 ? kMonth
                                   : is_repeated || spoils      ? kWeek
                                                                : base::hours(1);
      if (at - job_.ended_at > reach) continue;
      verdict_.suspect_gpus.emplace_back(gpu.uuid);
      verdict_.reasons.push_back(fmt::format("{} is sick: {}.", gpu.uuid, verdict.text));
      break;
    }
  }
  if (verdict_.suspect_gpus.empty()) return false;
  verdict_.fault = FaultClass::kHardware;
  verdict_.confidence_percent = did_well_elsewhere_ ? 85 : 72;
  return true;
}

JobVerdict JobJudgement::own_fault() {
  if (failed_elsewhere_) {
    return end(FaultClass::kApplication, 88,
               "The same program failed on other GPUs, too, and they have no fault.");
  }
  if (!own_xids_.empty()) {
    const std::uint32_t code = own_xids_.begin()->first;
    return end(FaultClass::kApplication, 70,
               fmt::format("XID {} ({}) is mostly the program's fault, and its GPUs show no other.",
                           code, rules_.of_xid(code).what));
  }
  return end(FaultClass::kApplication, 65, "Nothing was seen of its GPUs and nodes.");
}

}  // namespace

JobVerdict judge_job(const Records& records, const FailedJob& job, const Rules& rules) {
  return JobJudgement(records, job, rules).judge();
}

}  // namespace gpu_platform::health
