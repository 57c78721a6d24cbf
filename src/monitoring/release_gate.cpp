#include "monitoring/release_gate.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "os/clock.h"

namespace gpu_platform::monitoring {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPause{5};
constexpr milliseconds kLongestPause{1000};
constexpr std::chrono::seconds kAlertAfter{30};
// The driver's own bookkeeping moves by some megabytes.
const base::Bytes kTolerance = base::kMiB * 64;

bool exists(std::uint32_t pid) {
  return access(fmt::format("/proc/{}", pid).c_str(), F_OK) == 0;
}

}  // namespace

ReleaseGate::ReleaseGate(execution::ObservationSink& sink, SnapshotNow snapshot, ReadNow read_now,
                         Alert alert)
    : sink_(sink),
      snapshot_(std::move(snapshot)),
      read_now_(std::move(read_now)),
      alert_(std::move(alert)),
      thread_([this] { run(); }) {}

ReleaseGate::~ReleaseGate() {
  stop();
}

void ReleaseGate::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void ReleaseGate::observe(execution::Observation observation) {
  const auto* cleaned = std::get_if<execution::Cleaned>(&observation);
  std::vector<GpuAwaited> gpus;
  if (cleaned != nullptr) gpus = gpus_of(cleaned->attempt);
  if (gpus.empty()) {
    sink_.observe(std::move(observation));
    return;
  }
  bool is_early = false;
  {
    const std::lock_guard lock(mutex_);
    const auto now = SteadyClock::now();
    const auto [entry, is_new] = waiting_.try_emplace(
        cleaned->attempt, Waiting{std::move(gpus), *cleaned, os::boot_ns(), now, now + kFirstPause,
                                  kFirstPause * 2, false});
    if (!is_new || stopping_) return;
    Questions questions;
    add_questions(entry->second, questions);
    ask(questions);  // with the lock, so that nothing is asked after stop()
    is_early = entry->second.ask_at < asleep_until_;
  }
  if (is_early) wake_.notify_one();
}

void ReleaseGate::add_questions(const Waiting& waiting, Questions& questions) {
  for (const GpuAwaited& gpu : waiting.gpus) questions[gpu.node].push_back(gpu.uuid);
}

void ReleaseGate::ask(const Questions& questions) const {
  for (const auto& [node, uuids] : questions) read_now_(node, uuids);
}

std::vector<ReleaseGate::GpuAwaited> ReleaseGate::gpus_of(model::AttemptId id) const {
  std::vector<GpuAwaited> gpus;
  const auto snapshot = snapshot_();
  const model::Job* job = snapshot->jobs.find(id.job.value);
  if (job == nullptr || id.attempt == 0 || id.attempt > job->attempts.size()) return gpus;
  for (const auto& part : job->attempts[id.attempt - 1].allocation.nodes) {
    const model::Node* node = snapshot->nodes.find(part.node.value);
    if (node == nullptr) continue;
    for (const model::GpuGrant& grant : part.grants) {
      const model::Gpu& gpu = node->gpus.at(grant.gpu_index);
      if (gpu.is_reported) gpus.push_back({node->name, gpu.info.uuid, "no reading yet"});
    }
  }
  return gpus;
}

// Returns an empty text if nothing is left on the GPU. Living processes of others do not delay a
// release; while there are any, the owner of the memory cannot be known.
std::string ReleaseGate::what_is_left(const std::string& uuid,
                                      const hardware::GpuReading& reading) {
  if (reading.condition != hardware::GpuCondition::kAnswering) return {};
  if (reading.processes) {
    for (const hardware::GpuProcess& process : *reading.processes) {
      if (!exists(process.pid)) {
        return fmt::format("process {} has ended and is still on it", process.pid);
      }
    }
    if (!reading.processes->empty()) return {};
  }
  const auto base = base_line_.find(uuid);
  if (!reading.memory_used || base == base_line_.end()) return {};
  if (*reading.memory_used <= base->second + kTolerance) return {};
  return fmt::format("{} MiB of its memory are in use by no process",
                     (*reading.memory_used - base->second).value() / base::kMiB.value());
}

void ReleaseGate::take_readings(const std::string& node, const std::vector<std::string>& uuids,
                                const node::ProbeReadings& readings) {
  std::vector<execution::Cleaned> released;
  {
    const std::lock_guard lock(mutex_);
    std::map<std::string_view, std::string> left;
    for (const hardware::GpuReading& reading : readings.gpus) {
      if (reading.index >= uuids.size()) continue;
      left.emplace(uuids[reading.index], what_is_left(uuids[reading.index], reading));
      const bool is_unused = reading.processes && reading.processes->empty() && reading.memory_used;
      if (!is_unused) continue;
      const auto [base, is_new] =
          base_line_.try_emplace(uuids[reading.index], *reading.memory_used);
      base->second = std::min(base->second, *reading.memory_used);
    }
    for (auto& [attempt, waiting] : waiting_) {
      if (readings.began_ns < waiting.cleaned_ns) continue;
      std::erase_if(waiting.gpus, [&](GpuAwaited& gpu) {
        if (gpu.node != node) return false;
        const auto found = left.find(gpu.uuid);
        // The GPU was not read at all: its driver has lost it, or it was not asked for.
        if (found == left.end()) return !readings.is_partial;
        if (found->second.empty()) return true;
        gpu.why = found->second;
        return false;
      });
      if (waiting.gpus.empty()) released.push_back(waiting.cleaned);
    }
    for (const execution::Cleaned& cleaned : released) waiting_.erase(cleaned.attempt);
  }
  for (const execution::Cleaned& cleaned : released) sink_.observe(cleaned);
}

// Asks for readings while something waits, ever more seldom for what does not come free.
void ReleaseGate::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = SteadyClock::now();
    auto next = SteadyClock::time_point::max();
    Questions questions;
    std::vector<std::string> alerts;
    for (auto& [attempt, waiting] : waiting_) {
      if (waiting.ask_at <= now) {
        add_questions(waiting, questions);
        waiting.ask_at = now + waiting.pause;
        waiting.pause = std::min(waiting.pause * 2, kLongestPause);
      }
      next = std::min(next, waiting.ask_at);
      if (waiting.is_alerted || now - waiting.since < kAlertAfter) continue;
      waiting.is_alerted = true;
      const GpuAwaited& gpu = waiting.gpus.front();
      alerts.push_back(fmt::format("GPU {} of node {} does not become free after job {}: {}",
                                   gpu.uuid, gpu.node, attempt.job.value, gpu.why));
    }
    ask(questions);
    if (alerts.empty()) {
      asleep_until_ = next;
      if (next == SteadyClock::time_point::max()) {
        wake_.wait(lock);
      } else {
        wake_.wait_until(lock, next);
      }
      asleep_until_ = SteadyClock::time_point::min();
      continue;
    }
    lock.unlock();
    for (const std::string& alert : alerts) alert_(alert);
    lock.lock();
  }
}

}  // namespace gpu_platform::monitoring
