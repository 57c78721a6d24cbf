#include <pthread.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <algorithm>
#include <csignal>

#include <gtest/gtest.h>

#include "base/utc.h"
#include "cli/cli_fixture_test.h"
#include "cli/screen/screen.h"
#include "cli/screen/watch_view.h"
#include "cli/text/json_view.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

std::string gpu(int index, std::string_view more) {
  return fmt::format(
      R"({{"node":"dgx-1","index":{},"type":"H100-80GB","emulated":true,"memory_total_bytes":85899345920,{}}})",
      index, more);
}

std::string status_of(const std::vector<std::string>& gpus) {
  return fmt::format(
      R"({{"total_gpus":{},"available_gpus":1,"utilization":0.5,"queued_jobs":3,"running_jobs":1,"held_jobs":0,"suspended_jobs":0,"gpus":[{}]}})",
      gpus.size(), fmt::join(gpus, ","));
}

std::string two_gpus() {
  return status_of(
      {gpu(0,
           R"("state":"IN_USE","jobs":["42"],"memory_used_bytes":42949672960,"utilization_percent":60,"temperature_c":61,"power_watts":500)"),
       gpu(1,
           R"("state":"OFFLINE","jobs":[],"reason":"a fan is loud","unmanaged_processes":[{"pid":4711,"user":"bob"}])")});
}

// A daemon with one running job of ada's and one waiting, and neither a history nor readings.
std::string answer(const Request& request) {
  if (has(request.target, "/v1/status")) return json_answer(two_gpus());
  if (has(request.target, "/v1/gpus")) {
    return json_answer(R"({"gpus":[{"gpu":{"node":"dgx-1","index":0},"power_limit_watts":700}]})");
  }
  if (has(request.target, "/v1/jobs")) {
    return json_answer(
        R"({"jobs":[{"id":"42","state":"RUNNING","spec":{"user":"ada","gpus":1}}]})");
  }
  if (has(request.target, "/v1/queue")) {
    return json_answer(
        R"({"total":1,"jobs":[{"id":"43","state":"QUEUED","spec":{"name":"train","user":"bob","gpus":2},"wait_reason":{"text":"1 node is 1 GPU short"}}]})");
  }
  return json_answer("{}", 404);
}

WatchView view_of(const std::string& status) {
  WatchView view;
  view.status = *client::message_of<v1::Status>(status);
  view.jobs = {{"42", {.id = "42", .user = "ada"}}};
  view.now = view.at = *base::parse_rfc3339("2026-07-01T12:03:12Z");
  return view;
}

// The titles and the rows.
std::vector<std::string> watch_rows(const WatchView& view, std::size_t width) {
  const WatchTable table = watch_gpus(view.status.gpus(), view, {.width = width});
  std::vector<std::string> lines = {table.titles};
  for (const WatchRow& row : table.rows) lines.push_back(row.text);
  return lines;
}

// ---- what is drawn ----

TEST(WatchBar, IsAsLongAsItsPartAndSaysIt) {
  EXPECT_EQ(bar(0.5, "50 %", 12), "[||||| 50 %]");
  EXPECT_EQ(bar(0, "0 %", 12), "[       0 %]");
  EXPECT_EQ(bar(1, "100 %", 12), "[|||||100 %]");
  EXPECT_EQ(bar(7, "x", 5), "[||x]");
  EXPECT_EQ(bar(-1, "x", 5), "[  x]");
  EXPECT_EQ(display_width(bar(0.3, "a text that is too long", 10)), 10U);
}

TEST(WatchRows, HaveBarsReadingsJobsAndUnmanagedProcesses) {
  const auto rows = watch_rows(view_of(two_gpus()), 120);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[1],
            "dgx-1    0  H100-80GB  [|||||||||||   60 %]  [|||||||||40/80 GiB]  61 °C  500 W  "
            "IN_USE   42 ada");
  EXPECT_EQ(rows[2],
            "dgx-1    1  H100-80GB  -                     -                         -      -  "
            "OFFLINE  4711 bob (no job); a fan is l…");
}

