#include "shims/steps/step_record.h"

#include <gtest/gtest.h>

#include "client/request_text.h"

#include <csignal>

namespace gpu_platform::shims {
namespace {

// A status as wait4 gives it.
int exited(int code) {
  return code << 8;
}

rusage used(std::int64_t user_us, std::int64_t system_us, std::int64_t kib) {
  rusage result = {};
  result.ru_utime = {user_us / 1'000'000, user_us % 1'000'000};
  result.ru_stime = {system_us / 1'000'000, system_us % 1'000'000};
  result.ru_maxrss = kib;
  return result;
}

TEST(StepUsage, SumsUpTimesAndNamesTheTasksOfTheExtremes) {
  StepUsage usage;
  usage.add(2, exited(0), used(1'500'000, 250'000, 100));
  usage.add(0, exited(0), used(500'000, 0, 300));
  usage.add(1, exited(0), used(3'000'000, 0, 200));
  v1::JobStep report;
  usage.put(report);
  EXPECT_EQ(report.user_cpu_seconds(), 5.0);
  EXPECT_EQ(report.system_cpu_seconds(), 0.25);
  EXPECT_EQ(report.least_cpu_seconds(), 0.5);
  EXPECT_EQ(report.least_cpu_task(), 0U);
  EXPECT_EQ(report.peak_memory_bytes(), 300 * 1024U);
  EXPECT_EQ(report.all_memory_bytes(), 600 * 1024U);
  EXPECT_EQ(report.peak_memory_task(), 0U);
}

TEST(StepUsage, TheWorstEndIsThatOfTheStep) {
  StepUsage usage;
  usage.add(0, exited(3), {});
  usage.add(1, exited(1), {});
  v1::JobStep report;
  usage.put(report);
  EXPECT_EQ(report.exit_code(), 3U);
  EXPECT_FALSE(report.has_signal());
  usage.add(2, SIGKILL, {});
  usage.add(3, exited(4), {});
  v1::JobStep killed;
  usage.put(killed);
  EXPECT_EQ(killed.signal(), "SIGKILL");
  EXPECT_FALSE(killed.has_exit_code());
  EXPECT_EQ(usage.code(), 128 + SIGKILL);
  EXPECT_EQ(usage.signal(), SIGKILL);
}

TEST(StepName, IsTheLastPartHarmlessAndShort) {
  EXPECT_EQ(step_name("/usr/bin/python3"), "python3");
  EXPECT_EQ(step_name("train.sh"), "train.sh");
  EXPECT_EQ(step_name("./a\nb\x1b[2J"), "a?b?[2J");
  EXPECT_EQ(step_name(std::string(100, 'x')), std::string(64, 'x'));
  EXPECT_EQ(step_name(std::string(63, 'x') + "\u00e9"), std::string(63, 'x')) << "no half of one";
}

TEST(StepReport, TellsWhatTheStepHas) {
  StepFacts facts;
  facts.attempt = 2;
  facts.number = 5;
  facts.command = "/bin/true";
  facts.tasks = 3;
  facts.nodes = {"a", "b"};
  facts.cpus = 6;
  facts.gpus = 1;
  facts.memory_bytes = 1024;
  const v1::JobStep report = running_report(facts, base::Instant(1'500'000'000));
  EXPECT_EQ(client::request_text(report),
            R"({"attempt":2,"number":5,"name":"true","tasks":3,"nodes":["a","b"],"cpus":6,)"
            R"("memory_bytes":1024,"gpus":1,"started_at":"1970-01-01T00:00:01.500Z"})");
}

}  // namespace
}  // namespace gpu_platform::shims
