#include "monitoring/memory_watchdog.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "model/node_lookup.h"
#include "os/clock.h"

namespace gpu_platform::monitoring {

namespace {

base::Instant boot_now() {
  return base::Instant(os::boot_ns());
}

const model::GpuGrant* grant_on(const controller::Snapshot& snapshot, model::AttemptId id,
                                model::GpuRef place) {
  const model::Job* const job = snapshot.jobs.find(id.job.value);
  if (job == nullptr || id.attempt == 0 || id.attempt > job->attempts.size()) return nullptr;
  for (const model::NodeAllocation& on_node : job->attempts[id.attempt - 1].allocation.nodes) {
    if (on_node.node != place.node) continue;
    const auto grant = std::ranges::find(on_node.grants, place.index, &model::GpuGrant::gpu_index);
    if (grant != on_node.grants.end()) return &*grant;
  }
  return nullptr;
}

// Of an MPS server the limit is one for each process: their sum is watched as well. A job of root
// could leave its cgroup to be seen no more, so that its rung is advisory; until it does, its part
// is watched, too.
bool is_watched(const model::GpuGrant& grant) {
  return grant.mode != model::ShareMode::kNone && grant.wall.memory <= model::Rung::kMpsLimit;
}

std::vector<MemoryWatch::Part> parts_of(const controller::Snapshot& snapshot,
                                        const model::Node& node, std::uint32_t index) {
  std::vector<MemoryWatch::Part> parts;
  for (const model::GpuHolder& holder : node.gpus.at(index).holders) {
    const model::GpuGrant* const grant = grant_on(snapshot, holder.attempt, {node.id, index});
    if (grant == nullptr) continue;
    parts.push_back({holder.attempt, grant->memory, is_watched(*grant)});
  }
  return parts;
}

// Memory of a process that has ended is the driver's to give back.
std::optional<std::vector<MemoryWatch::Process>> processes_of(
    const hardware::GpuReading& reading, const std::vector<SeenProcess>* seen) {
  if (seen == nullptr || !reading.processes) return std::nullopt;
  std::vector<MemoryWatch::Process> processes;
  for (const SeenProcess& process : *seen) {
    if (process.has_ended) continue;
    const auto read =
        std::ranges::find(*reading.processes, process.pid, &hardware::GpuProcess::pid);
    if (read == reading.processes->end()) continue;
    processes.push_back({process.pid, read->memory, process.attempt});
  }
  return processes;
}

// What no process can have any more.
std::optional<base::Bytes> taken_of(const hardware::GpuReading& reading) {
  if (!reading.memory_used || !reading.memory_reserved) return reading.memory_used;
  return *reading.memory_used + *reading.memory_reserved;
}

// What is not known is not idle.
bool is_idle(const hardware::GpuReading& reading) {
  return reading.condition == hardware::GpuCondition::kAnswering &&
         reading.utilization_percent == 0U;
}

bool has_turns(const model::Gpu& gpu) {
  return std::ranges::count(gpu.holders, model::ShareMode::kTimeSlice, &model::GpuHolder::mode) > 1;
}

std::string in_gib(base::Bytes memory) {
  const double gib = static_cast<double>(memory.value()) / static_cast<double>(base::kGiB.value());
  const bool is_whole = memory.value() % base::kGiB.value() == 0;
  return is_whole ? fmt::format("{:.0f} GiB", gib) : fmt::format("{:.1f} GiB", gib);
}

}  // namespace

std::string in_words(const MemoryWatch::Excess& excess, std::string_view verb) {
  return fmt::format("{} {} of the {} of its part", verb, in_gib(excess.used), in_gib(excess.part));
}

MemoryWatchdog::MemoryWatchdog(execution::ObservationSink& sink, SnapshotNow snapshot,
                               ReadNow read_now, Warn warn, TellIdle tell_idle)
    : sink_(sink),
      snapshot_(std::move(snapshot)),
      read_now_(std::move(read_now)),
      warn_(std::move(warn)),
      tell_idle_(std::move(tell_idle)),
      thread_([this] { run(); }) {}

MemoryWatchdog::~MemoryWatchdog() {
  stop();
}

void MemoryWatchdog::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void MemoryWatchdog::take_readings(const std::string& node, const std::vector<std::string>& uuids,
                                   const node::ProbeReadings& readings, const SeenProcesses& seen) {
  const auto snapshot = snapshot_();
  const model::Node* const known =
      model::node_named(snapshot->nodes, *snapshot->nodes_by_name, node);
  if (known == nullptr) return;
  for (const hardware::GpuReading& reading : readings.gpus) {
    if (reading.index >= uuids.size() || uuids[reading.index].empty()) continue;
    const std::string& uuid = uuids[reading.index];
    const auto index = model::index_of_gpu(*known, uuid);
    if (!index) continue;
    const bool is_new = boot_now() - base::Instant(readings.began_ns) <= kOldestIdle;
    if (is_new && is_idle(reading) && has_turns(known->gpus.at(*index))) tell_idle_(uuid);
    MemoryWatch::Reading now{.gpu = uuid,
                             .parts = parts_of(*snapshot, *known, *index),
                             .processes = {},
                             .used = taken_of(reading),
                             .total = reading.memory_total,
                             .at = base::Instant(readings.began_ns)};
    const bool is_needed = std::ranges::any_of(now.parts, &MemoryWatch::Part::is_watched);
    std::vector<MemoryWatch::Excess> found;
    {
      const std::lock_guard lock(mutex_);
      if (is_needed) {
        const auto of_gpu = seen.find(uuid);
        const bool is_told =
            of_gpu != seen.end() && reading.condition == hardware::GpuCondition::kAnswering;
        now.processes = processes_of(reading, is_told ? &of_gpu->second : nullptr);
        found = watch_.take(now);
      }
      plan_next(node, uuid, is_needed);
    }
    tell(node, uuid, found);
  }
}

// With the lock.
void MemoryWatchdog::plan_next(const std::string& node, const std::string& uuid, bool is_needed) {
  const Place place{node, uuid};
  if (!is_needed) {
    due_.erase(place);
    return;
  }
  due_[place] = SteadyClock::now() + (watch_.is_close(uuid) ? kClosePause : kPause);
  wake_.notify_one();
}

// Without the lock: what is told may come back to complete().
void MemoryWatchdog::tell(const std::string& node, const std::string& uuid,
                          const std::vector<MemoryWatch::Excess>& found) {
  for (const MemoryWatch::Excess& excess : found) {
    if (excess.step == MemoryWatch::Step::kWarn) {
      warn_(excess);
    } else {
      sink_.observe(
          execution::GpuMemoryExceeded{excess.attempt, node, uuid, excess.used, excess.part});
    }
  }
}

void MemoryWatchdog::lose_readings(const std::string& node) {
  const std::lock_guard lock(mutex_);
  std::erase_if(due_, [&](const auto& entry) { return entry.first.first == node; });
}

void MemoryWatchdog::complete(execution::Ended& ended) {
  const std::lock_guard lock(mutex_);
  if (ended.reason == model::EndReason::kGpuMemory) {
    const auto excess = watch_.latest_excess(ended.attempt);
    if (!excess) return;
    if (!ended.detail.empty()) ended.detail += "; ";
    ended.detail += "it " + in_words(*excess, "used");
    return;
  }
  if (!has_failed_of_itself(ended)) return;
  const auto cause = watch_.cause_of_failure(ended.attempt, boot_now());
  if (!cause) return;
  ended.neighbour_fault =
      fmt::format("job {} on the same GPU {}", cause->attempt.job.value, in_words(*cause, "used"));
}

void MemoryWatchdog::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = SteadyClock::now();
    auto next = SteadyClock::time_point::max();
    std::map<std::string, node::ReadNow> questions;
    for (auto& [place, due] : due_) {
      if (due <= now) {
        questions[place.first].uuids.push_back(place.second);
        due = now + kPause;  // unless the reading says otherwise
      }
      next = std::min(next, due);
    }
    // With the lock, so that nothing is asked after stop().
    for (const auto& [node, wanted] : questions) read_now_(node, wanted);
    if (next == SteadyClock::time_point::max()) {
      wake_.wait(lock);
    } else {
      wake_.wait_until(lock, next);
    }
  }
}

}  // namespace gpu_platform::monitoring
