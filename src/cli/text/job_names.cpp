#include "cli/text/job_names.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/percent.h"
#include "cli/text/job_text.h"

namespace gpu_platform::cli {

namespace {

// More jobs are asked for by one list.
constexpr std::size_t kMaxSingleNames = 32;
constexpr std::string_view kNameFields = "id,array_id,array_index";
constexpr std::string_view kActiveJobs =
    "/v1/jobs?all=true&state=STARTING&state=RUNNING&state=STOPPING&state=SUSPENDED"
    "&fields=jobs.id,jobs.array_id,jobs.array_index&limit=10000";

// The end of an attempt that was preempted is "by" a job: "job 20".
constexpr std::string_view kByJob = "job ";

template <class Run>
bool ended_for_job(const Run& run) {
  return run.reason() == v1::END_REASON_PREEMPTED && run.ended_by().starts_with(kByJob);
}

// Calls visit(id) with each id of another job in the message; the id may be changed.
template <class Visit>
void visit_other_jobs(v1::Job& job, Visit&& visit) {
  const auto visit_end = [&](auto& run) {
    if (!ended_for_job(run)) return;
    std::string id = run.ended_by().substr(kByJob.size());
    visit(id);
    run.set_ended_by(std::string(kByJob) + id);
  };
  visit_end(job);
  if (!job.turn_of().empty()) visit(*job.mutable_turn_of());
  if (!job.forecast().after_jobs().empty()) {
    for (std::string& id : *job.mutable_forecast()->mutable_after_jobs()) visit(id);
  }
  for (v1::Attempt& attempt : *job.mutable_attempts()) {
    visit_end(attempt);
    if (!attempt.passed().empty()) visit(*attempt.mutable_passed());
    for (std::string& id : *attempt.mutable_preempted_jobs()) visit(id);
  }
}

}  // namespace

JobLabels job_names(Client& client, const std::set<std::string>& ids) {
  JobLabels names;
  const auto take = [&](const v1::Job& job) {
    if (ids.contains(job.id())) names[job.id()] = shown_id(job);
  };
  if (ids.size() > kMaxSingleNames) {
    const auto list = client.ask<v1::ListJobsResponse>(std::string(kActiveJobs), "a list");
    if (!list) return names;
    for (const v1::Job& job : list->jobs()) take(job);
    return names;
  }
  for (const std::string& id : ids) {
    const auto job = client.ask<v1::Job>(
        fmt::format("/v1/jobs/{}?fields={}", base::percent_encoded(id), kNameFields), "a job");
    if (job) take(*job);
  }
  return names;
}

JobLabels job_labels(Client& client) {
  JobLabels labels;
  const auto list = client.ask<v1::ListJobsResponse>(
      "/v1/jobs?all=true&state=STARTING&state=RUNNING&state=STOPPING&state=SUSPENDED"
      "&fields=jobs.id,jobs.array_id,jobs.array_index,jobs.spec.user&limit=10000",
      "a list");
  if (!list) return labels;
  for (const v1::Job& job : list->jobs()) {
    const std::string& user = job.spec().user();
    labels[job.id()] = user.empty() ? shown_id(job) : shown_id(job) + " " + user;
  }
  return labels;
}

const std::string& label_of(const JobLabels& labels, const std::string& id) {
  const auto found = labels.find(id);
  return found == labels.end() ? id : found->second;
}

void name_other_jobs(Client& client, v1::Job& job) {
  std::set<std::string> ids;
  visit_other_jobs(job, [&](std::string& id) { ids.insert(id); });
  if (ids.empty()) return;
  const JobLabels names = job_names(client, ids);
  visit_other_jobs(job, [&](std::string& id) { id = std::string(label_of(names, id)); });
}

}  // namespace gpu_platform::cli
