#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "cli/commands/show_fixture.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

// Three thirds of a cent each: the rows add up to the total.
constexpr std::string_view kUsageAnswer = R"({
  "since":"2026-06-01T00:00:00.000Z","until":"2026-06-30T12:00:00.000Z","group_by":["team"],"step":null,
  "currency":"USD","has_running":true,
  "groups":[
    {"keys":["=vision"],"from":null,"figures":{"gpu_hours":2,"unpriced_gpu_hours":0,"cost":"11.003334","discount":"0.000000","corrections":"0.000000"}},
    {"keys":[""],"from":null,"figures":{"gpu_hours":1,"unpriced_gpu_hours":0.5,"cost":"5.503333","discount":"0.000000","corrections":"0.000000"}}],
  "total":{"gpu_hours":3,"unpriced_gpu_hours":0.5,"cost":"16.506667","discount":"0.000000","corrections":"0.000000",
           "not_billed":[{"name":"hardware","gpu_hours":0.25,"cost":"1.375000"}]}
})";

constexpr std::string_view kReport = R"({
  "month":"2026-06","status":"final","currency":"USD","total":"16.500000",
  "teams":[{"team":"vision","total_cost":"16.500000","cpu_cost":"0.000000","corrections":"0.000000",
            "by_gpu_type":[{"gpu_type":"H100-80GB","hours":3,"unpriced_hours":0,"cost":"16.500000"}]}],
  "trend":[{"month":"2026-06","gpu_hours":3,"cost":"16.500000"}],"document":"<!doctype html>\n"
})";

TEST_F(Show, UsageEndsWithTheTotalAndSaysWhatHasNoPrice) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kUsageAnswer));
  });
  EXPECT_EQ(call(server, {"usage", "--month", "2026-06"}), 0);
  EXPECT_TRUE(has(target, "group_by=team")) << target;
  EXPECT_TRUE(has(target, "since=2026-06-01T00")) << target;
  EXPECT_TRUE(has(target, "until=2026-07-01T00")) << target;
  EXPECT_TRUE(has(out(), "TEAM")) << out();
  EXPECT_TRUE(has(out(), "11.00\n")) << out();
  EXPECT_TRUE(has(out(), "(no team)")) << out();
  EXPECT_TRUE(has(out(), "? + 5.51\n")) << "it takes what the row before left: " << out();
  EXPECT_TRUE(has(out(), "16.51\n")) << out();
  EXPECT_TRUE(has(out(), "hardware")) << out();
  EXPECT_TRUE(has(out(), "0.500 GPU-hours have no price")) << out();
}

// Three discounts of a third of a cent each, and amounts of half a cent.
TEST_F(Show, UsageAddsUpInEachRowAndColumn) {
  FakeServer server([](const Request&) {
    return json_answer(R"({
      "since":"2026-06-01T00:00:00.000Z","until":"2026-06-30T12:00:00.000Z","group_by":["job"],"currency":"USD",
      "groups":[
        {"keys":["1"],"figures":{"gpu_hours":1,"cost":"0.255000","list_cost":"0.258333","discount":"0.003333","corrections":"0.000000"}},
        {"keys":["2"],"figures":{"gpu_hours":1,"cost":"0.255000","list_cost":"0.258333","discount":"0.003333","corrections":"0.000000"}},
        {"keys":["3"],"figures":{"gpu_hours":1,"cost":"0.255000","list_cost":"0.258334","discount":"0.003334","corrections":"0.000000"}}],
      "total":{"gpu_hours":3,"cost":"0.765000","list_cost":"0.775000","discount":"0.010000","corrections":"0.000000"}})");
  });
  EXPECT_EQ(call(server, {"usage", "--by", "job"}), 0) << err();
  EXPECT_TRUE(has(out(), "1.000  0.26      0.00      0.26\n")) << out();
  EXPECT_TRUE(has(out(), "1.000  0.26      0.01      0.25\n")) << out();
  EXPECT_TRUE(has(out(), "3.000  0.78      0.01      0.77\n")) << out();
}

TEST_F(Show, UsageOfMineIsByJob) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kUsageAnswer));
  });
  EXPECT_EQ(call(server, {"usage", "--mine"}), 0);
  EXPECT_TRUE(has(target, "mine=true")) << target;
  EXPECT_TRUE(has(target, "group_by=job")) << target;
}

