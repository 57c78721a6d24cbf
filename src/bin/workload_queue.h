#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "base/result.h"
#include "controller/publication.h"
#include "execution/kubernetes/workloads/port.h"
#include "host/user_directory.h"
#include "model/command.h"
#include "model/user_range.h"
#include "store/store.h"

namespace gpu_platform::bin {

// The queue's side of the workloads of others: submits them as jobs of their user, cancels the jobs
// of those that are gone, and tells the engine how each job stands.
//
// A workload has one job at a time: the request id of a submission is made of its key, so a
// repetition finds the job that is there. A job that has come to its end, and was not stopped by a
// person or its time limit, is followed by another one for pods that come later.
//
// Thread: one of its own; all methods from any thread.
class WorkloadQueue : public execution::WorkloadPort, public controller::PublicationListener {
 public:
  // `users` and `archive` outlive it.
  // `range`: the users that may have jobs.
  WorkloadQueue(std::shared_ptr<host::UserDirectory> users, model::UserRange range,
                const store::Archive& archive);
  ~WorkloadQueue() override;

  using Command = std::function<void(
      model::Command, std::function<void(const base::Result<model::CommandReply>&)>)>;
  using Tell = std::function<void(execution::WorkloadNews)>;
  // Begins, with the jobs of workloads in the snapshot. `command` is the loop's, `tell` the
  // engine's; both are called until stop().
  void start(std::shared_ptr<const controller::Snapshot> snapshot, Command command, Tell tell);
  void stop();

  void submit(execution::WorkloadSubmission submission) override;
  void withdraw(std::string key, std::string_view why) override;
  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

 private:
  struct Withdrawal {
    std::string key;
    std::string why;
  };
  struct UserFound {
    execution::WorkloadSubmission submission;
    base::Result<host::User> user;
  };
  struct Answered {
    model::SubmitJob submitted;
    base::Result<model::CommandReply> reply;
  };
  using Message = std::variant<execution::WorkloadSubmission, Withdrawal, UserFound, Answered>;
  // Outlives this for answers that come late.
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<Message> messages;                          // guarded by mutex, as all
    std::shared_ptr<const controller::Snapshot> snapshot;  // the newest
    bool is_new = false;
    bool is_stopping = false;

    void post(Message message);
  };
  struct Known {
    model::JobId job;
    std::optional<execution::WorkloadNews> told;
  };

  void run();
  void take(Message& message);
  void on(execution::WorkloadSubmission& submission);
  void on(Withdrawal& withdrawal);
  void on(UserFound& found);
  void on(Answered& answered);
  void send(model::SubmitJob submission);
  void refuse(const std::string& key, std::string why);
  void tell(execution::WorkloadNews news);
  void examine();
  std::optional<model::Job> job_of(model::JobId id) const;
  std::vector<model::NodeId> ids_of(const std::vector<std::string>& names) const;

  std::shared_ptr<host::UserDirectory> users_;
  const model::UserRange range_;
  const store::Archive& archive_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  // Of its thread:
  Command command_;
  Tell tell_;
  std::shared_ptr<const controller::Snapshot> snapshot_;
  std::map<std::string, Known> known_;  // workloads with a job that has not ended, by key
  std::thread thread_;
};

}  // namespace gpu_platform::bin
