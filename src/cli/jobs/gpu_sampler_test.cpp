#include "cli/jobs/gpu_sampler.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace gpu_platform::cli {
namespace {

base::Instant sampled_at(std::int64_t seconds) {
  return base::Instant() + base::seconds(1'000'000 + seconds);
}

// A driver with two GPUs, of which a test sets the readings.
class FakeLibrary final : public hardware::GpuLibrary {
 public:
  hardware::DriverDescription describe_driver() override { return {}; }
  std::expected<std::vector<hardware::GpuDescription>, hardware::LibraryProblem> list_gpus()
      override {
    std::vector<hardware::GpuDescription> gpus(2);
    for (std::uint32_t i = 0; i < 2; ++i) {
      gpus[i].index = i;
      gpus[i].uuid = i == 0 ? "GPU-aaaa-1" : "GPU-bbbb-2";
      gpus[i].memory = base::kGiB * 80;
    }
    return gpus;
  }
  std::vector<hardware::GpuLink> links() override { return {}; }
  hardware::GpuReading read(std::uint32_t index) override { return readings[index]; }
  std::optional<std::uint64_t> read_energy(std::uint32_t index) override { return energy[index]; }
  std::vector<hardware::ProcessLoad> read_loads(std::uint32_t) override { return {}; }
  model::GpuSlowMetrics read_slow(std::uint32_t index) override {
    ++slow_reads;
    model::GpuSlowMetrics slow;
    slow.energy_mj = energy[index];
    return slow;
  }

  std::map<std::uint32_t, hardware::GpuReading> readings;
  std::map<std::uint32_t, std::uint64_t> energy;
  int slow_reads = 0;
};

std::vector<std::uint32_t> indices_of(const std::vector<hardware::GpuDescription>& gpus) {
  std::vector<std::uint32_t> indices;
  for (const hardware::GpuDescription& gpu : gpus) indices.push_back(gpu.index);
  return indices;
}

TEST(ChosenGpus, AreNamedByIndexOrUuid) {
  FakeLibrary library;
  const auto gpus = *library.list_gpus();
  using Indices = std::vector<std::uint32_t>;
  EXPECT_EQ(indices_of(*chosen_gpus(gpus, "all")), (Indices{0, 1}));
  EXPECT_EQ(indices_of(*chosen_gpus(gpus, "1")), Indices{1});
  EXPECT_EQ(indices_of(*chosen_gpus(gpus, "GPU-bbbb-2,0,1")), (Indices{1, 0})) << "each once";
  for (const char* words : {"2", "", "0,", "GPU-cccc", "GPU-"}) {
    const auto refused = chosen_gpus(gpus, words);
    ASSERT_FALSE(refused) << words;
    EXPECT_NE(refused.error().find("this machine, which has 2 GPUs"), std::string::npos)
        << refused.error();
  }
}

TEST(GpuSampler, SumsUpWhatItReads) {
  FakeLibrary library;
  library.readings[0].utilization_percent = 40;
  library.energy[0] = 1'000'000;
  GpuSampler sampler(library, *chosen_gpus(*library.list_gpus(), "0"), base::seconds(1),
                     sampled_at(0));
  sampler.read(sampled_at(0));
  library.readings[0].utilization_percent = 80;
  sampler.read(sampled_at(1));
  library.energy[0] = 1'900'000;
  sampler.end(sampled_at(2));
  const telemetry::UseSummary& summary = sampler.summary();
  EXPECT_TRUE(summary.is_over);
  EXPECT_EQ(summary.duration(), base::seconds(2));
  ASSERT_EQ(summary.gpus.size(), 1U);
  const telemetry::GpuUse& gpu = summary.gpus.front();
  EXPECT_EQ(gpu.samples, 3U);
  EXPECT_EQ(gpu.level("utilization_percent").min, 40);
  EXPECT_EQ(gpu.level("utilization_percent").max, 80);
  EXPECT_EQ(gpu.memory, base::kGiB * 80);
  EXPECT_EQ(library.slow_reads, 2) << "at both ends";
  EXPECT_EQ(telemetry::energy_of(gpu, summary.duration()),
            (telemetry::Energy{900'000, telemetry::EnergyFrom::kCounter}));
}

TEST(GpuSampler, PassesOverAGpuThatDoesNotAnswer) {
  FakeLibrary library;
  library.readings[0].utilization_percent = 40;
  library.readings[1].condition = hardware::GpuCondition::kLost;
  GpuSampler sampler(library, *library.list_gpus(), base::seconds(1), sampled_at(0));
  sampler.read(sampled_at(0));
  sampler.end(sampled_at(1));
  EXPECT_EQ(sampler.summary().gpus[0].samples, 2U);
  EXPECT_EQ(sampler.summary().gpus[1].samples, 0U);
}

}  // namespace
}  // namespace gpu_platform::cli
