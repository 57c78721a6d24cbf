#include "simulation/faults/client.h"

#include <fmt/format.h>

namespace gpu_platform::simulation {

using model::CommandReply;
using model::JobId;
using model::JobSpec;

void Client::submit_new(std::vector<controller::Input>& inputs) {
  Submission submission;
  submission.spec = draw_submission(random_, setup_, fmt::format("s{}", submissions_.size() + 1));
  if (random_.chance(1, 4)) submission.environment = std::string("SECRET=1\0", 9);
  draw_times(submission.spec.begin, submission.spec.deadline);
  if (random_.chance(1, 8)) {
    findings_.count(FaultKind::kWaitTimeout);
    submission.spec.wait_timeout = base::seconds(1 + static_cast<std::int64_t>(random_.below(600)));
  }
  if (random_.chance(1, 4)) submission.spec.dependencies = draw_dependencies();
  draw_reservation(submission.spec);
  if (submission.spec.array) findings_.count(FaultKind::kArray);
  submissions_.push_back(std::move(submission));
  send(submissions_.size() - 1, inputs);
}

// Only with a request id: without one, a second submission is a second job by right.
void Client::submit_again(std::vector<controller::Input>& inputs) {
  if (submissions_.empty()) return;
  const std::size_t index = random_.below(submissions_.size());
  if (!submissions_[index].spec.request_id.empty()) send(index, inputs);
}

void Client::submit_unanswered(std::vector<controller::Input>& inputs) {
  for (std::size_t i = 0; i < submissions_.size(); ++i) {
    const Submission& submission = submissions_[i];
    if (submission.spec.request_id.empty() || submission.job || submission.is_refused) continue;
    send(i, inputs);
  }
}

void Client::send(std::size_t index, std::vector<controller::Input>& inputs) {
  Submission& submission = submissions_[index];
  submission.is_refused = false;  // until the new answer comes
  model::Command command{{submission.spec.user, submission.spec.uid, false},
                         model::SubmitJob{submission.spec, submission.environment, false, false,
                                          ended_of(submission.spec.dependencies)}};
  inputs.emplace_back(controller::CommandInput{
      std::move(command),
      [this, index](const base::Result<CommandReply>& reply) { answered(index, reply); }});
}

void Client::answered(std::size_t index, const base::Result<CommandReply>& reply) {
  Submission& submission = submissions_[index];
  if (!reply) {
    // A repeat of what was accepted is never refused.
    if (submission.job) {
      findings_.violated(
          "request-id",
          fmt::format("submission {} became job {} and is refused when repeated: {}",
                      submission.spec.name, submission.job->value, reply.error().message));
    }
    submission.is_refused = true;
    return;
  }
  if (submission.job && *submission.job != reply->job) {
    findings_.violated("request-id",
                       fmt::format("submission {} was answered with jobs {} and {}",
                                   submission.spec.name, submission.job->value, reply->job.value));
  }
  if (journal_.headroom() != store::Headroom::kAmple && reply->changed) {
    findings_.violated(
        "disk-full", fmt::format("job {} was accepted while the disk was full", reply->job.value));
  }
  submission.job = reply->job;
  submission.is_refused = false;
}

std::optional<Client::Aim> Client::draw_aim() {
  if (submissions_.empty()) return std::nullopt;
  const Submission& submission = submissions_[random_.below(submissions_.size())];
  if (!submission.job) return std::nullopt;
  Aim aim{*submission.job, {submission.spec.user, submission.spec.uid, false}};
  aim.whole_array = submission.spec.array && random_.chance(1, 2);
  if (random_.chance(1, 8)) aim.caller = {"root", 0, true};
  aim.is_other_user = random_.chance(1, 8);
  if (aim.is_other_user) aim.caller = {"eve", 666, false};
  return aim;
}

void Client::stop_some(std::vector<controller::Input>& inputs) {
  const std::optional<Aim> aim = draw_aim();
  if (!aim) return;
  const bool kills = random_.chance(1, 3);
  act_on(*aim, kills ? model::JobAction::kKill : model::JobAction::kCancel, inputs);
}

void Client::act_on(const Aim& aim, model::JobAction action,
                    std::vector<controller::Input>& inputs) {
  const bool stops = action == model::JobAction::kKill || action == model::JobAction::kCancel;
  inputs.emplace_back(controller::CommandInput{
      {aim.caller, model::ActOnJob{aim.job, action, aim.whole_array}},
      [this, aim, stops](const base::Result<CommandReply>& reply) {
        if (reply && aim.is_other_user) {
          findings_.violated("stopped", fmt::format("another user changed job {}", aim.job.value));
        }
        if (reply && stops) note_stopped(aim, *reply);
      }});
}

void Client::update(const Aim& aim, std::vector<controller::Input>& inputs) {
  model::UpdateJob update;
  update.job = aim.job;
  update.whole_array = aim.whole_array;
  if (random_.chance(1, 2)) {
    update.to.set(&JobSpec::priority,
                  model::priority_of_number(static_cast<std::uint8_t>(random_.below(10))));
  }
  if (random_.chance(2, 3)) {
    update.to.set(&JobSpec::time_limit,
                  base::seconds(static_cast<std::int64_t>(1 + random_.below(1200))));
  }
  if (random_.chance(1, 4)) update.to.set(&JobSpec::preemptible, random_.chance(1, 2));
  if (random_.chance(1, 2)) change_start_conditions(update);
  if (random_.chance(1, 3)) {
    update.to.set(&JobSpec::labels, {{"changed", fmt::format("{}", random_.below(3))}});
  }
  inputs.emplace_back(controller::CommandInput{
      {aim.caller, std::move(update)}, [this, aim](const base::Result<CommandReply>& reply) {
        if (reply && aim.is_other_user) {
          findings_.violated("stopped", fmt::format("another user changed job {}", aim.job.value));
        }
        if (reply && reply->changed) findings_.count(FaultKind::kUpdated);
      }});
}

void Client::act_on_many(const model::Caller& caller, std::vector<controller::Input>& inputs) {
  constexpr model::JobAction kActions[] = {model::JobAction::kCancel, model::JobAction::kHold,
                                           model::JobAction::kRelease, model::JobAction::kRequeue};
  model::ActOnJobs command;
  command.action = kActions[random_.below(std::size(kActions))];
  command.which.user = caller.user;
  if (caller.is_administrator) command.which.user.reset();
  if (random_.chance(1, 2)) {
    command.which.states.push_back(random_.chance(1, 2) ? model::JobState::kQueued
                                                        : model::JobState::kRunning);
  }
  if (random_.chance(1, 2)) command.which.name = "s1*";
  command.dry_run = random_.chance(1, 4);
  findings_.count(FaultKind::kBulk);
  const bool stops = command.action == model::JobAction::kCancel && !command.dry_run;
  inputs.emplace_back(controller::CommandInput{
      {caller, std::move(command)}, [this, stops](const base::Result<CommandReply>& reply) {
        if (!reply || !stops) return;
        for (const model::JobOutcome& outcome : reply->jobs) {
          if (outcome.changed) stopped_.push_back(outcome.job);
        }
      }});
}

void Client::change_some(std::vector<controller::Input>& inputs) {
  const std::optional<Aim> aim = draw_aim();
  if (!aim) return;
  switch (random_.below(6)) {
    case 0:
      findings_.count(FaultKind::kHeld);
      return act_on(*aim, model::JobAction::kHold, inputs);
    case 1:
      return act_on(*aim, model::JobAction::kRelease, inputs);
    case 2:
    case 3:
      return requeue(*aim, inputs);
    case 4:
      return update(*aim, inputs);
    default:
      return act_on_many(aim->caller, inputs);
  }
}

void Client::change_one(JobId job, std::vector<controller::Input>& inputs) {
  std::optional<Aim> aim = aim_at(job);
  if (!aim) return;
  if (random_.chance(1, 4)) aim->caller = {"root", 0, true};
  switch (random_.below(6)) {
    case 0:
      return act_on(*aim, model::JobAction::kCancel, inputs);
    case 1:
      return act_on(*aim, model::JobAction::kHold, inputs);
    case 2:
      return update(*aim, inputs);
    default:
      return requeue(*aim, inputs);
  }
}

void Client::limit_one(JobId job, base::Duration limit, std::vector<controller::Input>& inputs) {
  model::UpdateJob update;
  update.job = job;
  update.to.set(&JobSpec::time_limit, limit);
  inputs.emplace_back(controller::CommandInput{{{"root", 0, true}, std::move(update)},
                                               [this](const base::Result<CommandReply>& reply) {
                                                 if (reply && reply->changed)
                                                   findings_.count(FaultKind::kUpdated);
                                               }});
}

// By its owner, one member alone where it is an array's.
std::optional<Client::Aim> Client::aim_at(JobId job) const {
  for (const Submission& submission : submissions_) {
    if (!submission.job || job < *submission.job) continue;
    if (job.value >= submission.job->value + members_of(*submission.job)) continue;
    return Aim{job, {submission.spec.user, submission.spec.uid, false}};
  }
  return std::nullopt;
}

// What the journal says when it is sent is what it is judged by, but for commands sent with it.
void Client::requeue(const Aim& aim, std::vector<controller::Input>& inputs) {
  findings_.count(FaultKind::kRequeued);
  const bool holds = random_.chance(1, 2);
  const auto action = holds ? model::JobAction::kRequeueAndHold : model::JobAction::kRequeue;
  const Ledger::Job* known = ledger_.find(aim.job);
  const std::uint32_t attempts = known == nullptr ? 0 : known->attempts;
  inputs.emplace_back(controller::CommandInput{
      {aim.caller, model::ActOnJob{aim.job, action, aim.whole_array}},
      [this, aim, attempts](const base::Result<CommandReply>& reply) {
        if (!reply) return;
        if (aim.is_other_user) {
          findings_.violated("stopped", fmt::format("another user changed job {}", aim.job.value));
        }
        if (!aim.whole_array) requeued_.emplace_back(aim.job, attempts);
      }});
}

void Client::check_requeued(JobId job, std::uint32_t attempts) {
  const Ledger::Job* known = ledger_.find(job);
  if (known == nullptr || known->attempts > attempts || known->may_end(known->how)) return;
  findings_.violated("requeued",
                     fmt::format("job {} was queued again after {} attempts, and ended {} without "
                                 "another one",
                                 job.value, attempts, to_string(state_after(known->how))));
}

void Client::check_end(const store::Archive& archive) {
  for (const Submission& submission : submissions_) check_submission(submission);
  for (const JobId job : stopped_) {
    const Ledger::Job* known = ledger_.find(job);
    if (known == nullptr || known->how != model::JobTrigger::kCancel) {
      findings_.violated("stopped",
                         fmt::format("job {} was stopped, and did not end CANCELLED", job.value));
    }
  }
  for (const auto& [job, attempts] : requeued_) check_requeued(job, attempts);
  for (const model::Job& job : ledger_.departed()) check_archived(job, archive);
  check_audit(archive);
}

void Client::check_audit(const store::Archive& archive) {
  model::AuditQuery query;
  query.limit = query.max_looked_at = SIZE_MAX;
  auto page = archive.audit(query);
  if (page) std::ranges::reverse(page->entries);
  if (!page || page->entries != ledger_.audit()) {
    findings_.violated("audited", "the audit trail is not what the journal says");
  }
}

void Client::check_submission(const Submission& submission) {
  const JobId job = ledger_.job_of(submission.spec.name);
  if (submission.job && job != *submission.job) {
    findings_.violated("acknowledged",
                       fmt::format("submission {} was acknowledged as job {}, which does not exist",
                                   submission.spec.name, submission.job->value));
  }
  if (submission.is_refused && job.valid()) {
    findings_.violated("refused", fmt::format("submission {} was refused and became job {}",
                                              submission.spec.name, job.value));
  }
  if (!job.valid()) return;
  for (std::uint64_t position = 0; position < members_of(job); ++position) {
    const JobId member(job.value + position);
    if (ledger_.find(member)->has_ended) continue;
    findings_.violated("acknowledged", fmt::format("job {} never ended", member.value));
  }
}

void Client::check_archived(const model::Job& job, const store::Archive& archive) {
  const auto stored = archive.find(job.id);
  if (!stored || !*stored) {
    findings_.violated("archived", fmt::format("job {} is not in the archive", job.id.value));
  } else if (**stored != job) {
    findings_.violated(
        "archived", fmt::format("job {} is not in the archive as it left the core", job.id.value));
  }
}

}  // namespace gpu_platform::simulation
