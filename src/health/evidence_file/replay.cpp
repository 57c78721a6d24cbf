#include "health/evidence_file/replay.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "health/case_book.h"

namespace gpu_platform::health {

namespace {

using model::Evidence;
using model::EvidenceKind;

// As long as the end of a job is held until its driver's events have come (issue S6).
constexpr base::Duration kHeld = base::milliseconds(500);

struct EndedJob {
  Evidence end;
  JobEnd how = JobEnd::kCompleted;
  std::vector<std::string> gpus;
  base::Instant started_at;
  bool is_judged = false;
  bool is_charged_at_once = false;
};

class Replayer {
 public:
  Replayer(const EvidenceFile& file, const Rules& rules) : file_(file), rules_(rules) {}

  Replay run() {
    for (std::size_t i = 0; i < file_.lines.size(); ++i) {
      const EvidenceLine& line = file_.lines[i];
      advance(line.piece.at);
      apply(line);
      if (!is_reset_with_check(i)) judge_touched(line.piece.at);
    }
    advance(file_.until + kLastsOn);
    note_outages(file_.until + kLastsOn);
    finish();
    return std::move(result_);
  }

 private:
  // Lets the time pass: what is due by itself is judged.
  void advance(base::Instant to) {
    while (!due_.empty() && due_.begin()->first <= to) {
      const auto [at, uuid] = *due_.begin();
      due_.erase(due_.begin());
      judge_jobs(at);
      judge(uuid, at);
    }
    judge_jobs(to);
  }

  // A check that ends a reset is written with it: nothing is judged in between, as in the daemon.
  bool is_reset_with_check(std::size_t i) const {
    if (i + 1 == file_.lines.size()) return false;
    const Evidence& reset = file_.lines[i].piece;
    const Evidence& check = file_.lines[i + 1].piece;
    return reset.kind == EvidenceKind::kReset && check.kind == EvidenceKind::kCheck &&
           reset.at == check.at;
  }
  void apply(const EvidenceLine& line);
  void start(const EvidenceLine& line);
  void end(const EvidenceLine& line);
  void fail_start(const EvidenceLine& line);
  void judge_touched(base::Instant now) {
    for (const std::string& uuid : book_.take_touched()) judge(uuid, now);
  }
  void judge(const std::string& uuid, base::Instant now);
  bool is_allowed(const ReplayedGpu& gpu, const GpuVerdict& verdict, base::Instant now);
  void note_outage(ReplayedGpu& gpu, base::Instant now);
  void note_outages(base::Instant now) {
    for (auto& [uuid, gpu] : gpus_) note_outage(gpu, now);
  }
  void judge_jobs(base::Instant now);
  JobVerdict verdict_of(const EndedJob& job) const;
  void finish();
  ReplayedGpu& shown(const GpuName& gpu);
  static GpuKey key_of(const GpuName& gpu) { return {gpu.node, gpu.gpu, gpu.type}; }

