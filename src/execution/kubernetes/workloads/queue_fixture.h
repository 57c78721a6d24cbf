#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "execution/kubernetes/workloads/jobs.h"
#include "model/job_spec.h"

// What the queue of workloads of others reads, for tests.

namespace gpu_platform::execution {

inline constexpr const char* kQueuedKey = "ml/Job/train/uid-train";

struct QueuedFacts : WorkloadFacts {
  std::map<std::uint64_t, model::Job> jobs;
  std::vector<model::Node> nodes;
  WorkloadWait wait;  // of every job
  model::PriorityClass highest = model::PriorityClass::kHigh;

  void put(std::uint64_t id, const std::string& key, model::JobState state,
           std::string detail = {}) {
    auto spec = std::make_shared<model::JobSpec>();
    spec->workload = key;
    model::Job& job = jobs[id];
    job.id = model::JobId(id);
    job.spec = std::move(spec);
    job.state = state;
    job.detail = std::move(detail);
  }

  void for_each_job(const std::function<void(const model::Job&)>& visit) const override {
    for (const auto& [id, job] : jobs) visit(job);
  }
  void for_each_node(const std::function<void(const model::Node&)>& visit) const override {
    for (const model::Node& node : nodes) visit(node);
  }
  std::optional<model::Job> job(model::JobId id) const override {
    const auto found = jobs.find(id.value);
    return found == jobs.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<WorkloadWait> waits_of(const std::vector<const model::Job*>& waiting) const override {
    return std::vector<WorkloadWait>(waiting.size(), wait);
  }
  model::PriorityClass highest_user_priority() const override { return highest; }
};

inline WorkloadSubmission queued_submission(const std::string& key = kQueuedKey) {
  WorkloadSubmission submission;
  submission.key = key;
  submission.user = "ada";
  submission.spec.workload = key;
  return submission;
}

// The core has made the job.
inline model::CommandReply accepted(std::uint64_t id) {
  model::CommandReply reply;
  reply.job = model::JobId(id);
  return reply;
}
// The job has the same request id.
inline model::CommandReply repeated(std::uint64_t id) {
  model::CommandReply reply = accepted(id);
  reply.changed = false;
  return reply;
}

inline model::Node queued_node(std::uint64_t id, std::string name) {
  model::Node node;
  node.id = model::NodeId(id);
  node.name = std::move(name);
  return node;
}

}  // namespace gpu_platform::execution