TEST_F(Show, UsageAsCsvHasNoFormulas) {
  FakeServer server([](const Request&) { return json_answer(std::string(kUsageAnswer)); });
  EXPECT_EQ(call(server, {"usage", "--csv"}), 0);
  EXPECT_TRUE(begins(out(), "team,gpu_hours,")) << out();
  EXPECT_TRUE(has(out(), "\n'=vision,2.000000,")) << out();
  EXPECT_TRUE(has(out(), ",11.003334,USD\n")) << out();
}

TEST_F(Show, UsageOfATeamThatUsedNothingSaysSo) {
  FakeServer server([](const Request& request) {
    const bool is_month = has(request.target, "monthly");
    return json_answer(
        is_month ? R"({"month":"2026-06","status":"final","currency":"USD","total":"0.000000"})"
                 : R"({"group_by":["team"],"currency":"USD","groups":[],"total":{"cost":"0.000000",
                                      "discount":"0.000000","corrections":"0.000000"}})");
  });
  EXPECT_EQ(call(server, {"usage", "--team", "visoin"}), 0);
  EXPECT_TRUE(has(err(), "there is no use of team 'visoin'")) << err();
  EXPECT_EQ(call(server, {"report", "monthly", "--month", "2026-06", "--team", "vsion"}), 0);
  EXPECT_TRUE(has(err(), "there is no use of team 'vsion'")) << err();
}

TEST_F(Show, UsageRefusesAMonthThatIsNone) {
  FakeServer server([](const Request&) { return json_answer(std::string(kUsageAnswer)); });
  EXPECT_EQ(call(server, {"usage", "--month", "2026-13"}), 2);
  EXPECT_TRUE(has(err(), "--month")) << err();
  EXPECT_EQ(call(server, {"usage", "--month", "2026-06", "--since", "7d"}), 2);
}

TEST_F(Show, UsageRefusesAMonthAheadByItsOption) {
  FakeServer server([](const Request&) { return json_answer(std::string(kUsageAnswer)); });
  EXPECT_EQ(call(server, {"usage", "--month", "2126-06"}), 2);
  EXPECT_TRUE(has(err(), "--month: 2126-06 lies in the future")) << err();
}

TEST_F(Show, UsageNamesTheOptionOfAnUnknownField) {
  FakeServer server([](const Request&) { return json_answer(std::string(kUsageAnswer)); });
  EXPECT_EQ(call(server, {"usage", "--by", "team,usr"}), 2);
  EXPECT_TRUE(has(err(), "--by: 'usr' is not one of user, team, project,")) << err();
  EXPECT_EQ(call(server, {"usage", "--by", "team", "--by", "team"}), 2);
  EXPECT_TRUE(has(err(), "--by: 'team' is given twice")) << err();
}

// To operators the time that no job had is of a group without keys.
TEST_F(Show, UsageHasNoRowForWhatNoJobUsed) {
  constexpr std::string_view kIdleAlone = R"({
    "since":"2026-06-01T00:00:00.000Z","until":"2026-06-30T12:00:00.000Z","group_by":["team"],"currency":"USD",
    "groups":[{"keys":[""],"figures":{"gpu_hours":0,"cost":"0.000000","rest":[{"name":"idle","gpu_hours":8,"cost":"44.000000"}]}}],
    "total":{"gpu_hours":0,"cost":"0.000000","discount":"0.000000","corrections":"0.000000",
             "rest":[{"name":"idle","gpu_hours":8,"cost":"44.000000"}]}})";
  FakeServer server([&](const Request&) { return json_answer(std::string(kIdleAlone)); });
  EXPECT_EQ(call(server, {"usage"}), 0);
  EXPECT_TRUE(has(out(), "No job that you may see used anything that matches.\n")) << out();
  EXPECT_FALSE(has(out(), "(no team)")) << out();
  EXPECT_TRUE(has(out(), "44.00\n")) << out();
  EXPECT_EQ(call(server, {"usage", "--csv"}), 0);
  EXPECT_TRUE(has(out(), "cost,currency\n")) << out();
  EXPECT_FALSE(has(out(), "\n,")) << out();
}

