#include "cli/screen/watch_page.h"

#include <algorithm>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/utc.h"
#include "cli/screen/watch_jobs.h"
#include "cli/screen/watch_nodes.h"
#include "cli/text/state_color.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

base::Instant start() {
  return *base::parse_rfc3339("2026-07-01T12:00:00Z");
}

v1::Gpu& add_gpu(WatchView& view, const std::string& node, std::uint32_t index,
                 v1::GpuState state) {
  v1::Gpu& gpu = *view.status.add_gpus();
  gpu.set_node(node);
  gpu.set_index(index);
  gpu.set_type("H100-80GB");
  gpu.set_state(state);
  gpu.set_memory_total_bytes(80 * kGib);
  view.status.set_total_gpus(view.status.total_gpus() + 1);
  return gpu;
}

v1::Gpu& add_used_gpu(WatchView& view, const std::string& node, std::uint32_t index,
                      const std::string& job, double percent) {
  v1::Gpu& gpu = add_gpu(view, node, index, v1::GPU_STATE_IN_USE);
  gpu.add_jobs(job);
  gpu.set_utilization_percent(percent);
  gpu.set_memory_used_bytes(40 * kGib);
  return gpu;
}

void set_time(google::protobuf::Timestamp& field, base::Instant at) {
  field.set_seconds(at.unix_ns() / 1'000'000'000);
}

// It started at start() and may run for an hour.
void add_running(WatchView& view, const std::string& id, const std::string& user) {
  v1::Job job;
  job.set_id(id);
  job.set_state(v1::JOB_STATE_RUNNING);
  set_time(*job.mutable_started_at(), start());
  job.mutable_spec()->set_user(user);
  job.mutable_spec()->set_name("train");
  job.mutable_spec()->set_gpus(1);
  job.mutable_spec()->set_time_limit_seconds(3600);
  view.jobs[id] = watched_job(job);
  view.running.push_back(std::move(job));
}

void add_waiting(WatchView& view, const std::string& id, const std::string& why) {
  v1::Job job;
  job.set_id(id);
  job.set_state(v1::JOB_STATE_QUEUED);
  set_time(*job.mutable_submitted_at(), start());
  job.mutable_wait_reason()->set_text(why);
  job.mutable_spec()->set_user("bob");
  job.mutable_spec()->set_gpus(2);
  view.waiting.push_back(std::move(job));
  ++view.all_waiting;
}

WatchView view_at(base::Duration after) {
  WatchView view;
  view.now = view.at = start() + after;
  return view;
}

// The first words of the rows.
std::string ids_of(const WatchTable& table) {
  std::vector<std::string> ids;
  for (const WatchRow& row : table.rows) ids.push_back(row.text.substr(0, row.text.find(' ')));
  return joined(ids, " ");
}

std::string joined_lines(const std::vector<std::string>& lines) {
  return fmt::format("{}", fmt::join(lines, "\n"));
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// ---- jobs ----

TEST(WatchJobs, HaveTheirTimesAndWhatTheyUseNow) {
  WatchView view = view_at(base::minutes(5));
  add_used_gpu(view, "n1", 0, "7", 90);
  add_used_gpu(view, "n1", 1, "7", 50);
  add_running(view, "7", "ada");
  add_waiting(view, "8", "1 node is 1 GPU short");
  view.all_waiting = 3;
  const WatchTable table = watch_jobs(view, {}, {});
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.titles,
            "ID  USER  NAME   GPUS  STATE     TIME    LEFT   GPU  GPU MEM  WHERE OR WHY");
  EXPECT_EQ(table.rows[0].text, "7   ada   train     1  RUNNING  5m00s  55m00s  70 %   80 GiB  -");
  EXPECT_EQ(table.rows[1].text,
            "8   bob   -         2  QUEUED   5m00s       -     -        -  1 node is 1 GPU short");
  EXPECT_EQ(table.rows[2].text, "and 2 more wait");
}

TEST(WatchJobs, SayWhyTheyAreIdle) {
  WatchView view = view_at(base::minutes(5));
  v1::Gpu& first = add_used_gpu(view, "n1", 0, "7", 0);
  add_running(view, "7", "ada");
  note_idle_gpus(view);
  view.now = view.now + base::seconds(35);
  const auto row = [&] { return watch_jobs(view, {}, {}).rows[0]; };
  EXPECT_TRUE(contains(row().text, "idle 35s, 40 GiB loaded")) << row().text;
  EXPECT_TRUE(row().is_noted);
  first.set_memory_used_bytes(kGib / 2);
  EXPECT_TRUE(contains(row().text, "idle 35s, nothing loaded")) << row().text;
  add_used_gpu(view, "n1", 1, "7", 50);
  EXPECT_TRUE(contains(row().text, "1 of 2 GPUs idle 35s")) << row().text;
  view.idle_since.clear();
  EXPECT_FALSE(contains(row().text, "idle")) << row().text;
  EXPECT_FALSE(row().is_noted);
}

TEST(WatchJobs, HaveTheirOwnPartOfASharedGpu) {
  WatchView view = view_at(base::minutes(5));
  v1::Gpu& gpu = add_used_gpu(view, "n1", 0, "7", 90);
  gpu.add_parts()->set_job("7");
  add_running(view, "7", "ada");
  EXPECT_TRUE(contains(watch_jobs(view, {}, {}).rows[0].text, "    -        -  -"))
      << "that of the GPU is not the job's: " << watch_jobs(view, {}, {}).rows[0].text;
  view.parts[{"7", "n1:0"}] = {.utilization_percent = 30, .memory_used_bytes = 10 * kGib};
  EXPECT_TRUE(contains(watch_jobs(view, {}, {}).rows[0].text, "30 %   10 GiB"))
      << watch_jobs(view, {}, {}).rows[0].text;
}

TEST(WatchJobs, AreSortedAndFilteredAndWaitingOnesStayBehind) {
  WatchView view = view_at(base::minutes(5));
  for (const auto& [id, user, percent] :
       {std::tuple{"10", "ada", 90.0}, std::tuple{"9", "cleo", 20.0},
        std::tuple{"11", "bob", 50.0}}) {
    add_used_gpu(view, "n1", static_cast<std::uint32_t>(view.status.gpus_size()), id, percent);
    add_running(view, id, user);
  }
  add_waiting(view, "12", "a reservation is near");
  const auto order = [&](WatchJobOrder by) {
    return ids_of(watch_jobs(view, {.job_order = by}, {}));
  };
  EXPECT_EQ(order(WatchJobOrder::kId), "9 10 11 12") << "as numbers";
  EXPECT_EQ(order(WatchJobOrder::kUser), "10 11 9 12");
  EXPECT_EQ(order(WatchJobOrder::kLeastBusy), "9 11 10 12");
  const auto found = [&](const std::string& filter) {
    return ids_of(watch_jobs(view, {.filter = filter}, {}));
  };
  EXPECT_EQ(found("CLEO"), "9");
  EXPECT_EQ(found("bob"), "11 12");
  EXPECT_EQ(found("queued"), "12");
  EXPECT_EQ(found("reservation"), "12");
  EXPECT_EQ(found("no such text"), "");
}

// ---- nodes ----

TEST(WatchNodes, HaveACharacterForEachGpu) {
  WatchView view = view_at(base::minutes(5));
  add_used_gpu(view, "n1", 0, "7", 100).set_power_watts(700);
  add_used_gpu(view, "n1", 1, "7", 64).set_power_watts(500);
  add_gpu(view, "n1", 2, v1::GPU_STATE_AVAILABLE);
  add_gpu(view, "n1", 3, v1::GPU_STATE_OFFLINE);
  add_gpu(view, "n2", 0, v1::GPU_STATE_IN_USE).add_jobs("8");
  const WatchTable table = watch_nodes(view.status.gpus(), view, {.is_ascii = true});
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].text, "n1    2 of 4  96.x  82 %  80/160 GiB  1.2 kW  1 out");
  EXPECT_TRUE(table.rows[0].is_noted);
  EXPECT_EQ(table.rows[1].text, "n2    1 of 1  ?        -           -       -  -");
  EXPECT_FALSE(table.rows[1].is_noted);
  EXPECT_TRUE(contains(watch_nodes(view.status.gpus(), view, {}).rows[0].text, "█▆·×"));
}

