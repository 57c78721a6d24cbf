#include "bin/workload_queue.h"

#include <chrono>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "base/utc.h"
#include "model/states.h"
#include "model/wait_reason.h"
#include "views/planned_starts.h"
#include "views/wait_explainer.h"

namespace gpu_platform::bin {

namespace {

using execution::WorkloadNews;
using State = execution::WorkloadNews::State;

// How jobs stand is told no more often.
constexpr std::chrono::milliseconds kExaminePause{500};

// "NO_CAPACITY" as conditions have it: "NoCapacity".
std::string in_camel_case(std::string_view code) {
  std::string out;
  bool is_first = true;
  for (const char c : code) {
    if (c == '_') {
      is_first = true;
      continue;
    }
    out.push_back(is_first || c < 'A' || c > 'Z' ? c : static_cast<char>(c - 'A' + 'a'));
    is_first = false;
  }
  return out;
}

// To the minute, up: a condition is not to change with every second.
std::string minute_text(base::Instant at) {
  constexpr std::int64_t kMinute = base::minutes(1).value();
  return base::utc(base::Instant((at.unix_ns() + kMinute - 1) / kMinute * kMinute));
}

std::string start_text(const model::Job& job, const views::PlannedStarts& planned) {
  const bool is_predicted = job.prediction && job.prediction->p50.is_set();
  std::string text;
  if (is_predicted) text = fmt::format("; predicted start {}", minute_text(job.prediction->p50));
  const auto plan = planned.find(job.id);
  if (plan == planned.end() || !plan->second.is_set()) return text;
  return fmt::format("{}{} {}", text, is_predicted ? ", at the latest" : "; starts at the latest",
                     minute_text(plan->second));
}

std::string ended_text(const model::Job& job) {
  if (job.state == model::JobState::kTimedOut) {
    return fmt::format("its job {} has had its time", job.id.value);
  }
  return fmt::format("its job {} was cancelled", job.id.value);
}

// Whether no further pod of its workload may start. The pods of one that was suspended come again
// when it is resumed, and are its next job.
bool is_stopped_for_good(const model::Job& job) {
  if (job.detail == execution::kWorkloadSuspended) return false;
  return job.state == model::JobState::kCancelled || job.state == model::JobState::kTimedOut;
}

// The pods of such a workload have no owner who makes new ones: pods that come later under its name
// are another workload.
bool is_without_owner(std::string_view key) {
  return key.ends_with('/');
}

WorkloadNews news_of_end(const std::string& key, const model::Job& job) {
  const bool is_stopped = is_stopped_for_good(job);
  return {key, is_stopped ? State::kCancelled : State::kEnded, job.id, {}, ended_text(job)};
}

WorkloadNews news_of_active(const std::string& key, const model::Job& job) {
  return {key,
          State::kActive,
          job.id,
          {},
          fmt::format("its job {} is {}; a pod is admitted when the job has a place for it",
                      job.id.value, to_string(job.state))};
}

}  // namespace

void WorkloadQueue::Mailbox::post(Message message) {
  const std::lock_guard lock(mutex);
  messages.push_back(std::move(message));
  wake.notify_all();
}

WorkloadQueue::WorkloadQueue(std::shared_ptr<host::UserDirectory> users, model::UserRange range,
                             const store::Archive& archive)
    : users_(std::move(users)), range_(std::move(range)), archive_(archive) {}

WorkloadQueue::~WorkloadQueue() {
  stop();
}

void WorkloadQueue::start(std::shared_ptr<const controller::Snapshot> snapshot, Command command,
                          Tell tell) {
  command_ = std::move(command);
  tell_ = std::move(tell);
  snapshot->jobs.for_each([this](std::uint64_t, const model::Job& job) {
    if (job.spec->workload.empty() || model::is_ended(job.state)) return;
    known_[job.spec->workload] = {job.id, {}};
  });
  {
    const std::lock_guard lock(mailbox_->mutex);
    if (mailbox_->snapshot == nullptr) mailbox_->snapshot = std::move(snapshot);
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

void WorkloadQueue::submit(execution::WorkloadSubmission submission) {
  mailbox_->post(std::move(submission));
}

void WorkloadQueue::withdraw(std::string key, std::string_view why) {
  mailbox_->post(Withdrawal{std::move(key), std::string(why)});
}

void WorkloadQueue::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                              std::span<const model::EventRecord>,
                              const controller::DepartedJobs&) {
  const std::lock_guard lock(mailbox_->mutex);
  mailbox_->snapshot = snapshot;
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
      snapshot_ = mailbox_->snapshot;
    }
    for (Message& message : messages) take(message);
    const auto now = std::chrono::steady_clock::now();
    if (messages.empty() && now < examined + kExaminePause) continue;
    examine();
    examined = now;
    is_due = false;
  }
}

void WorkloadQueue::take(Message& message) {
  std::visit([this](auto& each) { on(each); }, message);
}

std::optional<model::Job> WorkloadQueue::job_of(model::JobId id) const {
  if (const model::Job* job = snapshot_->jobs.find(id.value)) return *job;
  auto stored = archive_.find(id);
  return stored ? std::move(*stored) : std::nullopt;
}

void WorkloadQueue::on(execution::WorkloadSubmission& submission) {
  const auto known = known_.find(submission.key);
  if (known != known_.end()) {
    known->second.told.reset();  // it has not heard of it, or has forgotten
    return;
  }
  std::string user = submission.user;
  users_->find(user, 0,
               [box = std::weak_ptr(mailbox_),
                submission = std::move(submission)](base::Result<host::User> found) {
                 if (const auto open = box.lock()) {
                   open->post(UserFound{submission, std::move(found)});
                 }
               });
}

