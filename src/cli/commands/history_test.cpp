#include <sstream>

#include "cli/commands/show_fixture.h"
#include "cli/text/text.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

// Ten minutes with a gap, 12:00 is 1782907200.
std::string series_of(int index) {
  return fmt::format(
      R"({{"node":"dgx-1","index":{},"gpu_id":"GPU-{}","job":null,"attempt":null,"shared":false,"team":null,)"
      R"("metric":"utilization_percent","unit":"percent","counter":false,"step_seconds":60,)"
      R"("points":{{"at":[1782907200,1782907260,1782907620],"min":[0,40,80],"mean":[10,50,75.5],"max":[20,60,90],"count":[6,6,6],"growth":[]}},)"
      R"("window":{{"min":0,"mean":45,"max":90,"count":18,"percentiles":[{{"percentile":95,"value":88}}]}}}})",
      index, index);
}

std::string history_answer(int count) {
  std::string series;
  for (int i = 0; i < count; ++i) series += (i == 0 ? "" : ",") + series_of(i);
  return fmt::format(
      R"({{"from":"2026-07-01T12:00:00.000Z","to":"2026-07-01T12:10:00.000Z","step_seconds":60,"series":[{}],"coverage":{{"problem":null}}}})",
      series);
}

std::size_t widest_graph_line(const std::string& text) {
  std::size_t widest = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) widest = std::max(widest, display_width(line));
  return widest;
}

void replace_all(std::string& text, const std::string& what, const std::string& with) {
  for (std::size_t at = text.find(what); at != std::string::npos;
       at = text.find(what, at + with.size())) {
    text.replace(at, what.size(), with);
  }
}

TEST_F(Show, HistoryDrawsAGraphOfEachSeries) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(history_answer(1));
  });
  EXPECT_EQ(call(server, {"history", "--gpu", "dgx-1:0", "--since", "1d", "--step", "1m"}), 0);
  EXPECT_EQ(target,
            "/v1/history?gpu=dgx-1%3A0&from=2026-06-30T12%3A03%3A12.000Z&step_seconds=60"
            "&percentile=95");
  EXPECT_TRUE(begins(
      out(), "dgx-1:0  utilization_percent  min 0 %  mean 45 %  max 90 %  p95 88 %\n100 % |"))
      << out();
  EXPECT_TRUE(has(out(), "2026-07-01 12:00")) << out();
  EXPECT_TRUE(has(out(), "2026-07-01 12:10\n")) << out();
  EXPECT_FALSE(has(out(), "█")) << "the locale has no UTF-8";
  EXPECT_LE(widest_graph_line(out()), 80U);
}

TEST_F(Show, HistoryFitsANarrowTerminal) {
  around_.width = 40;
  around_.environment.emplace_back("LANG=C.UTF-8");
  FakeServer server([](const Request&) { return json_answer(history_answer(1)); });
  EXPECT_EQ(call(server, {"history", "--gpu", "GPU-0"}), 0);
  EXPECT_TRUE(has(out(), "│")) << out();
  EXPECT_TRUE(begins(out(),
                     "dgx-1:0  utilization_percent  min 0 %\n"
                     "mean 45 %  max 90 %  p95 88 %\n"))
      << out();
  EXPECT_LE(widest_graph_line(out()), 40U) << out();
}

TEST_F(Show, HistoryOfManyGpusHasALineForEach) {
  around_.width = 80;
  FakeServer server([](const Request&) { return json_answer(history_answer(5)); });
  EXPECT_EQ(call(server, {"history", "--node", "dgx-1"}), 0);
  EXPECT_TRUE(has(out(), "OVER TIME")) << out();
  EXPECT_TRUE(has(out(), "dgx-1:4")) << out();
  EXPECT_TRUE(has(out(), "P95")) << out();
  EXPECT_LE(widest_graph_line(out()), 80U) << out();
  std::istringstream lines(out());
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line);) ++count;
  EXPECT_EQ(count, 7U) << out();
}

TEST_F(Show, HistoryOfManyGpusLeavesNumbersOutBeforeItCutsNames) {
  around_.width = 80;
  std::string answer = history_answer(5);
  replace_all(answer, "dgx-1", "node-with-a-long-name");
  replace_all(answer, R"({"percentile":95,"value":88})",
              R"({"percentile":50,"value":45},{"percentile":95,"value":88},)"
              R"({"percentile":99,"value":90})");
  FakeServer server([&](const Request&) { return json_answer(answer); });
  EXPECT_EQ(call(server, {"history", "--node", "node-with-a-long-name"}), 0);
  EXPECT_TRUE(has(out(), "node-with-a-long-name:4")) << out();
  EXPECT_TRUE(has(out(), "MEAN")) << out();
  EXPECT_TRUE(has(out(), "P99")) << out();
  EXPECT_FALSE(has(out(), "MIN")) << out();
  EXPECT_LE(widest_graph_line(out()), 80U) << out();
}

TEST_F(Show, HistoryWritesALineOfCsvForEachPoint) {
  FakeServer server([](const Request&) { return json_answer(history_answer(1)); });
  EXPECT_EQ(call(server, {"history", "--gpu", "dgx-1:0", "--csv"}), 0);
  EXPECT_EQ(
      out(),
      "node,index,gpu_id,job,attempt,team,metric,unit,at,min,mean,max,count,growth\n"
      "dgx-1,0,GPU-0,,,,utilization_percent,percent,2026-07-01T12:00:00.000Z,0,10,20,6,\n"
      "dgx-1,0,GPU-0,,,,utilization_percent,percent,2026-07-01T12:01:00.000Z,40,50,60,6,\n"
      "dgx-1,0,GPU-0,,,,utilization_percent,percent,2026-07-01T12:07:00.000Z,80,75.5,90,6,\n");
}

TEST_F(Show, HistorySaysWhatIsWrongWithItsOptions) {
  FakeServer server([](const Request&) { return json_answer(history_answer(0)); });
  EXPECT_EQ(call(server, {"history"}), 2);
  EXPECT_TRUE(has(err(), "give one of --gpu, --job, --node and --team")) << err();
  EXPECT_EQ(call(server, {"history", "--gpu", "dgx-1:0", "--job", "7"}), 2);
  EXPECT_EQ(call(server, {"history", "--job", "7", "--since", "1d", "--to", "1h"}), 2);
  EXPECT_TRUE(has(err(), "--since: cannot be given with --from or --to")) << err();
  EXPECT_EQ(call(server, {"history", "--job", "7", "--step", "often"}), 2);
  EXPECT_TRUE(has(err(), "--step: ")) << err();
  EXPECT_EQ(call(server, {"history", "--job", "7", "--csv", "--json"}), 2);
  EXPECT_EQ(call(server, {"history", "--job", "7"}), 0);
  EXPECT_TRUE(has(err(), "it had no GPU in this time")) << err();
}

}  // namespace
}  // namespace gpu_platform::cli