// ---- the page ----

WatchPageStyle sized(std::size_t columns, std::size_t rows) {
  return {.size = {.columns = columns, .rows = rows}};
}

TEST(WatchPage, HasAsManyLinesAsTheScreenAndNoneIsWider) {
  WatchView view = view_at(base::minutes(5));
  for (std::uint32_t i = 0; i < 16; ++i) {
    add_used_gpu(view, i < 8 ? "node-with-a-long-name-1" : "n2", i % 8, "7", 10.0 * i);
    view.past.add(fmt::format("n2:{}", i % 8), view.at, 10.0 * i);
  }
  add_running(view, "7", "ada");
  for (int i = 0; i < 20; ++i) add_waiting(view, fmt::format("{}", 100 + i), "2 nodes are short");
  view.problem = "no daemon answers at a place with a long name";
  for (const std::size_t columns : {20U, 40U, 80U, 119U, 120U, 170U, 400U}) {
    for (const std::size_t rows : {1U, 2U, 5U, 24U, 50U, 100U}) {
      for (const std::string_view typed : {"", "h", "\x07", "/ada", "nn"}) {
        WatchKeys keys;
        for (const char key : typed) keys.take(key);
        const auto lines = WatchPage().lines(view, keys, sized(columns, rows), "");
        EXPECT_EQ(lines.size(), rows);
        for (const std::string& line : lines) {
          EXPECT_LE(display_width(without_colors(line)), columns) << line;
        }
      }
    }
  }
}

