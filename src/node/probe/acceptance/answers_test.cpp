#include "node/probe/acceptance/answers.h"

#include <gtest/gtest.h>

namespace gpu_platform::node {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

TEST(Answers, AreReadByPointer) {
  const json document = json::parse(R"({"a":[{"b":"text","c":4,"d":null}]})");

  EXPECT_EQ(value_at(document, "/a/0/b"), "text");
  EXPECT_EQ(value_at(document, "/a/0/c"), "4");
  EXPECT_EQ(value_at(document, "/a/0"), R"({"b":"text","c":4,"d":null})");
  for (const char* absent : {"/a/0/d", "/a/1", "/a/0/b/c", "/x", "no pointer"}) {
    EXPECT_EQ(value_at(document, absent), std::nullopt) << absent;
  }
}

TEST(Answers, TellHowLongAGpuWasFreeBetweenJobs) {
  const json jobs = json::parse(R"({"jobs":[
    {"started_at":"2026-01-01T00:00:01.500Z","ended_at":"2026-01-01T00:00:02.000Z"},
    {"started_at":"2025-12-31T23:59:59.000Z","ended_at":"2025-12-31T23:59:59.990Z"},
    {"started_at":"2026-01-01T00:00:00.000Z","ended_at":"2026-01-01T00:00:01.400Z"},
    {"started_at":null,"ended_at":null}]})");

  EXPECT_EQ(turnarounds_ms(jobs), (std::vector<std::int64_t>{10, 100}));
  EXPECT_TRUE(turnarounds_ms(json::parse("[]")).empty());
}

TEST(Answers, HaveAPercentileByNearestRank) {
  const std::vector<std::int64_t> values = {1, 2, 3, 4};

  EXPECT_EQ(percentile(values, 50), 2);
  EXPECT_EQ(percentile(values, 99), 4);
  EXPECT_EQ(percentile({7}, 50), 7);
}

TEST(Answers, HaveTheTimesOfLaunchesInLinesOfTheirOwn) {
  EXPECT_EQ(launch_times("[gpu-platform: 1]\n100\n\n2500\n3 launches\n40"),
            (std::vector<std::int64_t>{100, 2500, 40}));
}

// Works that take turns of 3 and 1 of 4 microseconds, of which the second begins later.
TEST(Answers, CompareWorksInTheWholeRoundsInWhichAllOfThemRan) {
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> second;
  for (std::int64_t time = 1; time <= 40; ++time) {
    if (time % 4 != 0) {
      first.push_back(time);
    } else if (time > 10) {
      second.push_back(time);
    }
  }
  const auto shares = launch_shares({first, second}, {.round_us = 4, .max_rounds = 100});

  ASSERT_TRUE(shares);
  EXPECT_EQ(shares->rounds, 6) << "from 12 to 39";
  EXPECT_EQ(shares->of_each, (std::vector<double>{0.75, 0.25}));
  EXPECT_DOUBLE_EQ(shares->per_second, 1e6);
  EXPECT_EQ(launch_shares({first, second}, {.round_us = 4, .max_rounds = 2})->rounds, 2);
}

TEST(Answers, CompareNoWorksThatDidNotRunBesideEachOther) {
  EXPECT_FALSE(launch_shares({}, {.round_us = 1, .max_rounds = 1}));
  EXPECT_FALSE(launch_shares({{1, 2, 3}, {}}, {.round_us = 1, .max_rounds = 1}));
  EXPECT_FALSE(launch_shares({{1, 2}, {5, 6}}, {.round_us = 1, .max_rounds = 1}));
}

TEST(Answers, AreKeptWithoutIdentities) {
  const auto results = ordered_json::parse(
      R"({"checks":[{"note":"GPU-01234567-89ab-cdef-0123-456789abcdef alone"}],"report":{"gpus":[
      {"uuid":"GPU-01234567-89ab-cdef-0123-456789abcdef","serial":"1234567890123"}]}})");
  const std::string masked = mask_identities(results).dump();

  EXPECT_EQ(masked, R"({"checks":[{"note":"GPU-01234567-xxxx-xxxx-xxxx-xxxxxxxxxxxx alone"}],)"
                    R"("report":{"gpus":[{"uuid":"GPU-01234567-xxxx-xxxx-xxxx-xxxxxxxxxxxx",)"
                    R"("serial":"1234567xxxxxx"}]}})");
  EXPECT_EQ(mask_identities(ordered_json::object()), ordered_json::object());
}

}  // namespace
}  // namespace gpu_platform::node
