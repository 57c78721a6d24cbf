#include "telemetry/use_summary.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/prng.h"
#include "model/gpu_metrics.h"
#include "telemetry/use_recorder.h"

namespace gpu_platform::telemetry {
namespace {

constexpr model::AttemptId kAttempt{model::JobId(7), 2};

base::Instant at(std::int64_t seconds) {
  return base::Instant() + base::seconds(1'000'000 + seconds);
}

UseSummary begun(std::vector<GpuUse> gpus, base::Duration interval = base::seconds(1)) {
  UseSummary summary;
  summary.from = at(0);
  summary.interval = interval;
  summary.gpus = std::move(gpus);
  return summary;
}

GpuUse gpu(std::string uuid, bool is_part = false) {
  GpuUse use;
  use.node = "n1";
  use.uuid = std::move(uuid);
  use.model = "NVIDIA A100-SXM4-80GB";
  use.memory = base::Bytes(80'000);
  use.is_part = is_part;
  return use;
}

struct Named {
  std::string_view metric;
  std::int64_t value = 0;
};

Frame frame(Of of, const std::string& uuid, std::int64_t second, const std::vector<Named>& values) {
  Frame frame;
  frame.subject = {of, "n1", uuid, of == Of::kUse ? kAttempt : model::AttemptId()};
  frame.at = at(second);
  for (const Named& named : values) {
    frame.values.push_back({*metric_named(of, named.metric), named.value});
  }
  return frame;
}

Frame of_gpu(std::int64_t second, const std::vector<Named>& values) {
  return frame(Of::kGpu, "GPU-a", second, values);
}

Frame drawn_frame(base::Prng& random, std::int64_t second) {
  return of_gpu(second, {{"utilization_percent", static_cast<std::int64_t>(random.below(101))},
                         {"memory_used_bytes", static_cast<std::int64_t>(random.below(80'000))},
                         {"power_watts", static_cast<std::int64_t>(random.below(700'000))},
                         {"throttle_reasons", static_cast<std::int64_t>(random.below(16))},
                         {"energy_mj", second / 7 * 1'000}});
}

TEST(UseRecorder, KeepsTheLeastMeanAndGreatestOfEachLevel) {
  UseRecorder recorder(begun({gpu("GPU-a")}), {kAttempt});
  recorder.take(of_gpu(1, {{"utilization_percent", 78}, {"temperature_c", 56}}));
  recorder.take(of_gpu(2, {{"utilization_percent", 95}, {"temperature_c", 62}}));
  recorder.take(of_gpu(3, {{"utilization_percent", 90}}));
  const GpuUse& use = recorder.summary().gpus.front();
  EXPECT_EQ(use.samples, 3U);
  const LevelUse& utilization = use.level("utilization_percent");
  EXPECT_EQ(utilization.min, 78);
  EXPECT_EQ(utilization.max, 95);
  EXPECT_DOUBLE_EQ(utilization.mean(), 263.0 / 3);
  EXPECT_NEAR(utilization.deviation(), 8.7369, 0.001);
  EXPECT_EQ(use.level("temperature_c").count, 2U) << "what was not there is not 0";
  EXPECT_EQ(use.level("power_watts").count, 0U);
  EXPECT_EQ(recorder.summary().to, at(3));
}

TEST(UseRecorder, PassesOverOtherGpusHostsAndAttempts) {
  UseRecorder recorder(begun({gpu("GPU-a")}), {kAttempt});
  recorder.take(frame(Of::kGpu, "GPU-b", 1, {{"utilization_percent", 50}}));
  recorder.take(frame(Of::kHost, "", 1, {{"cpu_percent", 50}}));
  recorder.take(frame(Of::kUse, "GPU-a", 1, {{"utilization_percent", 50}}));
  EXPECT_EQ(recorder.summary().gpus.front(), gpu("GPU-a"))
      << "it has the GPU alone, so there is no part of it";
}

TEST(UseRecorder, OfAPartTakesItsOwnUseAndWhatAllJobsOfTheGpuHaveInCommon) {
  UseRecorder recorder(begun({gpu("GPU-a", true)}), {kAttempt});
  recorder.take(of_gpu(1, {{"utilization_percent", 100},
                           {"memory_used_bytes", 70'000},
                           {"temperature_c", 60},
                           {"power_watts", 500'000}}));
  recorder.take(frame(Of::kUse, "GPU-a", 1,
                      {{"utilization_percent", 30},
                       {"memory_used_bytes", 20'000},
                       {"power_watts", 150'000},
                       {"attributed_by", 1}}));
  Frame of_another = frame(Of::kUse, "GPU-a", 1, {{"utilization_percent", 70}});
  of_another.subject.attempt = {model::JobId(8), 1};
  recorder.take(of_another);
  const GpuUse& use = recorder.summary().gpus.front();
  EXPECT_EQ(use.samples, 1U);
  EXPECT_EQ(use.level("utilization_percent").max, 30);
  EXPECT_EQ(use.level("utilization_percent").count, 1U);
  EXPECT_EQ(use.level("memory_used_bytes").max, 20'000);
  EXPECT_EQ(use.level("power_watts").max, 150'000);
  EXPECT_EQ(use.level("temperature_c").max, 60);
  EXPECT_EQ(use.attributed_by, (std::map<std::int64_t, std::uint64_t>{{1, 1}}));
}

TEST(UseRecorder, TakesNothingBehindTheEnd) {
  UseRecorder recorder(begun({gpu("GPU-a")}), {kAttempt});
  recorder.take(of_gpu(1, {{"utilization_percent", 10}}));
  recorder.end(at(2));
  recorder.take(of_gpu(3, {{"utilization_percent", 90}}));
  EXPECT_TRUE(recorder.summary().is_over);
  EXPECT_EQ(recorder.summary().to, at(2));
  EXPECT_EQ(recorder.summary().gpus.front().level("utilization_percent").max, 10);
}

TEST(UseRecorder, OfTwoHalvesGivesTheWhole) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    base::Prng random(seed);
    UseRecorder whole(begun({gpu("GPU-a")}), {kAttempt});
    UseRecorder first(begun({gpu("GPU-a")}), {kAttempt});
    UseRecorder second(begun({gpu("GPU-a")}), {kAttempt});
    const auto cut = 40 + static_cast<std::int64_t>(random.below(40));
    for (std::int64_t second_of_time = 1; second_of_time <= 120; ++second_of_time) {
      const Frame drawn = drawn_frame(random, second_of_time);
      whole.take(drawn);
      (second_of_time <= cut ? first : second).take(drawn);
    }
    whole.end(at(121));
    second.end(at(121));
    UseSummary merged = first.summary();
    merged.add(second.summary());
    EXPECT_EQ(merged, whole.summary()) << "seed " << seed << ", cut " << cut;
  }
}

TEST(UseRecorder, GoesOnFromWhatWasStored) {
  base::Prng random(3);
  UseRecorder whole(begun({gpu("GPU-a")}), {kAttempt});
  UseRecorder first(begun({gpu("GPU-a")}), {kAttempt});
  std::vector<Frame> later;
  for (std::int64_t second = 1; second <= 60; ++second) {
    const Frame drawn = drawn_frame(random, second);
    whole.take(drawn);
    if (second <= 30) first.take(drawn);
    if (second > 30) later.push_back(drawn);
  }
  const auto stored = decode_use(encode_use(first.summary()));
  ASSERT_TRUE(stored) << stored.error().message;
  UseRecorder second(*stored, {kAttempt});
  for (const Frame& frame : later) second.take(frame);
  EXPECT_EQ(second.summary(), whole.summary());
}

TEST(UseSummary, CountsTheReadingsThatAreToBeExpected) {
  UseSummary summary = begun({}, base::seconds(5));
  EXPECT_EQ(summary.expected_samples(), 1U);
  summary.to = at(60);
  EXPECT_EQ(summary.expected_samples(), 12U);
  summary.interval = {};
  EXPECT_EQ(summary.expected_samples(), 1U);
}

TEST(UseSummary, TakesEnergyFromTheCounterWhereItCoversTheTime) {
  UseRecorder recorder(begun({gpu("GPU-a")}), {kAttempt});
  // The counter is read each 30 s. The first value may be older than the attempt.
  for (std::int64_t second = 0; second <= 100; ++second) {
    recorder.take(of_gpu(second, {{"power_watts", 200'000},
                                  {"energy_mj", 5'000'000 + (second / 30) * 30 * 190'000}}));
  }
  recorder.end(at(100));
  const auto energy = energy_of(recorder.summary().gpus.front(), base::seconds(100));
  ASSERT_TRUE(energy);
  EXPECT_EQ(energy->from, EnergyFrom::kCounter);
  // 60 s by the counter, and 40 s by the power.
  EXPECT_EQ(energy->millijoules, 60 * 190'000 + 40 * 200'000);
}

TEST(UseSummary, TakesEnergyFromPowerWhereTheCounterIsMissingOrOfAPart) {
  GpuUse use = gpu("GPU-a");
  EXPECT_FALSE(energy_of(use, base::seconds(10)));
  use.levels[use_level("power_watts")].add(100'000);
  use.levels[use_level("power_watts")].add(300'000);
  const Energy by_power{2'000'000, EnergyFrom::kPower};
  EXPECT_EQ(energy_of(use, base::seconds(10)), by_power);
  CounterUse& counter = use.counters[use_counter("energy_mj")];
  counter.add(0, at(0));
  counter.add(7'000'000, at(10));
  EXPECT_EQ(energy_of(use, base::seconds(10)), (Energy{7'000'000, EnergyFrom::kCounter}));
  use.is_part = true;
  EXPECT_EQ(energy_of(use, base::seconds(10)), by_power);
}

TEST(CounterUse, CountsFromZeroAfterARestart) {
  CounterUse counter;
  EXPECT_FALSE(counter.is_known());
  counter.add(1'000, at(0));
  counter.add(1'500, at(1));
  counter.add(40, at(2));
  counter.add(100, at(3));
  EXPECT_EQ(counter.grown, 500 + 40 + 60);
}

TEST(UseSummary, SaysHowLongEachReasonHeldTheClocksDown) {
  UseRecorder recorder(begun({gpu("GPU-a")}), {kAttempt});
  for (std::int64_t second = 1; second <= 10; ++second) {
    const auto reasons = static_cast<std::int64_t>(
        second <= 4 ? model::kThrottlePowerCap | model::kThrottleHeatHardware
                    : (second <= 6 ? model::kThrottlePowerCap : 0));
    recorder.take(of_gpu(second, {{"throttle_reasons", reasons}}));
  }
  const auto times = throttle_time_of(recorder.summary().gpus.front(), base::seconds(100));
  EXPECT_EQ(times, (std::map<std::uint64_t, base::Duration>{
                       {model::kThrottlePowerCap, base::seconds(60)},
                       {model::kThrottleHeatHardware, base::seconds(40)}}));
}

TEST(UseSummary, SaysWhichShareOfItsMemoryWasUsed) {
  GpuUse use = gpu("GPU-a");
  EXPECT_FALSE(memory_share_of(use));
  use.levels[use_level("memory_used_bytes")].add(20'000);
  use.levels[use_level("memory_used_bytes")].add(60'000);
  const auto share = memory_share_of(use);
  ASSERT_TRUE(share);
  EXPECT_DOUBLE_EQ(share->min, 25);
  EXPECT_DOUBLE_EQ(share->mean, 50);
  EXPECT_DOUBLE_EQ(share->max, 75);
  use.memory = {};
  EXPECT_FALSE(memory_share_of(use)) << "an unknown amount has no shares";
}

TEST(UseTotals, AddUpOverGpusAndAttempts) {
  UseSummary first = begun({gpu("GPU-a"), gpu("GPU-b")});
  first.to = at(10);
  UseSummary second = begun({gpu("GPU-c")});
  second.to = at(30);
  const auto fill = [](GpuUse& use, std::int64_t utilization, std::int64_t milliwatts) {
    use.samples = 2;
    for (int i = 0; i < 2; ++i) {
      use.levels[use_level("utilization_percent")].add(utilization);
      use.levels[use_level("power_watts")].add(milliwatts);
    }
  };
  fill(first.gpus[0], 100, 400'000);
  fill(first.gpus[1], 0, 100'000);
  fill(second.gpus[0], 80, 300'000);
  const UseTotals totals = totals_of(std::vector{first, second});
  EXPECT_EQ(totals.attempts, 2U);
  EXPECT_EQ(totals.gpu_time, base::seconds(10 + 10 + 30));
  EXPECT_EQ(totals.samples, 6U);
  EXPECT_EQ(totals.expected_samples, 50U);
  EXPECT_DOUBLE_EQ(totals.levels[use_level("utilization_percent")].mean(), 60);
  EXPECT_EQ(totals.energy, (Energy{4'000'000 + 1'000'000 + 9'000'000, EnergyFrom::kPower}));
}

TEST(UseBrief, IsOfAllGpusTogether) {
  UseSummary summary = begun({gpu("GPU-a"), gpu("GPU-b"), gpu("GPU-c")});
  summary.to = at(10);
  EXPECT_EQ(brief_of(summary), UseBrief());
  const auto fill = [](GpuUse& use, std::int64_t utilization, std::int64_t bytes) {
    use.samples = 1;
    use.levels[use_level("utilization_percent")].add(utilization);
    use.levels[use_level("memory_used_bytes")].add(bytes);
    use.levels[use_level("power_watts")].add(100'000);
  };
  fill(summary.gpus[0], 90, 40'000);
  fill(summary.gpus[1], 30, 20'000);
  const UseBrief brief = brief_of(summary);
  EXPECT_EQ(brief.samples, 2U);
  EXPECT_DOUBLE_EQ(brief.utilization_percent.value_or(0), 60);
  EXPECT_DOUBLE_EQ(brief.memory_percent.value_or(0), 37.5) << "the third was not read";
  EXPECT_EQ(brief.peak_memory, 40'000);
  EXPECT_EQ(brief.mean_memory, 60'000);
  EXPECT_EQ(brief.energy, (Energy{2'000'000, EnergyFrom::kPower}));
}

TEST(UseCodec, GivesBackWhatWasStored) {
  base::Prng random(1);
  UseRecorder recorder(begun({gpu("GPU-a"), gpu("GPU-b", true)}), {kAttempt});
  for (std::int64_t second = 1; second <= 100; ++second) {
    recorder.take(drawn_frame(random, second));
    recorder.take(frame(Of::kUse, "GPU-b", second,
                        {{"utilization_percent", second % 7}, {"attributed_by", second % 3}}));
  }
  recorder.end(at(100));
  const auto read = decode_use(encode_use(recorder.summary()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, recorder.summary());
}

TEST(UseCodec, RefusesEveryTruncation) {
  base::Prng random(2);
  UseRecorder recorder(begun({gpu("GPU-a")}), {kAttempt});
  for (std::int64_t second = 1; second <= 20; ++second) recorder.take(drawn_frame(random, second));
  const std::string bytes = encode_use(recorder.summary());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const auto read = decode_use(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, base::ErrorCode::kDataLoss);
  }
}

TEST(UseCodec, TakesNoHarmFromDamagedBytes) {
  base::Prng random(4);
  UseRecorder recorder(begun({gpu("GPU-a")}), {kAttempt});
  for (std::int64_t second = 1; second <= 20; ++second) recorder.take(drawn_frame(random, second));
  const std::string bytes = encode_use(recorder.summary());
  std::size_t refused = 0;
  for (int i = 0; i < 2'000; ++i) {
    std::string damaged = bytes;
    damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    const auto read = decode_use(damaged);
    if (!read) {
      ++refused;
    } else {
      static_cast<void>(totals_of(std::vector{*read}));
    }
  }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace gpu_platform::telemetry
