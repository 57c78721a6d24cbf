#include "monitoring/attempt_gate.h"

#include <algorithm>
#include <iterator>
#include <span>
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

// A GPU on which no attempt has a process.
struct Resting {
  base::Bytes memory;                    // in use beside that of the processes there
  std::vector<std::uint32_t> residents;  // their pids, ascending; without servers of ours
  bool has_server = false;               // an MPS server of ours is there, as long as it has jobs
};

// Returns nothing if a process of an attempt, or one that has ended, is there, or if it is not
// known what the processes use.
std::optional<Resting> resting_of(const hardware::GpuReading& reading,
                                  std::span<const SeenProcess> seen) {
  if (!reading.processes || !reading.memory_used) return std::nullopt;
  if (std::ranges::any_of(seen, [](const SeenProcess& process) {
        return process.has_ended || process.attempt.has_value();
      })) {
    return std::nullopt;
  }
  if (seen.size() != reading.processes->size()) return std::nullopt;
  Resting resting{*reading.memory_used, {}};
  for (const hardware::GpuProcess& process : *reading.processes) {
    if (!process.memory || *process.memory > resting.memory) return std::nullopt;
    resting.memory -= *process.memory;
    const auto known = std::ranges::find(seen, process.pid, &SeenProcess::pid);
    if (known != seen.end() && known->is_server) {
      resting.has_server = true;
    } else {
      resting.residents.push_back(process.pid);
    }
  }
  std::ranges::sort(resting.residents);
  return resting;
}

}  // namespace

bool has_failed_of_itself(const execution::Ended& ended) {
  if (ended.exit.code == 0) return false;
  switch (ended.reason) {
    case model::EndReason::kNone:
    case model::EndReason::kOutOfMemory:
    case model::EndReason::kSupervisorLost:
      return true;
    default:
      return false;
  }
}

// The readings of one node that a probe took at one time.
struct AttemptGate::NodeReadings {
  const std::string& node;
  const node::ProbeReadings& readings;
  const SeenProcesses& seen;
  const controller::Snapshot& snapshot;                          // as it is published now
  std::map<std::string_view, const hardware::GpuReading*> gpus;  // by UUID

  // A GPU that is missing among all of the node was lost by its driver; a GPU that was not asked
  // for is only not read yet.
  bool speaks_of(const AwaitedGpu& gpu) const {
    return gpu.node == node && (!readings.is_partial || gpus.contains(gpu.uuid));
  }
};

AttemptGate::AttemptGate(execution::ObservationSink& sink, SnapshotNow snapshot, ReadNow read_now,
                         Alert alert, std::chrono::milliseconds end_timeout,
                         std::chrono::milliseconds events_timeout)
    : sink_(sink),
      snapshot_(std::move(snapshot)),
      read_now_(std::move(read_now)),
      alert_(std::move(alert)),
      end_timeout_(end_timeout),
      events_timeout_(std::min(events_timeout, end_timeout)),
      thread_([this] { run(); }) {}

AttemptGate::~AttemptGate() {
  stop();
}

void AttemptGate::complete_ends_with(Complete complete) {
  const std::lock_guard lock(mutex_);
  complete_ = std::move(complete);
}

void AttemptGate::tell_failures_to(Failed failed) {
  failed_ = std::move(failed);
}

void AttemptGate::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (auto& [attempt, held] : held_) {
      if (!held.end) continue;
      held.end->unread.clear();
      held.end->unheard.clear();
    }
    pass_what_may();
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// ---- what comes from the engine

void AttemptGate::observe(execution::Observation observation) {
  if (const auto* ended = std::get_if<execution::Ended>(&observation)) {
    if (has_failed_of_itself(*ended)) {
      if (failed_) failed_(*ended);
      if (hold_end(*ended)) return;
    }
    const std::lock_guard lock(mutex_);
    pass(*ended);
    return;
  }
  if (const auto* cleaned = std::get_if<execution::Cleaned>(&observation)) {
    if (hold_release(*cleaned)) return;
  }
  sink_.observe(std::move(observation));
}

