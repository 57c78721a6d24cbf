#include "execution/access_router.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpu_platform::execution {
namespace {

using model::EngineKind;
using model::JobId;

// Keeps output of one job.
class FakeAccess final : public AttemptAccess {
 public:
  explicit FakeAccess(std::uint64_t job) : kept_(job) {}

  void open_channel(model::ChannelOrder, ChannelOpened) override {}
  std::string step_of(model::AttemptId) const override { return {}; }
  std::string output_of(model::AttemptId) const override { return {}; }
  void follow_output(model::AttemptId) override {}
  bool awaits_output(model::AttemptId) const override { return false; }
  bool has_output(JobId job) const override { return job == kept_; }
  void remove_output(std::vector<JobId> jobs) override { removed_ = std::move(jobs); }

  const std::vector<JobId>& removed() const { return removed_; }

 private:
  const JobId kept_;
  std::vector<JobId> removed_;
};

class AccessRouterTest : public ::testing::Test {
 protected:
  // Its attempts have had these nodes; 0: none.
  static model::Job job_on(const std::vector<std::uint64_t>& nodes) {
    model::Job job;
    job.id = JobId(3);
    for (const std::uint64_t node : nodes) {
      job.attempts.emplace_back();
      if (node != 0) job.attempts.back().allocation.nodes.push_back({.node = model::NodeId(node)});
    }
    return job;
  }
  static std::optional<EngineKind> engine_of(model::NodeId node) {
    if (node.value > 2) return std::nullopt;
    return node.value == 1 ? EngineKind::kProcess : EngineKind::kKubernetes;
  }

  FakeAccess processes_{1};
  FakeAccess pods_{2};
  AccessRouter router_{{{EngineKind::kProcess, &processes_}, {EngineKind::kKubernetes, &pods_}},
                       engine_of};
};

TEST_F(AccessRouterTest, EachAttemptIsInTheEngineOfItsNode) {
  const model::Job job = job_on({1, 2});
  EXPECT_EQ(&router_.of(job, 1), &processes_);
  EXPECT_EQ(&router_.of(job, 2), &pods_);
}

TEST_F(AccessRouterTest, AnAttemptWithoutANodeIsTheFirstEngines) {
  const model::Job job = job_on({0, 7});
  for (const std::uint32_t attempt : {0U, 1U, 2U, 3U}) {
    EXPECT_EQ(&router_.of(job, attempt), &processes_) << attempt;
  }
}

TEST_F(AccessRouterTest, AnAttemptOfAnEngineThatIsNotThereIsTheFirstEngines) {
  const AccessRouter alone({{EngineKind::kProcess, &processes_}}, engine_of);
  EXPECT_EQ(&alone.of(job_on({2}), 1), &processes_);
}

TEST_F(AccessRouterTest, OutputIsKeptByAnyEngineAndRemovedByAll) {
  EXPECT_TRUE(router_.has_output(JobId(1)) && router_.has_output(JobId(2)));
  EXPECT_FALSE(router_.has_output(JobId(3)));
  const std::vector<JobId> jobs = {JobId(1), JobId(2)};
  router_.remove_output(jobs);
  EXPECT_EQ(processes_.removed(), jobs);
  EXPECT_EQ(pods_.removed(), jobs);
}

}  // namespace
}  // namespace gpu_platform::execution
