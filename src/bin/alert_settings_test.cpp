#include "bin/alert_settings.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace gpu_platform::bin {
namespace {

config::Configuration with(config::AlertChannel channel) {
  config::Configuration site;
  site.alert_channels.push_back(std::move(channel));
  return site;
}

config::AlertChannel webhook(std::string url) {
  config::AlertChannel channel;
  channel.name = "hook";
  channel.kind = "webhook";
  channel.url = std::move(url);
  return channel;
}

std::string refusal(const config::Configuration& site) {
  const auto settings = alert_settings_of(site);
  return settings ? "accepted" : settings.error().field + ": " + settings.error().message;
}

TEST(AlertSettingsOfSite, AreThoseThatAreShippedWithoutAConfiguration) {
  const auto settings = alert_settings_of({});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->book.rules, alerts::shipped_rules());
  EXPECT_TRUE(settings->channels.empty());
  EXPECT_EQ(settings->idle, telemetry::IdleRule());
}

TEST(AlertSettingsOfSite, ThresholdsOfOtherFilesChangeTheShippedRules) {
  config::Configuration site;
  site.alert_temperature_c = 78;
  site.alert_utilization_percent = 95;
  site.alert_memory_percent = 80;
  config::AlertRule own;
  own.name = "GpuMemoryNearFull";
  own.above = 70;
  site.alert_rules.push_back(own);
  const auto settings = alert_settings_of(site);
  ASSERT_TRUE(settings) << settings.error().message;
  const auto rule = [&](std::string_view name) {
    return *std::ranges::find(settings->book.rules, name, &alerts::Rule::name);
  };
  EXPECT_EQ(rule("GpuHot").threshold, 78);
  EXPECT_EQ(rule("GpuHot").clear, 73);
  EXPECT_TRUE(rule("GpuBusy").is_enabled);
  EXPECT_EQ(rule("GpuMemoryNearFull").threshold, 70) << "alerts.rules goes first";
}

TEST(AlertSettingsOfSite, AnAddressWithAPasswordIsRefusedAndNotRepeated) {
  const std::string said = refusal(with(webhook("https://ann:secret@hooks.example.org/x")));
  EXPECT_EQ(said.find("alerts.channels[0]: "), 0U) << said;
  EXPECT_NE(said.find("secret_file"), std::string::npos);
  EXPECT_EQ(said.find("ann:secret"), std::string::npos);
  EXPECT_EQ(refusal(with(webhook("https://hooks.example.org/a@b"))), "accepted");
}

TEST(AlertSettingsOfSite, ChannelsAreChecked) {
  EXPECT_NE(refusal(with(webhook("ftp://x"))).find("https://"), std::string::npos);
  EXPECT_NE(refusal(with(webhook("https:///x"))).find("no host"), std::string::npos);
  EXPECT_NE(refusal(with(webhook(""))).find("url or url_file"), std::string::npos);
  config::AlertChannel channel = webhook("https://x");
  channel.kind = "webhok";
  EXPECT_NE(refusal(with(channel)).find("did you mean 'webhook'?"), std::string::npos);
  channel = webhook("https://x");
  channel.secret_file = "key";
  EXPECT_NE(refusal(with(channel)).find("absolute path"), std::string::npos);
  channel = webhook("https://x");
  channel.proxy = "proxy.example.org:3128";
  EXPECT_NE(refusal(with(channel)).find("proxy: the address must begin with"), std::string::npos);
  channel.proxy = "http://proxy.example.org:3128";
  const auto behind = alert_settings_of(with(channel));
  ASSERT_TRUE(behind) << behind.error().message;
  EXPECT_EQ(behind->channels.at(0).proxy, channel.proxy);
  channel.kind = "mail";
  EXPECT_NE(refusal(with(channel)).find("'mail' uses no proxy"), std::string::npos);
  channel = webhook("smtp://mail");
  channel.kind = "mail";
  EXPECT_NE(refusal(with(channel)).find("needs from and to"), std::string::npos);
  channel = webhook("");
  channel.kind = "command";
  channel.command = {"tell"};
  EXPECT_NE(refusal(with(channel)).find("absolute path of a program"), std::string::npos);
  channel.command = {"/bin/tell"};
  channel.secret_file = "/etc/key";
  EXPECT_NE(refusal(with(channel)).find("has no url"), std::string::npos);
  channel = webhook("https://x");
  channel.to = {"ops@example.org"};
  EXPECT_NE(refusal(with(channel)).find("only a channel of kind 'mail'"), std::string::npos);
  config::Configuration twice = with(webhook("https://x"));
  twice.alert_channels.push_back(webhook("https://y"));
  EXPECT_EQ(refusal(twice), "alerts.channels[1]: there are two channels 'hook'");
}