TEST(WatchRows, NameAnUnmanagedProcessOnce) {
  const std::string avoided = gpu(
      0,
      R"x("state":"AVAILABLE","reason":"unmanaged processes: pid 77 (python of bob)","unmanaged_processes":[{"pid":77,"user":"bob"}])x");
  const std::string row = watch_rows(view_of(status_of({avoided})), 0)[1];
  EXPECT_TRUE(row.ends_with("AVAILABLE  unmanaged processes: pid 77 (python of bob)")) << row;
}

TEST(WatchRows, NameTheJobItsTimeLeftAndAnIdleGpu) {
  WatchView view =
      view_of(status_of({gpu(0, R"("state":"IN_USE","jobs":["42"],"utilization_percent":0)"),
                         gpu(1, R"("state":"AVAILABLE","jobs":[],"utilization_percent":0)")}));
  view.jobs["42"] = watched_job(*client::message_of<v1::Job>(
      R"({"id":"42","array_id":"40","array_index":2,"started_at":"2026-07-01T12:00:00Z","spec":{"user":"ada","name":"train","time_limit_seconds":7200}})"));
  note_idle_gpus(view);
  EXPECT_TRUE(watch_rows(view, 0)[1].ends_with("IN_USE     40_2 ada train 1h56m left"))
      << "idle since a moment only: " << watch_rows(view, 0)[1];
  view.now = view.now + base::seconds(35);
  note_idle_gpus(view);
  EXPECT_TRUE(watch_rows(view, 0)[1].ends_with("idle 35s: 40_2 ada train 1h56m left"))
      << watch_rows(view, 0)[1];
  EXPECT_EQ(view.idle_since.size(), 1U) << "a GPU without a job is not idle, it is free";
}

TEST(WatchRows, SayHowJobsShareAGpu) {
  const WatchView view = view_of(status_of({gpu(
      0,
      R"("state":"IN_USE","jobs":["42","43"],"parts":[{"job":"42","share":0.5,"mode":"TIME_SLICE"},)"
      R"({"job":"43","share":0.25,"mode":"TIME_SLICE"}])")}));
  EXPECT_TRUE(watch_rows(view, 0)[1].ends_with("42 ada (0.5), 43 (0.25) by time-slice"))
      << watch_rows(view, 0)[1];
  EXPECT_TRUE(watch_rows(view, 60)[1].find("time-slice") == std::string::npos);
}

TEST(WatchRows, AreSortedAndFiltered) {
  const WatchView view = view_of(status_of(
      {gpu(0, R"("state":"IN_USE","jobs":["42"],"utilization_percent":60,"memory_used_bytes":1)"),
       gpu(1, R"("state":"AVAILABLE","jobs":[])"),
       gpu(2, R"("state":"IN_USE","jobs":["41"],"utilization_percent":5,"memory_used_bytes":9)")}));
  const auto order = [&](const WatchArrangement& arrangement) {
    std::string indices;
    const ClusterGpus gpus = arranged(view, arrangement);
    for (const v1::Gpu& each : gpus) {
      indices += std::to_string(each.index());
    }
    return indices;
  };
  EXPECT_EQ(order({}), "012");
  EXPECT_EQ(order({.order = WatchOrder::kLeastBusy}), "201");
  EXPECT_EQ(order({.order = WatchOrder::kByMemory}), "201");
  EXPECT_EQ(order({.order = WatchOrder::kJob}), "201");
  EXPECT_EQ(order({.filter = "ADA"}), "0");
  EXPECT_EQ(order({.filter = "dgx-1:2"}), "2");
  EXPECT_EQ(order({.filter = "no such text"}), "");
}

