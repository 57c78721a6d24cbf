#include "simulation/faults/client.h"

#include <fmt/format.h>

namespace gpu_platform::simulation {

using model::CommandReply;
using model::JobId;

void Client::submit_new(std::vector<controller::Input>& inputs) {
  Submission submission;
  submission.spec = draw_submission(random_, setup_, fmt::format("s{}", submissions_.size() + 1));
  if (random_.chance(1, 4)) submission.environment = std::string("SECRET=1\0", 9);
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
                         model::SubmitJob{submission.spec, submission.environment}};
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
  if (journal_.room() != store::Room::kAmple && reply->changed) {
    findings_.violated(
        "disk-full", fmt::format("job {} was accepted while the disk was full", reply->job.value));
  }
  submission.job = reply->job;
  submission.is_refused = false;
}

void Client::stop_some(std::vector<controller::Input>& inputs) {
  if (submissions_.empty()) return;
  const Submission& submission = submissions_[random_.below(submissions_.size())];
  if (!submission.job) return;
  model::Caller caller{submission.spec.user, submission.spec.uid, false};
  if (random_.chance(1, 8)) caller = {"root", 0, true};
  const bool is_stranger = random_.chance(1, 8);
  if (is_stranger) caller = {"eve", 666, false};
  const JobId job = *submission.job;
  model::Command command{caller, model::StopJob{job, random_.chance(1, 3)}};
  inputs.emplace_back(controller::CommandInput{
      std::move(command), [this, job, is_stranger](const base::Result<CommandReply>& reply) {
        if (reply && is_stranger) {
          findings_.violated("stopped", fmt::format("a stranger stopped job {}", job.value));
        }
        if (reply && reply->changed) stopped_.push_back(job);
      }});
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
  for (const model::Job& job : ledger_.departed()) check_archived(job, archive);
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
  if (!ledger_.find(job)->has_ended) {
    findings_.violated("acknowledged", fmt::format("job {} never ended", job.value));
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
