#include "controller/judge/audit.h"

#include <algorithm>
#include <map>
#include <utility>

#include "controller/publication.h"
#include "model/job_spec.h"

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
    case model::GpuAction::kReset:
      return AuditAction::kReset;
    case model::GpuAction::kCheck:
      return AuditAction::kCheck;
    case model::GpuAction::kBringOnline:
      break;
  }
  return AuditAction::kBringOnline;
}

// Fills in the action, and its target if that is no job.
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
  void operator()(const model::RaiseJob&) const { call.action = AuditAction::kTop; }
  void operator()(const model::SignalJob&) const { call.action = AuditAction::kSignal; }
  void operator()(const model::ChangeGpus& command) const {
    call.action = action_of(command.action);
    call.target = command.which.node;
  }
  void operator()(const model::MakeReservation& command) const {
    call.action = AuditAction::kMakeReservation;
    call.target = command.name;
  }
  void operator()(const model::ChangeReservation& command) const {
    call.action = AuditAction::kChangeReservation;
    call.target = command.name;
  }
  void operator()(const model::CancelReservation& command) const {
    call.action = AuditAction::kCancelReservation;
    call.target = command.name;
  }
  void operator()(const model::MakeToken& command) const {
    call.action = AuditAction::kCreateToken;
    call.request_id = command.request_id;
  }
  void operator()(const model::RevokeToken&) const { call.action = AuditAction::kRevokeToken; }
  void operator()(const model::SetTeam& command) const {
    call.action = AuditAction::kSetTeam;
    call.target = command.name;
  }
  void operator()(const model::RemoveTeam& command) const {
    call.action = AuditAction::kRemoveTeam;
    call.target = command.name;
  }
  void operator()(const model::AnswerInvitation& command) const {
    call.action = command.accept ? AuditAction::kAcceptInvitation : AuditAction::kDeclineInvitation;
    call.target = command.name;
  }
  void operator()(const model::SetPrice& command) const {
    call.action = AuditAction::kSetPrice;
    const model::Price& price = command.price;
    call.target = price.gpu_type.empty() ? price.node : price.gpu_type;
  }
  void operator()(const model::WithdrawPrice& command) const {
    call.action = AuditAction::kWithdrawPrice;
    call.target = fmt::format("{}", command.id);
  }
  void operator()(const model::CorrectLedger& command) const {
    call.action = AuditAction::kCorrectLedger;
    const bool names_user = !command.user.empty();
    const bool names_team = !command.team.empty();
    call.target = names_user ? command.user : names_team ? command.team : command.project;
  }
  void operator()(const model::SetBudget& command) const {
    call.action = AuditAction::kSetBudget;
    call.target = command.key.name;
  }
  void operator()(const model::OverrideBudget& command) const {
    call.action = AuditAction::kOverrideBudget;
    call.target = command.key.name;
  }
  void operator()(const model::RemoveBudget& command) const {
    call.action = AuditAction::kRemoveBudget;
    call.target = command.key.name;
  }
  void operator()(const model::RecordTokenUse&) const {}
  void operator()(const model::RecordStep&) const {}
  void operator()(const model::RecordCalls&) const {}
};

bool is_about_jobs(AuditAction action) {
  return action <= AuditAction::kUpdate || action == AuditAction::kTop ||
         action == AuditAction::kSignal;
}

struct TouchedJobs {
  std::string user;
  std::vector<model::JobId> jobs;
};

// Sorts by the owner's uid the jobs that are in the core or have just left it.
std::map<std::uint32_t, TouchedJobs> touched_jobs(const State& state,
                                                  std::span<const model::EventRecord> events,
                                                  std::span<const model::Job> ended) {
  const DepartedJobs departed(ended);
  std::map<std::uint32_t, TouchedJobs> by_owner;
  for (const model::EventRecord& record : events) {
    const model::JobId id = model::job_of(record.event);
    // That a job may be considered again is a consequence of an action and gets no entry.
    if (!id.valid() || std::holds_alternative<model::JobEligible>(record.event)) continue;
    const model::Job* job = find_job(state, id);
    if (job == nullptr) job = departed.find(id);
    if (job == nullptr) continue;
    TouchedJobs& touched = by_owner[job->spec->uid];
    if (touched.jobs.empty()) touched.user = job->spec->user;
    touched.jobs.push_back(id);
  }
  return by_owner;
}

void add_gpus(const State& state, std::span<const model::EventRecord> events, AuditedCall& call) {
  for (const model::EventRecord& record : events) {
    const auto* change = std::get_if<model::TaintChanged>(&record.event);
    if (change == nullptr || !change->gpu) continue;
    if (++call.gpu_count > model::kMaxAuditedGpus) continue;
    const model::Node* node = state.nodes.find(change->node.value);
    call.target = node->name;
    call.gpus.push_back(fmt::format("{}:{}", node->name, *change->gpu));
  }
}

// An entry for each token that came or ended.
Events trail_of_tokens(const AuditedCall& call, std::span<const model::EventRecord> events) {
  Events trail;
  const auto add = [&](const std::string& name, const model::JobOwner& owner) {
    AuditedCall of_token = call;
    of_token.target = name;
    of_token.owner = owner;
    trail.push_back(model::CallAudited{std::move(of_token)});
  };
  for (const model::EventRecord& record : events) {
    if (const auto* made = std::get_if<model::TokenCreated>(&record.event)) {
      add(made->token.name, {made->token.user, made->token.uid});
    } else if (const auto* ended = std::get_if<model::TokenRevoked>(&record.event)) {
      add(ended->name, ended->owner);
    }
  }
  return trail;
}

}  // namespace

Events judge_trail(const State& state, const model::Command& command,
                   std::span<const model::EventRecord> events, std::span<const model::Job> ended) {
  // A step and the use of a token change nothing but the record of the job or token, which has it.
  const bool says_itself = std::holds_alternative<model::SubmitJob>(command.body) ||
                           std::holds_alternative<model::RecordStep>(command.body) ||
                           std::holds_alternative<model::RecordTokenUse>(command.body) ||
                           std::holds_alternative<model::RecordCalls>(command.body);
  const bool is_known = command.caller.door != model::Door::kNone;
  if (!is_known || says_itself || events.empty()) return {};
  AuditedCall call;
  call.by = origin_of(command.caller);
  std::visit(Describe{call}, command.body);
  if (call.action == AuditAction::kCreateToken || call.action == AuditAction::kRevokeToken) {
    return trail_of_tokens(call, events);
  }
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