TEST(WatchRows, FitEveryWidth) {
  for (std::size_t width = 60; width < 200; width += 7) {
    for (const std::string& row : watch_rows(view_of(two_gpus()), width)) {
      EXPECT_LE(display_width(row), width) << row;
    }
    for (const std::string& line : watch_header(view_of(two_gpus()), width)) {
      EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(WatchRows, HaveTheLimitOfThePowerWhereThereIsRoom) {
  WatchView view = view_of(two_gpus());
  view.power_limits["dgx-1:0"] = 700;
  EXPECT_TRUE(has(watch_rows(view, 150)[1], " 500/700 W ")) << watch_rows(view, 150)[1];
  EXPECT_TRUE(has(watch_rows(view, 100)[1], " 500 W ")) << watch_rows(view, 100)[1];
}

TEST(WatchRows, DrawTheLastMinutes) {
  WatchView view = view_of(two_gpus());
  for (int minute = 0; minute <= 10; ++minute) {
    view.past.add("dgx-1:0", view.at + base::minutes(minute), minute < 6 ? 0 : 100);
  }
  view.at = view.at + base::minutes(10);
  const auto row = [&](const WatchStyle& style) {
    return watch_gpus(view.status.gpus(), view, style).rows[0].text;
  };
  const std::string narrow = row({.width = 100, .has_graphs = true, .is_ascii = true});
  EXPECT_TRUE(has(narrow, "  60 % ..:## ")) << narrow;
  EXPECT_TRUE(has(row({.width = 100, .has_graphs = true}), "▁▁"));
  const std::string broad = row({.width = 200, .has_graphs = true, .is_ascii = true});
  EXPECT_TRUE(has(broad, "60 %]")) << broad << ": a bar and a graph";
  EXPECT_TRUE(has(broad, ".....")) << broad;
  EXPECT_FALSE(has(row({.width = 200, .is_ascii = true}), "....."));
}

TEST(WatchHeader, HasAllocationAndUtilizationAsTwoNumbers) {
  WatchView view = view_of(two_gpus());
  EXPECT_TRUE(has(watch_header(view, 0)[0],
                  "2 GPUs (emulated): 1 free, 1 used, 1 out; 50 % allocated, 60 % utilized"))
      << watch_header(view, 0)[0];
  view.status.set_gpu_utilization(0.25);
  EXPECT_TRUE(has(watch_header(view, 0)[0], "50 % allocated, 25 % utilized"))
      << "the daemon's own number: " << watch_header(view, 0)[0];
}

TEST(WatchRows, MarkEmulatedGpusAmongOthers) {
  const std::string real = R"({"node":"n2","index":0,"emulated":false,"state":"AVAILABLE"})";
  const auto rows = watch_rows(view_of(status_of({gpu(0, R"("state":"AVAILABLE")"), real})), 0);
  EXPECT_TRUE(begins(rows[1], "dgx-1 (emulated)")) << rows[1];
  EXPECT_TRUE(begins(rows[2], "n2 ")) << rows[2];
  EXPECT_TRUE(has(watch_header(view_of(two_gpus()), 0)[0], "2 GPUs (emulated)"));
}

TEST(Keys, AreLettersArrowsAndPages) {
  EXPECT_EQ(keys_of("qj"), (std::vector<char>{'q', 'j'}));
  EXPECT_EQ(keys_of("\x1b[A\x1bOB\x1b[5~\x1b[6~"),
            (std::vector<char>{kKeyUp, kKeyDown, kKeyPageUp, kKeyPageDown}));
  EXPECT_TRUE(keys_of("\x1b[1;5C\x1b[200~\x1b\xc3\xa9").empty());
  EXPECT_EQ(keys_of("\r\x7f"), (std::vector<char>{kKeyEnter, kKeyBackspace}));
  EXPECT_EQ(keys_of("\t"), (std::vector<char>{kKeyTab}));
  EXPECT_TRUE(keys_of("\x1b[12").empty());
}

// ---- where output is no terminal ----

TEST_F(Cli, WatchRepeatsATableWhereThereIsNoTerminal) {
  FakeServer server(answer);
  EXPECT_EQ(call(server, {"watch", "--interval", "5s", "--count", "2"}), 0);
  EXPECT_EQ(pauses_, 1);
  EXPECT_EQ(clock_, base::seconds(5));
  const std::string text = out();
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  const std::string tables =
      "NODE   GPU  TYPE       UTIL     MEMORY   TEMP      POWER  STATE    JOBS AND REASON\n"
      "dgx-1    0  H100-80GB  60 %  40/80 GiB  61 °C  500/700 W  IN_USE   42 ada\n"
      "dgx-1    1  H100-80GB     -          -      -          -  OFFLINE  4711 bob (no job); a fan "
      "is loud\n"
      "\n"
      "ID  USER  NAME   GPUS  STATE    TIME  LEFT   GPU  GPU MEM  WHERE OR WHY\n"
      "42  ada   -         1  RUNNING     -     -  60 %   40 GiB  -\n"
      "43  bob   train     2  QUEUED      -     -     -        -  1 node is 1 GPU short\n";
  const std::size_t first = text.find(tables);
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_NE(text.find(tables, first + 1), std::string::npos) << text;
  EXPECT_EQ(server.requests(),
            (std::vector<std::string>{
                "GET /v1/status?max_age_seconds=5.000", "GET /v1/gpus",
                "GET /v1/jobs?all=true&state=STARTING&state=RUNNING&state=STOPPING"
                "&state=SUSPENDED&limit=1000",
                "GET /v1/queue?all=true&limit=100", "GET /v1/status?max_age_seconds=5.000",
                "GET /v1/queue?all=true&limit=100"}))
      << "jobs and limits are not asked for again at once";
}

TEST_F(Cli, WatchPrintsOnePictureForPipesAndWithOnce) {
  FakeServer server(answer);
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_EQ(pauses_, 0);
  EXPECT_TRUE(has(out(), "42 ada")) << out();
  around_.width = 80;
  around_.environment = {"TERM=xterm"};
  EXPECT_EQ(call(server, {"watch", "--once"}), 0);
  EXPECT_EQ(pauses_, 0);
  EXPECT_EQ(out().find('\x1b'), std::string::npos) << out();
  EXPECT_EQ(call(server, {"watch", "--once", "--count", "2"}), 2);
}

TEST_F(Cli, WatchEndsAtOnceWhereThereIsNoDaemon) {
  EXPECT_EQ(call({"--server", "unix:/nonexistent/s", "watch"}), 5);
}

TEST_F(Cli, WatchOutlastsAnAnswerThatDoesNotCome) {
  int asked = 0;
  FakeServer server([&](const Request& request) {
    if (has(request.target, "/v1/status") && ++asked == 2) return std::string();
    return answer(request);
  });
  EXPECT_EQ(call(server, {"watch", "--count", "3"}), 0);
  EXPECT_TRUE(has(out(), "no newer answer: ")) << out();
  EXPECT_EQ(asked, 3);
}

TEST_F(Cli, WatchShowsOnlyTheIdOfAJobThatTheCallerMayNotSee) {
  FakeServer server([&](const Request& request) {
    if (has(request.target, "/v1/jobs")) return json_answer(R"({"jobs":[]})");
    return answer(request);
  });
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_TRUE(has(out(), "IN_USE   42\n")) << out();
  EXPECT_FALSE(has(out(), " ada")) << out();
}

TEST_F(Cli, WatchShowsWhatJobsUseOfAGpuThatTheyShare) {
  const std::string shared = gpu(
      0,
      R"("state":"IN_USE","jobs":["42"],"utilization_percent":90,"parts":[{"job":"42","share":0.5}])");
  FakeServer server([&](const Request& request) {
    if (has(request.target, "/v1/status")) return json_answer(status_of({shared}));
    if (has(request.target, "/v1/readings")) {
      return json_answer(
          R"({"readings":[{"node":"dgx-1","index":0,"values":{"utilization_percent":90}},)"
          R"({"node":"dgx-1","index":0,"job":"42","attempt":1,"values":{"utilization_percent":37,"memory_used_bytes":1073741824}}]})");
    }
    return answer(request);
  });
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_TRUE(has(out(), " 37 %    1 GiB  ")) << out();
}

TEST_F(Cli, WatchRefusesIntervalsAndCountsOutOfRange) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"watch", "--interval", "0s"},
        {"watch", "--interval", "2h"},
        {"watch", "--interval", "soon"},
        {"watch", "--count", "0"},
        {"watch", "--count", "x"}}) {
    EXPECT_EQ(call(words), 2) << words.back();
  }
}