  const EvidenceFile& file_;
  const Rules& rules_;
  CaseBook book_;
  std::map<std::string, ReplayedGpu, std::less<>> gpus_;
  std::set<std::pair<base::Instant, std::string>> due_;
  std::map<std::string, base::Instant> due_of_;
  std::map<model::JobId, base::Instant> started_;
  std::vector<EndedJob> ended_;
  std::size_t first_unjudged_ = 0;
  Replay result_;
};

ReplayedGpu& Replayer::shown(const GpuName& gpu) {
  ReplayedGpu& entry = gpus_[gpu.gpu];
  if (entry.gpu.empty()) {
    entry.gpu = gpu.gpu;
    entry.node = gpu.node;
    book_.add_gpu(key_of(gpu));
  }
  if (!gpu.type.empty()) entry.type = gpu.type;
  return entry;
}

void Replayer::apply(const EvidenceLine& line) {
  for (const GpuName& gpu : line.gpus) shown(gpu).lines.push_back(line.line);
  if (line.piece.kind == EvidenceKind::kJobStarted) return start(line);
  if (line.piece.kind == EvidenceKind::kJobEnded) return end(line);
  if (line.gpus.empty() && !line.node.empty() && !line.piece.job.valid()) {
    for (const std::string_view uuid : book_.gpus_of_node(line.node)) {
      gpus_.find(uuid)->second.lines.push_back(line.line);
    }
    return book_.add_to_node(line.node, line.piece);
  }
  if (line.gpus.empty() && line.piece.job.valid()) {
    for (const GpuKey& gpu : book_.gpus_of_job(line.piece.job)) {
      gpus_.find(gpu.uuid)->second.lines.push_back(line.line);
      book_.add(gpu, line.piece);
    }
    return;
  }
  for (const GpuName& gpu : line.gpus) book_.add(key_of(gpu), line.piece);
  if (line.piece.kind == EvidenceKind::kStartFailed && line.piece.job.valid()) fail_start(line);
}

// A start that fails is the end of the job's attempt.
void Replayer::fail_start(const EvidenceLine& line) {
  EndedJob job;
  job.end = line.piece;
  job.how = JobEnd::kFailed;
  job.started_at = line.piece.at;
  for (const GpuName& gpu : line.gpus) job.gpus.push_back(gpu.gpu);
  ended_.push_back(std::move(job));
}

void Replayer::start(const EvidenceLine& line) {
  std::vector<GpuKey> keys;
  for (const GpuName& gpu : line.gpus) keys.push_back(key_of(gpu));
  started_.emplace(line.piece.job, line.piece.at);
  book_.start_job(keys, line.piece);
}

void Replayer::end(const EvidenceLine& line) {
  EndedJob job;
  job.end = line.piece;
  job.how = line.end.value_or(JobEnd::kCompleted);
  std::vector<GpuKey> keys = book_.gpus_of_job(line.piece.job);
  if (keys.empty() || !line.piece.job.valid()) {
    keys.clear();
    for (const GpuName& gpu : line.gpus) keys.push_back(key_of(gpu));
    Evidence start = line.piece;
    start.kind = EvidenceKind::kJobStarted;
    start.code = 0;
    start.text.clear();
    if (start.job.valid()) book_.start_job(keys, start);
  }
  const auto started = started_.find(line.piece.job);
  if (started != started_.end()) job.started_at = started->second;
  for (const GpuKey& key : keys) job.gpus.emplace_back(key.uuid);
  for (const std::string& uuid : job.gpus) {
    std::vector<std::size_t>& lines = gpus_.find(uuid)->second.lines;
    if (lines.empty() || lines.back() != line.line) lines.push_back(line.line);
  }
  // Who is stopped by a person says nothing of its GPUs.
  if (job.how != JobEnd::kCancelled) {
    for (const std::string& uuid : job.gpus) book_.add(book_.key(uuid), line.piece);
  }
  // What its start has said of the user and the program.
  for (const std::string& uuid : job.gpus) {
    for (const Evidence& piece : book_.of_gpu(uuid)) {
      if (piece.job != job.end.job) continue;
      if (job.end.user.empty()) job.end.user = piece.user;
      if (job.end.program.empty()) job.end.program = piece.program;
    }
  }
  ended_.push_back(std::move(job));
}

bool Replayer::is_allowed(const ReplayedGpu& gpu, const GpuVerdict& verdict, base::Instant now) {
  const auto inventory = std::ranges::find_if(file_.inventory, [&](const Inventory& each) {
    return each.gpu_type == gpu.type || file_.inventory.size() == 1;
  });
  const Outage wanted = outage_of(verdict.action);
  const auto seen = [&](const ReplayedGpu& each) {
    return BreakerGpu{each.outage, is_proven(book_.of_gpu(each.gpu)), true};
  };
  if (inventory == file_.inventory.end() || !needs_breaker(seen(gpu), wanted)) return true;
  BreakerCounts counts;
  for (const auto& [uuid, other] : gpus_) {
    const bool is_of_type = file_.inventory.size() == 1 || other.type == gpu.type;
    if (is_of_type && other.gpu != gpu.gpu) count(seen(other), wanted, counts);
  }
  // The file names only GPUs that something was seen of.
  counts.of_type = inventory->gpus;
  counts.of_class = inventory->gpus;
  BreakerAnswer answer = ask_breaker({}, counts, gpu.type);
  if (answer.is_allowed) return true;
  result_.breaker.push_back(
      {now, gpu.gpu,
       fmt::format("{} ({}): {}", to_string(verdict.action), verdict.rule, answer.text)});
  return false;
}

void Replayer::judge(const std::string& uuid, base::Instant now) {
  const auto found = gpus_.find(uuid);
  if (found == gpus_.end()) return;
  ReplayedGpu& gpu = found->second;
  GpuVerdict verdict = judge_gpu(book_, book_.key(uuid), rules_, now);
  if (const auto due = due_of_.find(uuid); due != due_of_.end()) {
    due_.erase({due->second, uuid});
    due_of_.erase(due);
  }
  if (verdict.again_at.is_set() && verdict.again_at > now) {
    due_.emplace(verdict.again_at, uuid);
    due_of_.emplace(uuid, verdict.again_at);
  }
  note_outage(gpu, now);
  const bool is_news = verdict.action != gpu.verdict.action || verdict.rule != gpu.verdict.rule;
  if (!takes_out(verdict.action)) {
    gpu.is_out = false;  // recoveries always pass
    gpu.outage = Outage::kNone;
  } else if (is_news && is_allowed(gpu, verdict, now)) {
    if (!gpu.is_out) gpu.out_since = now;
    gpu.is_out = true;
    gpu.outage = outage_of(verdict.action);
  }
  if (is_news) gpu.history.push_back({now, verdict.action, verdict.rule, verdict.text});
  gpu.verdict = std::move(verdict);
  if (gpu.verdict.action != Action::kAvoid) note_outage(gpu, now);
}

void Replayer::note_outage(ReplayedGpu& gpu, base::Instant now) {
  if (!gpu.is_out || gpu.taken_out_at.is_set()) return;
  if (gpu.verdict.action == Action::kAvoid && now - gpu.out_since < kPause) return;
  gpu.taken_out_at = gpu.out_since;
  gpu.taken_out_by = gpu.verdict;
}

JobVerdict Replayer::verdict_of(const EndedJob& job) const {
  FailedJob failed;
  failed.job = job.end.job;
  failed.user = job.end.user;
  failed.program = job.end.program;
  failed.started_at = job.started_at;
  failed.ended_at = job.end.at;
  for (const std::string& uuid : job.gpus) failed.gpus.push_back(book_.key(uuid));
  return judge_job(book_, failed, rules_);
}

void Replayer::judge_jobs(base::Instant now) {
  while (first_unjudged_ < ended_.size() && ended_[first_unjudged_].end.at + kHeld < now) {
    EndedJob& job = ended_[first_unjudged_++];
    job.is_judged = true;
    const bool failed = job.how == JobEnd::kFailed || job.how == JobEnd::kTimeout;
    job.is_charged_at_once = failed && verdict_of(job).fault != FaultClass::kHardware;
  }
}

void Replayer::finish() {
  judge_jobs(base::Instant(std::numeric_limits<std::int64_t>::max()));
  for (const EndedJob& job : ended_) {
    ReplayedJob shown;
    const auto name = file_.job_names.find(job.end.job);
    if (name != file_.job_names.end()) shown.job = name->second;
    shown.user = job.end.user;
    shown.program = job.end.program;
    shown.gpus = job.gpus;
    shown.at = job.end.at;
    shown.failed = job.how == JobEnd::kFailed || job.how == JobEnd::kTimeout;
    if (shown.failed) {
      shown.verdict = verdict_of(job);
      shown.is_charged = shown.verdict.fault != FaultClass::kHardware;
      shown.is_charged_at_once = job.is_charged_at_once;
    }
    result_.jobs.push_back(std::move(shown));
  }
  for (auto& [uuid, gpu] : gpus_) result_.gpus.push_back(std::move(gpu));
  result_.notes = file_.notes;
  if (file_.inventory.empty()) {
    result_.notes.emplace_back(
        "the circuit breaker was not asked: the file has no line of kind \"inventory\"");
  }
}

}  // namespace

Replay replay(const EvidenceFile& file, const Rules& rules) {
  return Replayer(file, rules).run();
}

}  // namespace gpu_platform::health
