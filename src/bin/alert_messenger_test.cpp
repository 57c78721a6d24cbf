#include "bin/alert_messenger.h"

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bin/outbox_fixture.h"

namespace gpu_platform::bin {
namespace {

class AlertMessengerTest : public testing::Test {
 protected:
  std::unique_ptr<AlertMessenger> messenger(outbound::ChannelKind kind,
                                            std::vector<std::string> to = {}) {
    outbound::Channel channel;
    channel.name = "hook";
    channel.kind = kind;
    channel.to = std::move(to);
    return std::make_unique<AlertMessenger>(std::make_unique<FakeOutbox>(sent_),
                                            std::vector{std::move(channel)}, alerts::Site());
  }
  static alerts::Notification idle_job_of(const std::string& user) {
    alerts::Alert alert;
    alert.fingerprint = "f1";
    alert.rule = "GpuAllocatedIdle";
    alert.state = alerts::State::kFiring;
    alert.labels = {{"job", "7"}, {"user", user}};
    alert.fired = base::Instant(base::hours(480'000).value());
    alerts::Notification notification;
    notification.channel = "hook";
    notification.user = user;
    notification.group = "user " + user;
    notification.key = "k1";
    notification.firing = {alert};
    return notification;
  }
  static base::Status tried(AlertMessenger& messenger, const std::string& by) {
    auto answer = std::make_shared<std::promise<base::Status>>();
    messenger.test("hook", by, [answer](base::Status went) { answer->set_value(std::move(went)); });
    return answer->get_future().get();
  }

  Sent sent_;
};

TEST_F(AlertMessengerTest, AnOwnerIsToldAtTheOwnersAddress) {
  const auto owners =
      messenger(outbound::ChannelKind::kMail, {"{owner}@example.org", "ops@example.org"});
  owners->send({idle_job_of("ann")});
  ASSERT_EQ(sent_.count(), 1U);
  EXPECT_EQ(sent_.deliveries[0].to,
            (std::vector<std::string>{"ann@example.org", "ops@example.org"}));
}

TEST_F(AlertMessengerTest, AnOwnerWithoutAnAddressIsNotToldAndTheNextOneIs) {
  const auto owners = messenger(outbound::ChannelKind::kMail, {"{owner}@example.org"});
  owners->send({idle_job_of("ann>\r\nRCPT TO:<bob"), idle_job_of("bob")});
  ASSERT_EQ(sent_.count(), 1U);
  EXPECT_EQ(sent_.deliveries[0].to, std::vector<std::string>{"bob@example.org"});
}

TEST_F(AlertMessengerTest, AChannelWithoutOwnersHasItsOwnRecipients) {
  const auto mail = messenger(outbound::ChannelKind::kMail, {"ops@example.org"});
  mail->send({idle_job_of("ann")});
  ASSERT_EQ(sent_.count(), 1U);
  EXPECT_TRUE(sent_.deliveries[0].to.empty());
}

TEST_F(AlertMessengerTest, ATestOfAChannelOfOwnersGoesToTheCaller) {
  const auto owners = messenger(outbound::ChannelKind::kMail, {"{owner}@example.org"});
  owners->start();
  EXPECT_TRUE(tried(*owners, "ann"));
  EXPECT_EQ(tried(*owners, "ann@elsewhere.example").error().code,
            base::ErrorCode::kFailedPrecondition);
}

TEST_F(AlertMessengerTest, WhatIsOnlyRepeatedIsDroppedWhileOtherMessagesWait) {
  const auto pager = messenger(outbound::ChannelKind::kAlertmanager);
  alerts::Notification again = idle_job_of("ann");
  again.is_repeated = true;
  sent_.waiting = 1;
  pager->send({again});
  EXPECT_EQ(sent_.count(), 0U);
  pager->send({idle_job_of("ann")});
  EXPECT_EQ(sent_.count(), 1U) << "news are never dropped";
  sent_.waiting = 0;
  pager->send({again});
  EXPECT_EQ(sent_.count(), 2U);
}

TEST_F(AlertMessengerTest, AFullOutboxIsAskedOnceAndGetsAllInOrderLater) {
  const auto hook = messenger(outbound::ChannelKind::kWebhook);
  sent_.set_full(true);
  hook->send({idle_job_of("ann"), idle_job_of("bob")});
  hook->send({idle_job_of("eve")});
  EXPECT_EQ(sent_.tries, 2U) << "once each time";
  sent_.set_full(false);
  hook->send({});
  ASSERT_EQ(sent_.count(), 3U);
  EXPECT_NE(sent_.body(0).find("ann"), std::string::npos);
  EXPECT_NE(sent_.body(1).find("bob"), std::string::npos);
  EXPECT_NE(sent_.body(2).find("eve"), std::string::npos);
}

TEST_F(AlertMessengerTest, AMessageThatTheOutboxNeverTakesHoldsUpNoOther) {
  const auto hook = messenger(outbound::ChannelKind::kWebhook);
  sent_.max_bytes = 0;
  hook->send({idle_job_of("ann")});
  sent_.max_bytes = SIZE_MAX;
  hook->send({idle_job_of("bob")});
  ASSERT_EQ(sent_.count(), 1U);
  EXPECT_NE(sent_.body(0).find("bob"), std::string::npos);
}

TEST_F(AlertMessengerTest, AlertmanagerIsToldHowLongAnAlertIsTrue) {
  const auto pager = messenger(outbound::ChannelKind::kAlertmanager);
  pager->send({idle_job_of("ann")});
  ASSERT_EQ(sent_.count(), 1U);
  const auto alert = nlohmann::json::parse(sent_.body(0)).at(0);
  EXPECT_LT(alert["startsAt"].get<std::string>(), alert["endsAt"].get<std::string>());
}

}  // namespace
}  // namespace gpu_platform::bin
