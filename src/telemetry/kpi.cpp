#include "telemetry/kpi.h"

#include <algorithm>
#include <utility>

namespace gpu_platform::telemetry {

namespace {

constexpr double kSecond = 1e9;
constexpr double kHourNs = 3600 * kSecond;

// More time first; then in a fixed order.
bool goes_before(const KpiIdle& a, const KpiIdle& b) {
  if (a.time.held != b.time.held) return a.time.held > b.time.held;
  return std::pair(a.job, a.since) < std::pair(b.job, b.since);
}

std::optional<double> quotient(double part, double whole) {
  return whole > 0 ? std::optional(part / whole) : std::nullopt;
}

// Nothing of it lies at the time or later.
bool ends_before(const KpiRun& run, base::Instant time) {
  const bool holds_gpus = run.requested.is_set() && !run.released.is_set();
  const base::Instant last = std::max(run.released, run.job_ended);
  return !holds_gpus && last.is_set() && last < time;
}

KpiGpuTime held_for(const KpiRun& run, base::Duration time) {
  KpiGpuTime out;
  out.held = static_cast<__int128>(run.gpus.value()) * time.value();
  const auto held = static_cast<double>(out.held);
  out.measured = held * static_cast<double>(run.measured);
  out.busy = out.measured * static_cast<double>(run.utilization);
  out.memory_measured = held * static_cast<double>(run.memory_measured);
  out.memory = out.memory_measured * static_cast<double>(run.memory);
  return out;
}

}  // namespace

void KpiTimes::add(base::Duration time) {
  const base::Duration passed = std::max(time, base::Duration());
  const std::int64_t milliseconds = base::whole_milliseconds(passed);
  min_ = count_ == 0 ? milliseconds : std::min(min_, milliseconds);
  max_ = count_ == 0 ? milliseconds : std::max(max_, milliseconds);
  sum_ += static_cast<double>(passed.value()) / kSecond;
  spread_.add(milliseconds);
  ++count_;
}

double KpiTimes::percentile_seconds(double share) const {
  return static_cast<double>(std::clamp(*spread_.percentile(share), min_, max_)) / 1000;
}

double KpiGpuTime::hours() const {
  return static_cast<double>(held) / static_cast<double>(base::kWholeGpu.value()) / kHourNs;
}

std::optional<double> KpiGpuTime::measured_percent() const {
  return quotient(measured * 100, static_cast<double>(held));
}

std::optional<double> KpiGpuTime::utilization_percent() const {
  return quotient(busy, measured);
}

std::optional<double> KpiGpuTime::memory_percent() const {
  return quotient(memory, memory_measured);
}

void KpiGpuTime::add(const KpiGpuTime& other) {
  held += other.held;
  measured += other.measured;
  busy += other.busy;
  memory_measured += other.memory_measured;
  memory += other.memory;
}

void KpiSums::add(const KpiRuns& runs, const std::set<model::JobId>& skip) {
  const std::vector<std::string>& names = runs.names();
  // By the place of the name; made when the team is first met.
  std::vector<KpiGroup*> groups(names.size(), nullptr);
  std::vector<bool> is_wanted(names.size(), true);
  for (std::size_t i = 0; i < names.size(); ++i) {
    is_wanted[i] = !question_.team || names[i] == *question_.team;
  }
  for (const KpiRun& run : runs.runs()) {
    if (ends_before(run, question_.from)) continue;
    if (!skip.empty() && skip.contains(run.job)) continue;
    if (!is_wanted[run.team]) {
      figures_.site.add(held_for(run, held_within(run)));
      continue;
    }
    KpiGroup*& group = groups[run.team];
    if (group == nullptr) group = &figures_.teams[names[run.team]];
    add_job(run, *group);
    add_attempt(run);
    add_gpus(run, *group, names);
  }
}

base::Duration KpiSums::held_within(const KpiRun& run) const {
  if (!run.requested.is_set()) return {};
  const base::Instant from = std::max(run.requested, question_.from);
  const base::Instant to =
      run.released.is_set() ? std::min(run.released, question_.to) : question_.to;
  return from < to ? to - from : base::Duration();
}

void KpiSums::add_job(const KpiRun& run, KpiGroup& team) {
  if (run.is_first && is_within(run.requested)) figures_.wait.add(run.requested - run.queued);
  if (!is_within(run.job_ended)) return;
  const bool is_completed = run.job_cause == KpiCause::kNone;
  const bool is_cancelled = run.job_cause == KpiCause::kCancelled;
  for (KpiGroup* const group : {&figures_.all, &team}) {
    ++group->ended;
    if (is_completed) ++group->completed;
    if (is_cancelled) ++group->cancelled;
  }
  ++figures_.jobs[static_cast<std::size_t>(run.job_cause)];
  if (is_completed) figures_.completion.add(run.job_ended - run.submitted);
  if (!run.was_interrupted || is_cancelled) return;
  ++figures_.interrupted;
  if (is_completed) ++figures_.recovered;
}

void KpiSums::add_attempt(const KpiRun& run) {
  if (is_within(run.started)) figures_.allocation.add(run.started - run.requested);
  if (is_within(run.ended)) ++figures_.attempts[static_cast<std::size_t>(run.cause)];
}

void KpiSums::add_gpus(const KpiRun& run, KpiGroup& team, const std::vector<std::string>& names) {
  if (run.gpus == base::GpuShare()) return;
  const base::Duration within = held_within(run);
  if (within == base::Duration()) return;
  const KpiGpuTime time = held_for(run, within);
  figures_.site.add(time);
  figures_.all.gpus.add(time);
  team.gpus.add(time);
  figures_.kinds[static_cast<std::size_t>(run.kind)].add(time);
  const bool is_idle = run.measured >= kLeastMeasured && within >= question_.idle_after &&
                       run.utilization < static_cast<float>(question_.idle_below_percent);
  if (!is_idle) return;
  add_idle({.job = run.job,
            .user = names[run.user],
            .team = names[run.team],
            .since = run.requested,
            .gpus = run.gpus,
            .time = time,
            .is_running = !run.ended.is_set()});
}

void KpiSums::add_idle(KpiIdle idle) {
  ++figures_.idle_count;
  figures_.idle_time.add(idle.time);
  std::vector<KpiIdle>& kept = figures_.idle;
  kept.push_back(std::move(idle));
  if (kept.size() < 2 * question_.max_idle) return;
  std::ranges::nth_element(kept, kept.begin() + static_cast<std::ptrdiff_t>(question_.max_idle),
                           goes_before);
  kept.resize(question_.max_idle);
}

KpiFigures KpiSums::figures() const {
  KpiFigures out = figures_;
  std::ranges::sort(out.idle, goes_before);
  if (out.idle.size() > question_.max_idle) out.idle.resize(question_.max_idle);
  std::erase_if(out.teams, [](const auto& team) {
    return team.second.ended == 0 && team.second.gpus.held == 0;
  });
  return out;
}

double present_hours(const Series& gpu, base::Instant from, base::Instant to) {
  double nanoseconds = 0;
  for (const Point& point : gpu.points) {
    const base::Instant begin = std::max(point.from, from);
    const base::Instant end = std::min(point.from + gpu.step, to);
    if (begin < end) nanoseconds += static_cast<double>((end - begin).value());
  }
  return nanoseconds / kHourNs;
}

}  // namespace gpu_platform::telemetry
