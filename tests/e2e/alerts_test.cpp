// What people are told of an emulated board: a webhook hears once that a GPU is hot, and once that
// it is not any more, also if the daemon is killed between.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "harness.h"
#include "http/testing/scripted_server.h"

namespace gpu_platform::e2e {
namespace {

class AlertsOfABoard : public ::testing::Test {
 protected:
  // Only the rule GpuHot is told, and at once.
  std::string config() const {
    return fmt::format(
        "monitoring:\n  interval_seconds: 1\n"
        "alerts:\n"
        "  group_wait: 0s\n"
        "  group_interval: 10s\n"
        "  channels:\n"
        "    - {{name: hook, kind: webhook, url: \"{}/gpus\"}}\n"
        "  routes:\n"
        "    - {{rules: [GpuHot], channels: [hook]}}\n"
        "  rules:\n"
        "    - {{name: GpuHot, above: 85, clear: 80, for: 0s}}\n",
        hook_.address());
  }
  void emulator(std::vector<std::string> words) {
    words.insert(words.begin(), program("gpu-emulator"));
    words.insert(words.end(), {"--data-dir", daemon_.data_dir(), "--gpu", "dgx-h100-1:3"});
    const Finished done = run_command(words);
    ASSERT_EQ(done.exit_code, 0) << done.err;
  }
  // The alerts in the messages that came, by their state.
  std::vector<nlohmann::json> told(const std::string& list) const {
    std::vector<nlohmann::json> all;
    for (const http::SeenRequest& request : hook_.requests()) {
      const auto document = nlohmann::json::parse(request.body, nullptr, false);
      if (!document.is_object()) continue;
      for (const auto& alert : document[list]) all.push_back(alert);
    }
    return all;
  }
  // The state of the alert in the list of the daemon; empty: it is not there.
  std::string state_of(const std::string& id) const {
    const auto list = daemon_.json({"alerts", "list"});
    for (const auto& alert : list["alerts"]) {
      if (alert["id"] == id) return alert["state"];
    }
    return {};
  }
  // Whether a daemon that starts now knows that the channel was told.
  bool is_kept(const std::string& id) const {
    const std::string file = daemon_.data_dir() + "/history.db";
    const std::string bytes = read_file(file) + read_file(file + "-wal");
    return bytes.find("alert/" + id) != std::string::npos &&
           bytes.find("hook") != std::string::npos;
  }

  http::ScriptedServer hook_{
      [](const http::SeenRequest&, http::Wire& wire) { wire.answer(200, "{}"); }};
  Daemon daemon_{{.emulate = "dgx-h100", .config = config()}};
};

TEST_F(AlertsOfABoard, AWebhookHearsOnceOfAHotGpuAndOnceOfItsEndAlsoOverAKill) {
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  emulator({"inject", "temperature", "90"});
  ASSERT_TRUE(eventually([&] { return told("firing").size() == 1; })) << daemon_.log();
  const nlohmann::json fired = told("firing").front();
  EXPECT_EQ(fired["rule"], "GpuHot");
  EXPECT_EQ(fired["labels"]["gpu_index"], "3");
  EXPECT_GE(fired["value"], 85);
  const std::string id = fired["id"];
  EXPECT_EQ(state_of(id), "FIRING");
  ASSERT_TRUE(eventually([&] { return is_kept(id); }));

  daemon_.kill_now();
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_TRUE(eventually([&] { return state_of(id) == "FIRING"; })) << daemon_.log();
  emulator({"clear"});
  ASSERT_TRUE(eventually([&] { return told("resolved").size() == 1; })) << daemon_.log();
  EXPECT_EQ(told("resolved").front()["id"], id);
  EXPECT_EQ(told("firing").size(), 1U) << "nothing was told twice";
  EXPECT_TRUE(eventually([&] { return state_of(id) == "RESOLVED"; }));
}

TEST_F(AlertsOfABoard, ASilenceIsKeptAndEndedByHand) {
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  const nlohmann::json made =
      daemon_.json({"alerts", "silence", "node=dgx-*", "--duration", "1h", "--comment", "fans"});
  ASSERT_TRUE(made.is_object());
  emulator({"inject", "temperature", "90"});
  const auto is_silenced = [&] {
    const auto list = daemon_.json({"alerts", "list", "--rule", "GpuHot"});
    return list["alerts"].size() == 1 && list["alerts"][0]["silence"] == made["id"];
  };
  ASSERT_TRUE(eventually(is_silenced)) << daemon_.cli({"alerts", "list"}).out;
  EXPECT_TRUE(told("firing").empty());
  EXPECT_EQ(daemon_.cli({"alerts", "end-silence", made["id"]}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return told("firing").size() == 1; })) << daemon_.log();
  const auto trail = daemon_.json({"audit", "list", "--action", "silence"});
  ASSERT_EQ(trail["entries"].size(), 1U) << trail;
  EXPECT_EQ(trail["entries"][0]["target"], "node=dgx-*");
}

TEST_F(AlertsOfABoard, AChannelIsTriedByHand) {
  ASSERT_TRUE(daemon_.start()) << daemon_.log();
  EXPECT_EQ(daemon_.cli({"alerts", "test", "hook"}).exit_code, 0);
  const auto tests = told("firing");
  ASSERT_EQ(tests.size(), 1U);
  EXPECT_EQ(tests[0]["rule"], "Test");
  EXPECT_EQ(daemon_.cli({"alerts", "test", "none"}).exit_code, 3) << "there is no such channel";
}

TEST_F(AlertsOfABoard, AWrongRuleIsRefusedWithItsPlace) {
  Daemon wrong{{.config = "alerts:\n  rules:\n    - {name: GpuHot, above: 900}\n"}};
  EXPECT_FALSE(wrong.start());
  EXPECT_NE(wrong.log().find(":3:7: alerts.rules[0]: "), std::string::npos) << wrong.log();
}

}  // namespace
}  // namespace gpu_platform::e2e
