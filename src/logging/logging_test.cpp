#include <gtest/gtest.h>

#include <mutex>

#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "logging/budget.h"
#include "logging/harmless_sink.h"
#include "logging/json_lines.h"
#include "logging/line.h"
#include "logging/log.h"
#include "os/testing/eventually.h"

namespace gpu_platform::logging {
namespace {

TEST(Line, KeepsWhatIsHarmless) {
  EXPECT_EQ(one_line("job=7 name=\"größe ≤ 3\" path=/a\\b"), "job=7 name=\"größe ≤ 3\" path=/a\\b");
}

TEST(Line, ShowsWhatWouldEndItOrReachTheTerminal) {
  EXPECT_EQ(one_line("a\nb\r\t\x1b[2J\x7f"), "a\\nb\\r\\t\\x1b[2J\\x7f");
  EXPECT_EQ(one_line("\xe2\x80\xae"
                     "x\xc2\x9b"
                     "y"),
            "\\u202ex\\u009by");
  EXPECT_EQ(one_line(std::string_view("\xff\0z", 3)), "\\xff\\x00z");
}

TEST(Line, IsCutBetweenCharacters) {
  EXPECT_EQ(one_line("abcdef", 6), "abcdef");
  EXPECT_EQ(one_line("abcdefg", 6), "abcdef…");
  EXPECT_EQ(one_line("aéé", 2), "a…");
  EXPECT_EQ(one_line("a\n\n", 4), "a\\n…");
}

TEST(Line, AQuotedValueCannotEndItself) {
  EXPECT_EQ(quoted("x\" by=\"root"), "\"x\\\" by=\\\"root\"");
  EXPECT_EQ(quoted("back\\"), "\"back\\\\\"");
}

const base::Instant kStart(1'000'000'000);

Budget::Limits few() {
  return {.window = base::seconds(60), .of_source = 3, .of_all_users = 5, .sources = 4};
}

std::uint64_t written(Budget& budget, const Source& source, int lines, base::Instant at = kStart) {
  std::uint64_t count = 0;
  for (int i = 0; i < lines; ++i) count += budget.take(source, at) ? 1 : 0;
  return count;
}

TEST(LogBudget, CountsWhatASourceWritesBeyondIt) {
  Budget budget(few());
  EXPECT_EQ(written(budget, of_user(1000), 10), 3U);
  EXPECT_TRUE(budget.close_if_over(kStart + base::seconds(59)).empty());
  EXPECT_EQ(budget.due(), kStart + base::seconds(60));
  EXPECT_EQ(budget.close_if_over(kStart + base::seconds(60)),
            (std::vector<Budget::Dropped>{{"uid 1000", 7}}));
  EXPECT_EQ(written(budget, of_user(1000), 10, kStart + base::seconds(61)), 3U) << "a new window";
}

TEST(LogBudget, TakesNothingFromTheOthers) {
  Budget budget(few());
  written(budget, of_user(1000), 100);
  EXPECT_EQ(written(budget, of_user(0), 3), 3U);
  EXPECT_EQ(written(budget, of_platform("probe of n1"), 3), 3U);
  EXPECT_EQ(written(budget, of_user(1001), 2), 2U);
}

TEST(LogBudget, WhoHasManyUserIdsHasNoMore) {
  Budget budget(few());
  std::uint64_t lines = 0;
  for (std::uint32_t uid = 100'000; uid < 100'100; ++uid) lines += written(budget, of_user(uid), 3);
  EXPECT_EQ(lines, 5U);
  EXPECT_EQ(written(budget, of_platform("gpu a"), 3), 3U) << "however many users there were";
  std::uint64_t dropped = 0;
  const auto all = budget.close();
  EXPECT_LE(all.size(), 5U) << "they are not all remembered";
  for (const Budget::Dropped& one : all) dropped += one.lines;
  EXPECT_EQ(dropped, 295U);
}

TEST(LogBudget, IsNotDueWhereNothingWasDropped) {
  Budget budget(few());
  written(budget, of_user(1000), 3);
  EXPECT_FALSE(budget.due().is_set());
  EXPECT_TRUE(budget.close_if_over(kStart + base::seconds(60)).empty());
}

class TextSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    text_.append(line.data(), line.size());
  }
  void flush_() override {}

