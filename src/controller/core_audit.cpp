#include <algorithm>
#include <map>
#include <utility>

#include "controller/core.h"

// The audit trail of commands: what a command did is read off the events that it led to, so that
// nothing can be done that the trail does not know.

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

}  // namespace

// By the owner's uid; of jobs that are there, or left with the open batch since `ended_before`.
std::map<std::uint32_t, Core::TouchedJobs> Core::jobs_touched_since(
    std::size_t events_before, std::size_t ended_before) const {
  std::map<model::JobId, const model::Job*> departed;
  for (std::size_t i = ended_before; i < batch_.ended_jobs.size(); ++i) {
    departed.emplace(batch_.ended_jobs[i].id, &batch_.ended_jobs[i]);
  }
  std::map<std::uint32_t, TouchedJobs> by_owner;
  for (std::size_t i = events_before; i < batch_.events.size(); ++i) {
    const model::Event& event = batch_.events[i].event;
    const model::JobId id = model::job_of(event);
    // That a job may be considered again follows from what was done to it.
    if (!id.valid() || std::holds_alternative<model::JobEligible>(event)) continue;
    const auto left = departed.find(id);
    const model::Job* job = left == departed.end() ? find_job(id) : left->second;
    if (job == nullptr) continue;
    TouchedJobs& touched = by_owner[job->spec->uid];
    touched.user = job->spec->user;
    touched.jobs.push_back(id);
  }
  return by_owner;
}

void Core::audit_changes(const model::Command& command, std::size_t events_before,
                         std::size_t ended_before, base::Instant now) {
  const bool says_itself = std::holds_alternative<model::SubmitJob>(command.body) ||
                           std::holds_alternative<model::RecordCalls>(command.body);
  const bool is_known = command.caller.door != model::Door::kNone;
  if (!is_known || says_itself || batch_.events.size() == events_before) return;
  AuditedCall call;
  call.by = origin_of(command.caller);
  std::visit(Describe{call}, command.body);
  auto by_owner = jobs_touched_since(events_before, ended_before);
  if (!is_about_jobs(call.action)) {
    AuditedCall first = call;
    add_gpus_since(events_before, first);
    emit(model::CallAudited{std::move(first)}, now);
  }
  for (auto& [uid, touched] : by_owner) {
    AuditedCall of_owner = call;
    of_owner.owner = {std::move(touched.user), uid};
    std::vector<model::JobId>& jobs = touched.jobs;
    std::ranges::sort(jobs);
    jobs.erase(std::ranges::unique(jobs).begin(), jobs.end());
    of_owner.job_count = jobs.size();
    jobs.resize(std::min(jobs.size(), model::kMaxAuditedJobs));
    of_owner.jobs = std::move(jobs);
    emit(model::CallAudited{std::move(of_owner)}, now);
  }
}

void Core::add_gpus_since(std::size_t events_before, AuditedCall& call) const {
  for (std::size_t i = events_before; i < batch_.events.size(); ++i) {
    const auto* change = std::get_if<model::GpuStateChanged>(&batch_.events[i].event);
    if (change == nullptr) continue;
    if (++call.gpu_count > model::kMaxAuditedGpus) continue;
    const model::Node* node = state_.nodes.find(change->gpu.node.value);
    call.target = node->name;
    call.gpus.push_back(fmt::format("{}:{}", node->name, change->gpu.index));
  }
}

// Refused calls do not use up what a full disk keeps for the endings of jobs.
base::Result<model::CommandReply> Core::record_calls(const model::RecordCalls& command,
                                                     base::Instant now, store::Room room) {
  model::CommandReply reply;
  reply.changed = false;
  for (const AuditedCall& call : command.calls) {
    if (room != store::Room::kAmple && call.refusal) continue;
    emit(model::CallAudited{call}, now);
    reply.changed = true;
  }
  return reply;
}

}  // namespace gpu_platform::controller
