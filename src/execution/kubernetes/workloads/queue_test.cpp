#include "execution/kubernetes/workloads/queue.h"

#include <mutex>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "execution/kubernetes/workloads/queue_fixture.h"
#include "os/testing/eventually.h"

namespace gpu_platform::execution {
namespace {

using Done = WorkloadQueueLinks::Done;
using State = WorkloadNews::State;

// Keeps the lookups until the test answers them.
class HeldUsers : public WorkloadUsers {
 public:
  void find(const std::string&, Found found) override {
    const std::lock_guard lock(mutex_);
    found_.push_back(std::move(found));
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return found_.size();
  }
  void answer(std::size_t at) {
    Found found;
    {
      const std::lock_guard lock(mutex_);
      found = found_.at(at);
    }
    found(WorkloadUser{"ada", 1000, 100});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Found> found_;
};

class WorkloadQueueTest : public ::testing::Test {
 protected:
  void start() {
    queue_->start(facts_, {[this](model::Command command, Done done) {
                             const std::lock_guard lock(mutex_);
                             commands_.push_back(std::move(command));
                             done_.push_back(std::move(done));
                           },
                           [this](WorkloadNews news) {
                             const std::lock_guard lock(mutex_);
                             news_.push_back(std::move(news));
                           },
                           [this](const std::string& line) {
                             const std::lock_guard lock(mutex_);
                             warnings_.push_back(line);
                           }});
  }
  bool has_commands(std::size_t number) {
    return os::eventually([&] {
      const std::lock_guard lock(mutex_);
      return commands_.size() == number;
    });
  }
  bool has_user_lookups(std::size_t number) {
    return os::eventually([&] { return users_.size() == number; });
  }
  Done done(std::size_t at) {
    const std::lock_guard lock(mutex_);
    return done_.at(at);
  }
  // Until the last news of the workload say so.
  bool is_told(State state) {
    return os::eventually([&] {
      const std::lock_guard lock(mutex_);
      return !news_.empty() && news_.back().state == state;
    });
  }

  HeldUsers users_;
  std::shared_ptr<QueuedFacts> facts_ = std::make_shared<QueuedFacts>();
  std::mutex mutex_;
  std::vector<model::Command> commands_;  // guarded by mutex_, as all below
  std::vector<Done> done_;
  std::vector<WorkloadNews> news_;
  std::vector<std::string> warnings_;
  std::unique_ptr<WorkloadQueue> queue_ =
      std::make_unique<WorkloadQueue>(users_, model::UserRange{.min_uid = 1000});
};

TEST_F(WorkloadQueueTest, BringsAWorkloadToTheCoreAndItsJobsStateToTheEngine) {
  start();
  queue_->submit(queued_submission());
  ASSERT_TRUE(has_user_lookups(1));
  users_.answer(0);
  ASSERT_TRUE(has_commands(1));
  auto queued = std::make_shared<QueuedFacts>();
  queued->put(1, kQueuedKey, model::JobState::kQueued);
  queue_->publish(queued);
  done(0)(accepted(1));
  ASSERT_TRUE(is_told(State::kWaiting));
  auto running = std::make_shared<QueuedFacts>();
  running->put(1, kQueuedKey, model::JobState::kRunning);
  queue_->publish(running);
  ASSERT_TRUE(is_told(State::kActive));
  queue_->withdraw(kQueuedKey, kWorkloadDeleted);
  ASSERT_TRUE(has_commands(2));
  done(1)(base::fail(base::ErrorCode::kUnavailable, "the store is full"));
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_.front(),
            "workload=\"ml/Job/train/uid-train\" its job cannot be cancelled: the store is full");
}

TEST_F(WorkloadQueueTest, AnswersThatComeAfterItsEndAreDropped) {
  start();
  queue_->submit(queued_submission());
  ASSERT_TRUE(has_user_lookups(1));
  users_.answer(0);
  ASSERT_TRUE(has_commands(1));
  queue_->submit(queued_submission("ml/Job/other/uid-other"));
  ASSERT_TRUE(has_user_lookups(2));
  const Done answer = done(0);
  queue_.reset();
  users_.answer(1);
  answer(accepted(1));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(commands_.size(), 1u);
  EXPECT_TRUE(news_.empty());
}

TEST_F(WorkloadQueueTest, FactsThatCameBeforeItsStartAreNewerThanThoseOfTheStart) {
  facts_->put(1, kQueuedKey, model::JobState::kQueued);
  auto running = std::make_shared<QueuedFacts>();
  running->put(1, kQueuedKey, model::JobState::kRunning);
  queue_->publish(running);
  start();
  ASSERT_TRUE(is_told(State::kActive));
  const std::lock_guard lock(mutex_);
  EXPECT_EQ(news_.size(), 1u);
}

}  // namespace
}  // namespace gpu_platform::execution
