#include "api/cluster_calls.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "api/call_context.h"
#include "api/convert/cluster.h"
#include "api/convert/gpu_health.h"
#include "api/convert/gpu_selector.h"
#include "api/convert/job.h"
#include "api/convert/topology.h"
#include "api/evidence_view.h"
#include "api/gpu_places.h"
#include "api/list_page.h"
#include "api/part_walls.h"
#include "api/predictions.h"
#include "base/utc.h"
#include "model/job_spec.h"
#include "model/node_lookup.h"
#include "os/clock.h"

namespace gpu_platform::api {

namespace {

// Calls `visit` with the node of that name, or with each where there is no name.
template <class Visit>
base::Status for_nodes(const controller::Snapshot& snapshot, const std::string& name,
                       Visit&& visit) {
  if (name.empty()) {
    snapshot.nodes.for_each([&](std::uint64_t, const model::Node& node) { visit(node); });
    return {};
  }
  TRY_ASSIGN(const model::Node* node, find_node(snapshot, name, "node"));
  visit(*node);
  return {};
}

void add_isolation(const std::vector<IsolationGuard>& guards, v1::Status& out) {
  for (const IsolationGuard& guard : guards) {
    v1::IsolationGuard& one = *out.add_isolation();
    one.set_guard(guard.name);
    one.set_held(guard.is_held);
    if (!guard.is_held) one.set_reason(guard.why_not);
  }
}

bool sees_command(const model::View& view, const model::GpuProcess& process,
                  const controller::Snapshot& snapshot) {
  if (view.sees_command_of(process.uid)) return true;
  const model::Job* const job = process.job ? snapshot.jobs.find(process.job->value) : nullptr;
  return job != nullptr && view.sees(model::Sight::kCommands, *job->spec);
}

// Tells which nodes are wholly reserved now.
void tell_reserved(const controller::Snapshot& snapshot,
                   google::protobuf::RepeatedPtrField<v1::Node>& nodes) {
  if (snapshot.reservations == nullptr) return;
  std::map<std::string_view, v1::Node*> by_name;
  for (v1::Node& node : nodes) by_name[node.name()] = &node;
  const base::Instant now = os::wall_now();
  for (const auto& [name, reservation] : snapshot.reservations->all()) {
    if (now < reservation.begin || now >= reservation.end) continue;
    for (const model::ReservationPart& part : reservation.parts) {
      const model::Node* node = snapshot.nodes.find(part.node.value);
      if (!part.whole_node || node == nullptr || !node->cause.empty()) continue;
      by_name.at(node->name)
          ->set_reason(fmt::format("reserved until {}{}: {}", base::utc(reservation.end),
                                   reservation.maintenance ? " for maintenance" : "", name));
    }
  }
}

// Tells why there are no readings of the GPUs of nodes.
void tell_missing_readings(const CallContext& context, const controller::Snapshot& snapshot,
                           google::protobuf::RepeatedPtrField<v1::Node>& nodes) {
  if (context.core.readings == nullptr) return;
  for (v1::Node& shown : nodes) {
    const model::Node* const node =
        model::node_named(snapshot.nodes, *snapshot.nodes_by_name, shown.name());
    if (node == nullptr || node->gpus.empty()) continue;
    std::string why = context.core.readings->why_none(*node);
    if (!why.empty()) shown.set_no_readings(std::move(why));
  }
}

void tell_missing_readings(const CallContext& context, const model::Node& node,
                           v1::GpuHealth& out) {
  if (context.core.readings == nullptr) return;
  std::string why = context.core.readings->why_none(node);
  if (!why.empty()) out.set_no_readings(std::move(why));
}

// Returns the latest reading of the GPU as the caller may see it; null if there is none.
std::shared_ptr<const model::GpuReading> reading_of(const CallContext& context,
                                                    std::string_view uuid,
                                                    const model::Caller& caller,
                                                    const controller::Snapshot& snapshot) {
  if (context.core.readings == nullptr) return nullptr;
  auto reading = context.core.readings->latest(uuid);
  if (reading == nullptr) return nullptr;
  const model::View view = context.reader.view_of(caller);
  const auto is_hidden = [&](const model::GpuProcess& process) {
    return !sees_command(view, process, snapshot);
  };
  if (std::ranges::none_of(reading->processes, is_hidden)) return reading;
  auto shown = std::make_shared<model::GpuReading>(*reading);
  for (model::GpuProcess& process : shown->processes) {
    if (is_hidden(process)) process.command.clear();
  }
  return shown;
}

v1::ChangeGpusResponse changed_gpus(const CallContext& context, const model::CommandReply& reply,
                                    const model::Caller& caller) {
  const auto snapshot = context.core.snapshots.snapshot();
  v1::ChangeGpusResponse out;
  out.set_changed(reply.changed);
  for (const model::GpuRef& ref : reply.gpus) {
    const model::Node* node = snapshot->nodes.find(ref.node.value);
    if (node == nullptr || ref.index >= node->gpus.size()) continue;
    const model::Gpu& gpu = node->gpus[ref.index];
    const auto reading = reading_of(context, gpu.info.uuid, caller, *snapshot);
    v1::Gpu& shown = *out.add_gpus();
    api::to_proto(gpu, *node, ref.index, reading.get(), shown);
    put_walls(*snapshot, shown);
  }
  return out;
}

}  // namespace

v1::Status ClusterCalls::status(const v1::GetStatusRequest& request, const Peer& peer) const {
  if (context_.core.readings != nullptr && request.max_age_seconds() > 0) {
    const auto age = std::chrono::milliseconds(std::llround(request.max_age_seconds() * 1000));
    context_.core.readings->ask_for_newer_than(age);
  }
  const auto snapshot = context_.core.snapshots.snapshot();
  v1::Status out;
  const ReadingOf reading = [&](std::string_view uuid) {
    return reading_of(context_, uuid, peer.caller, *snapshot);
  };
  to_proto(snapshot->nodes, reading, out);
  for (v1::Gpu& gpu : *out.mutable_gpus()) put_walls(*snapshot, gpu);
  tell_reserved(*snapshot, *out.mutable_nodes());
  tell_missing_readings(context_, *snapshot, *out.mutable_nodes());
  const controller::Counts& counts = snapshot->counts;
  out.set_queued_jobs(counts.pending + counts.queued);
  out.set_running_jobs(counts.active);
  out.set_held_jobs(counts.held);
  out.set_suspended_jobs(counts.suspended);
  if (snapshot->at.is_set()) to_proto(snapshot->at, *out.mutable_at());
  if (context_.core.isolation) add_isolation(context_.core.isolation(), out);
  add_scores(*snapshot, *out.mutable_prediction_scores());
  return out;
}

base::Result<v1::ListNodesResponse> ClusterCalls::nodes(const v1::ListNodesRequest& request) const {
  const auto snapshot = context_.core.snapshots.snapshot();
  v1::ListNodesResponse out;
  snapshot->nodes.for_each(
      [&](std::uint64_t, const model::Node& node) { to_proto(node, *out.add_nodes()); });
  tell_reserved(*snapshot, *out.mutable_nodes());
  tell_missing_readings(context_, *snapshot, *out.mutable_nodes());
  TRY(cut_to_page(request, *out.mutable_nodes(), out,
                  [](const v1::Node& node) { return node.name(); }));
  return out;
}

base::Result<v1::GpuHealth> ClusterCalls::gpu_health(const v1::GetGpuHealthRequest& request,
                                                     const Peer& peer) const {
  TRY_ASSIGN(const model::GpuSelector which, to_model(request));
  const auto snapshot = context_.core.snapshots.snapshot();
  TRY_ASSIGN(const FoundGpu found, find_gpu(*snapshot, which));
  const model::Gpu& gpu = found.node->gpus[found.index];
  v1::GpuHealth out;
  const auto reading = reading_of(context_, gpu.info.uuid, peer.caller, *snapshot);
  to_proto(gpu, *found.node, found.index, reading.get(), out);
  put_walls(*snapshot, *out.mutable_gpu());
  tell_missing_readings(context_, *found.node, out);
  EvidenceView evidence(context_, snapshot, peer.caller);
  evidence.put_verdict(*found.node, gpu, out);
  evidence.add_of_node(*found.node, {}, *out.mutable_evidence());
  evidence.add_of_gpu(*found.node, gpu, {}, *out.mutable_evidence());
  sort_by_time(*out.mutable_evidence());
  return out;
}

base::Result<v1::ListGpusResponse> ClusterCalls::gpus(const v1::ListGpusRequest& request,
                                                      const Peer& peer) const {
  const auto snapshot = context_.core.snapshots.snapshot();
  v1::ListGpusResponse out;
  EvidenceView evidence(context_, snapshot, peer.caller);
  TRY(for_nodes(*snapshot, request.node(), [&](const model::Node& node) {
    for (std::uint32_t i = 0; i < node.gpus.size(); ++i) {
      const model::Gpu& gpu = node.gpus[i];
      const auto reading = reading_of(context_, gpu.info.uuid, peer.caller, *snapshot);
      v1::GpuHealth& health = *out.add_gpus();
      to_proto(gpu, node, i, reading.get(), health);
      put_walls(*snapshot, *health.mutable_gpu());
      tell_missing_readings(context_, node, health);
      evidence.put_verdict(node, gpu, health);
    }
  }));
  TRY(cut_to_page(request, *out.mutable_gpus(), out, [](const v1::GpuHealth& health) {
    return fmt::format("{}:{}", health.gpu().node(), health.gpu().index());
  }));
  return out;
}

base::Result<v1::EvidenceList> ClusterCalls::evidence(const v1::ListEvidenceRequest& request,
                                                      const Peer& peer) const {
  TRY_ASSIGN(const model::GpuSelector which, to_model(request));
  const auto snapshot = context_.core.snapshots.snapshot();
  const EvidenceView evidence(context_, snapshot, peer.caller);
  const base::Instant since = request.has_since() ? to_model(request.since()) : base::Instant();
  v1::EvidenceList out;
  if (!which.uuid.empty() || which.index) {
    TRY_ASSIGN(const FoundGpu found, find_gpu(*snapshot, which));
    evidence.add_of_gpu(*found.node, found.node->gpus[found.index], since, *out.mutable_evidence());
  } else {
    TRY(for_nodes(*snapshot, which.node, [&](const model::Node& node) {
      evidence.add_of_node(node, since, *out.mutable_evidence());
      for (const model::Gpu& gpu : node.gpus) {
        evidence.add_of_gpu(node, gpu, since, *out.mutable_evidence());
      }
    }));
  }
  sort_by_time(*out.mutable_evidence());
  TRY(cut_to_page(request, *out.mutable_evidence(), out, [](const v1::Evidence& piece) {
    return fmt::format("{} {} {} {}.{}", piece.node(), piece.gpu_id(), piece.kind(),
                       piece.at().seconds(), piece.at().nanos());
  }));
  return out;
}

base::Result<v1::GetTopologyResponse> ClusterCalls::topology(
    const v1::GetTopologyRequest& request) const {
  const auto snapshot = context_.core.snapshots.snapshot();
  v1::GetTopologyResponse out;
  TRY(for_nodes(*snapshot, request.node(),
                [&](const model::Node& node) { to_proto(node, *out.add_nodes()); }));
  TRY(cut_to_page(request, *out.mutable_nodes(), out,
                  [](const v1::NodeTopology& node) { return node.node(); }));
  for (v1::NodeTopology& node : *out.mutable_nodes()) put_walls(*snapshot, node);
  return out;
}

void ClusterCalls::change_gpus(const v1::ChangeGpusRequest& request, model::GpuAction action,
                               const Peer& peer, Resume resume,
                               Done<v1::ChangeGpusResponse> done) const {
  auto change = to_model(request, action);
  if (!change) return done(std::unexpected(std::move(change).error()));
  auto finish = [&context = context_, caller = peer.caller,
                 done = std::move(done)](base::Result<model::CommandReply> reply) {
    if (!reply) return done(std::unexpected(std::move(reply).error()));
    done(changed_gpus(context, *reply, caller));
  };
  context_.send({peer.caller, *std::move(change)}, std::move(resume), std::move(finish));
}

}  // namespace gpu_platform::api
