#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "base/result.h"
#include "execution/kubernetes/workloads/jobs.h"
#include "execution/kubernetes/workloads/port.h"
#include "model/command.h"
#include "model/user_range.h"

namespace gpu_platform::execution {

// The users of the site. Any thread.
class WorkloadUsers {
 public:
  using Found = std::function<void(base::Result<WorkloadUser>)>;
  virtual ~WorkloadUsers() = default;
  // `found` is called once, at once or later, on any thread, or dropped. kNotFound: the site has no
  // such user; the message says so.
  virtual void find(const std::string& name, Found found) = 0;
};

// What the queue speaks to. All are called on its thread until stop(); `warn` on any, and later.
struct WorkloadQueueLinks {
  using Done = std::function<void(const base::Result<model::CommandReply>&)>;
  // Has the core carry a command out; the reply comes once, on any thread, or is dropped.
  std::function<void(model::Command, Done)> command;
  std::function<void(WorkloadNews)> tell;  // the engine
  std::function<void(const std::string& line)> warn;
};

// The queue's side of the workloads of others: submits them as jobs of their user, cancels the jobs
// of those that are gone, and tells the engine how each job stands (WorkloadJobs).
//
// Thread: one of its own; all methods from any thread.
class WorkloadQueue : public WorkloadPort {
 public:
  // `users` outlives it.
  WorkloadQueue(WorkloadUsers& users, model::UserRange range);
  ~WorkloadQueue() override;

  // Begins, with the jobs of workloads in the facts.
  void start(std::shared_ptr<const WorkloadFacts> facts, WorkloadQueueLinks links);
  void stop();

  void submit(WorkloadSubmission submission) override;
  void withdraw(std::string key, std::string_view why) override;
  // The core has published newer facts.
  void publish(std::shared_ptr<const WorkloadFacts> facts);

 private:
  struct Withdrawal {
    std::string key;
    std::string why;
  };
  struct UserFound {
    WorkloadSubmission submission;
    base::Result<WorkloadUser> user;
  };
  struct Answered {
    model::SubmitJob submitted;
    base::Result<model::CommandReply> reply;
  };
  using Message = std::variant<WorkloadSubmission, Withdrawal, UserFound, Answered>;
  // Outlives this for answers that come late.
  struct Mailbox {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<Message> messages;                // guarded by mutex, as all
    std::shared_ptr<const WorkloadFacts> facts;  // the newest
    bool is_new = false;
    bool is_stopping = false;

    void post(Message message);
  };

  void run();
  void on(WorkloadSubmission& submission);
  void on(Withdrawal& withdrawal);
  void on(UserFound& found);
  void on(Answered& answered);
  void do_what_is_due();
  void look_up(WorkloadSubmission submission);
  void send(model::SubmitJob submission);
  void send(WorkloadJobs::Cancellation cancellation);

  WorkloadUsers& users_;
  std::shared_ptr<Mailbox> mailbox_ = std::make_shared<Mailbox>();
  // Used only by its thread:
  WorkloadQueueLinks links_;
  std::shared_ptr<const WorkloadFacts> facts_;
  WorkloadJobs jobs_;
  std::thread thread_;
};

}  // namespace gpu_platform::execution