// ---- the live screen, on a terminal of the test's own ----

class WatchScreen : public Cli {
 protected:
  WatchScreen() {
    winsize size{};
    size.ws_col = 100;
    size.ws_row = 10;
    EXPECT_EQ(::openpty(&terminal_, &program_, nullptr, nullptr, &size), 0);
    EXPECT_EQ(::fcntl(terminal_, F_SETFL, O_NONBLOCK), 0);
    EXPECT_EQ(::tcgetattr(program_, &before_), 0);
    around_.out_fd = around_.in_fd = program_;
    around_.width = 100;
    around_.environment = {"TERM=xterm"};
    // What is shown is read while it is shown: the terminal's buffer is small.
    around_.pause = [this](base::Duration duration, int fd) {
      EXPECT_GE(fd, 0);
      ++pauses_;
      collect();
      if (on_pause_) on_pause_();
      // Typed input ends a pause early.
      if (!typed_) clock_ += duration;
      typed_ = false;
    };
  }
  ~WatchScreen() override {
    ::close(terminal_);
    ::close(program_);
  }

  void type(std::string_view keys) {
    EXPECT_EQ(::write(terminal_, keys.data(), keys.size()), static_cast<ssize_t>(keys.size()));
    typed_ = true;
  }
  void collect() {
    char buffer[4096];
    for (ssize_t got = 0; (got = ::read(terminal_, buffer, sizeof buffer)) > 0;) {
      shown_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  void expect_restored() {
    collect();
    EXPECT_TRUE(shown_.ends_with("\x1b[?25h\x1b[?1049l")) << shown_.substr(shown_.size() - 40);
    termios now{};
    EXPECT_EQ(::tcgetattr(program_, &now), 0);
    EXPECT_EQ(now.c_lflag, before_.c_lflag);
    EXPECT_EQ(now.c_cc[VSUSP], before_.c_cc[VSUSP]);
  }
  // What the terminal shows, by the codes that the screen writes.
  std::string last_frame() const {
    std::vector<std::string> lines(1);
    std::size_t row = 0;
    for (std::size_t i = 0; i < shown_.size(); ++i) {
      if (shown_[i] != '\x1b') {
        lines[row] += shown_[i];
        continue;
      }
      const std::size_t end = shown_.find_first_of("HJKhlm", i + 2);
      if (end == std::string::npos) break;
      const std::string code = shown_.substr(i + 2, end - i - 2);
      if (shown_[end] == 'J') lines.assign(1, {});
      if (shown_[end] == 'H') {
        row = code.empty() ? 0 : std::stoul(code) - 1;
        lines.resize(std::max(lines.size(), row + 1));
        lines[row].clear();
      }
      i = end;
    }
    return fmt::format("{}", fmt::join(lines, "\n"));
  }
  static std::size_t count_of(std::string_view text, std::string_view part) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; ++at) ++count;
    return count;
  }

