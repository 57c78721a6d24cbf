#include "api/convert/job.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "api/convert/enums.h"
#include "api/convert/job_spec.h"
#include "api/convert/start_prediction.h"
#include "api/convert/text_forms.h"
#include "model/job_spec.h"
#include "model/output_pattern.h"

namespace gpu_platform::api {

namespace {

std::uint64_t in_bytes(base::Bytes bytes) {
  return static_cast<std::uint64_t>(bytes.value());
}

void set_time(base::Instant at, google::protobuf::Timestamp* (v1::Attempt::*field)(),
              v1::Attempt& out) {
  if (at.is_set()) to_proto(at, *(out.*field)());
}

std::string name_of(const model::GrantedNode& granted, model::NodeId id) {
  return granted.name.empty() ? node_name(nullptr, id) : granted.name;
}

void add_gpu(const model::GrantedGpu& granted, const model::GpuGrant& grant, v1::GpuUse& out) {
  out.set_index(grant.gpu_index);
  if (!granted.uuid.empty()) {
    out.set_uuid(granted.uuid);
    out.set_model(granted.model);
  }
  if (granted.link.kind != model::LinkKind::kUnknown) out.set_link(model::to_string(granted.link));
  out.set_share(in_gpus(grant.share));
  if (grant.share >= base::kWholeGpu) return;
  out.set_memory_bytes(in_bytes(grant.memory));
  out.set_mode(to_proto(grant.mode));
  out.set_memory_rung(to_proto(grant.wall.memory));
  out.set_compute_rung(to_proto(grant.wall.compute));
}

void add_place(const model::Allocation& allocation, const model::Granted& granted,
               google::protobuf::RepeatedPtrField<std::string>& names,
               google::protobuf::RepeatedPtrField<v1::GpuUse>& gpus) {
  for (std::size_t i = 0; i < allocation.nodes.size(); ++i) {
    const model::NodeAllocation& part = allocation.nodes[i];
    const std::string name = name_of(granted[i], part.node);
    *names.Add() = name;
    for (std::size_t gpu = 0; gpu < part.grants.size(); ++gpu) {
      v1::GpuUse& use = *gpus.Add();
      use.set_node(name);
      add_gpu(granted[i].gpus[gpu], part.grants[gpu], use);
    }
  }
}

// What the attempt was given; for one that was archived before that was kept, what its numbers name
// now.
base::Shared<model::Granted> granted_of(const model::Attempt& attempt, const Nodes& nodes) {
  if (model::is_of(*attempt.granted, attempt.allocation)) return attempt.granted;
  return model::granted_of(attempt.allocation, nodes);
}

void put_allocation(const model::Attempt& attempt, const Nodes& nodes, v1::Attempt& out) {
  std::uint32_t cpus = 0;
  base::Bytes memory;
  add_place(attempt.allocation, *granted_of(attempt, nodes), *out.mutable_nodes(),
            *out.mutable_gpus());
  for (const model::NodeAllocation& part : attempt.allocation.nodes) {
    cpus += part.cpus;
    memory += part.memory;
  }
  out.set_cpus(cpus);
  out.set_memory_bytes(in_bytes(memory));
}

void add_warnings(const model::Attempt& attempt, const Nodes& nodes, v1::Job& out) {
  const base::Shared<model::Granted> granted = granted_of(attempt, nodes);
  for (std::size_t i = 0; i < attempt.allocation.nodes.size(); ++i) {
    const model::NodeAllocation& part = attempt.allocation.nodes[i];
    if (part.level != model::PlacementLevel::kAcrossSockets) continue;
    const std::uint32_t sockets = (*granted)[i].sockets;
    out.add_warnings(fmt::format("its {} GPUs are on {} sockets of {}", part.grants.size(),
                                 sockets > 1 ? fmt::format("{}", sockets) : "several",
                                 name_of((*granted)[i], part.node)));
  }
}

template <class Message>
void put_exit(const model::Exit& exit, Message& out) {
  if (exit.code) out.set_exit_code(*exit.code);
  if (exit.signal) out.set_signal(signal_name(*exit.signal));
  out.set_lost(to_proto(exit.lost));
}

void put_choices(const model::Attempt& attempt, const Nodes& nodes, v1::ChosenGpus& out) {
  const base::Shared<model::Granted> granted = granted_of(attempt, nodes);
  out.set_count(static_cast<std::uint32_t>(attempt.choices.size()));
  out.set_allocation_method("availability_score");
  for (const model::GpuChoice& choice : attempt.choices) {
    const model::NodeAllocation& part = attempt.allocation.nodes.at(choice.node_place);
    out.add_indices(choice.index);
    v1::ChosenGpu& gpu = *out.add_details();
    gpu.set_node(name_of((*granted)[choice.node_place], part.node));
    gpu.set_index(choice.index);
    const model::Node* const node = nodes.find(part.node.value);
    if (node != nullptr && choice.index < node->gpus.size()) {
      gpu.set_name(node->gpus[choice.index].info.model);
    }
    gpu.set_memory_free_mb(static_cast<std::uint64_t>(choice.load.memory_free.value()) >> 20);
    gpu.set_utilization_percent(choice.load.utilization_percent);
    gpu.set_availability_score(static_cast<double>(choice.availability) / 1000);
  }
}

void put_attempt(const model::Attempt& attempt, const Nodes& nodes, v1::Attempt& out) {
  out.set_attempt(attempt.number);
  out.set_state(to_proto(attempt.state));
  out.set_why(to_proto(attempt.why));
  put_allocation(attempt, nodes, out);
  set_time(attempt.requested_at, &v1::Attempt::mutable_requested_at, out);
  set_time(attempt.started_at, &v1::Attempt::mutable_started_at, out);
  set_time(attempt.ended_at, &v1::Attempt::mutable_ended_at, out);
  set_time(attempt.released_at, &v1::Attempt::mutable_released_at, out);
  put_exit(attempt.exit, out);
  // While it is being stopped, why it is being stopped.
  out.set_reason(to_proto(attempt.reason == model::EndReason::kNone && !attempt.ended_at.is_set()
                              ? attempt.stop_reason
                              : attempt.reason));
  if (!attempt.by.empty()) out.set_ended_by(attempt.by);
  if (!attempt.detail.empty()) out.set_detail(attempt.detail);
  if (!attempt.preflight.empty()) out.set_preflight(attempt.preflight);
  if (!attempt.choices.empty()) put_choices(attempt, nodes, *out.mutable_gpu_info());
  if (attempt.pid != 0) out.set_pid(attempt.pid);
  for (const model::JobId id : attempt.preempted_jobs)
    out.add_preempted_jobs(fmt::format_int(id.value).str());
  if (attempt.passed.valid()) out.set_passed(fmt::format_int(attempt.passed.value).str());
  set_time(attempt.yields_at, &v1::Attempt::mutable_yields_at, out);
  if (attempt.limit_by_budget)
    out.set_limit_by_budget_seconds(in_seconds(*attempt.limit_by_budget));
  if (attempt.ended_at.is_set()) {
    out.set_cpu_time_seconds(in_seconds(attempt.usage.cpu_time));
    out.set_peak_memory_bytes(in_bytes(attempt.usage.peak_memory));
  }
}

std::optional<std::uint64_t> whole_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void put_array(const model::Job& job, v1::Job& out) {
  if (!job.is_member()) return;
  out.set_array_id(fmt::format_int(job.array_id.value).str());
  out.set_array_index(job.array_index);
  if (job.spec->array) out.set_array_size(member_count(*job.spec->array));
}

// There is no efficiency of an attempt without a known end, or of one that was over at once.
void put_efficiency(const model::Job& job, const model::Attempt& attempt, v1::Job& out) {
  if (!attempt.started_at.is_set() || !attempt.ended_at.is_set()) return;
  const double ran = in_seconds(attempt.ended_at - attempt.started_at);
  if (ran < 0.001 || attempt.exit.lost != model::Lost::kNo) return;
  const v1::Attempt& latest = out.attempts(out.attempts_size() - 1);
  v1::Efficiency& efficiency = *out.mutable_efficiency();
  if (latest.cpus() > 0) efficiency.set_cpu(latest.cpu_time_seconds() / (latest.cpus() * ran));
  const double limit = in_seconds(job.spec->time_limit);
  if (limit > 0) efficiency.set_time(ran / limit);
  if (latest.memory_bytes() == 0 || latest.peak_memory_bytes() == 0) return;
  efficiency.set_memory(static_cast<double>(latest.peak_memory_bytes()) /
                        static_cast<double>(latest.memory_bytes()));
}

// Fills the job's fields about its latest attempt. A job that waits again shows none of it: the
// attempt's own entry keeps it.
void put_latest_attempt(const model::Job& job, const Nodes& nodes, v1::Job& out) {
  const bool waits = model::is_waiting(job.state) || job.state == model::JobState::kHeld;
  if (job.attempts.empty() || waits) return;
  const v1::Attempt& latest = out.attempts(out.attempts_size() - 1);
  *out.mutable_gpus() = latest.gpus();
  add_warnings(job.attempts.back(), nodes, out);
  out.set_cpus(latest.cpus());
  out.set_memory_bytes(latest.memory_bytes());
  if (latest.has_started_at()) *out.mutable_started_at() = latest.started_at();
  out.set_borrowed(job.attempts.back().is_borrowed && model::holds_resources(job));
  if (!model::is_ended(job.state)) return;
  put_exit(job.attempts.back().exit, out);
  put_efficiency(job, job.attempts.back(), out);
}

}  // namespace

std::string node_name(const model::Node* node, model::NodeId id) {
  return node == nullptr ? fmt::format("node-{}", id.value) : node->name;
}

double in_seconds(base::Duration duration) {
  return static_cast<double>(duration.value()) / 1e9;
}

double in_gpus(base::GpuShare share) {
  return static_cast<double>(share.value()) / static_cast<double>(base::kWholeGpu.value());
}

std::string joined(const std::vector<model::Dependency>& dependencies) {
  std::string text;
  for (const model::Dependency& dependency : dependencies) {
    text += (text.empty() ? "" : ",") + to_string(dependency);
  }
  return text;
}

void add_place(const model::Allocation& allocation, const Nodes& nodes,
               google::protobuf::RepeatedPtrField<std::string>& names,
               google::protobuf::RepeatedPtrField<v1::GpuUse>& gpus) {
  add_place(allocation, model::granted_of(allocation, nodes), names, gpus);
}

void to_proto(base::Instant at, google::protobuf::Timestamp& out) {
  out.set_seconds(at.unix_ns() / 1'000'000'000);
  out.set_nanos(static_cast<std::int32_t>(at.unix_ns() % 1'000'000'000));
}

base::Instant to_model(const google::protobuf::Timestamp& at) {
  return base::Instant(at.seconds() * 1'000'000'000 + at.nanos());
}

void to_proto(const model::Job& job, const Nodes& nodes, v1::Job& out) {
  to_proto(*job.spec, nodes, *out.mutable_spec());
  to_proto_without_spec(job, nodes, out);
}

void to_proto_without_spec(const model::Job& job, const Nodes& nodes, v1::Job& out) {
  out.set_id(fmt::format_int(job.id.value).str());
  out.set_state(to_proto(job.state));
  put_array(job, out);
  if (!job.waits_for.empty()) out.set_dependency_unmet(joined(job.waits_for));
  if (job.submitted_at.is_set()) to_proto(job.submitted_at, *out.mutable_submitted_at());
  if (job.eligible_at.is_set()) to_proto(job.eligible_at, *out.mutable_eligible_at());
  if (job.ended_at.is_set()) to_proto(job.ended_at, *out.mutable_ended_at());
  out.set_reason(to_proto(job.reason));
  if (!job.by.empty()) out.set_ended_by(job.by);
  if (!job.detail.empty()) out.set_detail(job.detail);
  out.set_failures(job.failures);
  out.set_losses(job.losses);
  out.set_preemptions(job.preemptions);
  if (job.overdue_since.is_set()) to_proto(job.overdue_since, *out.mutable_overdue_since());
  if (job.spec->time_limit_default_of) {
    out.set_time_limit_default_of(*job.spec->time_limit_default_of);
  }
  if (job.turn && job.turn->of != job.id)
    out.set_turn_of(fmt::format_int(job.turn->of.value).str());
  if (job.prediction) to_proto(*job.prediction, *out.mutable_forecast());
  for (const model::Attempt& attempt : job.attempts)
    put_attempt(attempt, nodes, *out.add_attempts());
  if (!job.attempts.empty()) out.set_attempt(job.attempts.back().number);
  put_latest_attempt(job, nodes, out);
  if (!job.spec->error.empty() && !job.attempts.empty()) {
    out.set_error(
        users_file(job, static_cast<std::uint32_t>(job.attempts.size()), job.spec->error, nodes));
  }
}

std::string users_file(const model::Job& job, std::uint32_t attempt, std::string_view pattern,
                       const Nodes& nodes) {
  if (attempt == 0 || attempt > job.attempts.size()) return std::string(pattern);
  const auto& parts = job.attempts[attempt - 1].allocation.nodes;
  const std::string node =
      parts.empty() ? std::string()
                    : node_name(nodes.find(parts.front().node.value), parts.front().node);
  return model::expand_output(
      pattern, {job.id, job.spec->name, job.spec->user, node, job.array_id, job.array_index});
}

void to_proto(const model::WaitReason& reason, v1::WaitReason& out) {
  to_proto(reason, [](model::JobId id) { return fmt::format_int(id.value).str(); }, out);
}

void to_proto(const model::WaitReason& reason, const model::NameOfJob& name_of,
              v1::WaitReason& out) {
  out.set_code(std::string(model::to_string(reason.code)));
  out.set_text(model::describe(reason, name_of));
  for (const model::WaitCount& count : reason.counts) {
    const std::string key(model::to_string(count.shortage));
    (*out.mutable_counts())[key] = count.nodes;
    if (count.short_by != 0) (*out.mutable_short_by())[key] = count.short_by;
  }
  if (reason.jobs_ahead != 0) (*out.mutable_counts())["jobs_ahead"] = reason.jobs_ahead;
  for (const model::JobId id : reason.stopping) {
    if (!name_of(id).empty()) out.add_stopping(fmt::format_int(id.value).str());
  }
  if (reason.blocked_by.valid() && !name_of(reason.blocked_by).empty()) {
    out.set_blocked_by(fmt::format_int(reason.blocked_by.value).str());
  }
}

base::Result<model::JobId> to_job_id(std::string_view id) {
  const auto value = whole_number(id);
  if (!value || *value == 0) {
    return base::invalid(
        "id", fmt::format("id: '{}' is no job id: write a number, as in \"42\"", id.substr(0, 64)));
  }
  return model::JobId(*value);
}

base::Result<JobRef> to_job_ref(std::string_view text) {
  const std::size_t bar = text.find('_');
  const auto job = to_job_id(text.substr(0, bar));
  const auto index = bar == std::string_view::npos ? std::optional<std::uint64_t>(0)
                                                   : whole_number(text.substr(bar + 1));
  if (!job || !index || *index > model::kLargestArrayIndex) {
    return base::invalid("id",
                         fmt::format("id: '{}' is no job id: write a number, as in \"42\", or that "
                                     "of an array and an index in it, as in \"40_3\"",
                                     text.substr(0, 64)));
  }
  if (bar == std::string_view::npos) return JobRef{*job, std::nullopt};
  return JobRef{*job, static_cast<std::uint32_t>(*index)};
}

}  // namespace gpu_platform::api