TEST(AlertSettingsOfSite, AChannelThatCouldNotSendIsRefused) {
  EXPECT_EQ(refusal(with(webhook("http://hooks.example.org/x"))),
            "alerts.channels[0]: url: is http://, which others can read; use https, or "
            "allow_plain_text");
  EXPECT_EQ(refusal(with(webhook("http://127.0.0.1:9/x"))), "accepted");
  EXPECT_NE(refusal(with(webhook("https://x:99999/"))).find("url: "), std::string::npos);
  config::AlertChannel channel = webhook("smtp://mail.example.org");
  channel.kind = "mail";
  channel.from = "gpus";
  channel.to = {"ops@example.org"};
  EXPECT_NE(refusal(with(channel)).find("from: "), std::string::npos);
  channel.from = "gpus@example.org";
  EXPECT_EQ(refusal(with(channel)), "accepted");
  channel.user = "gpus";
  EXPECT_NE(refusal(with(channel)).find("secret_file: "), std::string::npos);
}

TEST(AlertSettingsOfSite, AChannelIsToldInTheMannerOfItsKindAndRecipients) {
  config::Configuration site = with(webhook("https://x"));
  config::AlertChannel pager = webhook("https://y");
  pager.name = "pager";
  pager.kind = "alertmanager";
  site.alert_channels.push_back(pager);
  config::AlertChannel owners = webhook("smtp://mail.example.org");
  owners.name = "owners";
  owners.kind = "mail";
  owners.from = "gpu@example.org";
  owners.to = {"{owner}@example.org"};
  site.alert_channels.push_back(owners);
  const auto settings = alert_settings_of(site);
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->book.manners,
            (alerts::Grouping::Manners{{"hook", alerts::Manner::kGrouped},
                                       {"owners", alerts::Manner::kByOwner},
                                       {"pager", alerts::Manner::kAtOnce}}));
  site.alert_channels[2].to = {"{user}@example.org"};
  EXPECT_NE(refusal(site).find("alerts.channels[2]: to: "), std::string::npos) << refusal(site);
}

TEST(AlertSettingsOfSite, RoutesNameChannelsAndSeveritiesThatThereAre) {
  config::Configuration site = with(webhook("https://x"));
  site.alert_routes.push_back({"critical", "", {}, {"hook"}});
  EXPECT_EQ(refusal(site), "accepted");
  site.alert_routes.push_back({"", "", {}, {"pager"}});
  EXPECT_EQ(refusal(site), "alerts.routes[1]: there is no channel 'pager'");
  site.alert_routes[1] = {"loud", "", {}, {"hook"}};
  EXPECT_NE(refusal(site).find("'loud'"), std::string::npos);
  site.alert_routes[1] = {"", "", {"Gpu*", "GpuHott"}, {"hook"}};
  EXPECT_EQ(refusal(site), "alerts.routes[1]: there is no rule 'GpuHott'; did you mean 'GpuHot'?");
  site.alert_routes[1] = {"", "", {"Gpu*"}, {}};
  EXPECT_EQ(refusal(site), "alerts.routes[1]: a route names at least one channel");
}

TEST(AlertSettingsOfSite, AProblemIsAtTheEntryOfTheFile) {
  config::Configuration site = with(webhook("ftp://x"));
  EXPECT_FALSE(problem_in_alerts({}));
  site.places = {{"alerts.channels", "", 2, 3, ""}, {"alerts.channels[0]", "", 3, 7, ""}};
  const auto problem = problem_in_alerts(site);
  ASSERT_TRUE(problem);
  EXPECT_EQ(config::describe(*problem, "site.yaml").find("site.yaml:3:7: alerts.channels[0]: "),
            0U);
}

TEST(AlertSettingsOfSite, ATemplateThatIsNotThereOrWrongIsRefused) {
  config::Configuration site;
  site.alert_template.path = "/nonexistent/template";
  EXPECT_NE(refusal(site).find("alerts.template: /nonexistent/template cannot be read"),
            std::string::npos);
  site.alert_template.path = "/dev/zero";
  EXPECT_NE(refusal(site).find("/dev/zero cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace gpu_platform::bin