TEST_F(Show, ReportMonthlyIsATable) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kReport));
  });
  EXPECT_EQ(call(server, {"report", "monthly", "--month", "2026-06"}), 0);
  EXPECT_EQ(target, "/v1/reports/monthly?month=2026-06");
  EXPECT_TRUE(begins(out(), "2026-06 (final)\n")) << out();
  EXPECT_TRUE(has(out(), "H100-80GB")) << out();
  EXPECT_TRUE(has(out(), "16.50\n")) << out();
}

TEST_F(Show, ReportMonthlyWritesTheDocumentIntoAFile) {
  std::string target;
  FakeServer server([&](const Request& request) {
    target = request.target;
    return json_answer(std::string(kReport));
  });
  const std::string file = server.path() + ".html";
  EXPECT_EQ(call(server, {"report", "monthly", "--format", "html", "-o", file}), 0) << err();
  EXPECT_EQ(target, "/v1/reports/monthly?format=html");
  std::ifstream written(file);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(written), {}), "<!doctype html>\n");
  EXPECT_EQ(out(), "");
  std::filesystem::remove(file);
}

TEST_F(Show, ReportMonthlyRefusesAnUnknownFormat) {
  FakeServer server([](const Request&) { return json_answer(std::string(kReport)); });
  EXPECT_EQ(call(server, {"report", "monthly", "--format", "pdf"}), 2);
  EXPECT_TRUE(has(err(), "--format")) << err();
}

TEST_F(Show, ReportBalanceFailsWhereTheBooksDoNot) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"since":"2026-06-01T00:00:00.000Z","until":"2026-06-30T12:00:00.000Z","currency":"USD","gpus":1,
            "parts":[{"name":"billed","gpu_hours":1,"cost":"5.500000"}],
            "whole":{"name":"fleet","gpu_hours":2,"cost":"11.000000"},
            "differences":["GPU-1 has 3500 of 7000 shares."]})");
  });
  EXPECT_EQ(call(server, {"report", "balance"}), 1);
  EXPECT_TRUE(has(out(), "GPU-1 has 3500 of 7000 shares.")) << out();
}

TEST_F(Show, DescribeSaysWhatAJobCostAndWhatIsNotBilled) {
  FakeServer server([](const Request&) {
    return json_answer(
        R"({"id":"42","state":"COMPLETED","attempt":2,"spec":{"name":"train","user":"ada"},
            "attempts":[{"attempt":1,"state":"RELEASED"},{"attempt":2,"state":"RELEASED"}],
            "cost":{"cost":"0.420000","currency":"USD","gpu_hours":0.0763,"gpu_type":"H100-80GB","energy_kwh":0.05,"energy_cost":"0.015000","co2_grams":19,
                    "attempts":[{"attempt":1,"cost":"0.000000","gpu_hours":0.01,"not_billed":"hardware"},
                                {"attempt":2,"cost":"0.420000","gpu_hours":0.0663}]}})");
  });
  EXPECT_EQ(call(server, {"jobs", "describe", "42"}), 0) << err();
  EXPECT_TRUE(has(out(), "0.42 USD: 0.0763 GPU-hours of H100-80GB")) << out();
  EXPECT_TRUE(has(out(), "0.05 kWh, 0.02 USD beside the bill, 19 g of CO2")) << out();
  EXPECT_TRUE(has(out(), "not billed: hardware")) << out();
}

TEST_F(Show, JobsListAsksForTheCostIfItIsNamed) {
  std::vector<std::string> targets;
  FakeServer server([&](const Request& request) {
    targets.push_back(request.target);
    return json_answer(
        R"({"jobs":[{"id":"42","state":"RUNNING","spec":{"name":"train","user":"ada"},)"
        R"("cost":{"cost":"1234.567000","currency":"USD","gpu_hours":1}}],"next_page":null})");
  });
  EXPECT_EQ(call(server, {"jobs", "list", "--columns", "id,cost"}), 0) << err();
  ASSERT_FALSE(targets.empty());
  EXPECT_TRUE(has(targets.front(), "cost=true")) << targets.front();
  EXPECT_TRUE(has(out(), "1,234.57")) << out();
  targets.clear();
  EXPECT_EQ(call(server, {"jobs", "list"}), 0);
  EXPECT_FALSE(has(targets.front(), "cost=true")) << targets.front();
}

}  // namespace
}  // namespace gpu_platform::cli
