#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "controller/publication.h"
#include "execution/kubernetes/workloads/queue.h"
#include "host/user_directory.h"
#include "model/command.h"
#include "model/user_range.h"
#include "store/store.h"

namespace gpu_platform::bin {

// Joins the queue of workloads of others to the core, its archive and the host's users.
//
// Thread: any.
class WorkloadQueue : public execution::WorkloadPort, public controller::PublicationListener {
 public:
  // `archive` outlives it. `range`: the users that may have jobs.
  WorkloadQueue(std::shared_ptr<host::UserDirectory> users, model::UserRange range,
                const store::Archive& archive);

  using Command = std::function<void(
      model::Command, std::function<void(const base::Result<model::CommandReply>&)>)>;
  using Tell = std::function<void(execution::WorkloadNews)>;
  // Begins, with the jobs of workloads in the snapshot. `command` is the loop's, `tell` the
  // engine's; both are called until stop().
  void start(std::shared_ptr<const controller::Snapshot> snapshot, Command command, Tell tell);
  void stop() { queue_.stop(); }

  void submit(execution::WorkloadSubmission submission) override;
  void withdraw(std::string key, std::string_view why) override;
  void published(const std::shared_ptr<const controller::Snapshot>& snapshot,
                 std::span<const model::EventRecord> events,
                 const controller::DepartedJobs& departed) override;

 private:
  class Users : public execution::WorkloadUsers {
   public:
    explicit Users(std::shared_ptr<host::UserDirectory> users) : users_(std::move(users)) {}
    void find(const std::string& name, Found found) override;

   private:
    std::shared_ptr<host::UserDirectory> users_;
  };

  const store::Archive& archive_;
  Users users_;
  execution::WorkloadQueue queue_;
};

}  // namespace gpu_platform::bin