TEST(WatchPage, ShowsGpusJobsAndKeysInAnOrdinaryTerminal) {
  WatchView view = view_at(base::minutes(5));
  for (std::uint32_t i = 0; i < 8; ++i) add_used_gpu(view, "n1", i, "7", 90);
  add_running(view, "7", "ada");
  add_waiting(view, "8", "1 node is 1 GPU short");
  const auto lines = WatchPage().lines(view, {}, sized(80, 24), "");
  const std::string text = joined_lines(lines);
  EXPECT_TRUE(contains(text, "JOBS AND REASON")) << text;
  EXPECT_TRUE(contains(text, "WHERE OR WHY")) << text;
  EXPECT_TRUE(contains(text, "1 node is 1 GPU short")) << text;
  EXPECT_EQ(lines.back(),
            "q quit  h help  Tab pane  s sort  / filter  g graph  n nodes  arrows scroll");
  EXPECT_EQ(WatchPage().lines(view, {}, sized(80, 24), "job 7 is being cancelled").back(),
            "job 7 is being cancelled");
}

TEST(WatchPage, HasALineForEachNodeWhereGpusDoNotFit) {
  WatchView view = view_at(base::minutes(5));
  for (const char* const node : {"n1", "n2", "n3", "n4"}) {
    for (std::uint32_t i = 0; i < 8; ++i) add_used_gpu(view, node, i, "7", 55);
  }
  const auto shown = [&](const WatchKeys& keys, std::size_t rows) {
    return joined_lines(WatchPage().lines(view, keys, sized(100, rows), ""));
  };
  WatchKeys keys;
  EXPECT_TRUE(contains(shown(keys, 24), "▅▅▅▅▅▅▅▅")) << shown(keys, 24);
  EXPECT_FALSE(contains(shown(keys, 24), "JOBS AND REASON"));
  EXPECT_TRUE(contains(shown(keys, 60), "JOBS AND REASON")) << "there is room for all GPUs";
  keys.take('n');
  EXPECT_TRUE(contains(shown(keys, 24), "JOBS AND REASON")) << "each GPU, as asked for";
  EXPECT_TRUE(contains(shown(keys, 24), "GPUs 1 to ")) << shown(keys, 24);
  keys.take('n');
  EXPECT_TRUE(contains(shown(keys, 60), "▅▅▅▅▅▅▅▅")) << "nodes, as asked for";
}