std::vector<AttemptGate::AwaitedGpu> AttemptGate::gpus_of(model::AttemptId id) const {
  std::vector<AwaitedGpu> gpus;
  const auto snapshot = snapshot_();
  const model::Job* job = snapshot->jobs.find(id.job.value);
  if (job == nullptr || id.attempt == 0 || id.attempt > job->attempts.size()) return gpus;
  for (const auto& part : job->attempts[id.attempt - 1].allocation.nodes) {
    const model::Node* node = snapshot->nodes.find(part.node.value);
    if (node == nullptr) continue;
    for (const model::GpuGrant& grant : part.grants) {
      const model::Gpu& gpu = node->gpus.at(grant.gpu_index);
      if (!gpu.is_reported) continue;
      gpus.push_back({node->name, gpu.info.uuid, {part.node, grant.gpu_index}, "no reading yet"});
    }
  }
  return gpus;
}

// Returns false if the end need not wait.
bool AttemptGate::hold_end(const execution::Ended& ended) {
  std::vector<AwaitedGpu> gpus = gpus_of(ended.attempt);
  const std::lock_guard lock(mutex_);
  if (stopping_) return false;
  const auto known = held_.find(ended.attempt);
  if (known != held_.end() && known->second.end) return true;  // repeated: the first one stands
  std::erase_if(gpus, [&](const AwaitedGpu& gpu) { return !nodes_read_.contains(gpu.node); });
  if (gpus.empty()) return false;
  Held& held = held_[ended.attempt];
  const auto now = SteadyClock::now();
  std::set<std::string> nodes;
  for (const AwaitedGpu& gpu : gpus) nodes.insert(gpu.node);
  held.end = {ended,
              os::boot_ns(),
              std::move(gpus),
              std::move(nodes),
              now + end_timeout_,
              now + events_timeout_};
  begin_asking(held);
  return true;
}

// Returns false if nothing has to be waited for.
bool AttemptGate::hold_release(const execution::Cleaned& cleaned) {
  std::vector<AwaitedGpu> gpus = gpus_of(cleaned.attempt);
  const std::lock_guard lock(mutex_);
  const auto known = held_.find(cleaned.attempt);
  const bool is_end_held = known != held_.end() && known->second.end;
  if (gpus.empty() && !is_end_held) return false;
  if (stopping_) return true;
  Held& held = held_[cleaned.attempt];
  if (held.release) return true;
  held.release = {cleaned, os::boot_ns(), std::move(gpus), SteadyClock::now(), false};
  begin_asking(held);
  return true;
}

// ---- questions

// With the lock, so that nothing is asked after stop().
void AttemptGate::begin_asking(Held& held) {
  held.ask_at = SteadyClock::now() + kFirstPause;
  held.pause = kFirstPause * 2;
  Questions questions;
  add_questions(held, questions);
  ask(questions, {.with_energy = true});
  if (held.ask_at < asleep_until_) wake_.notify_one();
}

void AttemptGate::add_questions(const Held& held, Questions& questions) {
  const auto add = [&](const std::vector<AwaitedGpu>& gpus) {
    for (const AwaitedGpu& gpu : gpus) questions[gpu.node].insert(gpu.uuid);
  };
  if (held.end) add(held.end->unread);
  if (held.release) add(held.release->occupied);
}

// `wanted`: what else than the GPUs.
void AttemptGate::ask(const Questions& questions, node::ReadNow wanted) const {
  for (const auto& [node, uuids] : questions) {
    wanted.uuids.assign(uuids.begin(), uuids.end());
    read_now_(node, wanted);
  }
}

// ---- what comes from the probes

