#include "monitoring/sampling_pace.h"

#include <algorithm>
#include <variant>

#include "model/node_lookup.h"

namespace gpu_platform::monitoring {

namespace {

// Null: the attempt does not run.
const model::Job* find_running(const controller::Snapshot& snapshot, model::AttemptId id) {
  const model::Job* const job = snapshot.jobs.find(id.job.value);
  if (job == nullptr || job->attempts.size() != id.attempt) return nullptr;
  return job->attempts.back().state == model::AttemptState::kRunning ? job : nullptr;
}

}  // namespace

SamplingPace::SamplingPace(node::ProbeListener& next, SnapshotNow snapshot, ReadNow read_now,
                           IsMonitored is_monitored)
    : next_(next),
      snapshot_(std::move(snapshot)),
      read_now_(std::move(read_now)),
      is_monitored_(std::move(is_monitored)),
      thread_([this] { run(); }) {}

SamplingPace::~SamplingPace() {
  stop();
}

void SamplingPace::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void SamplingPace::on_report(node::ProbeReport report) {
  const bool is_reading = std::holds_alternative<node::ProbeReadings>(report.content);
  const bool is_lost = std::holds_alternative<node::ProbeProblem>(report.content);
  const std::string node = report.node_name;
  next_.on_report(std::move(report));
  if (!is_reading && !is_lost) return;
  std::vector<std::string> uuids = is_lost ? std::vector<std::string>() : monitored_on(node);
  const std::lock_guard lock(mutex_);
  if (uuids.empty()) {
    gpus_.erase(node);
    return;
  }
  const bool is_new = gpus_.empty();
  gpus_[node] = std::move(uuids);
  if (is_new) wake_.notify_one();
}

std::vector<std::string> SamplingPace::monitored_on(const std::string& node) const {
  const auto snapshot = snapshot_();
  const model::Node* const known =
      model::node_named(snapshot->nodes, *snapshot->nodes_by_name, node);
  std::vector<std::string> uuids;
  if (known == nullptr) return uuids;
  for (const model::Gpu& gpu : known->gpus) {
    const bool is_monitored = std::ranges::any_of(gpu.holders, [&](const auto& holder) {
      const model::Job* const job = find_running(*snapshot, holder.attempt);
      return job != nullptr && is_monitored_(*job->spec);
    });
    if (is_monitored) uuids.push_back(gpu.info.uuid);
  }
  return uuids;
}

void SamplingPace::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (gpus_.empty()) {
      wake_.wait(lock, [&] { return stopping_ || !gpus_.empty(); });
      continue;
    }
    // With the lock, so that nothing is asked after stop().
    for (const auto& [node, uuids] : gpus_) read_now_(node, {.uuids = uuids});
    wake_.wait_for(lock, kPause, [&] { return stopping_; });
  }
}

}  // namespace gpu_platform::monitoring
