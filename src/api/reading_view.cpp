#include "api/reading_view.h"

#include <utility>

#include "api/convert/gpu_selector.h"
#include "api/convert/job.h"
#include "api/gpu_places.h"
#include "api/history_answer.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"
#include "telemetry/attribution.h"
#include "telemetry/metric.h"

namespace gpu_platform::api {

namespace {

template <class Request>
base::Result<ReadingFilter> filter_of(const Request& request, const JobReader& reader,
                                      const model::Caller& caller) {
  const auto snapshot = reader.core().snapshots.snapshot();
  ReadingFilter filter;
  for (const std::string& place : request.gpu()) {
    TRY_ASSIGN(const model::GpuSelector which, parse_gpu_place(place));
    TRY_ASSIGN(const FoundGpu found, find_gpu(*snapshot, which));
    filter.uuids.insert(found.info().uuid);
  }
  for (const std::string& uuid : request.gpu_id()) {
    TRY(find_gpu(*snapshot, {.uuid = uuid}));
    filter.uuids.insert(uuid);
  }
  for (const std::string& name : request.node()) {
    TRY(find_node(*snapshot, name, "node"));
    filter.nodes.insert(name);
  }
  for (const std::string& name : request.job()) {
    TRY_ASSIGN(const FoundJob found, reader.find(caller, name));
    TRY(check_is_one(found));
    filter.jobs.insert(found.job->id);
  }
  return filter;
}

bool is_seen(const model::View& view, const model::Caller& caller, const model::Job& job) {
  return job.spec->uid == caller.uid || view.sees(model::Sight::kJobs, *job.spec);
}

}  // namespace

base::Result<ReadingFilter> to_filter(const v1::ListReadingsRequest& request,
                                      const JobReader& reader, const model::Caller& caller) {
  return filter_of(request, reader, caller);
}

base::Result<ReadingFilter> to_filter(const v1::WatchReadingsRequest& request,
                                      const JobReader& reader, const model::Caller& caller) {
  return filter_of(request, reader, caller);
}

ReadingView::ReadingView(const ReadingFilter& filter, const JobReader& reader,
                         const model::Caller& caller)
    : filter_(filter),
      caller_(caller),
      view_(reader.view_of(caller)),
      snapshot_(reader.core().snapshots.snapshot()) {
  for (const model::JobId id : filter.jobs) {
    const model::Job* const job = snapshot_->jobs.find(id.value);
    if (job == nullptr || !is_seen(view_, caller_, *job)) continue;
    if (!model::is_ended(job->state)) have_all_ended_ = false;
    add_gpus_of(*job);
  }
}

void ReadingView::add_gpus_of(const model::Job& job) {
  const model::Attempt* const attempt = job.current_attempt();
  if (attempt == nullptr || attempt->ended_at.is_set()) return;
  for (const model::NodeAllocation& part : attempt->allocation.nodes) {
    const model::Node* const node = snapshot_->nodes.find(part.node.value);
    if (node == nullptr) continue;
    for (const model::GpuGrant& grant : part.grants) {
      if (grant.gpu_index >= node->gpus.size()) continue;
      // Of a part, only its own use is the job's.
      if (grant.share < base::kWholeGpu) continue;
      uuids_of_jobs_.insert(node->gpus[grant.gpu_index].info.uuid);
    }
  }
}

bool ReadingView::is_named(const telemetry::Subject& subject) const {
  return filter_.is_for_all() || filter_.nodes.contains(subject.node) ||
         filter_.uuids.contains(subject.uuid);
}

bool ReadingView::is_wanted(const telemetry::Frame& frame) const {
  const telemetry::Subject& subject = frame.subject;
  if (subject.of != telemetry::Of::kUse) {
    return is_named(subject) || uuids_of_jobs_.contains(subject.uuid);
  }
  if (!is_named(subject) && !filter_.jobs.contains(subject.attempt.job)) return false;
  const model::Job* const job = snapshot_->jobs.find(subject.attempt.job.value);
  return job != nullptr && is_seen(view_, caller_, *job);
}

void ReadingView::put(const telemetry::Frame& frame, v1::Reading& out) const {
  const telemetry::Subject& subject = frame.subject;
  out.set_node(subject.node);
  if (!subject.uuid.empty()) out.set_gpu_id(subject.uuid);
  const model::Node* const node =
      model::node_named(snapshot_->nodes, *snapshot_->nodes_by_name, subject.node);
  const auto index = node == nullptr || subject.uuid.empty()
                         ? std::nullopt
                         : model::index_of_gpu(*node, subject.uuid);
  if (index) out.set_index(*index);
  if (subject.of == telemetry::Of::kUse) {
    const model::Job* const job = snapshot_->jobs.find(subject.attempt.job.value);
    if (job != nullptr) out.set_job(model::name_of(*job));
    out.set_attempt(subject.attempt.attempt);
  }
  to_proto(frame.at, *out.mutable_at());
  for (const telemetry::Value& value : frame.values) {
    const telemetry::Metric& metric = telemetry::metric(value.metric);
    if (metric.name == telemetry::kUseAttributedBy) {
      const auto by = static_cast<telemetry::AttributedBy>(value.value);
      out.set_attributed_by(std::string(to_string(by)));
      continue;
    }
    (*out.mutable_values())[std::string(metric.name)] =
        static_cast<double>(value.value) * shown(metric).scale;
  }
}

}  // namespace gpu_platform::api