void AttemptGate::take_readings(const std::string& node, const std::vector<std::string>& uuids,
                                const node::ProbeReadings& readings, const SeenProcesses& seen) {
  const auto snapshot = snapshot_();
  NodeReadings now{node, readings, seen, *snapshot, {}};
  for (const hardware::GpuReading& reading : readings.gpus) {
    if (reading.index < uuids.size()) now.gpus.emplace(uuids[reading.index], &reading);
  }
  const std::lock_guard lock(mutex_);
  nodes_read_.insert(node);
  forget_what_has_left(*snapshot);
  measure_base_lines(now);
  for (auto& [attempt, held] : held_) {
    if (held.end && readings.began_ns >= held.end->ended_ns) {
      std::erase_if(held.end->unread, [&](const AwaitedGpu& gpu) { return now.speaks_of(gpu); });
    }
    if (!held.release || readings.began_ns < held.release->cleaned_ns) continue;
    std::erase_if(held.release->occupied, [&, id = attempt](AwaitedGpu& gpu) {
      if (!now.speaks_of(gpu)) return false;
      gpu.why = what_is_left(id, gpu, now);
      return gpu.why.empty();
    });
  }
  pass_what_may();
}

void AttemptGate::take_events(const std::string& node, std::int64_t until_ns) {
  const std::lock_guard lock(mutex_);
  constexpr std::int64_t kDelayNs = std::chrono::nanoseconds(kEventsDelay).count();
  for (auto& [attempt, held] : held_) {
    if (held.end && until_ns >= held.end->ended_ns + kDelayNs) held.end->unheard.erase(node);
  }
  pass_what_may();
}

void AttemptGate::lose_readings(const std::string& node) {
  const std::lock_guard lock(mutex_);
  nodes_read_.erase(node);
  for (auto& [attempt, held] : held_) {
    if (!held.end) continue;
    held.end->unheard.erase(node);
    std::erase_if(held.end->unread, [&](const AwaitedGpu& gpu) { return gpu.node == node; });
  }
  pass_what_may();
}

// A reading without a process of an attempt shows what the GPU is like by itself. A server of ours
// comes and goes with attempts: its memory is not what is always there.
void AttemptGate::measure_base_lines(const NodeReadings& now) {
  for (const auto& [uuid, reading] : now.gpus) {
    const auto seen = now.seen.find(uuid);
    const std::span<const SeenProcess> processes =
        seen == now.seen.end() ? std::span<const SeenProcess>() : std::span(seen->second);
    const auto resting = resting_of(*reading, processes);
    if (!resting || resting->has_server) continue;
    BaseLine& base = base_lines_[std::string(uuid)];
    if (resting->residents.empty()) {
      base.empty = std::min(base.empty.value_or(resting->memory), resting->memory);
    } else if (base.residents == resting->residents) {
      base.beside = std::min(base.beside.value_or(resting->memory), resting->memory);
    } else {
      base.residents = resting->residents;
      base.beside = resting->memory;
    }
  }
}

// The core has heard of their release.
void AttemptGate::forget_what_has_left(const controller::Snapshot& snapshot) {
  std::erase_if(left_, [&](model::AttemptId id) {
    const model::Job* const job = snapshot.jobs.find(id.job.value);
    return job == nullptr || id.attempt == 0 || id.attempt > job->attempts.size() ||
           job->attempts[id.attempt - 1].state == model::AttemptState::kReleased;
  });
}

// Returns whether no other attempt will be asked what is left on the GPU. Those whose processes are
// all gone leave it together with this one.
bool AttemptGate::is_last_on(model::AttemptId attempt, model::GpuRef place,
                             const controller::Snapshot& snapshot) const {
  const model::Node* const node = snapshot.nodes.find(place.node.value);
  if (node == nullptr || place.index >= node->gpus.size()) return true;
  return std::ranges::all_of(node->gpus[place.index].holders, [&](const model::GpuHolder& holder) {
    if (holder.attempt == attempt) return true;
    const auto held = held_.find(holder.attempt);
    const bool is_leaving = held != held_.end() && held->second.release.has_value();
    return is_leaving || left_.contains(holder.attempt);
  });
}

