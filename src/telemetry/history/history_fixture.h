#pragma once

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "store/sqlite/database.h"
#include "telemetry/history/history_file.h"

// A history in a folder of its own, at times that the test sets.

namespace gpu_platform::telemetry {

// Noon of a day in 2026 (UTC).
inline constexpr base::Instant kNoon{1'780'056'000'000'000'000};

inline MetricId gpu_metric_id(std::string_view name) {
  return metric_named(Of::kGpu, name).value();
}
inline MetricId power() {
  return gpu_metric_id("power_watts");
}
inline MetricId temperature() {
  return gpu_metric_id("temperature_c");
}
// A counter.
inline MetricId energy() {
  for (MetricId id = 0; id < metrics().size(); ++id) {
    if (metric(id).of == Of::kGpu && metric(id).kind == MetricKind::kCounter) return id;
  }
  ADD_FAILURE() << "no GPU has a counter";
  return 0;
}

inline Subject gpu(int index) {
  return {Of::kGpu, "node", fmt::format("GPU-{}", index), {}};
}

inline Frames frames_of(std::vector<Frame> frames) {
  return std::make_shared<const std::vector<Frame>>(std::move(frames));
}

// Values that change from second to second and differ between GPUs.
inline std::int64_t watts(int index, std::int64_t second) {
  return 300'000 + 1'000 * ((second * 7 + index * 13) % 100);
}

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() {
    std::string name = (std::filesystem::temp_directory_path() / "gp-history-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~HistoryTest() override {
    file_.reset();
    std::filesystem::remove_all(folder_);
  }

  std::filesystem::path path() const { return folder_ / "history.db"; }
  const std::filesystem::path& folder() const { return folder_; }

  HistoryFile::Options options() {
    return {.path = path(),
            .bounds = bounds_,
            .log =
                [this](bool is_warning, const std::string& line) {
                  const std::lock_guard lock(lines_guard_);
                  lines_.push_back((is_warning ? "warning: " : "info: ") + line);
                },
            .clock = [this] { return base::Instant(now_ns_.load()); },
            // The tests say when.
            .write_interval = base::hours(24)};
  }
  HistoryFile& open() {
    file_.reset();
    file_ = HistoryFile::open(options());
    return *file_;
  }
  void close() { file_.reset(); }
  HistoryFile& file() { return *file_; }

  void set_now(base::Instant now) { now_ns_ = now.unix_ns(); }
  base::Instant now() const { return base::Instant(now_ns_.load()); }

  // A reading of so many GPUs at the time, with a counter that grows by 5 a second.
  Frames reading(base::Instant at, int gpus = 1) const {
    const std::int64_t second = (at - kNoon).value() / 1'000'000'000;
    std::vector<Frame> frames;
    for (int i = 0; i < gpus; ++i) {
      Frame frame{gpu(i), at, {}};
      frame.values = {{temperature(), 60 + second % 10},
                      {power(), watts(i, second)},
                      {energy(), 1'000'000 + 5 * second}};
      std::ranges::sort(frame.values, {}, &Value::metric);
      frames.push_back(std::move(frame));
    }
    return frames_of(std::move(frames));
  }
  // One reading a second, from the time on.
  void feed(base::Instant from, int seconds, int gpus = 1) {
    for (int i = 0; i < seconds; ++i) file_->take(reading(from + base::seconds(i), gpus));
  }

  std::vector<Series> ask(HistoryQuery query) const {
    auto series = file_->query(query);
    EXPECT_TRUE(series) << series.error().message;
    return series ? *std::move(series) : std::vector<Series>();
  }
  Series ask_one(MetricId metric, base::Instant from, base::Instant to, base::Duration step = {},
                 int index = 0) const {
    std::vector<Series> series =
        ask({.subjects = {gpu(index)}, .metrics = {metric}, .from = from, .to = to, .step = step});
    EXPECT_EQ(series.size(), 1u);
    return series.empty() ? Series() : std::move(series.front());
  }

  std::vector<std::string> lines() const {
    const std::lock_guard lock(lines_guard_);
    return lines_;
  }
  bool has_line(std::string_view part) const {
    return std::ranges::any_of(
        lines(), [&](const std::string& line) { return line.find(part) != std::string::npos; });
  }

  std::int64_t count(const std::string& what) const {
    auto database = store::Database::open(path().string(), store::Database::Mode::kReadOnly);
    EXPECT_TRUE(database) << database.error().message;
    const auto number = database->query_integer("SELECT COUNT(*) FROM " + what);
    EXPECT_TRUE(number) << number.error().message;
    return number.value_or(-1);
  }

  HistoryBounds bounds_;
  std::unique_ptr<HistoryFile> file_;

 private:
  std::filesystem::path folder_;
  std::atomic<std::int64_t> now_ns_{kNoon.unix_ns()};
  mutable std::mutex lines_guard_;
  std::vector<std::string> lines_;  // guarded by lines_guard_
};

}  // namespace gpu_platform::telemetry