  int terminal_ = -1;
  int program_ = -1;
  termios before_{};
  bool typed_ = false;
  std::string shown_;
};

TEST_F(WatchScreen, WritesOnlyWhatChangedAndLeavesTheTerminalAsItWas) {
  int asked = 0;
  FakeServer server([&](const Request& request) {
    if (!has(request.target, "/v1/status")) return answer(request);
    return json_answer(status_of({gpu(
        0, fmt::format(R"("state":"IN_USE","jobs":["42"],"temperature_c":{})", 60 + asked++))}));
  });
  EXPECT_EQ(call(server, {"watch", "--count", "3"}), 0);
  expect_restored();
  EXPECT_TRUE(begins(shown_, "\x1b[?1049h\x1b[?25l\x1b[H\x1b[J")) << shown_;
  EXPECT_EQ(count_of(shown_, "jobs: 1 running"), 1U) << "it did not change: " << shown_;
  EXPECT_EQ(count_of(shown_, "dgx-1 "), 3U) << shown_;
  EXPECT_TRUE(has(last_frame(), " 62 ")) << last_frame();
  EXPECT_TRUE(has(last_frame(), "q quit  h help")) << last_frame();
}

TEST_F(WatchScreen, HasNoColorsWithNoColor) {
  FakeServer server(answer);
  EXPECT_EQ(call(server, {"watch", "--count", "1"}), 0);
  collect();
  EXPECT_TRUE(has(shown_, "\x1b[33m")) << "a GPU that is out of service: " << shown_;
  shown_.clear();
  EXPECT_EQ(call(server, {"watch", "--count", "1", "--no-color"}), 0);
  collect();
  EXPECT_FALSE(has(shown_, "\x1b[33m")) << shown_;
}

