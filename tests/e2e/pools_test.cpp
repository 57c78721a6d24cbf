#include <signal.h>

#include <fstream>

#include <gtest/gtest.h>

#include "harness.h"

// A team's guarantee is lent and taken back, through the real program.

namespace gpu_platform::e2e {
namespace {

DaemonOptions with_teams() {
  DaemonOptions options;
  options.config =
      "policies:\n  stop_grace: 20s\n"
      "teams:\n"
      "  - {name: vision, guaranteed_gpus: 6}\n"
      "  - {name: speech, guaranteed_gpus: 2, borrow_limit: 5}\n";
  return options;
}

class Pools : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.start()) << daemon.log(); }

  Daemon daemon{with_teams()};
};

TEST_F(Pools, IdleGpusAreLentAndComeBack) {
  const std::string lent = daemon.submit({"--team", "speech", "--gpus", "7", "--priority",
                                          "critical", "--preemptible", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(lent, "RUNNING"));
  EXPECT_EQ(daemon.job(lent)["borrowed"], true);
  EXPECT_NE(daemon.cli({"jobs", "describe", lent}).out.find("borrows GPUs"), std::string::npos);

  const std::string firm = daemon.submit(
      {"--team", "speech", "--gpus", "1", "--no-preemptible", "--", "/bin/sleep", "1"});
  EXPECT_EQ(daemon.job(firm)["wait_reason"]["code"], "QUOTA");
  const std::string why = daemon.job(firm)["wait_reason"]["text"];
  EXPECT_NE(why.find("its guarantee is 2"), std::string::npos) << why;
  EXPECT_EQ(daemon.cli({"jobs", "cancel", firm}).exit_code, 0);

  const std::string own = daemon.submit(
      {"--team", "vision", "--gpus", "6", "--priority", "low", "--", "/bin/sleep", "1000"});
  ASSERT_TRUE(daemon.reaches(own, "RUNNING"));
  EXPECT_EQ(daemon.job(own)["attempts"][0]["preempted_jobs"], nlohmann::json::array({lent}));
  EXPECT_EQ(daemon.job(own)["borrowed"], false);
  EXPECT_EQ(daemon.job(lent)["state"], "QUEUED");
  EXPECT_EQ(daemon.job(lent)["preemptions"], 1);
}

TEST_F(Pools, ExplainSaysThatAPreemptibleJobWouldStart) {
  const std::string firm =
      daemon.submit({"--team", "speech", "--gpus", "4", "--", "/bin/sleep", "1000"});
  EXPECT_EQ(daemon.job(firm)["wait_reason"]["code"], "QUOTA");
  const Finished explained = daemon.cli({"jobs", "explain", firm});
  EXPECT_NE(explained.out.find("--preemptible"), std::string::npos) << explained.out;
  const Finished changed = daemon.cli({"jobs", "update", firm, "--preemptible"});
  EXPECT_EQ(changed.exit_code, 0) << changed.err;
  EXPECT_TRUE(daemon.reaches(firm, "RUNNING"));
  const Finished refused = daemon.cli({"jobs", "update", firm, "--no-preemptible"});
  EXPECT_EQ(refused.exit_code, 4) << refused.err;
}

TEST(Surplus, IsSharedByWeightAndShown) {
  DaemonOptions options;
  options.config =
      "policies: {max_job_duration_hours: 5}\n"
      "teams:\n"
      "  - {name: vision, guaranteed_gpus: 0, over_quota_weight: 3, default_time_limit: 2h}\n"
      "  - {name: speech, guaranteed_gpus: 2}\n";
  Daemon daemon(options);
  ASSERT_TRUE(daemon.start()) << daemon.log();
  const auto submit = [&](const std::string& team, const std::string& gpus) {
    return daemon.submit({"--team", team, "--gpus", gpus, "--", "/bin/sleep", "1000"});
  };
  const std::string first = submit("speech", "6");
  ASSERT_TRUE(daemon.reaches(first, "RUNNING"));
  const std::string more = submit("speech", "2");
  ASSERT_TRUE(daemon.reaches(more, "RUNNING"));
  const std::string waits = submit("vision", "8");
  const std::string last = submit("speech", "1");
  const nlohmann::json rows = daemon.json({"shares"})["surplus"];
  ASSERT_EQ(rows.size(), 3U) << rows.dump();
  EXPECT_EQ(rows[0]["team"], "speech");
  EXPECT_EQ(rows[0]["held_gpus"], 6);
  EXPECT_EQ(rows[0]["share_gpus"], 1.5);
  EXPECT_EQ(rows[1]["team"], "vision");
  EXPECT_EQ(rows[1]["share_gpus"], 4.5);
  EXPECT_NE(daemon.cli({"shares"}).out.find("shared by over_quota_weight"), std::string::npos);
  const std::string why = daemon.job(last)["wait_reason"]["text"];
  EXPECT_NE(why.find("team speech is above its share of the GPUs beyond guarantees: 6 of 1.5"),
            std::string::npos)
      << why;
  EXPECT_EQ(daemon.job(waits)["time_limit_default_of"], "vision");
  EXPECT_EQ(daemon.job(last)["time_limit_default_of"], "");
  const auto told = [&](const std::string& id, const std::string& text) {
    const Finished described = daemon.cli({"jobs", "describe", id});
    EXPECT_NE(described.out.find(text), std::string::npos) << described.out;
  };
  told(waits, "the default of team vision");
  told(last, "the site's default");
  EXPECT_EQ(daemon.job(last)["spec"]["time_limit_seconds"], 4 * 3600);
  EXPECT_EQ(daemon.cli({"jobs", "update", waits, "--time", "1h"}).exit_code, 0);
  EXPECT_TRUE(daemon.job(waits)["time_limit_default_of"].is_null());
  EXPECT_EQ(daemon.cli({"jobs", "cancel", waits, last}).exit_code, 0);
}

TEST_F(Pools, AReloadSaysWhatItAppliedAndWhatWaitsForTheNextStart) {
  const auto reload = [&](const std::string& yaml, const std::string& line) {
    std::ofstream(daemon.directory() + "/config.yaml") << yaml;
    kill(daemon.pid(), SIGHUP);
    return eventually([&] { return daemon.log().find(line) != std::string::npos; });
  };
  const std::string teams = "teams:\n  - {name: vision, guaranteed_gpus: 4}\n";
  EXPECT_TRUE(reload(teams, "configuration key=teams applied=now")) << daemon.log();
  EXPECT_TRUE(
      reload(teams + "execution: {min_uid: 7}\n",
             "configuration key=execution.min_uid before=\"1\" after=\"7\" applied=\"at the "
             "next start\""))
      << daemon.log();
  const auto in_force = [&](const std::string& key) {
    const nlohmann::json shown =
        nlohmann::json::parse(daemon.cli({"config", "show", "--json"}).out);
    EXPECT_EQ(shown["file"], daemon.directory() + "/config.yaml");
    nlohmann::json found;
    for (const nlohmann::json& value : shown["values"]) {
      if (value["key"] == key) found = value;
    }
    return found;
  };
  EXPECT_EQ(in_force("execution.min_uid")["value"], "1");
  EXPECT_EQ(in_force("execution.min_uid")["next_value"], "7");
  EXPECT_EQ(in_force("teams")["line"], 1);
  EXPECT_TRUE(reload(teams + "scheduling: {max_queue_size: 77}\n",
                     "configuration key=scheduling.max_queue_size before=\"100000\" after=\"77\" "
                     "applied=now"))
      << daemon.log();
}

}  // namespace
}  // namespace gpu_platform::e2e
