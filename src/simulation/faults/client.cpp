#include "simulation/faults/client.h"

#include <fmt/format.h>

#include "model/job_signal.h"
#include "model/job_spec.h"

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
  model::Command command{{submission.spec.user, submission.spec.uid},
                         model::SubmitJob{.spec = submission.spec,
                                          .environment = submission.environment,
                                          .ended = ended_of(submission.spec.dependencies)}};
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
  Aim aim{*submission.job, {submission.spec.user, submission.spec.uid}};
  aim.whole_array = submission.spec.array && random_.chance(1, 2);
  if (random_.chance(1, 8)) aim.caller = model::root_caller();
  aim.is_other_user = random_.chance(1, 8);
  if (aim.is_other_user) aim.caller = {"eve", 666};
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
  send_change(aim, std::move(update), FaultKind::kUpdated, inputs);
}

void Client::send_change(const Aim& aim, decltype(model::Command::body) what, FaultKind kind,
                         std::vector<controller::Input>& inputs) {
  inputs.emplace_back(controller::CommandInput{
      {aim.caller, std::move(what)}, [this, aim, kind](const base::Result<CommandReply>& reply) {
        if (reply && aim.is_other_user) {
          findings_.violated("stopped", fmt::format("another user changed job {}", aim.job.value));
        }
        if (reply && reply->changed) findings_.count(kind);
      }});
}

void Client::raise(const Aim& aim, std::vector<controller::Input>& inputs) {
  send_change(aim, model::RaiseJob{aim.job, aim.whole_array}, FaultKind::kRaised, inputs);
}

void Client::signal(const Aim& aim, std::vector<controller::Input>& inputs) {
  const std::uint8_t signal = model::kJobSignals[random_.below(model::kJobSignals.size())];
  send_change(aim, model::SignalJob{aim.job, signal, aim.whole_array}, FaultKind::kSignalled,
              inputs);
}

void Client::record_step(const Aim& aim, std::vector<controller::Input>& inputs) {
  const model::Job* job = ledger_.state().jobs.find(aim.job.value);
  if (job == nullptr || job->attempts.empty()) return;
  model::RecordStep report{{job->id, job->attempts.back().number}, {}};
  model::JobStep& step = report.step;
  step.number = static_cast<std::uint32_t>(random_.below(4));
  step.name = "step";
  step.started_at = ledger_.state().at;
  const bool ends = random_.chance(1, 2);
  if (ends) {
    step.ended_at = step.started_at;
    step.exit.code = static_cast<std::uint8_t>(random_.below(3));
  }
  inputs.emplace_back(controller::CommandInput{
      {aim.caller, report}, [this, aim, report, ends](const base::Result<CommandReply>& reply) {
        if (!reply) return;
        if (aim.is_other_user) {
          findings_.violated("stopped", fmt::format("another user changed job {}", aim.job.value));
        }
        if (!reply->changed) return;
        findings_.count(FaultKind::kStepRecorded);
        if (ends) ended_steps_[report.attempt].insert_or_assign(report.step.number, report.step);
      }});
}

void Client::act_on_many(const model::Caller& caller, std::vector<controller::Input>& inputs) {
  constexpr model::JobAction kActions[] = {model::JobAction::kCancel, model::JobAction::kHold,
                                           model::JobAction::kRelease, model::JobAction::kRequeue};
  model::ActOnJobs command;
  command.action = kActions[random_.below(std::size(kActions))];
  command.which.user = caller.user;
  if (caller.reach == model::Reach::kAll) command.which.user.reset();
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
  switch (random_.below(9)) {
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
    case 5:
      return raise(*aim, inputs);
    case 6:
      return signal(*aim, inputs);
    case 7:
      return record_step(*aim, inputs);
    default:
      return act_on_many(aim->caller, inputs);
  }
}

void Client::change_one(JobId job, std::vector<controller::Input>& inputs) {
  std::optional<Aim> aim = aim_at(job);
  if (!aim) return;
  if (random_.chance(1, 4)) aim->caller = model::root_caller();
  switch (random_.below(8)) {
    case 0:
      return act_on(*aim, model::JobAction::kCancel, inputs);
    case 1:
      return act_on(*aim, model::JobAction::kHold, inputs);
    case 2:
      return update(*aim, inputs);
    case 3:
      return signal(*aim, inputs);
    case 4:
      return record_step(*aim, inputs);
    default:
      return requeue(*aim, inputs);
  }
}

void Client::limit_one(JobId job, base::Duration limit, std::vector<controller::Input>& inputs) {
  model::UpdateJob update;
  update.job = job;
  update.to.set(&JobSpec::time_limit, limit);
  inputs.emplace_back(controller::CommandInput{{model::root_caller(), std::move(update)},
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
    return Aim{job, {submission.spec.user, submission.spec.uid}};
  }
  return std::nullopt;
}

// It is judged by the journal at the time when it is sent, except for commands that are sent with
// it.
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
  for (const model::Job& job : ledger_.departed()) {
    check_archived(job, archive);
    check_recorded(job);
  }
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

void Client::check_recorded(const model::Job& job) {
  for (const model::Attempt& attempt : job.attempts) {
    const auto known = ended_steps_.find({job.id, attempt.number});
    if (known == ended_steps_.end()) continue;
    for (const auto& [number, step] : known->second) {
      const model::JobStep* const stored = model::find_step(*attempt.steps, number);
      if (stored != nullptr && *stored == step) continue;
      findings_.violated("recorded", fmt::format("the end of step {} of attempt {} of job {} was "
                                                 "acknowledged and is not on record",
                                                 number, attempt.number, job.id.value));
    }
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
    const Ledger::Job* known = ledger_.find(member);
    if (known != nullptr && known->has_ended) continue;
    findings_.violated("acknowledged",
                       fmt::format("job {} {}", member.value,
                                   known == nullptr ? "does not exist" : "never ended"));
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
