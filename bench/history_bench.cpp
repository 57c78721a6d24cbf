// This program measures what the history of readings costs on the disk of the build (GP_BENCH_DIR
// names another), with made-up readings (telemetry_series.h): the CPU time of a frame from take()
// until its hour is one row of each tier, and queries of a day and of 30 days over eight GPUs.

#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "bench_directory.h"
#include "telemetry/history/history_file.h"
#include "telemetry_series.h"

namespace gpu_platform::bench {
namespace {

using telemetry::Frame;
using telemetry::HistoryFile;

// A Sunday in 2026, 00:00 UTC.
constexpr base::Instant kBegin{1'780'185'600'000'000'000};
constexpr int kHour = 3'600;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// GPUs at work whose readings come at the times that the measurement sets.
class Site {
 public:
  Site(int gpus, const std::filesystem::path& path, base::Bytes max_bytes) {
    constexpr Load kLoads[] = {Load::kTraining, Load::kInference, Load::kTraining, Load::kIdle};
    for (int i = 0; i < gpus; ++i) gpus_.emplace_back(kLoads[i % 4], static_cast<std::uint64_t>(i));
    history_ = HistoryFile::open({.path = path,
                                  .bounds = {.max_bytes = max_bytes},
                                  .clock = [this] { return now_; },
                                  .write_interval = base::hours(24)});
  }

  // The next readings of all GPUs, so many seconds apart.
  std::vector<telemetry::Frames> readings(int count, int apart) {
    std::vector<telemetry::Frames> all;
    for (int i = 0; i < count; ++i) {
      std::vector<Frame> frames;
      for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
        frames.push_back(gpus_[gpu].next());
        frames.back().subject.uuid = uuid_of(gpu);
        frames.back().at = next_;
        std::erase_if(frames.back().values, [](const telemetry::Value& value) {
          return telemetry::metric(value.metric).of != telemetry::Of::kGpu;
        });
      }
      next_ = next_ + base::seconds(apart);
      all.push_back(std::make_shared<const std::vector<Frame>>(std::move(frames)));
    }
    return all;
  }
  // Has them written, as each minute.
  void write(const std::vector<telemetry::Frames>& readings) {
    for (const telemetry::Frames& frames : readings) history_->take(frames);
    now_ = next_;
    history_->flush();
  }
  // The hours before are over.
  void settle() {
    now_ = next_ + base::minutes(5);
    history_->flush();
  }

  static std::string uuid_of(std::size_t gpu) { return fmt::format("GPU-{}", gpu); }
  base::Instant now() const { return next_; }
  HistoryFile& history() { return *history_; }

 private:
  std::vector<MadeUpGpu> gpus_;
  base::Instant next_ = kBegin;
  base::Instant now_ = kBegin;  // set while the history's thread rests
  std::unique_ptr<HistoryFile> history_;
};

// An hour of samples at 1 Hz: written each minute, rolled up and merged at its end.
void BM_HourOfFrames(benchmark::State& state) {
  const auto gpus = static_cast<int>(state.range(0));
  double seconds = 0;
  std::uint64_t frames = 0;
  double bytes = 0;
  for (auto _ : state) {
    const BenchDirectory directory;
    Site site(gpus, directory.path() / "history.db", base::kGiB * 4);
    for (int minute = 0; minute < 60; ++minute) {
      const std::vector<telemetry::Frames> readings = site.readings(60, 1);
      const double before = cpu_seconds();
      site.write(readings);
      seconds += cpu_seconds() - before;
    }
    const double before = cpu_seconds();
    site.settle();
    seconds += cpu_seconds() - before;
    frames += static_cast<std::uint64_t>(gpus) * kHour;
    bytes = static_cast<double>(site.history().coverage().bytes);
  }
  const double per_frame = seconds / static_cast<double>(frames);
  state.counters["cpu_ns_per_frame"] = per_frame * 1e9;
  state.counters["percent_of_core_10000_gpus"] = per_frame * 10'000 * 100;
  state.counters["file_bytes_per_gpu_hour"] = bytes / gpus;
}
BENCHMARK(BM_HourOfFrames)->Arg(16)->Arg(64)->Iterations(1)->Unit(benchmark::kMillisecond);

// Eight GPUs: 28 days with a reading a minute, then two days at 1 Hz. Made once.
Site& month() {
  static const BenchDirectory directory;
  static Site site(8, directory.path() / "history.db", base::kGiB * 4);
  static const bool is_made = [] {
    for (int hour = 0; hour < 28 * 24; ++hour) {
      site.write(site.readings(60, 60));
      site.settle();
    }
    for (int hour = 0; hour < 48; ++hour) {
      for (int part = 0; part < 6; ++part) site.write(site.readings(600, 1));
      site.settle();
    }
    return true;
  }();
  CHECK(is_made);
  return site;
}

// All GPUs, four metrics. state: hours, step in seconds, whether percentiles are wanted.
void BM_Query(benchmark::State& state) {
  Site& site = month();
  telemetry::HistoryQuery query;
  for (std::size_t gpu = 0; gpu < 8; ++gpu) {
    query.subjects.push_back({telemetry::Of::kGpu, "n1", Site::uuid_of(gpu), {}});
  }
  for (const char* const name :
       {"utilization_percent", "memory_used_bytes", "temperature_c", "power_watts"}) {
    const auto id = telemetry::metric_named(telemetry::Of::kGpu, name);
    if (id) query.metrics.push_back(*id);
  }
  CHECK(!query.metrics.empty());
  query.to = site.now() + base::hours(-5);  // within a day, as most windows end
  query.from = query.to + base::hours(-state.range(0));
  query.step = base::seconds(state.range(1));
  query.wants_spread = state.range(2) != 0;
  std::size_t points = 0;
  for (auto _ : state) {
    const auto answer = site.history().query(query);
    CHECK(answer.has_value());
    points = 0;
    for (const telemetry::Series& series : *answer) points += series.points.size();
  }
  state.counters["points"] = static_cast<double>(points);
}
BENCHMARK(BM_Query)
    ->ArgNames({"hours", "step_s", "percentiles"})
    ->Args({1, 0, 0})
    ->Args({24, 60, 0})
    ->Args({24, 60, 1})
    ->Args({720, 900, 0})
    ->Args({720, 3'600, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace gpu_platform::bench
