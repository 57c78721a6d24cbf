// This program measures the bytes and the time that the history's blocks cost, on made-up readings
// (telemetry_series.h): encoding and decoding a value, bytes a sample, rolling up, and the size of
// the history of eight GPUs that these give.
//
// `telemetry_bench --recording FILE.csv`, once or more often, also measures readings that were
// recorded (recorded_series.h), under the name recording:FILE. The others are made up.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "recorded_series.h"
#include "telemetry/block.h"
#include "telemetry/rollup.h"
#include "telemetry/spread_sums.h"
#include "telemetry_series.h"

namespace gpu_platform::bench {
namespace {

using telemetry::Block;
using telemetry::Column;
using telemetry::Frame;
using telemetry::Tier;

constexpr std::uint64_t kSeed = 20'261'128;
constexpr int kHour = 3'600;
constexpr int kDay = 24 * kHour;

std::vector<Frame> frames_of(Load load, int seconds) {
  MadeUpGpu gpu(load, kSeed);
  std::vector<Frame> frames;
  for (int i = 0; i < seconds; ++i) frames.push_back(gpu.next());
  return frames;
}

// Names the metrics by numbers, as the history's file does, and drops the places of columns that
// have a value at each time.
Block block_of(Tier tier, std::vector<base::Instant> times,
               std::map<telemetry::MetricId, Column> columns) {
  Block block{.tier = tier, .times = std::move(times), .columns = {}};
  for (auto& [id, column] : columns) {
    column.metric = std::to_string(id);
    if (column.values.size() == block.times.size()) column.places.clear();
    block.columns.push_back(std::move(column));
  }
  return block;
}

Block raw_block(const std::vector<Frame>& frames) {
  std::vector<base::Instant> times;
  std::map<telemetry::MetricId, Column> columns;
  for (const Frame& frame : frames) {
    for (const telemetry::Value& value : frame.values) {
      Column& column = columns[value.metric];
      column.places.push_back(static_cast<std::uint32_t>(times.size()));
      column.values.push_back(value.value);
    }
    times.push_back(frame.at);
  }
  return block_of(Tier::kRaw, std::move(times), std::move(columns));
}

Block rolled_block(const std::vector<Frame>& frames, Tier tier) {
  telemetry::Rollup rollup;
  for (const Frame& frame : frames) rollup.take(frame.at, frame.values);
  rollup.finish();
  std::vector<base::Instant> times;
  std::map<telemetry::MetricId, Column> columns;
  for (const telemetry::RolledSpan& span : rollup.finished()) {
    if (span.tier != tier) continue;
    for (const telemetry::RolledMetric& rolled : span.metrics) {
      Column& column = columns[rolled.metric];
      column.places.push_back(static_cast<std::uint32_t>(times.size()));
      column.values.push_back(rolled.point.sum);
      column.min.push_back(rolled.point.min);
      column.max.push_back(rolled.point.max);
      column.count.push_back(rolled.point.count);
      if (rolled.spread.count() > 0) column.spread.push_back(rolled.spread);
    }
    times.push_back(span.from);
  }
  return block_of(tier, std::move(times), std::move(columns));
}

std::size_t values_in(const Block& block) {
  std::size_t values = 0;
  for (const Column& column : block.columns) values += column.values.size();
  return values;
}

void report(benchmark::State& state, const Block& block, std::size_t bytes) {
  const auto values = static_cast<double>(values_in(block));
  state.counters["ns_a_value"] = benchmark::Counter(
      values * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes_a_value"] = static_cast<double>(bytes) / values;
  state.counters["columns"] = static_cast<double>(block.columns.size());
}

// An hour of samples, and a day of minutes or quarters of an hour, are what a block has.
Block typical_block(Load load, Tier tier) {
  switch (tier) {
    case Tier::kRaw:
      return raw_block(frames_of(load, kHour));
    case Tier::kMinute:
      return rolled_block(frames_of(load, kDay), tier);
    case Tier::kQuarterHour: {
      Block block = rolled_block(frames_of(load, kDay), tier);
      telemetry::add_sums(block);
      return block;
    }
  }
  return {};
}

const Block& kept_block(const benchmark::State& state) {
  static std::map<std::pair<std::int64_t, std::int64_t>, Block> blocks;
  const auto [found, is_new] = blocks.try_emplace({state.range(0), state.range(1)});
  if (is_new) {
    found->second =
        typical_block(static_cast<Load>(state.range(0)), static_cast<Tier>(state.range(1)));
  }
  return found->second;
}

void Encode(benchmark::State& state) {
  const Block& block = kept_block(state);
  std::size_t bytes = 0;
  for (auto _ : state) bytes = encode_block(block).size();
  report(state, block, bytes);
}

void Decode(benchmark::State& state) {
  const Block& block = kept_block(state);
  const std::string bytes = encode_block(block);
  for (auto _ : state) {
    auto decoded = telemetry::decode_block(bytes);
    CHECK(decoded.has_value());
    benchmark::DoNotOptimize(decoded);
  }
  report(state, block, bytes.size());
}

void DecodeOneColumn(benchmark::State& state) {
  const std::string bytes = encode_block(kept_block(state));
  const auto power = telemetry::metric_named(telemetry::Of::kGpu, "power_watts");
  CHECK(power.has_value());
  const std::string name = std::to_string(*power);
  const std::vector<std::string_view> names = {name};
  for (auto _ : state) {
    auto decoded = telemetry::decode_block(bytes, {.metrics = names});
    CHECK(decoded.has_value() && decoded->columns.size() == 1);
    benchmark::DoNotOptimize(decoded);
  }
}

void RollUp(benchmark::State& state) {
  const auto frames = frames_of(static_cast<Load>(state.range(0)), kHour);
  std::size_t values = 0;
  for (const Frame& frame : frames) values += frame.values.size();
  for (auto _ : state) {
    telemetry::Rollup rollup;
    for (const Frame& frame : frames) rollup.take(frame.at, frame.values);
    benchmark::DoNotOptimize(rollup.finished());
  }
  state.counters["ns_a_value"] = benchmark::Counter(
      static_cast<double>(values) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

// The bytes of samples of 48 hours, minutes of 30 days and quarters of two years of eight GPUs: two
// idle, four in training, two in inference.
void SizeOfEightGpus(benchmark::State& state) {
  const std::pair<Load, int> gpus[] = {
      {Load::kIdle, 2}, {Load::kTraining, 4}, {Load::kInference, 2}};
  const std::tuple<Tier, const char*, double> tiers[] = {
      {Tier::kRaw, "raw_MB", 48},
      {Tier::kMinute, "minutes_MB", 30},
      {Tier::kQuarterHour, "quarters_MB", 2 * 365}};
  double all = 0;
  for (auto _ : state) {
    for (const auto& [tier, name, blocks] : tiers) {
      double bytes = 0;
      for (const auto& [load, count] : gpus) {
        bytes += static_cast<double>(encode_block(typical_block(load, tier)).size()) * count;
      }
      state.counters[name] = bytes * blocks * 1e-6;
      all += bytes * blocks * 1e-6;
    }
  }
  state.counters["all_MB"] = all;
}

// One block of each GPU and host, as an hour of samples has them. `bytes_a_further_value` is
// without what a block costs once (its head, the first values): it is what the second half of the
// readings adds, and the value for long blocks.
void encode_recording(benchmark::State& state, const std::vector<std::vector<Frame>>& recording) {
  std::vector<Block> blocks;
  double values = 0;
  double values_before = 0;
  double bytes_before = 0;
  for (const std::vector<Frame>& frames : recording) {
    blocks.push_back(raw_block(frames));
    values += static_cast<double>(values_in(blocks.back()));
    const auto middle = frames.begin() + static_cast<std::ptrdiff_t>(frames.size() / 2);
    const Block half = raw_block({frames.begin(), middle});
    values_before += static_cast<double>(values_in(half));
    bytes_before += static_cast<double>(encode_block(half).size());
  }
  double bytes = 0;
  for (auto _ : state) {
    bytes = 0;
    for (const Block& block : blocks) bytes += static_cast<double>(encode_block(block).size());
  }
  state.counters["values"] = values;
  state.counters["ns_a_value"] = benchmark::Counter(
      values * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["bytes_a_value"] = bytes / values;
  state.counters["bytes_a_further_value"] = (bytes - bytes_before) / (values - values_before);
}

// False: the file cannot be used, and it was said why.
bool add_recording(const std::string& path) {
  auto recording = read_recording(path);
  if (!recording) {
    fmt::print(stderr, "{}\n", recording.error().message);
    return false;
  }
  const std::string name = "Encode/recording:" + std::filesystem::path(path).stem().string();
  benchmark::RegisterBenchmark(name.c_str(), [frames =
                                                  *std::move(recording)](benchmark::State& state) {
    encode_recording(state, frames);
  })->Unit(benchmark::kMicrosecond);
  return true;
}

void every_block(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"load", "tier"})->ArgsProduct({{0, 1, 2}, {0, 1, 2}});
}

BENCHMARK(Encode)->Apply(every_block)->Unit(benchmark::kMicrosecond);
BENCHMARK(Decode)->Apply(every_block)->Unit(benchmark::kMicrosecond);
BENCHMARK(DecodeOneColumn)->Args({1, 0})->Unit(benchmark::kMicrosecond);
BENCHMARK(RollUp)->DenseRange(0, 2)->Unit(benchmark::kMicrosecond);
BENCHMARK(SizeOfEightGpus)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace gpu_platform::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  for (std::size_t i = 0; i < words.size(); i += 2) {
    if (words[i] != "--recording" || i + 1 == words.size()) {
      fmt::print(stderr, "usage: telemetry_bench [--recording FILE.csv]... [--benchmark_...]\n");
      return 2;
    }
    if (!gpu_platform::bench::add_recording(std::string(words[i + 1]))) return 1;
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