// Returns what of the attempt is still on the GPU, in words; empty: nothing.
std::string AttemptGate::what_is_left(model::AttemptId attempt, const AwaitedGpu& gpu,
                                      const NodeReadings& now) const {
  const auto read = now.gpus.find(gpu.uuid);
  if (read == now.gpus.end()) return {};
  const hardware::GpuReading& reading = *read->second;
  if (reading.condition != hardware::GpuCondition::kAnswering) return {};
  const bool is_last = is_last_on(attempt, gpu.place, now.snapshot);
  const auto seen = now.seen.find(gpu.uuid);
  std::span<const SeenProcess> processes;
  if (seen != now.seen.end()) processes = seen->second;
  for (const SeenProcess& process : processes) {
    const bool is_its = process.attempt == attempt;
    const bool may_be_its = !process.attempt && process.has_ended && is_last;
    if (!is_its && !may_be_its) continue;
    return process.has_ended ? fmt::format("process {} has ended and is still on it", process.pid)
                             : fmt::format("process {} of it is still on it", process.pid);
  }
  if (!is_last) return {};
  const auto resting = resting_of(reading, processes);
  const auto known = base_lines_.find(gpu.uuid);
  if (!resting || known == base_lines_.end()) return {};
  const BaseLine& base = known->second;
  const bool has_residents = !resting->residents.empty();
  if (has_residents && base.residents != resting->residents) return {};
  const auto& least = has_residents ? base.beside : base.empty;
  if (!least || resting->memory <= *least + kTolerance) return {};
  return fmt::format("{} MiB of its memory are in use by no process",
                     (resting->memory - *least).value() / base::kMiB.value());
}

// ---- what goes to the core

// With the lock, as all that follows.
void AttemptGate::pass(execution::Ended ended) {
  if (complete_) complete_(ended);
  sink_.observe(std::move(ended));
}

// With the lock, so that no thread overtakes another with the observations of one attempt.
void AttemptGate::pass_what_may() {
  for (auto entry = held_.begin(); entry != held_.end();) {
    entry = pass_what_may(entry->second) ? held_.erase(entry) : std::next(entry);
  }
}

// Returns whether nothing of the attempt is held any more.
bool AttemptGate::pass_what_may(Held& held) {
  if (held.end && !(held.end->unread.empty() && held.end->unheard.empty())) return false;
  if (held.end) {
    pass(std::move(held.end->ended));
    held.end.reset();
  }
  if (held.release && !held.release->occupied.empty()) return false;
  if (held.release) {
    left_.insert(held.release->cleaned.attempt);
    sink_.observe(std::move(held.release->cleaned));
  }
  return true;
}

// Returns when the next one is overdue.
AttemptGate::SteadyClock::time_point AttemptGate::let_overdue_ends_pass(
    SteadyClock::time_point now) {
  auto next = SteadyClock::time_point::max();
  for (auto& [attempt, held] : held_) {
    if (!held.end) continue;
    if (held.end->passes_at <= now) held.end->unread.clear();
    if (held.end->hears_until <= now) held.end->unheard.clear();
    if (!held.end->unread.empty()) next = std::min(next, held.end->passes_at);
    if (!held.end->unheard.empty()) next = std::min(next, held.end->hears_until);
  }
  pass_what_may();
  return next;
}

// Asks for readings while something waits, ever more seldom for what does not come free.
void AttemptGate::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto now = SteadyClock::now();
    auto next = let_overdue_ends_pass(now);
    Questions questions;
    std::vector<std::string> alerts;
    for (auto& [attempt, held] : held_) {
      if (held.ask_at <= now) {
        add_questions(held, questions);
        held.ask_at = now + held.pause;
        held.pause = std::min(held.pause * 2, kLongestPause);
      }
      next = std::min(next, held.ask_at);
      if (!held.release || held.release->is_alerted || held.release->occupied.empty()) continue;
      if (now - held.release->since < kAlertAfter) continue;
      held.release->is_alerted = true;
      const AwaitedGpu& gpu = held.release->occupied.front();
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
