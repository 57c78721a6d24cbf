#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cli/commands/show_fixture.h"

namespace gpu_platform::cli {
namespace {

using Request = FakeServer::Request;

// An hour of an H100 in June, with the texts of a user who means no good.
constexpr std::string_view kHeldLine =
    R"({"line":"held","node":"dgx-1","gpu_id":"GPU-1","gpu_type":"H100-80GB","capacity":"on-demand",)"
    R"("gpu_share":7000,"price_id":1,"price_per_hour":"5.500000","from":"2026-06-10T10:00:00.000Z",)"
    R"("started_at":"2026-06-10T10:00:00.000Z","ended_at":"2026-06-10T11:00:00.000Z",)"
    R"("to":"2026-06-10T11:00:00.000Z","rest":null,"job":"42","attempt":1,"segment":0,"user":"=1+1",)"
    R"("team":"@vision","project":"","job_name":"a\u202e,\"b\"","priority":"MEDIUM",)"
    R"("labels":{"z":"1","a":"2"},"not_billed":null,"discount_basis_points":0,"cpus":4,)"
    R"("memory_mib":1024,"cost":"5.500000","running":false})";
// Its GPU then had nothing to do, and no price.
constexpr std::string_view kRestLine =
    R"({"line":"rest","node":"dgx-1","gpu_id":"GPU-1","gpu_type":"H100-80GB","capacity":"on-demand",)"
    R"("gpu_share":7000,"price_id":0,"price_per_hour":null,"from":"2026-06-10T11:00:00.000Z",)"
    R"("to":"2026-06-10T12:00:00.000Z","rest":"idle","job":null,"running":false})";
constexpr std::string_view kRunningLine =
    R"({"line":"held","node":"dgx-1","gpu_id":"GPU-2","gpu_type":"H100-80GB","capacity":"on-demand",)"
    R"("gpu_share":7000,"price_id":1,"price_per_hour":"5.500000","from":"2026-06-30T10:00:00.000Z",)"
    R"("started_at":"2026-06-30T10:00:00.000Z","ended_at":"2026-07-01T11:00:00.000Z",)"
    R"("to":"2026-07-01T11:00:00.000Z","job":"43","attempt":1,"user":"ada","running":true})";

std::string page_of_lines(const std::vector<std::string_view>& lines, std::string_view next = {}) {
  std::string text;
  for (const std::string_view line : lines) {
    text += (text.empty() ? "" : ",") + std::string(line);
  }
  const std::string token = next.empty() ? "null" : fmt::format("\"{}\"", next);
  return json_answer(
      fmt::format(R"({{"lines":[{}],"next_page":{},"currency":"EUR"}})", text, token));
}

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class UsageExport : public Show {
 protected:
  std::string export_to(const std::string& file, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"usage", "export", "-o", file};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(call(server_, words), 0) << err();
    return text_of_file(file);
  }

  // Two pages.
  FakeServer server_{[](const Request& request) {
    const bool is_second = has(request.target, "page_token=1");
    return is_second ? page_of_lines({kRestLine, kRunningLine}) : page_of_lines({kHeldLine}, "1");
  }};
};

TEST_F(UsageExport, IsOfTheLastMonthInTheDefaultVersion) {
  EXPECT_EQ(call(server_, {"usage", "export"}), 0) << err();
  ASSERT_EQ(server_.requests().size(), 2U);
  EXPECT_TRUE(has(server_.requests()[0], "since=2026-06-01T00")) << server_.requests()[0];
  EXPECT_TRUE(has(server_.requests()[0], "until=2026-07-01T00")) << server_.requests()[0];
  EXPECT_TRUE(begins(out(), "AllocatedMethodDetails,")) << out();
  EXPECT_TRUE(has(out(), ",ProviderName,")) << out();
  EXPECT_TRUE(has(out(), ",EUR,")) << out();
  EXPECT_TRUE(has(out(), ",job/42,")) << out();
  EXPECT_TRUE(has(out(), ",site/idle,")) << out();
  EXPECT_FALSE(has(out(), "job/43")) << "it still runs";
  EXPECT_TRUE(has(err(), "jobs that began in the month still run")) << err();
  EXPECT_TRUE(has(err(), "some GPUs have no price")) << err();
}

TEST_F(UsageExport, HasTheColumnsOfTheVersion) {
  EXPECT_EQ(call(server_, {"usage", "export", "--focus-version", "1.2", "--account", "hpc"}), 0);
  EXPECT_TRUE(begins(out(), "BilledCost,")) << out();
  EXPECT_TRUE(has(out(), ",hpc,hpc,")) << out();
  const std::string file = server_.path() + ".csv";
  const std::string newest = export_to(file, {"--focus-version", "1.4"});
  EXPECT_TRUE(has(newest, ",ServiceProviderName,")) << newest;
  EXPECT_FALSE(has(newest, "PublisherName")) << newest;
  std::filesystem::remove(file);
}

