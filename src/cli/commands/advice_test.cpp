#include <string>

#include "cli/commands/show_fixture.h"

namespace gpu_platform::cli {
namespace {

using AdviceRequest = FakeServer::Request;

// Thirds of a cent: the rows add up to the total.
constexpr std::string_view kSavings = R"({
  "since":"2026-06-01T00:00:00.000Z","until":"2026-07-01T00:00:00.000Z","currency":"USD","partial":true,
  "rows":[
    {"team":"vision","gpu_type":"H100-80GB","gpu_hours":2,"cost":"3.303333","on_demand_cost":"11.003333","saved":"7.700000"},
    {"team":"","gpu_type":"H100-80GB","gpu_hours":1,"cost":"1.653333","on_demand_cost":"5.503333","saved":"3.850000"}],
  "total":{"gpu_hours":3,"unpriced_gpu_hours":0.5,"reclaimed_gpu_hours":0.25,"cost":"4.956666","on_demand_cost":"16.506666","saved":"11.550000"}
})";

constexpr std::string_view kMonthAhead = R"({
  "month":"2026-06","at":"2026-06-11T06:00:00.000Z","currency":"USD","booked":"984.000000","rest":"1992.000000","total":"2976.000000",
  "history_days":28,"means":[{"weekday":"Monday","cost":"96.000000"},{"weekday":"Tuesday","cost":"90.500000"}],
  "trials":[{"month":"2026-05","at":"2026-05-11T06:00:00.000Z","expected_cost":"2880.000000","cost":"4800.000000","error_percent":40}],
  "error_percent":40
})";

constexpr std::string_view kAdvice = R"({
  "since":"2026-06-01T00:00:00.000Z","until":"2026-06-29T00:00:00.000Z","currency":"USD","idle_below_percent":5,
  "families":[
    {"user":"bob","team":"vision","project":"atlas","name":"train","gpu_type":"H100-80GB","attempts":3,"gpu_hours":4,"cost":"22.000000",
     "measured_attempts":3,"peak_memory_bytes":21474836480,"utilization_percent":12.4,
     "advised_gpu_type":"L40S-48GB","advised_memory_bytes":51539607552,"saved":"13.200000","saved_percent":60},
    {"user":"ada","name":"tune","gpu_type":"H100-80GB","attempts":1,"gpu_hours":2,"cost":"11.000000","unknown":["peak memory","utilization"]}],
  "more_families":7,
  "teams":[{"team":"vision","idle":{"attempts":1,"gpu_hours":4,"cost":"22.000000"},
            "not_measured":{"attempts":2,"gpu_hours":1.5,"cost":"8.250000"},"used":{"attempts":0,"gpu_hours":0,"cost":"0.000000"}}],
  "reserved":[
    {"gpu_type":"H100-80GB","gpu_hours":744,"on_demand_price":"5.500000","reserved_price":"2.750000","break_even_percent":50,
     "gpus":1,"in_use_percent":100,"saved":"2046.000000"},
    {"gpu_type":"L40S-48GB","gpu_hours":2,"gpus":0,"saved":"0.000000"}]
})";

TEST_F(Show, ReportSavingsAddsUp) {
  std::string target;
  FakeServer server([&](const AdviceRequest& request) {
    target = request.target;
    return json_answer(std::string(kSavings));
  });
  EXPECT_EQ(call(server, {"report", "savings", "--month", "2026-06", "--team", "vision"}), 0)
      << err();
  EXPECT_TRUE(begins(target, "/v1/reports/savings?since=2026-06-01T00")) << target;
  EXPECT_TRUE(has(target, "until=2026-07-01T00")) << target;
  EXPECT_TRUE(has(target, "team=vision")) << target;
  EXPECT_TRUE(has(out(), "Figures are of the jobs that you may see.")) << out();
  EXPECT_TRUE(has(out(), "(no team)")) << out();
  EXPECT_TRUE(has(out(), "16.51")) << out();
  EXPECT_TRUE(has(out(), "11.55\n")) << out();
  EXPECT_TRUE(has(out(), "0.500 GPU-hours lack one of the two prices")) << out();
  EXPECT_TRUE(has(out(), "0.250 GPU-hours were used in vain")) << out();
}

TEST_F(Show, ReportSavingsRefusesAMonthThatIsNone) {
  FakeServer server([](const AdviceRequest&) { return json_answer(std::string(kSavings)); });
  EXPECT_EQ(call(server, {"report", "savings", "--month", "2026-13"}), 2);
  EXPECT_TRUE(has(err(), "--month")) << err();
}

TEST_F(Show, ReportForecastSaysHowItWasMadeAndHowGoodItWas) {
  std::string target;
  FakeServer server([&](const AdviceRequest& request) {
    target = request.target;
    return json_answer(std::string(kMonthAhead));
  });
  EXPECT_EQ(call(server, {"report", "forecast"}), 0) << err();
  EXPECT_EQ(target, "/v1/reports/forecast");
  EXPECT_TRUE(begins(out(), "2026-06 as of 2026-06-11 06:00\n")) << out();
  EXPECT_TRUE(has(out(), "2,976.00 USD")) << out();
  EXPECT_TRUE(
      has(out(), "the mean of each weekday over the last 28 days: Monday 96.00, Tuesday 90.50."))
      << out();
  EXPECT_TRUE(has(out(), "In 1 past month it was 40.0 % off on average.")) << out();
  EXPECT_TRUE(has(out(), "4,800.00")) << out();
}

TEST_F(Show, ReportForecastGivesNoFigureWithoutHistory) {
  FakeServer server([](const AdviceRequest&) {
    return json_answer(
        R"({"month":"2026-06","at":"2026-06-11T06:00:00.000Z","currency":"USD","booked":"12.000000",
            "rest":null,"total":null,"no_total":"The history has 3 whole days before today; a forecast needs 14.","history_days":3})");
  });
  EXPECT_EQ(call(server, {"report", "forecast"}), 0) << err();
  EXPECT_TRUE(has(out(), "a forecast needs 14")) << out();
  EXPECT_FALSE(has(out(), "Total")) << out();
}

TEST_F(Show, ReportAdviceNamesTypesIdleGpusAndReservations) {
  std::string target;
  FakeServer server([&](const AdviceRequest& request) {
    target = request.target;
    return json_answer(std::string(kAdvice));
  });
  EXPECT_EQ(call(server, {"report", "advice"}), 0) << err();
  EXPECT_EQ(target, "/v1/reports/advice");
  EXPECT_TRUE(has(out(), "atlas/train")) << out();
  EXPECT_TRUE(has(out(), "13.20 (60%)")) << out();
  EXPECT_FALSE(has(out(), "tune")) << "nothing is advised for it: " << out();
  EXPECT_TRUE(has(out(), "Not known of 1 of 2 kinds of jobs: peak memory\n")) << out();
  EXPECT_TRUE(has(out(), "7 other kinds of jobs")) << out();
  EXPECT_TRUE(has(out(), "below 5 %")) << out();
  EXPECT_TRUE(has(out(), "8.25\n")) << "what was not measured: " << out();
  EXPECT_TRUE(has(out(), "2,046.00\n")) << out();
  EXPECT_TRUE(has(out(), "no price")) << out();
}

TEST_F(Show, ReportAdviceIsADocumentToo) {
  FakeServer server([](const AdviceRequest&) { return json_answer(std::string(kAdvice)); });
  EXPECT_EQ(call(server, {"report", "advice", "--json"}), 0) << err();
  EXPECT_TRUE(has(out(), "\"advised_gpu_type\"")) << out();
}

}  // namespace
}  // namespace gpu_platform::cli
