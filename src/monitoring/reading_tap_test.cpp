#include "monitoring/reading_tap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "model/node_lookup.h"

namespace gpu_platform::monitoring {
namespace {

using telemetry::Frame;
using telemetry::Of;

constexpr model::AttemptId kFirstJob{model::JobId(7), 1};
constexpr model::AttemptId kSecondJob{model::JobId(8), 1};

// Node n1 has the GPUs "a", which jobs 7 and 8 share, and "b", which job 7 has alone.
class ReadingTapTest : public ::testing::Test,
                       public node::ProbeListener,
                       public telemetry::FrameListener {
 protected:
  ReadingTapTest() {
    model::Node node;
    node.id = model::NodeId(1);
    node.name = "n1";
    node.gpus.resize(2);
    node.gpus[0].info.uuid = "a";
    node.gpus[0].holders = {
        {.attempt = kFirstJob, .share = base::GpuShare(3500), .mode = model::ShareMode::kMps},
        {.attempt = kSecondJob, .share = base::GpuShare(3500), .mode = model::ShareMode::kMps}};
    node.gpus[1].info.uuid = "b";
    node.gpus[1].holders = {{.attempt = kFirstJob, .share = base::kWholeGpu}};
    snapshot_->nodes.put(1, node);
    snapshot_->nodes_by_name = model::nodes_by_name(snapshot_->nodes);
  }

  // As the next of the observers.
  void on_report(node::ProbeReport report) override { passed_on_.push_back(std::move(report)); }
  void take(const telemetry::Frames& frames) override {
    EXPECT_FALSE(passed_on_.empty()) << "the owners are not known before";
    taken_.push_back(frames);
  }

  void describe(const std::vector<std::string>& uuids) {
    hardware::Inventory inventory;
    for (std::uint32_t i = 0; i < uuids.size(); ++i) {
      inventory.gpus.push_back({.index = i, .uuid = uuids[i]});
    }
    tap_.on_report({"n1", false, inventory});
  }

  static hardware::GpuReading reading_of(std::uint32_t index, std::uint32_t utilization,
                                         std::int64_t milliwatts) {
    hardware::GpuReading gpu;
    gpu.index = index;
    gpu.utilization_percent = utilization;
    gpu.power = base::Milliwatts(milliwatts);
    gpu.processes.emplace();
    return gpu;
  }

  // Returns the frames that followed, none if there were none.
  std::vector<Frame> read(std::vector<hardware::GpuReading> gpus,
                          std::optional<model::HostMetrics> host = {}) {
    node::ProbeReadings readings;
    readings.gpus = std::move(gpus);
    readings.host = host;
    const std::size_t before = taken_.size();
    tap_.on_report({"n1", false, readings});
    return taken_.size() == before ? std::vector<Frame>() : *taken_.back();
  }

  static std::optional<std::int64_t> value(const Frame& frame, std::string_view name) {
    const auto id = telemetry::metric_named(frame.subject.of, name);
    const auto found = std::ranges::find(frame.values, id.value(), &telemetry::Value::metric);
    if (found == frame.values.end()) return std::nullopt;
    return found->value;
  }

  std::shared_ptr<controller::Snapshot> snapshot_ = std::make_shared<controller::Snapshot>();
  std::map<std::uint32_t, model::AttemptId> owners_;  // by pid
  std::vector<node::ProbeReport> passed_on_;
  std::vector<telemetry::Frames> taken_;
  ReadingTap tap_{*this, [this] { return snapshot_; },
                  [this](const std::string&, std::uint32_t pid) {
                    const auto owner = owners_.find(pid);
                    return owner == owners_.end() ? std::nullopt : std::optional(owner->second);
                  },
                  *this, [] { return base::Instant(1234); }};
};

TEST_F(ReadingTapTest, SaysWhetherTheEnergyWasReadWithTheRest) {
  describe({"a"});
  node::ProbeReadings readings;
  readings.gpus = {reading_of(0, 40, 200'000)};
  for (const bool is_new : {true, false}) {
    readings.is_energy_new = is_new;
    tap_.on_report({"n1", false, readings});
    EXPECT_EQ(taken_.back()->at(0).is_energy_new, is_new);
  }
}

TEST_F(ReadingTapTest, MakesAFrameOfEachGpuAndOfTheHost) {
  describe({"a", "b"});
  model::HostMetrics host;
  host.cpu_percent = 12;

  const auto frames = read({reading_of(1, 40, 200'000)}, host);

  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[0].subject, (telemetry::Subject{Of::kGpu, "n1", "b", {}}));
  EXPECT_EQ(frames[0].at, base::Instant(1234));
  EXPECT_EQ(value(frames[0], "utilization_percent"), 40);
  EXPECT_EQ(value(frames[0], "power_watts"), 200'000);
  EXPECT_EQ(value(frames[0], "temperature_c"), std::nullopt);
  EXPECT_EQ(frames[1].subject, (telemetry::Subject{Of::kHost, "n1", "", {}}));
  EXPECT_EQ(value(frames[1], "cpu_percent"), 12);
}

TEST_F(ReadingTapTest, MakesNoFrameOfAGpuThatDoesNotAnswerOrIsNotKnown) {
  describe({"", "b"});
  hardware::GpuReading lost = reading_of(1, 0, 0);
  lost.condition = hardware::GpuCondition::kLost;

  EXPECT_TRUE(read({lost, reading_of(0, 1, 1), reading_of(2, 1, 1)}).empty());
  EXPECT_EQ(passed_on_.size(), 2U);
}

TEST_F(ReadingTapTest, ForgetsNodesThatAreGoneOnceTheyAreMany) {
  const auto frames_of_node = [&](const std::string& node) {
    node::ProbeReadings readings;
    readings.gpus = {reading_of(0, 40, 200'000)};
    const std::size_t before = taken_.size();
    tap_.on_report({node, false, readings});
    return taken_.size() - before;
  };
  describe({"a", "b"});
  for (int i = 0; i < 1'500; ++i) {
    hardware::Inventory inventory;
    inventory.gpus.push_back({.index = 0, .uuid = "gone-" + std::to_string(i)});
    tap_.on_report({"gone-" + std::to_string(i), false, inventory});
  }

  EXPECT_EQ(frames_of_node("n1"), 1U);
  EXPECT_EQ(frames_of_node("gone-1499"), 0U);
}

TEST_F(ReadingTapTest, PassesOnWhateverComes) {
  tap_.on_report({"n1", false, node::ProbeProblem{}});
  tap_.on_report({"n2", false, node::ProbeReadings{}});
  tap_.on_report({"n1", false, node::ProbeEvents{}});

  EXPECT_EQ(passed_on_.size(), 3U);
  EXPECT_TRUE(taken_.empty());
}

TEST_F(ReadingTapTest, SplitsAGpuBetweenTheJobsThatShareIt) {
  describe({"a", "b"});
  owners_ = {{10, kFirstJob}, {11, kFirstJob}, {20, kSecondJob}};
  hardware::GpuReading shared = reading_of(0, 80, 300'000);
  shared.processes = {{10, base::kGiB, hardware::kMpsProcess, 10},
                      {11, base::kGiB, hardware::kMpsProcess, 10},
                      {20, base::kGiB * 3, hardware::kMpsProcess, 20}};

  const auto frames = read({shared, reading_of(1, 40, 200'000)});

  ASSERT_EQ(frames.size(), 4U) << "a whole GPU has no frames of its use";
  EXPECT_EQ(value(frames[0], "utilization_percent"), 80);
  EXPECT_EQ(frames[2].subject, (telemetry::Subject{Of::kUse, "n1", "a", kFirstJob}));
  EXPECT_EQ(frames[3].subject, (telemetry::Subject{Of::kUse, "n1", "a", kSecondJob}));
  EXPECT_EQ(frames[3].at, base::Instant(1234));
  EXPECT_EQ(value(frames[2], "utilization_percent"), 40);
  EXPECT_EQ(value(frames[2], "memory_used_bytes"), (base::kGiB * 2).value());
  EXPECT_EQ(value(frames[2], "power_watts"), 150'000);
  EXPECT_EQ(value(frames[3], "memory_used_bytes"), (base::kGiB * 3).value());
  EXPECT_EQ(value(frames[3], "attributed_by"),
            static_cast<std::int64_t>(telemetry::AttributedBy::kProcesses));
}

TEST_F(ReadingTapTest, TellsTheUseOfAPartAlsoWhileNoOtherJobHasOne) {
  describe({"a"});
  model::Node node = *snapshot_->nodes.find(1);
  node.gpus[0].holders.pop_back();
  snapshot_->nodes.put(1, node);
  owners_ = {{10, kFirstJob}};
  hardware::GpuReading part = reading_of(0, 60, 300'000);
  part.processes = {{10, base::kGiB, hardware::kMpsProcess}};

  const auto frames = read({part});

  ASSERT_EQ(frames.size(), 2U);
  EXPECT_EQ(frames[1].subject, (telemetry::Subject{Of::kUse, "n1", "a", kFirstJob}));
  EXPECT_EQ(value(frames[1], "utilization_percent"), 60);
  EXPECT_EQ(value(frames[1], "memory_used_bytes"), base::kGiB.value());
}

TEST_F(ReadingTapTest, KnowsThePowerOfAnIdleGpuAlsoAfterANewInventory) {
  describe({"a", "b"});
  owners_ = {{10, kFirstJob}};
  read({reading_of(0, 0, 100'000)});
  describe({"c", "a"});
  hardware::GpuReading shared = reading_of(1, 80, 300'000);
  shared.processes = {{10, base::kGiB, hardware::kMpsProcess, 10}};

  const auto frames = read({shared});

  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(value(frames[1], "power_watts"), 250'000) << "all but the half of the idle power";
  EXPECT_EQ(value(frames[2], "power_watts"), 50'000);
}

TEST_F(ReadingTapTest, SaysNothingOfJobsWhereTheDriverTellsNoProcesses) {
  describe({"a", "b"});
  hardware::GpuReading shared = reading_of(0, 80, 300'000);
  shared.processes.reset();

  EXPECT_EQ(read({shared}).size(), 1U) << "the GPU's own";
}

}  // namespace
}  // namespace gpu_platform::monitoring