TEST_F(WatchScreen, ShowsNothingButAsciiWithoutUtf8) {
  FakeServer server(answer);
  EXPECT_EQ(call(server, {"watch", "--count", "1"}), 0);
  collect();
  EXPECT_TRUE(std::ranges::all_of(shown_, [](char c) {
    return static_cast<unsigned char>(c) < 128;
  })) << shown_;
  around_.environment.emplace_back("LANG=C.UTF-8");
  EXPECT_EQ(call(server, {"watch", "--count", "1"}), 0);
  collect();
  EXPECT_TRUE(has(shown_, "61 °C")) << shown_;
}

TEST_F(WatchScreen, BeginsWithTheHistory) {
  const std::int64_t begin = around_.now().unix_ns() / 1'000'000'000 - 600;
  FakeServer server([&](const Request& request) {
    if (!has(request.target, "/v1/history")) return answer(request);
    return json_answer(fmt::format(
        R"({{"series":[{{"node":"dgx-1","index":0,"metric":"utilization_percent","step_seconds":600,"points":{{"at":[{}],"mean":[100]}}}}]}})",
        begin));
  });
  EXPECT_EQ(call(server, {"watch", "--count", "1"}), 0);
  collect();
  EXPECT_TRUE(has(last_frame(), "60 % #####")) << last_frame();
}

TEST_F(WatchScreen, EndsWithQ) {
  FakeServer server(answer);
  on_pause_ = [&] { type("q"); };
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_EQ(pauses_, 1);
  expect_restored();
}

TEST_F(WatchScreen, CancelsAJobAfterAQuestion) {
  FakeServer server(answer);
  int step = 0;
  on_pause_ = [&] {
    const std::string_view keys[] = {"x42\r", "y", "q"};
    const std::string_view shown[] = {"h help", "cancel job 42? y or n",
                                      "job 42 is being cancelled"};
    EXPECT_TRUE(has(last_frame(), shown[step])) << step << last_frame();
    type(keys[step++]);
  };
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_EQ(server.requests().back(), "POST /v1/jobs/42/cancel");
  expect_restored();
}

TEST_F(WatchScreen, EndsWithCtrlC) {
  FakeServer server(answer);
  on_pause_ = [&] { interrupt(); };
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_EQ(pauses_, 1);
  expect_restored();
}

TEST_F(WatchScreen, EndsWhenItsTerminalIsGone) {
  FakeServer server(answer);
  on_pause_ = [&] { ::close(std::exchange(terminal_, -1)); };
  call(server, {"watch"});
  EXPECT_EQ(pauses_, 1);
}