TEST_F(UsageExport, WritesTheLinesAsTheyAre) {
  EXPECT_EQ(call(server_, {"usage", "export", "--format", "ledger"}), 0) << err();
  EXPECT_TRUE(begins(out(), "line,node,gpu_id,")) << out();
  EXPECT_TRUE(has(out(),
                  "\r\nheld,dgx-1,GPU-1,H100-80GB,on-demand,7000,1,5.500000,"
                  "2026-06-10T10:00:00.000Z,2026-06-10T10:00:00.000Z,"
                  "2026-06-10T11:00:00.000Z,2026-06-10T11:00:00.000Z,,42,1,0,"))
      << out();
  EXPECT_TRUE(has(out(), "\r\nrest,dgx-1,GPU-1,")) << out();
  EXPECT_TRUE(has(out(), ",idle,,0,0,")) << out();
}

TEST_F(UsageExport, CellsAreNoFormulasAndTurnNothing) {
  for (const std::string_view format : {"focus", "ledger"}) {
    const std::string file = server_.path() + ".csv";
    const std::string text = export_to(file, {"--format", std::string(format)});
    EXPECT_TRUE(has(text, "\"'=1+1\"")) << text;
    EXPECT_TRUE(has(text, "\"'@vision\"")) << text;
    EXPECT_TRUE(has(text, "\"a\xef\xbf\xbd,\"\"b\"\"\"")) << text;
    EXPECT_FALSE(has(text, "\xe2\x80\xae")) << text;
    std::filesystem::remove(file);
  }
}

TEST_F(UsageExport, OfAClosedMonthIsTheSameTwice) {
  const std::string first = server_.path() + ".1";
  const std::string second = server_.path() + ".2";
  for (const std::string_view version : {"1.2", "1.3", "1.4"}) {
    const std::vector<std::string> words = {"--focus-version", std::string(version)};
    const std::string text = export_to(first, words);
    EXPECT_EQ(text, export_to(second, words));
    EXPECT_GT(text.size(), 500U);
  }
  around_.now = [] { return *base::parse_rfc3339("2027-07-01T12:03:12Z"); };
  const std::string a_year_later = export_to(second, {"--month", "2026-06"});
  EXPECT_EQ(export_to(first, {"--month", "2026-06"}), a_year_later);
  std::filesystem::remove(first);
  std::filesystem::remove(second);
}

TEST_F(UsageExport, KnowsTheEndsOfMonths) {
  const std::pair<std::string, std::string_view> cases[] = {{"2026-02", "until=2026-03-01T00"},
                                                            {"2024-02", "until=2024-03-01T00"},
                                                            {"2025-12", "until=2026-01-01T00"}};
  for (const auto& [month, until] : cases) {
    EXPECT_EQ(call(server_, {"usage", "export", "--month", month}), 0) << err();
    const std::string asked = server_.requests().at(server_.requests().size() - 2);
    EXPECT_TRUE(has(asked, fmt::format("since={}-01T00", month))) << asked;
    EXPECT_TRUE(has(asked, until)) << asked;
  }
}

TEST_F(UsageExport, SaysThatAMonthIsNotOver) {
  EXPECT_EQ(call(server_, {"usage", "export", "--month", "2026-07"}), 0) << err();
  EXPECT_TRUE(has(err(), "the month is not over")) << err();
}

TEST_F(UsageExport, AMistakeNamesTheOption) {
  const std::pair<std::vector<std::string>, std::string_view> cases[] = {
      {{"--month", "2026-08"}, "--month: 2026-08 lies in the future"},
      {{"--month", "2026-13"}, "--month: '2026-13' is no month"},
      {{"--month", "2028-02-29"}, "--month: '2028-02-29' is no month"},
      {{"--month", "="}, "--month"},
      {{"--format", "parquet"}, "--format: 'parquet' is not one of focus, ledger"},
      {{"--focus-version", "1.1"}, "--focus-version: '1.1' is not one of 1.2, 1.3, 1.4"},
      {{"--format", "ledger", "--focus-version", "1.3"}, "--focus-version: belongs to"},
      {{"--format", "ledger", "--account", "hpc"}, "--account: belongs to"},
  };
  for (const auto& [more, said] : cases) {
    std::vector<std::string> words = {"usage", "export"};
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(call(server_, words), 2) << said;
    EXPECT_TRUE(has(err(), said)) << said << "\n" << err();
  }
  EXPECT_TRUE(server_.requests().empty());
  EXPECT_EQ(out(), "");
}

TEST_F(UsageExport, AFileThatCannotBeWrittenIsAFailure) {
  const std::string file = server_.path() + ".none/october.csv";
  EXPECT_EQ(call(server_, {"usage", "export", "-o", file}), 1);
  EXPECT_TRUE(has(err(), "--output '" + file + "'")) << err();
  EXPECT_EQ(out(), "");
}

// Half a month is no export: what was there stays.
TEST_F(UsageExport, WritesNothingIfAPageIsMissing) {
  FakeServer broken([](const Request& request) {
    if (!has(request.target, "page_token=1")) return page_of_lines({kHeldLine}, "1");
    return json_answer(R"({"code":"INTERNAL","status":500,"detail":"the disk is gone"})", 500);
  });
  const std::string file = broken.path() + ".csv";
  std::ofstream(file) << "before";
  EXPECT_NE(call(broken, {"usage", "export", "-o", file}), 0);
  EXPECT_TRUE(has(err(), "the disk is gone")) << err();
  EXPECT_EQ(text_of_file(file), "before");
  EXPECT_NE(call(broken, {"usage", "export"}), 0);
  EXPECT_EQ(out(), "");
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace gpu_platform::cli
