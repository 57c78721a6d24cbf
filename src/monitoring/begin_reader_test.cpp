#include "monitoring/begin_reader.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "model/event.h"

namespace gpu_platform::monitoring {
namespace {

// Node n1 has the GPUs "a" and "b", node n2 the GPU "c".
class BeginReaderTest : public ::testing::Test {
 protected:
  BeginReaderTest() {
    put_node(1, {"a", "b"});
    put_node(2, {"c"});
  }

  void put_node(std::uint64_t id, const std::vector<std::string>& uuids) {
    model::Node node;
    node.id = model::NodeId(id);
    node.name = "n" + std::to_string(id);
    node.gpus.resize(uuids.size());
    for (std::size_t i = 0; i < uuids.size(); ++i) node.gpus[i].info.uuid = uuids[i];
    snapshot_->nodes.put(id, node);
  }

  struct Grant {
    std::uint64_t node = 1;
    std::uint32_t gpu = 0;
    base::GpuShare share = base::kWholeGpu;
  };
  void put_job(std::uint64_t id, const std::vector<Grant>& grants, const std::string& name = "",
               model::AttemptState state = model::AttemptState::kRunning) {
    model::JobSpec spec;
    spec.name = name;
    model::Job job;
    job.id = model::JobId(id);
    job.spec = std::make_shared<const model::JobSpec>(spec);
    model::Attempt& attempt = job.attempts.emplace_back();
    attempt.number = 1;
    attempt.state = state;
    for (const Grant& grant : grants) {
      model::NodeAllocation& part = attempt.allocation.nodes.emplace_back();
      part.node = model::NodeId(grant.node);
      part.grants.push_back({.gpu_index = grant.gpu, .share = grant.share});
    }
    snapshot_->jobs.put(id, job);
  }

  void publish(const std::vector<std::uint64_t>& started) {
    std::vector<model::EventRecord> events;
    for (const std::uint64_t id : started) {
      events.push_back({{}, {}, model::AttemptStarted{{model::JobId(id), 1}, 1, {}}});
    }
    const std::vector<model::Job> none;
    reader_.published(snapshot_, events, controller::DepartedJobs(none));
  }

  using Question = std::pair<std::string, node::ReadNow>;
  const std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::vector<Question> asked_;
  BeginReader reader_{[this](const std::string& node, const node::ReadNow& wanted) {
                        asked_.emplace_back(node, wanted);
                      },
                      [](const model::JobSpec& spec) { return spec.name == "monitored"; }};
};

TEST_F(BeginReaderTest, AsksForTheEnergyOfTheGpusOfWhatBegins) {
  put_job(1, {{.node = 1, .gpu = 1}, {.node = 2, .gpu = 0}});
  put_job(2, {{.node = 1, .gpu = 0}});
  publish({1});
  EXPECT_EQ(asked_, (std::vector<Question>{{"n1", {{"b"}, true}}, {"n2", {{"c"}, true}}}));
}

TEST_F(BeginReaderTest, AsksEachNodeOnceForWhatBeginsTogether) {
  put_job(1, {{.gpu = 0}});
  put_job(2, {{.gpu = 1}});
  publish({1, 2});
  EXPECT_EQ(asked_, (std::vector<Question>{{"n1", {{"a", "b"}, true}}}));
}

TEST_F(BeginReaderTest, AsksForAPartOnlyWhereItsJobIsMonitored) {
  put_job(1, {{.share = base::GpuShare(3500)}});
  put_job(2, {{.share = base::GpuShare(3500)}}, "monitored");
  publish({1});
  EXPECT_TRUE(asked_.empty());
  publish({2});
  EXPECT_EQ(asked_, (std::vector<Question>{{"n1", {{"a"}, false}}}));
}

TEST_F(BeginReaderTest, AsksNothingOfWhatHasEndedAlready) {
  put_job(1, {{.gpu = 0}}, "", model::AttemptState::kCleaning);
  publish({1, 7});
  EXPECT_TRUE(asked_.empty());
}

TEST_F(BeginReaderTest, AsksNothingOnceItIsStopped) {
  put_job(1, {{.gpu = 0}});
  reader_.stop();
  publish({1});
  EXPECT_TRUE(asked_.empty());
}

}  // namespace
}  // namespace gpu_platform::monitoring