TEST_F(WatchScreen, FollowsTheSizeOfTheWindow) {
  FakeServer server(answer);
  bool resized = false;
  on_pause_ = [&] {
    if (resized) return type("q");
    winsize size{};
    size.ws_col = 60;
    size.ws_row = 30;
    ASSERT_EQ(::ioctl(terminal_, TIOCSWINSZ, &size), 0);
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGWINCH), 0);
    resized = typed_ = true;
  };
  EXPECT_EQ(call(server, {"watch", "--interval", "1h"}), 0);
  EXPECT_EQ(pauses_, 2) << "drawn again without waiting for the hour";
  const std::string frame = last_frame();
  EXPECT_FALSE(has(frame, "MEMORY")) << "does not fit any more";
  EXPECT_TRUE(has(frame, "UTIL")) << frame;
  EXPECT_TRUE(has(frame, "WHERE OR WHY")) << "there are rows for the jobs, too: " << frame;
}

TEST_F(WatchScreen, ScrollsWhereThereAreMoreGpusThanRows) {
  std::vector<std::string> gpus;
  for (int i = 0; i < 32; ++i) gpus.push_back(gpu(i, R"("state":"AVAILABLE")"));
  FakeServer server([&](const Request& request) {
    if (has(request.target, "/v1/status")) return json_answer(status_of(gpus));
    return json_answer(R"({"jobs":[]})");
  });
  int step = 0;
  on_pause_ = [&] {
    const std::string_view expected[] = {"GPUs 1 to 5 of 32", "GPUs 6 to 10 of 32",
                                         "GPUs 7 to 11 of 32", "GPUs 28 to 32 of 32",
                                         "GPUs 27 to 31 of 32"};
    const std::string_view keys[] = {" ", "\x1b[B", "        ", "k", "q"};
    EXPECT_TRUE(has(last_frame(), expected[step])) << step << last_frame();
    type(keys[step++]);
  };
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_EQ(step, 5);
}

TEST_F(WatchScreen, ShowsTheJobsAfterTab) {
  FakeServer server(answer);
  const std::vector<std::string_view> keys = {"\t", "\t", "q"};
  std::size_t step = 0;
  on_pause_ = [&] {
    EXPECT_EQ(has(last_frame(), "WHERE OR WHY"), step == 1) << last_frame();
    EXPECT_EQ(has(last_frame(), "JOBS AND REASON"), step != 1) << last_frame();
    type(keys.at(step++));
  };
  EXPECT_EQ(call(server, {"watch"}), 0);
  EXPECT_EQ(step, 3U);
}

TEST_F(WatchScreen, SaysInItsPlaceThatTheDaemonIsAway) {
  int asked = 0;
  FakeServer server([&](const Request& request) {
    if (has(request.target, "/v1/status") && ++asked == 2) return std::string();
    return answer(request);
  });
  EXPECT_EQ(call(server, {"watch", "--count", "2"}), 0);
  expect_restored();
  EXPECT_TRUE(has(last_frame(), "no newer answer: ")) << last_frame();
  EXPECT_TRUE(has(last_frame(), "; waiting for it")) << last_frame();
  EXPECT_TRUE(has(last_frame(), "42 ada")) << "what was known last stays";
}

TEST_F(WatchScreen, GoesOnWhenTheDaemonIsBack) {
  int asked = 0;
  FakeServer server([&](const Request& request) {
    if (has(request.target, "/v1/status") && ++asked == 2) return std::string();
    return answer(request);
  });
  EXPECT_EQ(call(server, {"watch", "--count", "3"}), 0);
  collect();
  EXPECT_TRUE(has(shown_, "no newer answer: ")) << shown_;
  EXPECT_FALSE(has(last_frame(), "no newer answer: ")) << last_frame();
}

TEST_F(WatchScreen, OfADumbTerminalIsATable) {
  around_.environment = {"TERM=dumb"};
  FakeServer server(answer);
  EXPECT_EQ(call(server, {"watch", "--count", "1"}), 0);
  collect();
  EXPECT_EQ(shown_.find('\x1b'), std::string::npos) << shown_;
}

}  // namespace
}  // namespace gpu_platform::cli
