#include "bin/event_log.h"

#include <spdlog/spdlog.h>

namespace gpu_platform::bin {

namespace {

void log_event(const model::EventRecord& record) {
  if (const auto* ended = std::get_if<model::AttemptEnded>(&record.event);
      ended != nullptr && ended->reason == model::EndReason::kPrologFailed) {
    spdlog::warn("event={} job={} attempt={} not started: {}", record.seq.value,
                 ended->attempt.job.value, ended->attempt.attempt, ended->detail);
  } else if (const auto* released = std::get_if<model::AttemptReleased>(&record.event);
             released != nullptr && !released->epilog_failure.empty()) {
    spdlog::warn("event={} job={} attempt={} the site's epilog: {}", record.seq.value,
                 released->attempt.job.value, released->attempt.attempt, released->epilog_failure);
  } else if (const auto* node = std::get_if<model::NodeStateChanged>(&record.event)) {
    spdlog::info("event={} node_id={} trigger={} cause=\"{}\"", record.seq.value, node->node.value,
                 to_string(node->trigger), node->cause);
  } else if (const auto* gpu = std::get_if<model::GpuStateChanged>(&record.event)) {
    spdlog::info("event={} node_id={} gpu={} trigger={} cause=\"{}\" by={}", record.seq.value,
                 gpu->gpu.node.value, gpu->gpu.index, to_string(gpu->trigger), gpu->cause, gpu->by);
  } else if (const model::JobId job = model::job_of(record.event); job.valid()) {
    spdlog::debug("event={} kind={} job={}", record.seq.value, model::name_of(record.event),
                  job.value);
  } else {
    spdlog::info("event={} kind={}", record.seq.value, model::name_of(record.event));
  }
}

}  // namespace

void EventLog::published(const std::shared_ptr<const controller::Snapshot>&,
                         std::span<const model::EventRecord> events, std::span<const model::Job>) {
  for (const model::EventRecord& record : events) log_event(record);
}

}  // namespace gpu_platform::bin
