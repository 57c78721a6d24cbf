#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "execution/kubernetes/workloads/port.h"
#include "model/command.h"
#include "model/ids.h"
#include "model/job.h"
#include "model/node.h"
#include "model/states.h"
#include "model/user_range.h"
#include "model/wait_reason.h"

// The jobs that stand for workloads of others, from the submission of a workload to its job's end.
// Pure: submissions, withdrawals, users and answers come in; lookups, commands and news go out.
//
// A workload has one job at a time: the request id of a submission is made of its key, so a
// repetition finds the job that is there. A job that has come to its end, and was not stopped by a
// person or its time limit, is followed by another one for pods that come later: its request id
// names the job before it.
//
// Ownership: values. Thread: one owner. Cost: the workloads with a job, for examine().

namespace gpu_platform::execution {

// A user, as the site's directory of users knows it.
struct WorkloadUser {
  std::string name;
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
};

// What a job waits for, and when it starts at the latest. Unset: that is not planned.
struct WorkloadWait {
  model::WaitReason reason;
  base::Instant latest_start;
};

// What the core has published, at one moment. Does not change.
class WorkloadFacts {
 public:
  virtual ~WorkloadFacts() = default;
  // Visits the jobs that have not left the core, ascending.
  virtual void for_each_job(const std::function<void(const model::Job&)>& visit) const = 0;
  virtual void for_each_node(const std::function<void(const model::Node&)>& visit) const = 0;
  // Returns the job, also one that has left the core; nothing if it has left the history.
  virtual std::optional<model::Job> job(model::JobId id) const = 0;
  // The jobs must be waiting ones of for_each_job(). Returns as many values, in their order. Costs
  // little more for many jobs than for one.
  virtual std::vector<WorkloadWait> waits_of(const std::vector<const model::Job*>& jobs) const = 0;
  virtual model::PriorityClass highest_user_priority() const = 0;
};

class WorkloadJobs {
 public:
  // The cancellation of a workload's job.
  struct Cancellation {
    std::string key;
    model::ActOnJob action;
  };

  // `range`: the users that may have jobs.
  explicit WorkloadJobs(model::UserRange range) : range_(std::move(range)) {}

  // Takes over the jobs of workloads that are there at the start.
  void begin(const WorkloadFacts& facts);
  // May be repeated: how its job stands is told again.
  void submit(WorkloadSubmission submission);
  void found(WorkloadSubmission submission, const base::Result<WorkloadUser>& user,
             const WorkloadFacts& facts);
  void answered(model::SubmitJob submission, const base::Result<model::CommandReply>& reply,
                const WorkloadFacts& facts);
  void withdraw(const std::string& key, std::string why);
  // Tells of each workload's job what is new.
  void examine(const WorkloadFacts& facts);

  // The requests since the last call. A lookup's user comes back through found(), a command's
  // reply through answered().
  std::vector<WorkloadSubmission> take_lookups();
  std::vector<model::SubmitJob> take_submissions();
  std::vector<Cancellation> take_cancellations();
  std::vector<WorkloadNews> take_news();

 private:
  struct Known {
    model::JobId job;
    std::optional<WorkloadNews> told;
  };

  void refuse(const std::string& key, std::string why);
  std::string error_of(const WorkloadSubmission& submission, const WorkloadUser& user,
                       const WorkloadFacts& facts) const;

  model::UserRange range_;
  std::map<std::string, Known> known_;  // workloads with a job that has not ended, by key
  std::vector<WorkloadSubmission> lookups_;
  std::vector<model::SubmitJob> submissions_;
  std::vector<Cancellation> cancellations_;
  std::vector<WorkloadNews> news_;
};

}  // namespace gpu_platform::execution