void WorkloadQueue::on(UserFound& found) {
  const std::string& key = found.submission.key;
  if (!found.user) {
    const base::Error& error = found.user.error();
    const bool names_the_user = error.code == base::ErrorCode::kNotFound;
    return refuse(key, names_the_user
                           ? error.message
                           : fmt::format("user {}: {}", found.submission.user, error.message));
  }
  // It is submitted with root's rights; what a user may ask for is the same by either way.
  const model::PriorityClass highest = snapshot_->policy->highest_user_priority;
  const model::PriorityClass asked = found.submission.spec.priority.priority_class;
  if (asked < highest) {
    return refuse(key, fmt::format("the annotation gpu-platform/priority asks for {}; the highest "
                                   "for users here is {} (policies.highest_user_priority)",
                                   to_string(asked), to_string(highest)));
  }
  if (const std::string why = model::objection_to_user(found.user->uid, range_); !why.empty()) {
    return refuse(key, fmt::format("user {} may have no jobs: {}", found.user->name, why));
  }
  model::SubmitJob job;
  job.spec = std::move(found.submission.spec);
  job.spec.user = found.user->name;
  job.spec.uid = found.user->uid;
  job.spec.gid = found.user->gid;
  job.spec.team = found.submission.team;
  job.spec.request_id = key;
  job.spec.request.nodelist = ids_of(found.submission.nodes);
  send(std::move(job));
}

// Ascending. Nodes that the core does not know yet are left out.
std::vector<model::NodeId> WorkloadQueue::ids_of(const std::vector<std::string>& names) const {
  const std::set<std::string> wanted(names.begin(), names.end());
  std::vector<model::NodeId> ids;
  if (wanted.empty()) return ids;
  snapshot_->nodes.for_each([&](std::uint64_t id, const model::Node& node) {
    if (wanted.contains(node.name)) ids.push_back(model::NodeId(id));
  });
  return ids;
}

void WorkloadQueue::send(model::SubmitJob submission) {
  model::Command command{model::root_caller(), submission};
  command_(std::move(command), [box = std::weak_ptr(mailbox_), submission = std::move(submission)](
                                   const base::Result<model::CommandReply>& reply) {
    if (const auto open = box.lock()) open->post(Answered{submission, reply});
  });
}

void WorkloadQueue::on(Answered& answered) {
  model::JobSpec& spec = answered.submitted.spec;
  const std::string key = spec.workload;
  if (!answered.reply) return refuse(key, answered.reply.error().message);
  const model::JobId id = answered.reply->job;
  const std::optional<model::Job> job = job_of(id);
  // A job that a user has given the same request id stands for nothing.
  const bool is_its = job && job->spec->workload == key;
  const bool is_live = answered.reply->changed || (is_its && !model::is_ended(job->state));
  if (is_live) {
    known_[key] = {id, {}};
    return;
  }
  if (is_its && is_stopped_for_good(*job) && !is_without_owner(key)) {
    return tell(news_of_end(key, *job));
  }
  // An earlier job of the workload has come to its end: these pods are the next.
  spec.request_id = fmt::format("{}#{}", key, id.value);
  send(std::move(answered.submitted));
}

void WorkloadQueue::on(Withdrawal& withdrawal) {
  const auto known = known_.find(withdrawal.key);
  if (known == known_.end()) return;
  model::ActOnJob cancel;
  cancel.job = known->second.job;
  cancel.detail = withdrawal.why;
  command_({model::root_caller(), std::move(cancel)},
           [key = withdrawal.key](const base::Result<model::CommandReply>& reply) {
             if (!reply) {
               spdlog::warn("workload=\"{}\" its job cannot be cancelled: {}", key,
                            reply.error().message);
             }
           });
}

void WorkloadQueue::refuse(const std::string& key, std::string why) {
  tell({key, State::kRefused, {}, {}, std::move(why)});
}

void WorkloadQueue::tell(WorkloadNews news) {
  tell_(std::move(news));
}

// Tells of each job of a workload what is new.
void WorkloadQueue::examine() {
  if (known_.empty()) return;
  std::optional<views::WaitExplainer> explainer;
  views::PlannedStarts planned;
  std::vector<std::string> over;
  for (auto& [key, known] : known_) {
    const std::optional<model::Job> job = job_of(known.job);
    WorkloadNews news;
    if (!job) {  // it has left the history
      news = {key, State::kEnded, known.job, {}, {}};
      over.push_back(key);
    } else if (model::is_ended(job->state)) {
      news = news_of_end(key, *job);
      over.push_back(key);
    } else if (model::is_active(job->state)) {
      news = news_of_active(key, *job);
    } else {
      if (!explainer) {
        explainer.emplace(snapshot_);
        planned = views::last_planned_starts(*snapshot_);
      }
      const model::WaitReason reason = explainer->explain(*job);
      news = {
          key, State::kWaiting, job->id, in_camel_case(to_string(reason.code)),
          fmt::format("job {}: {}{}", job->id.value, describe(reason), start_text(*job, planned))};
    }
    const auto& told = known.told;
    const bool is_same = told && told->state == news.state && told->reason == news.reason &&
                         told->text == news.text && told->job == news.job;
    if (is_same) continue;
    known.told = news;
    tell(std::move(news));
  }
  for (const std::string& key : over) known_.erase(key);
}

}  // namespace gpu_platform::bin
