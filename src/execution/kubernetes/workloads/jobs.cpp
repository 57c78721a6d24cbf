#include "execution/kubernetes/workloads/jobs.h"

#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/utc.h"
#include "model/job_spec.h"

namespace gpu_platform::execution {

namespace {

using State = WorkloadNews::State;

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

std::string start_text(const model::Job& job, base::Instant latest) {
  const bool is_predicted = job.prediction && job.prediction->p50.is_set();
  std::string text;
  if (is_predicted) text = fmt::format("; predicted start {}", minute_text(job.prediction->p50));
  if (!latest.is_set()) return text;
  return fmt::format("{}{} {}", text, is_predicted ? ", at the latest" : "; starts at the latest",
                     minute_text(latest));
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
  if (job.detail == kWorkloadSuspended) return false;
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

WorkloadNews news_of_wait(const std::string& key, const model::Job& job, const WorkloadWait& wait) {
  return {key, State::kWaiting, job.id, in_camel_case(to_string(wait.reason.code)),
          fmt::format("job {}: {}{}", job.id.value, describe(wait.reason),
                      start_text(job, wait.latest_start))};
}

bool is_same(const WorkloadNews& a, const WorkloadNews& b) {
  return a.state == b.state && a.reason == b.reason && a.text == b.text && a.job == b.job;
}

bool is_waiting(const model::Job& job) {
  return !model::is_ended(job.state) && !model::is_active(job.state);
}

// Ascending. Nodes that the core does not know yet are left out.
std::vector<model::NodeId> ids_of(const std::vector<std::string>& names,
                                  const WorkloadFacts& facts) {
  const std::set<std::string> wanted(names.begin(), names.end());
  std::vector<model::NodeId> ids;
  if (wanted.empty()) return ids;
  facts.for_each_node([&](const model::Node& node) {
    if (wanted.contains(node.name)) ids.push_back(node.id);
  });
  return ids;
}

}  // namespace

void WorkloadJobs::begin(const WorkloadFacts& facts) {
  facts.for_each_job([this](const model::Job& job) {
    if (job.spec->workload.empty() || model::is_ended(job.state)) return;
    known_[job.spec->workload] = {job.id, {}};
  });
}

void WorkloadJobs::submit(WorkloadSubmission submission) {
  const auto known = known_.find(submission.key);
  if (known == known_.end()) return lookups_.push_back(std::move(submission));
  known->second.told.reset();  // it was not told, or has forgotten
}

// Why the user may not have such a job. It is submitted with root's rights; what a user may ask for
// is the same by either way.
std::string WorkloadJobs::error_of(const WorkloadSubmission& submission, const WorkloadUser& user,
                                   const WorkloadFacts& facts) const {
  const model::PriorityClass highest = facts.highest_user_priority();
  const model::PriorityClass asked = submission.spec.priority.priority_class;
  if (asked < highest) {
    return fmt::format(
        "the annotation gpu-platform/priority asks for {}; the highest "
        "for users here is {} (policies.highest_user_priority)",
        to_string(asked), to_string(highest));
  }
  const std::string why = model::error_in_user(user.uid, range_);
  return why.empty() ? why : fmt::format("user {} may have no jobs: {}", user.name, why);
}

void WorkloadJobs::found(WorkloadSubmission submission, const base::Result<WorkloadUser>& user,
                         const WorkloadFacts& facts) {
  if (!user) {
    const base::Error& error = user.error();
    const bool names_the_user = error.code == base::ErrorCode::kNotFound;
    return refuse(submission.key, names_the_user
                                      ? error.message
                                      : fmt::format("user {}: {}", submission.user, error.message));
  }
  if (std::string why = error_of(submission, *user, facts); !why.empty()) {
    return refuse(submission.key, std::move(why));
  }
  model::SubmitJob job;
  job.spec = std::move(submission.spec);
  job.spec.user = user->name;
  job.spec.uid = user->uid;
  job.spec.gid = user->gid;
  job.spec.team = submission.team;
  job.spec.request_id = submission.key;
  job.spec.request.nodelist = ids_of(submission.nodes, facts);
  submissions_.push_back(std::move(job));
}

void WorkloadJobs::answered(model::SubmitJob submission,
                            const base::Result<model::CommandReply>& reply,
                            const WorkloadFacts& facts) {
  const std::string key = submission.spec.workload;
  if (!reply) return refuse(key, reply.error().message);
  const model::JobId id = reply->job;
  const std::optional<model::Job> job = facts.job(id);
  // A job that a user has given the same request id stands for nothing.
  const bool is_its = job && job->spec->workload == key;
  const bool is_live = reply->changed || (is_its && !model::is_ended(job->state));
  if (is_live) {
    known_[key] = {id, {}};
    return;
  }
  if (is_its && is_stopped_for_good(*job) && !is_without_owner(key)) {
    return news_.push_back(news_of_end(key, *job));
  }
  // An earlier job of the workload has come to its end: these pods are the next.
  submission.spec.request_id = fmt::format("{}#{}", key, id.value);
  submissions_.push_back(std::move(submission));
}

void WorkloadJobs::withdraw(const std::string& key, std::string why) {
  const auto known = known_.find(key);
  if (known == known_.end()) return;
  model::ActOnJob cancel;
  cancel.job = known->second.job;
  cancel.detail = std::move(why);
  cancellations_.push_back({key, std::move(cancel)});
}

void WorkloadJobs::refuse(const std::string& key, std::string why) {
  news_.push_back({key, State::kRefused, {}, {}, std::move(why)});
}

void WorkloadJobs::examine(const WorkloadFacts& facts) {
  std::vector<std::optional<model::Job>> jobs;  // as in known_
  std::vector<const model::Job*> waiting;
  jobs.reserve(known_.size());
  for (const auto& [key, known] : known_) {
    jobs.push_back(facts.job(known.job));
    if (jobs.back() && is_waiting(*jobs.back())) waiting.push_back(&*jobs.back());
  }
  std::vector<WorkloadWait> waits;
  if (!waiting.empty()) waits = facts.waits_of(waiting);
  auto wait = waits.begin();
  auto next = jobs.begin();
  for (auto it = known_.begin(); it != known_.end();) {
    const std::string& key = it->first;
    Known& known = it->second;
    const std::optional<model::Job>& job = *next++;
    const bool is_over = !job || model::is_ended(job->state);
    WorkloadNews news;
    if (!job) {  // it has left the history
      news = {key, State::kEnded, known.job, {}, {}};
    } else if (is_over) {
      news = news_of_end(key, *job);
    } else if (is_waiting(*job)) {
      news = news_of_wait(key, *job, *wait++);
    } else {
      news = news_of_active(key, *job);
    }
    if (!known.told || !is_same(*known.told, news)) {
      known.told = news;
      news_.push_back(std::move(news));
    }
    it = is_over ? known_.erase(it) : std::next(it);
  }
}

std::vector<WorkloadSubmission> WorkloadJobs::take_lookups() {
  return std::exchange(lookups_, {});
}

std::vector<model::SubmitJob> WorkloadJobs::take_submissions() {
  return std::exchange(submissions_, {});
}

std::vector<WorkloadJobs::Cancellation> WorkloadJobs::take_cancellations() {
  return std::exchange(cancellations_, {});
}

std::vector<WorkloadNews> WorkloadJobs::take_news() {
  return std::exchange(news_, {});
}

}  // namespace gpu_platform::execution
