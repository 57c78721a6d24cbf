#include "bin/use_keeper.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "bin/kubernetes_settings.h"
#include "model/engine_kind.h"
#include "model/job_spec.h"

namespace gpu_platform::bin {

namespace {

using telemetry::GpuUse;
using telemetry::UseSummary;

constexpr base::Duration kMonitored = base::seconds(1);
// Levels that keep their percentiles when the attempt has ended.
constexpr std::size_t kMainLevels = 4;

std::string notes_of(model::JobId job) {
  return fmt::format("{}{}.", telemetry::kSummaryNotes, job.value);
}

std::string note_of(model::AttemptId attempt) {
  return fmt::format("{}{}", notes_of(attempt.job), attempt.attempt);
}

GpuUse gpu_of(const model::Attempt& attempt, std::size_t node_place, std::size_t gpu_place,
              const model::Node* node) {
  const model::GpuGrant& grant = attempt.allocation.nodes[node_place].grants[gpu_place];
  GpuUse gpu;
  gpu.index = grant.gpu_index;
  gpu.is_part = grant.share < base::kWholeGpu;
  gpu.memory = grant.memory;
  if (model::is_of(*attempt.granted, attempt.allocation)) {
    const model::GrantedNode& granted = (*attempt.granted)[node_place];
    gpu.node = granted.name;
    gpu.uuid = granted.gpus[gpu_place].uuid;
    gpu.model = granted.gpus[gpu_place].model;
  }
  if (node == nullptr || grant.gpu_index >= node->gpus.size()) return gpu;
  const model::GpuInfo& info = node->gpus[grant.gpu_index].info;
  if (gpu.node.empty()) gpu.node = node->name;
  if (gpu.uuid.empty()) gpu.uuid = info.uuid;
  if (gpu.model.empty()) gpu.model = info.model;
  if (!gpu.is_part) gpu.memory = info.memory;
  return gpu;
}

std::vector<GpuUse> gpus_of(const controller::Snapshot& snapshot, const model::Attempt& attempt) {
  std::vector<GpuUse> gpus;
  for (std::size_t i = 0; i < attempt.allocation.nodes.size(); ++i) {
    const model::NodeAllocation& part = attempt.allocation.nodes[i];
    const model::Node* const node = snapshot.nodes.find(part.node.value);
    for (std::size_t k = 0; k < part.grants.size(); ++k) {
      gpus.push_back(gpu_of(attempt, i, k, node));
    }
  }
  return gpus;
}

bool has_samples(const UseSummary& summary) {
  return std::ranges::any_of(summary.gpus, [](const GpuUse& gpu) { return gpu.samples > 0; });
}

// Many thousands of ended jobs are kept.
UseSummary as_kept(UseSummary summary) {
  for (GpuUse& gpu : summary.gpus) {
    for (std::size_t i = kMainLevels; i < gpu.levels.size(); ++i) gpu.levels[i].spread = {};
  }
  return summary;
}

// Null: it does not run.
const model::Attempt* running_attempt(const model::Job& job) {
  const model::Attempt* const latest = job.current_attempt();
  if (latest == nullptr) return nullptr;
  const bool runs = latest->state == model::AttemptState::kRunning ||
                    latest->state == model::AttemptState::kStopping;
  return runs && latest->started_at.is_set() ? latest : nullptr;
}

}  // namespace

UseKeeper::UseKeeper(telemetry::Notes* notes, base::Duration interval)
    : notes_(notes), interval_(interval) {}

UseKeeper::~UseKeeper() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
  save();
}

void UseKeeper::follow(const controller::Snapshot& snapshot) {
  snapshot.jobs.for_each([&](std::uint64_t, const model::Job& job) {
    const model::Attempt* const attempt = running_attempt(job);
    if (attempt == nullptr) return;
    // One that is damaged is begun anew.
    const std::string name = note_of({job.id, attempt->number});
    const auto note = notes_ != nullptr ? notes_->get(name) : std::nullopt;
    auto stored = note ? telemetry::decode_use(*note) : base::Result<UseSummary>(UseSummary());
    begin({job.id, attempt->number},
          note && stored ? *std::move(stored) : begun(snapshot, job, *attempt));
  });
}

void UseKeeper::start() {
  thread_ = std::thread([this] { work(); });
  pthread_setname_np(thread_.native_handle(), "use keeper");
}

void UseKeeper::work() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, std::chrono::minutes(1), [this] { return is_stopping_; })) {
    lock.unlock();
    save();
    lock.lock();
  }
}

void UseKeeper::save() {
  if (notes_ == nullptr) return;
  std::vector<model::AttemptId> changed;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [attempt, running] : running_) {
      if (running.has_changed) changed.push_back(attempt);
    }
  }
  // Each with a lock of its own: published() must not wait while thousands are written.
  for (const model::AttemptId attempt : changed) {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(attempt);
    if (found != running_.end() && found->second.has_changed) store(attempt, found->second);
  }
}

void UseKeeper::store(model::AttemptId attempt, Running& running) {
  running.has_changed = false;
  const UseSummary& summary = running.recorder.summary();
  if (notes_ == nullptr || !has_samples(summary)) return;
  notes_->put(note_of(attempt), summary.is_over ? telemetry::encode_use(as_kept(summary))
                                                : telemetry::encode_use(summary));
}

void UseKeeper::forget(std::span<const model::JobId> jobs) {
  if (notes_ == nullptr) return;
  for (const model::JobId job : jobs) {
    for (telemetry::Notes::Note& note : notes_->all(notes_of(job))) {
      notes_->remove(std::move(note.name));
    }
  }
}

