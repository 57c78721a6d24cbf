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
    HeldBy held;
    add_attempts(jobs, {at(from), at(to)}, at(900), held);
    return held.empty() ? 0 : held.at({"vision", "ada"}).at("cpu");
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
  HeldBy held;
  add_attempts(jobs, {at(1), at(1000)}, at(210), held);
  EXPECT_EQ(held.at({"vision", "ada"}), (Held{{"cpu", 440}, {"mem", 110}, {"node", 110}}));
  EXPECT_EQ(held.at({"root", "ada"}).at("node"), 100) << "without a team";
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
      R"("gpus":[{"type":"H100-80GB"},{"type":"H100-80GB"},{"type":"L40S"}]})");
  EXPECT_EQ(capacity_of(status, "cpu"), 12);
  EXPECT_EQ(capacity_of(status, "mem"), 3);
  EXPECT_EQ(capacity_of(status, "node"), 2);
  EXPECT_EQ(capacity_of(status, "gres/gpu"), 3);
  EXPECT_EQ(capacity_of(status, "gres/gpu:h100"), 2);
  EXPECT_EQ(capacity_of(status, "billing"), 0);
}

// Two users of a team and one without; time that no job had; a correction of the team's bill.
v1::Usage usage_of_two_types() {
  return *client::message_of<v1::Usage>(
      R"({"groups":[)"
      R"({"keys":["","","H100-80GB"],"figures":{"gpu_hours":0,"cost":"0.000000",)"
      R"("rest":[{"name":"idle","gpu_hours":6,"cost":"33.000000"}]}},)"
      R"({"keys":["","bob","L40S"],"figures":{"gpu_hours":1,"cost":"2.200000"}},)"
      R"({"keys":["vision","",""],"figures":{"gpu_hours":0,"cost":"-1.000000"}},)"
      R"({"keys":["vision","ada","H100-80GB"],"figures":{"gpu_hours":2,"cost":"5.500000",)"
      R"("starting":{"gpu_hours":0.5,"cost":"2.750000"}}},)"
      R"({"keys":["vision","ada","L40S"],"figures":{"gpu_hours":0.5,"cost":"1.100000"}}],)"
      R"("total":{"gpu_hours":3.5,"cost":"7.800000","starting":{"gpu_hours":0.5,"cost":"2.750000"},)"
      R"("rest":[{"name":"idle","gpu_hours":6,"cost":"33.000000"},)"
      R"({"name":"draining","gpu_hours":1,"cost":"5.500000"},)"
      R"({"name":"offline","gpu_hours":2,"cost":"11.000000"},)"
      R"({"name":"reserved","gpu_hours":3,"cost":"16.500000"}]}})");
}

const LedgerColumns kAllOfTheLedger{{"gres/gpu", "gres/gpu:h100", "billing"}, true};

TEST(UsageReport, HasGpusAndMoneyOfTheLedger) {
  HeldBy held;
  add_ledger(usage_of_two_types(), kAllOfTheLedger, held);
  EXPECT_EQ(held.at({"vision", "ada"}),
            (Held{{"gres/gpu", 9000}, {"gres/gpu:h100", 7200}, {"billing", 23'760}}));
  EXPECT_EQ(held.at({"root", "bob"}), (Held{{"gres/gpu", 3600}, {"billing", 7'920}}));
  EXPECT_EQ(held.at({"vision", ""}), (Held{{"billing", -3600}})) << "a correction";
  EXPECT_EQ(held.size(), 3U) << "what no job had is of no account";
}

TEST(UsageReport, AnAccountHasWhatItsUsersAndTheAccountsBelowItHave) {
  HeldBy held{{{"physics", "ada"}, {{"gres/gpu", 10}}},
              {{"science", "bob"}, {{"gres/gpu", 5}}},
              {{"science", ""}, {{"billing", 7}}},
              {{"gone", "eve"}, {{"gres/gpu", 1}}}};
  const AccountParents parents{{"science", ""}, {"physics", "science"}};
  EXPECT_EQ(lineage_of("physics", parents),
            (std::vector<std::string>{"root", "science", "physics"}));
  add_accounts(parents, held);
  EXPECT_EQ(held.at({"physics", ""}), (Held{{"gres/gpu", 10}}));
  EXPECT_EQ(held.at({"science", ""}), (Held{{"gres/gpu", 15}, {"billing", 7}}));
  EXPECT_EQ(held.at({"root", ""}), (Held{{"gres/gpu", 16}, {"billing", 7}}));
  EXPECT_EQ(held.at({"physics", "ada"}), (Held{{"gres/gpu", 10}}));
  EXPECT_EQ(lineage_of("a", {{"a", "b"}, {"b", "a"}}).front(), "root") << "it ends";
}

TEST(UsageReport, TellsWhatBecameOfTheTimeThatNoJobHad) {
  const v1::Usage usage = usage_of_two_types();
  const Portions gpus = portions_of(usage, "gres/gpu", kAllOfTheLedger).value();
  EXPECT_EQ(gpus.used, 3.5 * 3600);
  EXPECT_EQ(gpus.idle, 6 * 3600);
  EXPECT_EQ(gpus.planned, 3.5 * 3600) << "reserved, and being prepared";
  EXPECT_EQ(gpus.planned_down, 3600);
  EXPECT_EQ(gpus.down, 2 * 3600);
  EXPECT_EQ(gpus.whole(), 16 * 3600);
  EXPECT_EQ(portions_of(usage, "gres/gpu:h100", kAllOfTheLedger)->whole(), 8.5 * 3600);
  EXPECT_EQ(portions_of(usage, "billing", kAllOfTheLedger)->idle, 33 * 3600);
  v1::Usage own = usage;
  own.mutable_total()->clear_rest();
  EXPECT_FALSE(portions_of(own, "gres/gpu", kAllOfTheLedger).has_value());
}

TEST(UsageReport, KnowsItsResources) {
  EXPECT_TRUE(is_counted("gres/gpu:h100"));
  EXPECT_FALSE(is_counted("gres/gpu:"));
  EXPECT_FALSE(is_counted("energy"));
  EXPECT_TRUE(is_of_ledger("billing"));
  EXPECT_FALSE(is_of_ledger("cpu"));
}

}  // namespace
}  // namespace gpu_platform::shims
