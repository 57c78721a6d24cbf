#include "bin/workload_queue.h"

#include <optional>
#include <utility>
#include <vector>

#include <spdlog/spdlog.h>

#include "views/planned_starts.h"
#include "views/wait_explainer.h"

namespace gpu_platform::bin {

namespace {

// A snapshot, and behind it the archive.
class SnapshotFacts : public execution::WorkloadFacts {
 public:
  SnapshotFacts(std::shared_ptr<const controller::Snapshot> snapshot, const store::Archive& archive)
      : snapshot_(std::move(snapshot)), archive_(archive) {}

  void for_each_job(const std::function<void(const model::Job&)>& visit) const override {
    snapshot_->jobs.for_each([&](std::uint64_t, const model::Job& job) { visit(job); });
  }
  void for_each_node(const std::function<void(const model::Node&)>& visit) const override {
    snapshot_->nodes.for_each([&](std::uint64_t, const model::Node& node) { visit(node); });
  }
  std::optional<model::Job> job(model::JobId id) const override {
    if (const model::Job* job = snapshot_->jobs.find(id.value)) return *job;
    auto stored = archive_.find(id);
    return stored ? std::move(*stored) : std::nullopt;
  }
  std::vector<execution::WorkloadWait> waits_of(
      const std::vector<const model::Job*>& jobs) const override {
    views::WaitExplainer explainer(snapshot_);
    const views::PlannedStarts planned = views::last_planned_starts(*snapshot_);
    std::vector<execution::WorkloadWait> waits;
    waits.reserve(jobs.size());
    for (const model::Job* job : jobs) {
      const auto plan = planned.find(job->id);
      const base::Instant latest = plan == planned.end() ? base::Instant() : plan->second;
      waits.push_back({explainer.explain(*job), latest});
    }
    return waits;
  }
  model::PriorityClass highest_user_priority() const override {
    return snapshot_->policy->highest_user_priority;
  }

 private:
  std::shared_ptr<const controller::Snapshot> snapshot_;
  const store::Archive& archive_;
};

}  // namespace

void WorkloadQueue::Users::find(const std::string& name, Found found) {
  users_->find(name, 0, [found = std::move(found)](base::Result<host::User> user) {
    if (!user) return found(std::unexpected(user.error()));
    found(execution::WorkloadUser{user->name, user->uid, user->gid});
  });
}

WorkloadQueue::WorkloadQueue(std::shared_ptr<host::UserDirectory> users, model::UserRange range,
                             const store::Archive& archive)
    : archive_(archive), users_(std::move(users)), queue_(users_, std::move(range)) {}

void WorkloadQueue::start(std::shared_ptr<const controller::Snapshot> snapshot, Command command,
                          Tell tell) {
  queue_.start(std::make_shared<SnapshotFacts>(std::move(snapshot), archive_),
               {std::move(command), std::move(tell),
                [](const std::string& line) { spdlog::warn("{}", line); }});
}

void WorkloadQueue::submit(execution::WorkloadSubmission submission) {
  queue_.submit(std::move(submission));
}

void WorkloadQueue::withdraw(std::string key, std::string_view why) {
  queue_.withdraw(std::move(key), why);
}

void WorkloadQueue::published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                              std::span<const model::EventRecord>,
                              const controller::DepartedJobs&) {
  queue_.publish(std::make_shared<SnapshotFacts>(snapshot, archive_));
}

}  // namespace gpu_platform::bin