TEST(WatchPage, ScrollsEachTableAlone) {
  WatchView view = view_at(base::minutes(5));
  for (std::uint32_t i = 0; i < 40; ++i) add_gpu(view, "n1", i, v1::GPU_STATE_AVAILABLE);
  for (int i = 0; i < 40; ++i) add_waiting(view, fmt::format("{}", 100 + i), "why");
  WatchKeys gpus, jobs;
  jobs.take(kKeyTab);
  WatchPage all;
  const auto footer = [&](const WatchKeys& keys) {
    return all.lines(view, keys, sized(100, 24), "").back();
  };
  // 24 lines: 2 of the header and a blank one, 3 of titles, the keys; 17 for both tables.
  EXPECT_TRUE(footer(gpus).starts_with("GPUs 1 to 12 of 40")) << footer(gpus);
  EXPECT_TRUE(footer(jobs).starts_with("jobs 1 to 5 of 40")) << footer(jobs);
  all.scroll(kKeyPageDown, WatchPane::kJobs);
  EXPECT_TRUE(footer(jobs).starts_with("jobs 6 to 10 of 40")) << footer(jobs);
  all.scroll(kKeyUp, WatchPane::kJobs);
  EXPECT_TRUE(footer(jobs).starts_with("jobs 5 to 9 of 40")) << footer(jobs);
  EXPECT_TRUE(footer(gpus).starts_with("GPUs 1 to 12 of 40")) << footer(gpus);
  for (int i = 0; i < 9; ++i) all.scroll(kKeyPageDown, WatchPane::kGpus);
  EXPECT_TRUE(footer(gpus).starts_with("GPUs 29 to 40 of 40")) << footer(gpus);
}

TEST(WatchPage, DrawsAGraphOfAllGpusWhereThereIsRoom) {
  WatchView view = view_at(base::minutes(5));
  add_used_gpu(view, "n1", 0, "7", 90);
  view.past.add("n1:0", view.at, 90);
  WatchKeys keys;
  const auto shown = [&](std::size_t rows) {
    return joined_lines(WatchPage().lines(view, keys, sized(80, rows), ""));
  };
  EXPECT_TRUE(contains(shown(24), "utilization of these GPUs")) << shown(24);
  EXPECT_TRUE(contains(shown(24), "100 %")) << shown(24);
  EXPECT_FALSE(contains(shown(12), "utilization of these GPUs")) << shown(12);
  keys.take('g');
  EXPECT_FALSE(contains(shown(24), "utilization of these GPUs")) << shown(24);
}

TEST(WatchPage, HasNoOtherCharactersThanAsciiWhereAsked) {
  WatchView view = view_at(base::minutes(5));
  add_used_gpu(view, "n1", 0, "7", 90).set_temperature_c(61);
  add_running(view, "7", "josé");
  WatchPageStyle style = sized(80, 24);
  style.is_ascii = true;
  const std::string text = joined_lines(WatchPage().lines(view, {}, style, ""));
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 128; }))
      << text;
  EXPECT_TRUE(contains(text, "61  C")) << text;
  EXPECT_TRUE(contains(text, "jos?")) << text;
}

TEST(WatchPicture, HasAllRowsAndNoCodes) {
  WatchView view = view_at(base::minutes(5));
  for (std::uint32_t i = 0; i < 40; ++i) add_gpu(view, "n1", i, v1::GPU_STATE_AVAILABLE);
  for (int i = 0; i < 40; ++i) add_waiting(view, fmt::format("{}", 100 + i), "why");
  for (const std::size_t width : {0U, 80U}) {
    const std::string text = watch_picture(view, width, false);
    EXPECT_FALSE(contains(text, "\x1b")) << text;
    EXPECT_TRUE(contains(text, " 39 ")) << text;
    EXPECT_TRUE(contains(text, "\n139 ")) << text;
  }
}

}  // namespace
}  // namespace gpu_platform::cli
