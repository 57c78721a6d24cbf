#include "shims/views/usage_report.h"

#include <gtest/gtest.h>

#include "cli/text/json_view.h"
#include "client/answer.h"

namespace gpu_platform::shims {
namespace {

using cli::Json;

base::Instant at(std::int64_t second) {
  return base::Instant(second * 1'000'000'000);
}

Json attempt(const std::string& began, const Json& ended) {
  return {{"started_at", began},
          {"ended_at", ended},
          {"cpus", 4},
          {"memory_bytes", 1024 * 1024},
          {"nodes", Json::array({"a"})},
          {"gpus", Json::array({Json::object(), Json::object()})}};
}

v1::Job job_of(const std::string& user, const std::string& team, const Json& attempts) {
  const Json job = {{"spec", {{"user", user}, {"team", team}}}, {"attempts", attempts}};
  return *client::message_of<v1::Job>(job.dump());
}

constexpr auto kAt100 = "1970-01-01T00:01:40.000Z";
constexpr auto kAt200 = "1970-01-01T00:03:20.000Z";

TEST(UsageReport, CountsAttemptsOnlyWithinThePeriod) {
  const std::vector<v1::Job> jobs = {
      job_of("ada", "vision", Json::array({attempt(kAt100, kAt200)}))};
  const auto used = [&](std::int64_t from, std::int64_t to) {
    const HeldBy usage = usage_of(jobs, {at(from), at(to)}, at(900));
    return usage.empty() ? 0 : usage.at({"vision", "ada"}).at("cpu");
  };
  EXPECT_EQ(used(1, 900), 400);
  EXPECT_EQ(used(150, 900), 200);
  EXPECT_EQ(used(1, 130), 120);
  EXPECT_EQ(used(200, 900), 0);
  EXPECT_EQ(used(1, 100), 0);
}

TEST(UsageReport, CountsEveryResourceOfEveryAttempt) {
  const std::vector<v1::Job> jobs = {
      job_of("ada", "vision", Json::array({attempt(kAt100, kAt200), attempt(kAt200, nullptr)})),
      job_of("ada", "", Json::array({attempt(kAt100, kAt200)}))};
  const HeldBy usage = usage_of(jobs, {at(1), at(1000)}, at(210));
  EXPECT_EQ(usage.at({"vision", "ada"}),
            (Held{{"cpu", 440}, {"mem", 110}, {"node", 110}, {"gres/gpu", 220}}));
  EXPECT_EQ(usage.at({"root", "ada"}).at("gres/gpu"), 200) << "without a team";
}

TEST(UsageReport, CountsNoTimeBeforeTheRecordsOfTheCluster) {
  const Period period{at(100), at(200)};
  const auto length = [&](std::optional<base::Instant> since) {
    return base::whole_milliseconds(recorded_part(period, since).length()) / 1000;
  };
  EXPECT_EQ(length(at(50)), 100);
  EXPECT_EQ(length(at(130)), 70);
  EXPECT_EQ(length(at(900)), 0);
  EXPECT_EQ(length(std::nullopt), 100) << "an older daemon does not say it";
}

TEST(UsageReport, ACapacityIsThatOfAllNodes) {
  const v1::Status status = *client::message_of<v1::Status>(
      R"({"nodes":[{"cpus":8,"memory_bytes":2097152},{"cpus":4,"memory_bytes":1048576}],)"
      R"("gpus":[{},{},{}]})");
  EXPECT_EQ(capacity_of(status), (Held{{"cpu", 12}, {"mem", 3}, {"node", 2}, {"gres/gpu", 3}}));
}

}  // namespace
}  // namespace gpu_platform::shims
