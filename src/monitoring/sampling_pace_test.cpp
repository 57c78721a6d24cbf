#include "monitoring/sampling_pace.h"

#include <gtest/gtest.h>

#include <utility>

#include "model/node_lookup.h"

namespace gpu_platform::monitoring {
namespace {

// Node n1 has the GPUs "a", "b" and "c", which the jobs 1, 2 and 3 hold.
class SamplingPaceTest : public ::testing::Test, public node::ProbeListener {
 protected:
  SamplingPaceTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    node.gpus.resize(3);
    for (std::uint32_t i = 0; i < 3; ++i) {
      node.gpus[i].info.uuid = std::string(1, static_cast<char>('a' + i));
      node.gpus[i].holders = {{.attempt = {model::JobId(i + 1), 1}, .share = base::kWholeGpu}};
    }
    snapshot_->nodes.put(1, node);
    snapshot_->nodes_by_name = model::nodes_by_name(snapshot_->nodes);
  }
  void TearDown() override { pace_.stop(); }

  void put_job(std::uint64_t id, model::AttemptState state, const std::string& name) {
    model::JobSpec spec;
    spec.name = name;
    model::Job job;
    job.id = model::JobId(id);
    job.spec = std::make_shared<const model::JobSpec>(spec);
    job.attempts.resize(1);
    job.attempts[0].number = 1;
    job.attempts[0].state = state;
    const std::lock_guard lock(mutex_);
    auto next = std::make_shared<controller::Snapshot>(*snapshot_);
    next->jobs.put(id, job);
    snapshot_ = std::move(next);
  }

  void on_report(node::ProbeReport) override { ++passed_on_; }
  void read() { pace_.on_report({"n1", false, node::ProbeReadings{}}); }

  std::shared_ptr<const controller::Snapshot> snapshot() {
    const std::lock_guard lock(mutex_);
    return snapshot_;
  }

  // Waits until so many questions were asked, and returns the last one.
  std::vector<std::string> question(std::size_t number) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(asked_more_.wait_for(lock, std::chrono::seconds(60),
                                     [&] { return asked_.size() >= number; }));
    return asked_.empty() ? std::vector<std::string>() : asked_.back();
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return asked_.size();
  }

  std::mutex mutex_;
  std::condition_variable asked_more_;
  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::vector<std::vector<std::string>> asked_;  // guarded by mutex_, as the snapshot
  int passed_on_ = 0;
  SamplingPace pace_{*this, [this] { return snapshot(); },
                     [this](const std::string& node, const node::ReadNow& wanted) {
                       EXPECT_EQ(node, "n1");
                       const std::lock_guard lock(mutex_);
                       asked_.push_back(wanted.uuids);
                       asked_more_.notify_all();
                     },
                     [](const model::JobSpec& spec) { return spec.name == "monitored"; }};
};

TEST_F(SamplingPaceTest, AsksAgainAndAgainForTheGpusOfARunningJobThatWantsIt) {
  put_job(1, model::AttemptState::kRequested, "monitored");
  put_job(2, model::AttemptState::kRunning, "monitored");
  put_job(3, model::AttemptState::kRunning, "plain");
  read();

  EXPECT_EQ(question(2), std::vector<std::string>{"b"});
  EXPECT_EQ(passed_on_, 1);
}

TEST_F(SamplingPaceTest, AsksNoMoreForAJobThatHasEnded) {
  put_job(1, model::AttemptState::kRunning, "monitored");
  put_job(2, model::AttemptState::kRunning, "monitored");
  read();
  EXPECT_EQ(question(1), (std::vector<std::string>{"a", "b"}));

  put_job(1, model::AttemptState::kCleaning, "monitored");
  read();

  EXPECT_EQ(question(count() + 1), std::vector<std::string>{"b"});
}

TEST_F(SamplingPaceTest, AsksAnewWhenTheProbeIsBack) {
  put_job(1, model::AttemptState::kRunning, "monitored");
  read();
  question(1);
  pace_.on_report({"n1", false, node::ProbeProblem{}});
  put_job(1, model::AttemptState::kReleased, "monitored");
  put_job(3, model::AttemptState::kRunning, "monitored");
  read();

  EXPECT_EQ(question(count() + 1), std::vector<std::string>{"c"});
  EXPECT_EQ(passed_on_, 3);
}

}  // namespace
}  // namespace gpu_platform::monitoring
