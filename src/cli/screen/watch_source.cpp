#include "cli/screen/watch_source.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/percent.h"
#include "base/utc.h"
#include "cli/text/message_text.h"
#include "gpu_platform/v1/telemetry.pb.h"

namespace gpu_platform::cli {

namespace {

// The running jobs are asked for when others are on the GPUs, and after this time, because their
// limits may have been changed.
constexpr base::Duration kJobsAreKept = base::seconds(30);
// The power limits change seldom.
constexpr base::Duration kLimitsAreKept = base::minutes(1);
// A stream of readings that could not be opened, or ended, is tried again after this time.
constexpr base::Duration kStreamIsTried = base::seconds(10);
constexpr std::string_view kRunningJobs =
    "/v1/jobs?all=true&state=STARTING&state=RUNNING&state=STOPPING&state=SUSPENDED&limit=1000";
constexpr std::string_view kWaitingJobs = "/v1/queue?all=true&limit=100";
// In a larger cluster a node is a line, and its past and each reading would be of no use.
constexpr int kMaxGpusWithPast = 512;
constexpr std::size_t kMaxNodesWithPast = 64;
constexpr int kStepOfPast = 15;  // in seconds
// Reads of the stream in one go.
constexpr int kMaxReads = 64;

std::optional<double> value_read(const v1::Reading& reading, const std::string& metric) {
  const auto found = reading.values().find(metric);
  if (found == reading.values().end()) return std::nullopt;
  return found->second;
}

std::set<std::string> held_jobs(const ClusterGpus& gpus) {
  std::set<std::string> jobs;
  for (const v1::Gpu& gpu : gpus) jobs.insert(gpu.jobs().begin(), gpu.jobs().end());
  return jobs;
}

bool is_shared(const v1::Gpu& gpu) {
  return !gpu.parts().empty();
}

}  // namespace

template <class Message>
Called<Message> WatchSource::get(const std::string& target) {
  const auto body = client_.get_slow(target, base::Duration(), interrupt_fd_);
  if (!body) return std::unexpected(body.error());
  return client::read_answer<Message>(*body, "the answer");
}

Called<void> WatchSource::refresh() {
  const double seconds = static_cast<double>(base::whole_milliseconds(options_.interval)) / 1000;
  auto status = get<v1::Status>(fmt::format("/v1/status?max_age_seconds={:.3f}", seconds));
  view_.now = around_.now();
  if (!status) {
    view_.problem = status.error().message;
    if (status.error().is_passing()) view_.problem += "; waiting for it";
    return std::unexpected(status.error());
  }
  take_status(*std::move(status));
  find_power_limits();
  find_running();
  find_waiting();
  find_readings();
  return {};
}

void WatchSource::take_status(v1::Status status) {
  view_.problem.clear();
  view_.server = client_.answered();
  view_.status = std::move(status);
  view_.at = time_of(view_.status.at()).value_or(view_.now);
  put_in_node_order(*view_.status.mutable_gpus(), [](const v1::Gpu& gpu) { return gpu.node(); });
  note_idle_gpus(view_);
  if (!options_.has_past) return;
  find_past();
  for (const v1::Gpu& gpu : view_.status.gpus()) {
    if (!gpu.has_utilization_percent()) continue;
    view_.past.add(place_name(gpu), view_.at, gpu.utilization_percent());
  }
}

bool WatchSource::is_due(base::Instant& asked_at, base::Duration interval) {
  const base::Instant now = around_.steady();
  if (asked_at.is_set() && now - asked_at < interval) return false;
  asked_at = now;
  return true;
}

void WatchSource::find_power_limits() {
  if (!is_due(asked_limits_, kLimitsAreKept)) return;
  const auto answer = get<v1::ListGpusResponse>("/v1/gpus");
  if (!answer) return;
  view_.power_limits.clear();
  for (const v1::GpuHealth& health : answer->gpus()) {
    if (health.has_power_limit_watts()) {
      view_.power_limits[place_name(health.gpu())] = health.power_limit_watts();
    }
  }
}

void WatchSource::find_running() {
  std::set<std::string> jobs = held_jobs(view_.status.gpus());
  if (jobs != known_jobs_) asked_jobs_ = base::Instant();
  if (!is_due(asked_jobs_, kJobsAreKept)) return;
  const auto list = get<v1::ListJobsResponse>(std::string(kRunningJobs));
  if (!list) {
    asked_jobs_ = base::Instant();
    return;
  }
  known_jobs_ = std::move(jobs);
  view_.running.assign(list->jobs().begin(), list->jobs().end());
  view_.jobs.clear();
  for (const v1::Job& job : view_.running) view_.jobs[job.id()] = watched_job(job);
}

void WatchSource::find_waiting() {
  view_.waiting.clear();
  view_.all_waiting = 0;
  if (view_.status.queued_jobs() == 0 && view_.status.held_jobs() == 0) return;
  const auto queue = get<v1::GetQueueResponse>(std::string(kWaitingJobs));
  if (!queue) return;
  view_.waiting.assign(queue->jobs().begin(), queue->jobs().end());
  view_.all_waiting = queue->total();
}

void WatchSource::find_past() {
  if (std::exchange(has_asked_past_, true)) return;
  if (view_.status.gpus_size() > kMaxGpusWithPast) return;
  std::set<std::string> nodes;
  for (const v1::Gpu& gpu : view_.status.gpus()) nodes.insert(gpu.node());
  if (nodes.empty() || nodes.size() > kMaxNodesWithPast) return;
  const base::Instant from = scale_of_past(view_.at).from;
  std::string target = fmt::format("/v1/history?metric=utilization_percent&step_seconds={}&from={}",
                                   kStepOfPast, base::percent_encoded(base::utc(from)));
  for (const std::string& node : nodes) target += "&node=" + base::percent_encoded(node);
  // Without a history the graphs begin now.
  if (const auto history = get<v1::History>(target)) view_.past.take(*history);
}

// What jobs use of GPUs that they share, and, on the live screen, each reading of a GPU as it
// comes.
void WatchSource::find_readings() {
  const ClusterGpus& gpus = view_.status.gpus();
  if (options_.has_past && gpus.size() <= kMaxGpusWithPast && follow_readings()) return;
  view_.parts.clear();
  if (std::ranges::none_of(gpus, is_shared)) return;
  const auto answer = get<v1::ListReadingsResponse>("/v1/readings");
  if (!answer) return;
  for (const v1::Reading& reading : answer->readings()) take(reading);
}

// Takes what the stream has; false if there is no stream.
bool WatchSource::follow_readings() {
  if (!readings_ && is_due(asked_stream_, kStreamIsTried)) {
    auto stream = client_.stream("/v1/readings?follow=true");
    if (stream) {
      view_.parts.clear();
      readings_.emplace(*std::move(stream));
    }
  }
  if (!readings_) return false;
  for (int i = 0; i < kMaxReads; ++i) {
    const auto events = readings_->ready();
    if (!events) {
      readings_.reset();
      return false;
    }
    if (events->empty()) break;
    for (const api::ServerEvent& event : *events) {
      const auto change = client::message_of<v1::ReadingChange>(event.data);
      if (change && change->has_reading()) take(change->reading());
    }
  }
  return true;
}

void WatchSource::take(const v1::Reading& reading) {
  if (!reading.has_index()) return;  // of a host
  const std::string place = fmt::format("{}:{}", reading.node(), reading.index());
  const auto percent = value_read(reading, "utilization_percent");
  const auto memory = value_read(reading, "memory_used_bytes");
  if (reading.has_job()) {
    WatchedPart part{.utilization_percent = percent};
    if (memory) part.memory_used_bytes = static_cast<std::uint64_t>(*memory);
    view_.parts[{reading.job(), place}] = part;
    return;
  }
  const auto at = time_of(reading.at());
  if (options_.has_past && percent && at) view_.past.add(place, *at, *percent);
}

std::string WatchSource::cancel(const std::string& job) {
  const auto answer = client_.post("/v1/jobs/" + base::percent_encoded(job) + "/cancel", "{}");
  return answer ? fmt::format("job {} is being cancelled", job) : answer.error().message;
}

}  // namespace gpu_platform::cli
