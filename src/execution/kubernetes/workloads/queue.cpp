#include "execution/kubernetes/workloads/queue.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace gpu_platform::execution {

namespace {

// How jobs stand is told no more often.
constexpr std::chrono::milliseconds kExaminePause{500};

}  // namespace

void WorkloadQueue::Mailbox::post(Message message) {
  const std::lock_guard lock(mutex);
  messages.push_back(std::move(message));
  wake.notify_all();
}

WorkloadQueue::WorkloadQueue(WorkloadUsers& users, model::UserRange range)
    : users_(users), jobs_(std::move(range)) {}

WorkloadQueue::~WorkloadQueue() {
  stop();
}

void WorkloadQueue::start(std::shared_ptr<const WorkloadFacts> facts, WorkloadQueueLinks links) {
  links_ = std::move(links);
  jobs_.begin(*facts);
  {
    const std::lock_guard lock(mailbox_->mutex);
    if (mailbox_->facts == nullptr) mailbox_->facts = std::move(facts);
    mailbox_->is_new = true;
  }
  thread_ = std::thread([this] { run(); });
}

void WorkloadQueue::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mailbox_->mutex);
    mailbox_->is_stopping = true;
  }
  mailbox_->wake.notify_all();
  thread_.join();
}

void WorkloadQueue::submit(WorkloadSubmission submission) {
  mailbox_->post(std::move(submission));
}

void WorkloadQueue::withdraw(std::string key, std::string_view why) {
  mailbox_->post(Withdrawal{std::move(key), std::string(why)});
}

void WorkloadQueue::publish(std::shared_ptr<const WorkloadFacts> facts) {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->facts = std::move(facts);
  mailbox_->is_new = true;
  mailbox_->wake.notify_all();
}

void WorkloadQueue::run() {
  std::chrono::steady_clock::time_point examined;
  bool is_due = true;
  while (true) {
    std::deque<Message> messages;
    {
      std::unique_lock lock(mailbox_->mutex);
      const auto has_work = [&] {
        return mailbox_->is_stopping || mailbox_->is_new || !mailbox_->messages.empty();
      };
      if (!is_due) mailbox_->wake.wait(lock, has_work);
      is_due = is_due || mailbox_->is_new;
      // News of jobs may wait a little; what the engine and the core say does not.
      const auto is_urgent = [&] { return mailbox_->is_stopping || !mailbox_->messages.empty(); };
      mailbox_->wake.wait_until(lock, examined + kExaminePause, is_urgent);
      if (mailbox_->is_stopping) return;
      mailbox_->is_new = false;
      messages.swap(mailbox_->messages);
      facts_ = mailbox_->facts;
    }
    for (Message& message : messages) {
      std::visit([this](auto& each) { on(each); }, message);
      do_what_is_due();
    }
    const auto now = std::chrono::steady_clock::now();
    if (messages.empty() && now < examined + kExaminePause) continue;
    jobs_.examine(*facts_);
    do_what_is_due();
    examined = now;
    is_due = false;
  }
}

void WorkloadQueue::on(WorkloadSubmission& submission) {
  jobs_.submit(std::move(submission));
}

void WorkloadQueue::on(Withdrawal& withdrawal) {
  jobs_.withdraw(withdrawal.key, std::move(withdrawal.why));
}

void WorkloadQueue::on(UserFound& found) {
  jobs_.found(std::move(found.submission), found.user, *facts_);
}

void WorkloadQueue::on(Answered& answered) {
  jobs_.answered(std::move(answered.submitted), answered.reply, *facts_);
}

void WorkloadQueue::do_what_is_due() {
  for (WorkloadSubmission& each : jobs_.take_lookups()) look_up(std::move(each));
  for (model::SubmitJob& each : jobs_.take_submissions()) send(std::move(each));
  for (WorkloadJobs::Cancellation& each : jobs_.take_cancellations()) send(std::move(each));
  for (WorkloadNews& each : jobs_.take_news()) links_.tell(std::move(each));
}

void WorkloadQueue::look_up(WorkloadSubmission submission) {
  const std::string user = submission.user;
  users_.find(user, [box = std::weak_ptr(mailbox_),
                     submission = std::move(submission)](base::Result<WorkloadUser> found) {
    if (const auto open = box.lock()) open->post(UserFound{submission, std::move(found)});
  });
}

void WorkloadQueue::send(model::SubmitJob submission) {
  model::Command command{model::root_caller(), submission};
  links_.command(std::move(command),
                 [box = std::weak_ptr(mailbox_), submission = std::move(submission)](
                     const base::Result<model::CommandReply>& reply) {
                   if (const auto open = box.lock()) open->post(Answered{submission, reply});
                 });
}

void WorkloadQueue::send(WorkloadJobs::Cancellation cancellation) {
  links_.command({model::root_caller(), std::move(cancellation.action)},
                 [key = std::move(cancellation.key),
                  warn = links_.warn](const base::Result<model::CommandReply>& reply) {
                   if (reply) return;
                   warn(fmt::format("workload=\"{}\" its job cannot be cancelled: {}", key,
                                    reply.error().message));
                 });
}

}  // namespace gpu_platform::execution