 private:
  std::string text_;
};

// The default logger, caught in a text.
class LogTest : public testing::Test {
 protected:
  LogTest() : before_(spdlog::default_logger()) {
    auto logger = std::make_shared<spdlog::logger>("test", harmless(sink_));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~LogTest() override { spdlog::set_default_logger(before_); }

  std::string text() const { return sink_->text(); }

  std::shared_ptr<TextSink> sink_ = std::make_shared<TextSink>();
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(LogTest, WritesSoManyAndTellsOfTheRest) {
  {
    Log log(few());
    for (int i = 0; i < 5; ++i) log.warn(of_user(1000), "line {}", i);
    log.error(of_platform("gpu a"), "xid={}", 79);
  }
  EXPECT_EQ(text(),
            "warning line 0\nwarning line 1\nwarning line 2\nerror xid=79\n"
            "warning … 2 lines of uid 1000 were not logged in the last 60 s\n");
}

TEST_F(LogTest, TellsOfAFloodAfterWhichNothingComes) {
  Budget::Limits limits = few();
  limits.window = base::Duration(200'000'000);
  Log log(limits);
  for (int i = 0; i < 100; ++i) log.warn(of_user(1000), "x");
  EXPECT_TRUE(os::eventually([&] { return text().find("not logged") != std::string::npos; }));
}

TEST_F(LogTest, DebugIsForThoseWhoWantAll) {
  spdlog::default_logger()->set_level(spdlog::level::debug);
  Log log(few());
  for (int i = 0; i < 10; ++i) log.write(spdlog::level::debug, of_user(1000), "x");
  EXPECT_EQ(text().size(), std::string_view("debug x\n").size() * 10);
}

TEST_F(LogTest, OneMessageIsOneLine) {
  spdlog::info("exec={}", "a\n2026-01-01T00:00:00.000Z error forged");
  EXPECT_EQ(text(), "info exec=a\\n2026-01-01T00:00:00.000Z error forged\n");
}

// ---- lines as JSON

class JsonLog : public LogTest {
 protected:
  void SetUp() override { spdlog::default_logger()->set_formatter(json_lines()); }
  nlohmann::json line(const std::string& message) {
    const std::size_t before = text().size();
    spdlog::warn("{}", message);
    const std::string added = text().substr(before);
    EXPECT_EQ(added.find('\n'), added.size() - 1) << added;
    return nlohmann::json::parse(added);
  }
};

TEST_F(JsonLog, PairsAreFieldsAndTheRestIsTheMessage) {
  const auto recovered = line("recovered events=4 note=\"say \\\"a\\\"\" jobs=2");
  EXPECT_EQ(recovered["message"], "recovered");
  EXPECT_EQ(recovered["level"], "warning");
  EXPECT_EQ(recovered["fields"],
            nlohmann::json({{"events", "4"}, {"note", "say \"a\""}, {"jobs", "2"}}));
  EXPECT_EQ(recovered["time"].get<std::string>().size(),
            std::string("2026-01-01T00:00:00.000Z").size());
  EXPECT_EQ(line("event=7 kind=NodeSeen")["message"], "event=7 kind=NodeSeen");
  const auto failed = line("event=7 job=3 not started: exit=1 job=9");
  EXPECT_EQ(failed["message"], "not started: exit=1 job=9");
  EXPECT_EQ(failed["fields"], nlohmann::json({{"event", "7"}, {"job", "3"}}));
}

TEST_F(JsonLog, ProseIsAMessageWithoutFields) {
  for (const char* prose : {"stopping, running jobs go on", "a line of many words has uid=4 in it",
                            "x=\"never closed", "", "bytes \xff\xfe"}) {
    const auto entry = line(prose);
    EXPECT_FALSE(entry.contains("fields")) << entry;
    EXPECT_TRUE(entry["message"].is_string());
  }
}

}  // namespace
}  // namespace gpu_platform::logging
