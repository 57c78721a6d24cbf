#include "bin/alert_metrics.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

bool has_line(const std::string& page, const std::string& line) {
  return ("\n" + page).contains("\n" + line + "\n");
}

TEST(AlertMetrics, CountsAlertsByStateAndSeverityAlsoWhereThereAreNone) {
  std::vector<alerts::Alert> alerts(3);
  for (alerts::Alert& alert : alerts) alert.severity = alerts::Severity::kCritical;
  alerts[0].state = alerts[1].state = alerts::State::kFiring;
  alerts[2].state = alerts::State::kPending;
  api::MetricPage page;
  add_alert_metrics(alerts, {}, page);
  const std::string text = page.text();
  EXPECT_TRUE(has_line(text, R"(gpu_platform_alerts{state="firing",severity="critical"} 2)"));
  EXPECT_TRUE(has_line(text, R"(gpu_platform_alerts{state="pending",severity="critical"} 1)"));
  EXPECT_TRUE(has_line(text, R"(gpu_platform_alerts{state="resolved",severity="info"} 0)"));
  EXPECT_FALSE(text.contains("channel"));
}

TEST(AlertMetrics, TellsHowEachChannelDoes) {
  std::vector<api::AlertChannelView> channels(2);
  channels[0].name = "chat";
  channels[0].sent = 7;
  channels[1].name = "mail";
  channels[1].waiting = 3;
  channels[1].refused = 2;
  channels[1].dropped = 1;
  channels[1].problem = "connection refused";
  api::MetricPage page;
  add_alert_metrics({}, channels, page);
  const std::string text = page.text();
  const auto messages = [&](const std::string& labels, int count) {
    return has_line(text,
                    "gpu_platform_alert_messages_total{" + labels + "} " + std::to_string(count));
  };
  EXPECT_TRUE(messages(R"(channel="chat",result="sent")", 7));
  EXPECT_TRUE(messages(R"(channel="mail",result="refused")", 2));
  EXPECT_TRUE(messages(R"(channel="mail",result="dropped")", 1));
  EXPECT_TRUE(has_line(text, R"(gpu_platform_alert_messages_waiting{channel="mail"} 3)"));
  EXPECT_TRUE(has_line(text, R"(gpu_platform_alert_channel_up{channel="chat"} 1)"));
  EXPECT_TRUE(has_line(text, R"(gpu_platform_alert_channel_up{channel="mail"} 0)"));
  EXPECT_FALSE(text.contains("connection refused")) << "it may name what only operators see";
}

}  // namespace
}  // namespace gpu_platform::bin
