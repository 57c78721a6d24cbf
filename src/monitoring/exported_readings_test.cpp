#include "monitoring/exported_readings.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "model/node_lookup.h"
#include "os/clock.h"

namespace gpu_platform::monitoring {
namespace {

// Node n1 has the GPUs "a" and "b".
class ExportedReadingsTest : public ::testing::Test,
                             public execution::ObservationSink,
                             public telemetry::FrameListener {
 protected:
  ExportedReadingsTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    node.gpus.resize(2);
    node.gpus[0].info.uuid = "a";
    node.gpus[1].info.uuid = "b";
    snapshot_->nodes.put(1, node);
    snapshot_->nodes_by_name = model::nodes_by_name(snapshot_->nodes);
  }

  void observe(execution::Observation) override { ADD_FAILURE() << "nothing is observed"; }
  void take(const telemetry::Frames& frames) override { frames_.push_back(frames); }

  static model::GpuMetrics used(std::uint32_t percent) {
    model::GpuMetrics gpu;
    gpu.utilization_percent = percent;
    return gpu;
  }

  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::vector<telemetry::Frames> frames_;
  base::Duration late_;  // so far is the clock ahead of the readings
  host::UserDirectory users_;
  ExportedReadings readings_{*this, [this] { return snapshot_; }, users_, *this,
                             [this] { return os::wall_now() + late_; }};
};

TEST_F(ExportedReadingsTest, AreTheLatestOfTheGpusOfTheirNode) {
  EXPECT_EQ(readings_.latest("a"), nullptr);
  EXPECT_EQ(readings_.take("n1", {{"a", used(40)}, {"b", used(60)}, {"c", used(1)}}), 2U);
  ASSERT_NE(readings_.latest("b"), nullptr);
  EXPECT_EQ(readings_.latest("a")->utilization_percent, 40U);
  EXPECT_EQ(readings_.latest("b")->utilization_percent, 60U);
  EXPECT_EQ(readings_.latest("b")->problem, "");
  EXPECT_EQ(readings_.latest("c"), nullptr) << "the node has no such GPU";
  EXPECT_EQ(readings_.take("n1", {{"b", used(61)}}), 1U);
  EXPECT_EQ(readings_.latest("b")->utilization_percent, 61U);
  EXPECT_EQ(readings_.latest("a")->utilization_percent, 40U);
}

TEST_F(ExportedReadingsTest, AreOfNoOtherNode) {
  EXPECT_EQ(readings_.take("n2", {{"a", used(40)}}), 0U);
  EXPECT_EQ(readings_.take("n1", {{"GPU-other", used(40)}}), 0U);
  EXPECT_EQ(readings_.latest("a"), nullptr);
  EXPECT_TRUE(frames_.empty());
}

TEST_F(ExportedReadingsTest, LeadToFrames) {
  readings_.take("n1", {{"b", used(60)}});
  ASSERT_EQ(frames_.size(), 1U);
  ASSERT_EQ(frames_[0]->size(), 1U);
  const telemetry::Frame& frame = frames_[0]->front();
  EXPECT_EQ(frame.subject, (telemetry::Subject{telemetry::Of::kGpu, "n1", "b", {}}));
  ASSERT_EQ(frame.values.size(), 1U);
  EXPECT_EQ(frame.values[0].value, 60);
}

TEST_F(ExportedReadingsTest, AreTheLatestForFiveMinutes) {
  readings_.take("n1", {{"a", used(40)}});
  late_ = ExportedReadings::kCurrentFor - base::minutes(1);
  EXPECT_NE(readings_.latest("a"), nullptr);
  late_ = ExportedReadings::kCurrentFor + base::seconds(1);
  EXPECT_EQ(readings_.latest("a"), nullptr);
}

}  // namespace
}  // namespace gpu_platform::monitoring
