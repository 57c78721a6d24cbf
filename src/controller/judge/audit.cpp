#include "controller/judge/audit.h"

#include <algorithm>
#include <map>
#include <utility>

namespace gpu_platform::controller {

using model::AuditAction;
using model::AuditedCall;

namespace {

AuditAction action_of(model::GpuAction action) {
  switch (action) {
    case model::GpuAction::kDrain:
      return AuditAction::kDrain;
    case model::GpuAction::kTakeOffline:
      return AuditAction::kTakeOffline;
    case model::GpuAction::kBringOnline:
      break;
  }
  return AuditAction::kBringOnline;
}

// Fills in what is done, and to what that is no job.
struct Describe {
  AuditedCall& call;

  void operator()(const model::SubmitJob&) const { call.action = AuditAction::kSubmit; }
  void operator()(const model::ActOnJob& command) const {
    call.action = model::audit_action(command.action);
  }
  void operator()(const model::ActOnJobs& command) const {
    call.action = model::audit_action(command.action);
  }
  void operator()(const model::UpdateJob&) const { call.action = AuditAction::kUpdate; }
  void operator()(const model::ChangeGpus& command) const {
    call.action = action_of(command.action);
    call.target = command.which.node;
  }
  void operator()(const model::MakeReservation& command) const {
    call.action = AuditAction::kMakeReservation;
    call.target = command.name;
  }
  void operator()(const model::CancelReservation& command) const {
    call.action = AuditAction::kCancelReservation;
    call.target = command.name;
  }
  void operator()(const model::RecordCalls&) const {}
};

bool is_about_jobs(AuditAction action) {
  return action <= AuditAction::kUpdate;
}

struct TouchedJobs {
  std::string user;
  std::vector<model::JobId> jobs;
};

// By the owner's uid; of jobs that are there, or have just left.
std::map<std::uint32_t, TouchedJobs> touched_jobs(const State& state,
                                                  std::span<const model::EventRecord> events,
                                                  std::span<const model::Job> ended) {
  std::map<model::JobId, const model::Job*> departed;
  for (const model::Job& job : ended) departed.emplace(job.id, &job);
  std::map<std::uint32_t, TouchedJobs> by_owner;
  for (const model::EventRecord& record : events) {
    const model::JobId id = model::job_of(record.event);
    // That a job may be considered again follows from what was done to it.
    if (!id.valid() || std::holds_alternative<model::JobEligible>(record.event)) continue;
    const auto left = departed.find(id);
    const model::Job* job = left == departed.end() ? find_job(state, id) : left->second;
    if (job == nullptr) continue;
    TouchedJobs& touched = by_owner[job->spec->uid];
    touched.user = job->spec->user;
    touched.jobs.push_back(id);
  }
  return by_owner;
}

void add_gpus(const State& state, std::span<const model::EventRecord> events, AuditedCall& call) {
  for (const model::EventRecord& record : events) {
    const auto* change = std::get_if<model::GpuStateChanged>(&record.event);
    if (change == nullptr) continue;
    if (++call.gpu_count > model::kMaxAuditedGpus) continue;
    const model::Node* node = state.nodes.find(change->gpu.node.value);
    call.target = node->name;
    call.gpus.push_back(fmt::format("{}:{}", node->name, change->gpu.index));
  }
}

}  // namespace

Events judge_trail(const State& state, const model::Command& command,
                   std::span<const model::EventRecord> events, std::span<const model::Job> ended) {
  const bool says_itself = std::holds_alternative<model::SubmitJob>(command.body) ||
                           std::holds_alternative<model::RecordCalls>(command.body);
  const bool is_known = command.caller.door != model::Door::kNone;
  if (!is_known || says_itself || events.empty()) return {};
  AuditedCall call;
  call.by = origin_of(command.caller);
  std::visit(Describe{call}, command.body);
  Events trail;
  if (!is_about_jobs(call.action)) {
    AuditedCall first = call;
    add_gpus(state, events, first);
    trail.push_back(model::CallAudited{std::move(first)});
  }
  for (auto& [uid, touched] : touched_jobs(state, events, ended)) {
    AuditedCall of_owner = call;
    of_owner.owner = {std::move(touched.user), uid};
    std::vector<model::JobId>& jobs = touched.jobs;
    std::ranges::sort(jobs);
    jobs.erase(std::ranges::unique(jobs).begin(), jobs.end());
    of_owner.job_count = jobs.size();
    jobs.resize(std::min(jobs.size(), model::kMaxAuditedJobs));
    of_owner.jobs = std::move(jobs);
    trail.push_back(model::CallAudited{std::move(of_owner)});
  }
  return trail;
}

Events judge_calls(const model::RecordCalls& command, store::Headroom headroom) {
  Events events;
  for (const AuditedCall& call : command.calls) {
    if (headroom != store::Headroom::kAmple && call.refusal) continue;
    events.push_back(model::CallAudited{call});
  }
  return events;
}

}  // namespace gpu_platform::controller
