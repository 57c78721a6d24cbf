#include "alerts/rendering.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace gpu_platform::alerts {
namespace {

constexpr base::Instant kNoon{1'798'718'400'000'000'000};  // 2026-12-31T12:00:00Z

Alert hot_gpu() {
  Alert alert;
  alert.fingerprint = "00c0ffee00c0ffee";
  alert.rule = "GpuHot";
  alert.state = State::kFiring;
  alert.labels = {{"node", "n1"}, {"gpu_index", "3"}, {"rack", ""}};
  alert.summary = "GPU 3 of n1 has 91 °C (limit 85 °C)";
  alert.advice = "Look at the cooling.";
  alert.value = 91;
  alert.since = kNoon;
  alert.fired = kNoon + base::minutes(1);
  return alert;
}

Notification news() {
  Notification notification;
  notification.channel = "chat";
  notification.group = "node n1";
  notification.key = "k1";
  notification.firing = {hot_gpu()};
  return notification;
}

TEST(Rendering, TextForPeopleHasOneLineForEachAlert) {
  Notification all = news();
  all.resolved = {hot_gpu()};
  all.resolved[0].state = State::kResolved;
  all.more = 7;
  EXPECT_EQ(text_of(all, {.name = "dgx", .url = {}, .line = {}}),
            "[dgx] 9 alerts of node n1: WARNING GpuHot\n"
            "WARNING GpuHot: GPU 3 of n1 has 91 °C (limit 85 °C). Look at the cooling.\n"
            "RESOLVED GpuHot: GPU 3 of n1 has 91 °C (limit 85 °C)\n"
            "and 7 more: 'gpu-platform alerts list' shows them\n");
}

TEST(Rendering, ASubjectIsOneLineOfBoundedLength) {
  Notification odd = news();
  odd.group = "node a\r\nBcc: x@y " + std::string(500, 'n');
  const std::string subject = subject_of(odd, {});
  EXPECT_EQ(subject.find_first_of("\r\n"), std::string::npos);
  EXPECT_LE(subject.size(), 200U);
}

TEST(Rendering, SlackTextCannotMentionOrLink) {
  Notification odd = news();
  odd.firing[0].summary = "<!channel> & <http://x|y> \xff";
  const auto document = nlohmann::json::parse(slack_json(odd, {}));
  const std::string text = document["text"];
  EXPECT_EQ(text.find('<'), std::string::npos);
  EXPECT_NE(text.find("&lt;!channel&gt; &amp; "), std::string::npos);
}

TEST(Rendering, TheWebhooksDocumentStaysAsItIs) {
  EXPECT_EQ(webhook_json(news(), {.name = "dgx", .url = {}, .line = {}}),
            R"x({"version":1,"key":"k1","site":"dgx","group":"node n1","firing":[{)x"
            R"x("id":"00c0ffee00c0ffee","rule":"GpuHot","severity":"WARNING","state":"FIRING",)x"
            R"x("summary":"GPU 3 of n1 has 91 °C (limit 85 °C)","advice":"Look at the cooling.",)x"
            R"x("value":91,"labels":{"gpu_index":"3","node":"n1","rack":""},)x"
            R"x("since":"2026-12-31T12:00:00.000Z","fired_at":"2026-12-31T12:01:00.000Z",)x"
            R"x("resolved_at":null}],"resolved":[],"more":0})x");
}

TEST(Rendering, AlertmanagerGetsBeginEndAndNoEmptyLabels) {
  Notification both = news();
  both.resolved = {hot_gpu()};
  both.resolved[0].resolved = kNoon + base::hours(1);
  const auto document = nlohmann::json::parse(alertmanager_json(
      both, {.name = "dgx", .url = "https://gpus/alerts", .line = {}}, kNoon + base::hours(2)));
  ASSERT_EQ(document.size(), 2U);
  EXPECT_EQ(document[0]["labels"], (nlohmann::json{{"alertname", "GpuHot"},
                                                   {"severity", "warning"},
                                                   {"cluster", "dgx"},
                                                   {"node", "n1"},
                                                   {"gpu_index", "3"}}));
  EXPECT_EQ(document[0]["startsAt"], "2026-12-31T12:01:00.000Z");
  EXPECT_EQ(document[0]["endsAt"], "2026-12-31T14:10:00.000Z");
  EXPECT_EQ(document[0]["generatorURL"], "https://gpus/alerts");
  EXPECT_EQ(document[1]["endsAt"], "2026-12-31T13:00:00.000Z");
}

TEST(Rendering, NoEndIsBeforeItsStartForAlertmanager) {
  Notification over;
  over.resolved = {hot_gpu()};
  over.resolved[0].resolved = kNoon;
  ASSERT_LT(over.resolved[0].resolved, over.resolved[0].fired);
  const auto document =
      nlohmann::json::parse(alertmanager_json(over, {.name = {}, .url = {}, .line = {}}, kNoon));
  EXPECT_EQ(document[0]["endsAt"], document[0]["startsAt"]);
}

TEST(Rendering, ATemplateOfTheSiteReplacesTheLines) {
  const auto line = TextTemplate::parse("{{alert.severity}} {{ label.node }}: {{alert.summary}}\n");
  ASSERT_TRUE(line) << line.error().message;
  const std::string text = text_of(news(), {.name = {}, .url = {}, .line = *line});
  EXPECT_NE(text.find("\nWARNING n1: GPU 3 of n1 has 91 °C (limit 85 °C)\n"), std::string::npos)
      << text;
}

TEST(Rendering, ATemplateWithOddBytesIsRefused) {
  for (const char* const odd : {"fine\n\xff", "fine\n\x1b[31m", "fine\r\n", "\xef\xbb\xbf text"}) {
    EXPECT_FALSE(TextTemplate::parse(odd)) << odd;
  }
  EXPECT_NE(TextTemplate::parse("fine\n\x1b").error().message.find("line 2: "), std::string::npos);
  EXPECT_TRUE(TextTemplate::parse("é\t{{alert.summary}}\n"));
}

TEST(Rendering, ATemplateWithAPlaceThatIsNotKnownIsRefused) {
  const auto wrong = TextTemplate::parse("fine\n{{alert.sumary}}");
  ASSERT_FALSE(wrong);
  EXPECT_NE(wrong.error().message.find("line 2: there is no place 'alert.sumary'; did you mean "
                                       "'alert.summary'?"),
            std::string::npos)
      << wrong.error().message;
  EXPECT_FALSE(TextTemplate::parse("{{alert.summary"));
  EXPECT_FALSE(TextTemplate::parse("{{label.password}}"));
  EXPECT_FALSE(TextTemplate::parse(std::string(TextTemplate::kMaxBytes + 1, 'x')));
  EXPECT_TRUE(TextTemplate::parse("no places } {"));
}

}  // namespace
}  // namespace gpu_platform::alerts
