#include <sstream>

#include "cli/commands/show_fixture.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

constexpr std::string_view kKpi = R"({
  "since":"2026-06-01T12:00:00.000Z","until":"2026-07-01T12:00:00.000Z","team":null,"complete_since":null,
  "completion_time":{"count":120,"mean_seconds":7500,"p50_seconds":3600,"p95_seconds":36000},
  "queue_wait":{"count":130,"mean_seconds":95,"p50_seconds":20,"p95_seconds":600},
  "allocation_time":{"count":140,"mean_seconds":0.25,"p50_seconds":0.2,"p95_seconds":0.9},
  "response_time":{"since":null,"count":9000,"mean_seconds":0.0012,"p50_seconds":0.001,"p95_seconds":null},
  "jobs_ended":132,"jobs_completed":120,"jobs_failed":8,"completed_per_hour":0.1667,"completed_per_day":4,
  "failure_percent":6.25,
  "causes":[{"cause":"APPLICATION","jobs":6,"jobs_percent":4.5,"attempts":7},
            {"cause":"NODE_LOSS","jobs":0,"jobs_percent":0,"attempts":0}],
  "hardware_failures":2,"interrupted_jobs":10,"recovered_jobs":9,"recovery_percent":90,
  "gpus":{"gpu_hours":3525,"measured_percent":98,"utilization_percent":54,"memory_percent":41},
  "available_gpu_hours":5760,"allocation_percent":61.2,"compute_efficiency_percent":33.05,
  "kinds":[{"kind":"TRAINING","gpus":{"gpu_hours":3000,"measured_percent":98,"utilization_percent":91,"memory_percent":40},
            "min_target_percent":90,"max_target_percent":null,"target_met":true},
           {"kind":"INFERENCE","gpus":{"gpu_hours":500,"measured_percent":98,"utilization_percent":20,"memory_percent":40},
            "min_target_percent":30,"max_target_percent":50,"target_met":false},
           {"kind":"BATCH","gpus":{"gpu_hours":25,"measured_percent":0,"utilization_percent":null,"memory_percent":null},
            "min_target_percent":null,"max_target_percent":null,"target_met":null}],
  "teams":[{"team":"=vision","jobs_ended":100,"jobs_completed":95,"jobs_failed":5,
            "gpus":{"gpu_hours":3525,"measured_percent":98,"utilization_percent":54,"memory_percent":41},"allocation_percent":61.2}],
  "idle":{"below_percent":5,"after_seconds":1800,"attempts":3,"gpu_hours":52,
          "jobs":[{"id":"42","name":"notebook","user":"ada","team":"vision","since":"2026-06-30T08:00:00.000Z","gpus":0.5,
                   "use":{"gpu_hours":14,"measured_percent":100,"utilization_percent":1.5,"memory_percent":2},"running":true}]}
})";

std::size_t widest_report_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, display_width(line));
  return widest;
}

TEST_F(Show, ReportKpiHasTargetsBesideTheFigures) {
  around_.width = 80;
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kKpi));
  });
  EXPECT_EQ(call(server, {"report", "kpi", "--since", "1d", "--team", "vision"}), 0);
  EXPECT_EQ(target, "/v1/kpi?since=2026-06-30T12%3A03%3A12.000Z&team=vision");
  EXPECT_TRUE(begins(out(), "Key figures from 2026-06-01 12:00 to 2026-07-01 12:00\n")) << out();
  EXPECT_TRUE(has(out(), "132 ended, 120 completed, 8 failed (6.2%)")) << out();
  EXPECT_TRUE(has(out(), "0.2 completed in an hour, 4.0 in a day")) << out();
  EXPECT_TRUE(has(out(), "9 of 10 interrupted jobs completed (90.0%)")) << out();
  EXPECT_TRUE(has(out(), "61.2% of 5760.0 GPU-hours available")) << out();
  EXPECT_TRUE(has(out(), "54.0% of 3525.0 GPU-hours allocated")) << out();
  EXPECT_TRUE(has(out(), "90% or more")) << out();
  EXPECT_TRUE(has(out(), "30-50%")) << out();
  EXPECT_TRUE(has(out(), "missed")) << out();
  EXPECT_TRUE(has(out(), "over 10s")) << out();
  EXPECT_TRUE(has(out(), "250ms")) << out();
  EXPECT_TRUE(has(out(), "3 attempts below 5% for 30m or more, 52.0 GPU-hours")) << out();
  EXPECT_TRUE(has(out(), "notebook")) << out();
  EXPECT_FALSE(has(out(), "node-loss")) << "nothing ended so";
  EXPECT_LE(widest_report_line(out()), 80U) << out();
}

TEST_F(Show, ReportKpiShowsSecondsOfAGpu) {
  std::string kpi(kKpi);
  const std::string_view hours = R"("gpus":{"gpu_hours":3525)";
  kpi.replace(kpi.find(hours), hours.size(), R"("gpus":{"gpu_hours":0.0042)");
  FakeServer server([&](const Request&) { return json_answer(kpi); });
  EXPECT_EQ(call(server, {"report", "kpi"}), 0);
  EXPECT_TRUE(has(out(), "54.0% of 0.004 GPU-hours allocated")) << out();
}

TEST_F(Show, ReportKpiPrintsALineForEachFigureThatIsKnown) {
  FakeServer server([](const Request&) { return json_answer(std::string(kKpi)); });
  EXPECT_EQ(call(server, {"report", "kpi", "--csv"}), 0);
  EXPECT_TRUE(begins(out(), "section,name,figure,value\ntime,completion,count,120.0000\n"))
      << out();
  EXPECT_TRUE(has(out(), "\nsite,,allocation_percent,61.2000\n")) << out();
  EXPECT_TRUE(has(out(), "\nkind,training,utilization_percent,91.0000\n")) << out();
  EXPECT_TRUE(has(out(), "\nteam,'=vision,gpu_hours,3525.0000\n")) << "no formula: " << out();
  EXPECT_TRUE(has(out(), "\nidle,42 ada,gpu_hours,14.0000\n")) << out();
  EXPECT_FALSE(has(out(), "kind,batch,utilization_percent")) << "it is not known";
}

TEST_F(Show, ReportKpiRefusesCsvWithJson) {
  FakeServer server([](const Request&) { return json_answer(std::string(kKpi)); });
  EXPECT_EQ(call(server, {"report", "kpi", "--csv", "--json"}), 2);
  EXPECT_TRUE(has(err(), "--csv")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
