#include "shims/text/columns.h"

#include <gtest/gtest.h>

#include "client/answer.h"
#include "shims/text/slurm_times.h"
#include "shims/views/job_amounts.h"
#include "shims/views/job_state.h"
#include "shims/views/sacct_fields.h"

namespace gpu_platform::shims {
namespace {

TEST(Columns, OfLettersHaveWidthsAndSides) {
  const std::vector<Field<int>> fields = {
      {'i', "id", "ID", [](const int& n) { return std::to_string(n); }},
      {'t', "text", "TEXT", [](const int&) { return std::string("längst"); }}};
  const auto render = [&](std::string_view format, bool header) {
    return rendered(*bound(*letter_columns(format), std::span<const Field<int>>(fields)),
                    std::vector<int>{7}, header);
  };
  EXPECT_EQ(render("%i %t", false), "7 längst\n");
  EXPECT_EQ(render("%.4i|%3t|", true), "  ID|TEX|\n   7|län|\n");
  EXPECT_EQ(render("%i%%", false), "7%\n");
}

TEST(Columns, ThatNobodyKnowsAreErrors) {
  const std::vector<Field<int>> fields = {
      {'i', "id", "ID", [](const int&) { return std::string(); }}};
  EXPECT_FALSE(bound(*letter_columns("%X"), std::span<const Field<int>>(fields)));
  EXPECT_FALSE(bound(*named_columns("nope", ':', 20), std::span<const Field<int>>(fields)));
  for (const char* format : {"%", "%5", "%.", "%-i"})
    EXPECT_FALSE(letter_columns(format)) << format;
  for (const char* format : {"id%", "id%x", "id%0"})
    EXPECT_FALSE(named_columns(format, '%', 20)) << format;
}

TEST(Columns, OfNamesDoNotCareForCase) {
  const auto columns = named_columns("JobID:10,tres-per-node", ':', 20);
  ASSERT_EQ(columns->size(), 2U);
  EXPECT_EQ((*columns)[0].width, 10U);
  EXPECT_EQ((*columns)[1].width, 20U);
  EXPECT_EQ(plain_name("tres-per-node"), plain_name("TresPerNode"));
}

TEST(Columns, AreHarmlessToTerminals) {
  EXPECT_EQ(in_column({"", 'i', "", 0, false}, "a\x1b[2J").find('\x1b'), std::string::npos);
}

v1::Job job(std::string_view state, std::string_view more = "") {
  return *client::message_of<v1::Job>("{\"state\":\"" + std::string(state) + "\"" +
                                      std::string(more) + "}");
}

TEST(States, HaveSlurmsNames) {
  EXPECT_EQ(state_of(job("QUEUED")).code, "PD");
  EXPECT_EQ(state_of(job("HELD")).code, "PD");
  EXPECT_EQ(state_of(job("RUNNING")).code, "R");
  EXPECT_EQ(state_of(job("STOPPING")).code, "CG");
  EXPECT_EQ(state_of(job("COMPLETED")).code, "CD");
  EXPECT_EQ(state_of(job("FAILED")).code, "F");
  EXPECT_EQ(state_of(job("FAILED", R"(,"reason":"OUT_OF_MEMORY")")).name, "OUT_OF_MEMORY");
  EXPECT_EQ(state_of(job("FAILED", R"(,"lost":"NODE_LOST")")).code, "NF");
  EXPECT_EQ(state_of(job("CANCELLED")).code, "CA");
  EXPECT_EQ(state_of(job("TIMED_OUT")).name, "TIMEOUT");
}

TEST(States, AreFoundByEitherName) {
  EXPECT_EQ(platform_states("pd")->size(), 3U);
  EXPECT_EQ(*platform_states("TIMEOUT"), std::vector<std::string>{"TIMED_OUT"});
  EXPECT_TRUE(platform_states("BF")->empty());
  EXPECT_FALSE(platform_states("nonsense"));
  EXPECT_TRUE(is_in_state(state_of(job("FAILED", R"(,"reason":"OUT_OF_MEMORY")")), {"OOM"}));
  EXPECT_FALSE(is_in_state(state_of(job("FAILED", R"(,"reason":"OUT_OF_MEMORY")")), {"F"}));
}

TEST(States, InPassingAreNotRecorded) {
  EXPECT_EQ(state_of(job("STARTING")).name, "CONFIGURING");
  EXPECT_EQ(recorded_state_of(job("STARTING")).name, "PENDING");
  EXPECT_EQ(recorded_state_of(job("STOPPING")).name, "RUNNING");
  EXPECT_EQ(recorded_state_of(job("FAILED")).name, "FAILED");
}

TEST(Reasons, AreSlurms) {
  EXPECT_EQ(reason_of(job("QUEUED", R"(,"wait_reason":{"code":"NO_CAPACITY"})")), "Resources");
  EXPECT_EQ(reason_of(job("QUEUED", R"(,"wait_reason":{"code":"SOMETHING_NEW"})")),
            "SOMETHING_NEW");
  EXPECT_EQ(reason_of(job("TIMED_OUT")), "TimeLimit");
  EXPECT_EQ(reason_of(job("FAILED")), "NonZeroExitCode");
  EXPECT_EQ(reason_of(job("RUNNING")), "None");
}

TEST(Memory, HasTheLargestUnitThatShowsAllOfIt) {
  EXPECT_EQ(slurm_memory(base::kMiB.value() * 512), "512M");
  EXPECT_EQ(slurm_memory(base::kMiB.value() * 32000), "32000M");
  EXPECT_EQ(slurm_memory(base::kMiB.value() * 64000), "62.50G");
  EXPECT_EQ(slurm_memory(base::kMiB.value() << 20), "1T");
  EXPECT_EQ(slurm_memory(0), "0M");
  EXPECT_EQ(kibibytes_text(12, {}), "12K");
  EXPECT_EQ(kibibytes_text(5120, {}), "5M");
  EXPECT_EQ(kibibytes_text(1536, {}), "1.50M");
  EXPECT_EQ(kibibytes_text(12, {.is_plain = true}), "12288");
  EXPECT_EQ(kibibytes_text(512 * 1024, {.unit = 'G'}), "0.50G");
}

TEST(CpuTime, HasThousandthsBelowAnHour) {
  EXPECT_EQ(cpu_time_text(0), "00:00:00");
  EXPECT_EQ(cpu_time_text(3'005), "00:03.005");
  EXPECT_EQ(cpu_time_text(61'000), "00:01:01");
  EXPECT_EQ(cpu_time_text(90'061'005), "1-01:01:01");
}

TEST(ColumnsOfAccounts, MarkWhatIsCutOff) {
  ColumnSpec spec;
  spec.width = 6;
  spec.marks_cuts = true;
  EXPECT_EQ(in_column(spec, "COMPLETED"), "COMPL+");
  EXPECT_EQ(in_column(spec, "FAILED"), "FAILED");
}

TEST(ColumnsOfNames, MayHaveTextBehindThem) {
  const auto columns = named_columns("JobID:.8|,State:", ':', 20);
  ASSERT_TRUE(columns);
  EXPECT_EQ((*columns)[0].after, "|");
  EXPECT_TRUE((*columns)[0].is_right);
  EXPECT_EQ((*columns)[1].width, 0U);
}

TEST(TimesShown, HaveTheFormsOfTheVariable) {
  const auto at = [](std::string_view text) { return *parse_time_expression("", text, {}); };
  const base::Instant now = at("2026-03-11T12:00");  // a Wednesday
  const auto relative = [&](std::string_view text) {
    return time_in_form(at(text), now, "relative");
  };
  EXPECT_EQ(time_in_form(now, now, ""), "2026-03-11T12:00:00");
  EXPECT_EQ(time_in_form(now, now, "standard"), "2026-03-11T12:00:00");
  EXPECT_EQ(time_in_form(now, now, "%d.%m. %H"), "11.03. 12");
  EXPECT_EQ(relative("2026-03-11T23:59:58"), "23:59:58");
  EXPECT_EQ(relative("2026-03-12T00:00"), "Tomorr 00:00");
  EXPECT_EQ(relative("2026-03-10T23:59"), "Ystday 23:59");
  EXPECT_EQ(relative("2026-03-17T08:30"), "Tue 08:30");
  EXPECT_EQ(relative("2026-03-18T08:30"), "18 Mar 08:30");
  EXPECT_EQ(relative("2026-03-09T08:30"), "9 Mar 08:30");
  EXPECT_EQ(relative("2025-12-31T08:30"), "31 Dec 2025");
}

}  // namespace
}  // namespace gpu_platform::shims
