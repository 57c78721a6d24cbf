#include "monitoring/attempt_gate.h"

#include <algorithm>
#include <iterator>
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

// Returns whether a GPU may be the cause of this end: the attempt ran, failed, and was not stopped
// by the platform.
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

}  // namespace

// The readings of one node that a probe took at one time.
struct AttemptGate::NodeReadings {
  const std::string& node;
  const node::ProbeReadings& readings;
  const SeenProcesses& seen;
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
    if (has_failed_of_itself(*ended) && hold_end(*ended)) return;
  } else if (const auto* cleaned = std::get_if<execution::Cleaned>(&observation)) {
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
      if (gpu.is_reported) gpus.push_back({node->name, gpu.info.uuid, "no reading yet"});
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
  ask(questions);
  if (held.ask_at < asleep_until_) wake_.notify_one();
}

void AttemptGate::add_questions(const Held& held, Questions& questions) {
  const auto add = [&](const std::vector<AwaitedGpu>& gpus) {
    for (const AwaitedGpu& gpu : gpus) questions[gpu.node].insert(gpu.uuid);
  };
  if (held.end) add(held.end->unread);
  if (held.release) add(held.release->occupied);
}

void AttemptGate::ask(const Questions& questions) const {
  for (const auto& [node, uuids] : questions) read_now_(node, {uuids.begin(), uuids.end()});
}

// ---- what comes from the probes

void AttemptGate::take_readings(const std::string& node, const std::vector<std::string>& uuids,
                                const node::ProbeReadings& readings, const SeenProcesses& seen) {
  NodeReadings now{node, readings, seen, {}};
  for (const hardware::GpuReading& reading : readings.gpus) {
    if (reading.index < uuids.size()) now.gpus.emplace(uuids[reading.index], &reading);
  }
  const std::lock_guard lock(mutex_);
  nodes_read_.insert(node);
  measure_base_lines(now);
  for (auto& [attempt, held] : held_) {
    if (held.end && readings.began_ns >= held.end->ended_ns) {
      std::erase_if(held.end->unread, [&](const AwaitedGpu& gpu) { return now.speaks_of(gpu); });
    }
    if (!held.release || readings.began_ns < held.release->cleaned_ns) continue;
    std::erase_if(held.release->occupied, [&, id = attempt](AwaitedGpu& gpu) {
      if (!now.speaks_of(gpu)) return false;
      gpu.why = what_is_left(id, gpu.uuid, now);
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

void AttemptGate::measure_base_lines(const NodeReadings& now) {
  for (const auto& [uuid, reading] : now.gpus) {
    const bool is_unused = reading->processes && reading->processes->empty();
    if (!is_unused || !reading->memory_used) continue;
    const auto [base, is_new] = base_line_.try_emplace(std::string(uuid), *reading->memory_used);
    base->second = std::min(base->second, *reading->memory_used);
  }
}

// Returns what of the attempt is still on the GPU, in words; empty: nothing. Living processes do
// not delay a release, for the engine knows that none of the attempt's lives; while there are any,
// the owner of the memory cannot be known.
std::string AttemptGate::what_is_left(model::AttemptId attempt, const std::string& uuid,
                                      const NodeReadings& now) const {
  const auto read = now.gpus.find(uuid);
  if (read == now.gpus.end()) return {};
  const hardware::GpuReading& reading = *read->second;
  if (reading.condition != hardware::GpuCondition::kAnswering) return {};
  if (const auto seen = now.seen.find(uuid); seen != now.seen.end()) {
    for (const SeenProcess& process : seen->second) {
      const bool may_be_its = !process.attempt || process.attempt == attempt;
      if (process.has_ended && may_be_its) {
        return fmt::format("process {} has ended and is still on it", process.pid);
      }
    }
    if (!seen->second.empty()) return {};
  }
  const auto base = base_line_.find(uuid);
  if (!reading.memory_used || base == base_line_.end()) return {};
  if (*reading.memory_used <= base->second + kTolerance) return {};
  return fmt::format("{} MiB of its memory are in use by no process",
                     (*reading.memory_used - base->second).value() / base::kMiB.value());
}

// ---- what goes to the core

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
    sink_.observe(std::move(held.end->ended));
    held.end.reset();
  }
  if (held.release && !held.release->occupied.empty()) return false;
  if (held.release) sink_.observe(std::move(held.release->cleaned));
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