void UseKeeper::take(const telemetry::Frames& frames) {
  const std::lock_guard lock(mutex_);
  if (running_.empty()) return;
  std::vector<model::AttemptId> read;
  for (const telemetry::Frame& frame : *frames) {
    if (frame.subject.of == telemetry::Of::kHost) continue;
    const auto holders = by_gpu_.find(frame.subject.uuid);
    if (holders == by_gpu_.end()) continue;
    for (const model::AttemptId attempt : holders->second) {
      Running& running = running_.at(attempt);
      running.recorder.take(frame);
      running.has_changed = true;
      if (running.is_released) read.push_back(attempt);
    }
  }
  drop_released(read);
}

void UseKeeper::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                          std::span<const model::EventRecord> events,
                          const controller::DepartedJobs& departed) {
  for (const model::EventRecord& record : events) {
    if (const auto* started = std::get_if<model::AttemptStarted>(&record.event)) {
      const model::JobId id = started->attempt.job;
      const model::Job* job = snapshot->jobs.find(id.value);
      if (job == nullptr) job = departed.find(id);
      const bool is_there = job != nullptr && started->attempt.attempt >= 1 &&
                            started->attempt.attempt <= job->attempts.size();
      if (!is_there) continue;
      const model::Attempt& attempt = job->attempts[started->attempt.attempt - 1];
      begin(started->attempt, begun(*snapshot, *job, attempt));
    } else if (const auto* ended = std::get_if<model::AttemptEnded>(&record.event)) {
      end(ended->attempt, ended->ended_at);
    } else if (const auto* released = std::get_if<model::AttemptReleased>(&record.event)) {
      release(released->attempt);
    }
  }
}

UseSummary UseKeeper::begun(const controller::Snapshot& snapshot, const model::Job& job,
                            const model::Attempt& attempt) const {
  UseSummary summary;
  summary.from = attempt.started_at;
  summary.to = attempt.started_at;
  summary.interval = interval_of(snapshot, job, attempt);
  summary.gpus = gpus_of(snapshot, attempt);
  return summary;
}

// All nodes of an attempt belong to one engine.
base::Duration UseKeeper::interval_of(const controller::Snapshot& snapshot, const model::Job& job,
                                      const model::Attempt& attempt) const {
  if (!attempt.allocation.nodes.empty()) {
    const model::Node* const node = snapshot.nodes.find(attempt.first_node().value);
    const bool is_exported = node != nullptr && node->engine == model::EngineKind::kKubernetes;
    if (is_exported) return std::max(kShortestExporterInterval, interval_);
  }
  return job.spec->monitor ? std::min(kMonitored, interval_) : interval_;
}

void UseKeeper::begin(model::AttemptId attempt, UseSummary begun) {
  if (begun.gpus.empty()) return;
  const std::lock_guard lock(mutex_);
  std::vector<std::string> uuids;
  for (const GpuUse& gpu : begun.gpus) {
    uuids.push_back(gpu.uuid);
    const auto before = by_gpu_.find(gpu.uuid);
    if (before != by_gpu_.end()) drop_released(std::vector(before->second));
  }
  telemetry::UseRecorder recorder(std::move(begun), {.attempt = attempt});
  const bool is_new = running_.try_emplace(attempt, Running{std::move(recorder), false}).second;
  if (!is_new) return;
  for (const std::string& uuid : uuids) by_gpu_[uuid].push_back(attempt);
}

void UseKeeper::end(model::AttemptId attempt, base::Instant at) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(attempt);
  if (found == running_.end()) return;
  found->second.recorder.end(at);
  store(attempt, found->second);
}

void UseKeeper::release(model::AttemptId attempt) {
  const std::lock_guard lock(mutex_);
  const auto found = running_.find(attempt);
  if (found == running_.end()) return;
  found->second.is_released = true;
  if (!found->second.recorder.awaits_energy()) drop(attempt);
}

void UseKeeper::drop_released(const std::vector<model::AttemptId>& attempts) {
  for (const model::AttemptId attempt : attempts) {
    const auto found = running_.find(attempt);
    if (found != running_.end() && found->second.is_released) drop(attempt);
  }
}

void UseKeeper::drop(model::AttemptId attempt) {
  const auto found = running_.find(attempt);
  if (found->second.has_changed) store(attempt, found->second);
  for (const GpuUse& gpu : found->second.recorder.summary().gpus) {
    const auto holders = by_gpu_.find(gpu.uuid);
    if (holders == by_gpu_.end()) continue;
    std::erase(holders->second, attempt);
    if (holders->second.empty()) by_gpu_.erase(holders);
  }
  running_.erase(found);
}

template <class Make>
auto UseKeeper::made_of(model::AttemptId attempt, const Make& make) const
    -> std::optional<decltype(make(std::declval<const UseSummary&>()))> {
  {
    const std::lock_guard lock(mutex_);
    const auto found = running_.find(attempt);
    if (found != running_.end()) {
      const UseSummary& summary = found->second.recorder.summary();
      return has_samples(summary) ? std::optional(make(summary)) : std::nullopt;
    }
  }
  if (notes_ == nullptr) return std::nullopt;
  const auto note = notes_->get(note_of(attempt));
  if (!note) return std::nullopt;
  const auto stored = telemetry::decode_use(*note);
  return stored ? std::optional(make(*stored)) : std::nullopt;
}

std::optional<UseSummary> UseKeeper::get(model::AttemptId attempt) const {
  return made_of(attempt, [](const UseSummary& summary) { return summary; });
}

std::optional<telemetry::UseBrief> UseKeeper::brief(model::AttemptId attempt) const {
  return made_of(attempt, telemetry::brief_of);
}

}  // namespace gpu_platform::bin
