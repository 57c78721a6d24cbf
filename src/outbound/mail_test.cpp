#include <gtest/gtest.h>

#include "base/base64.h"
#include "outbound/folder_fixture.h"
#include "outbound/sender.h"
#include "outbound/smtp_server_fixture.h"

namespace gpu_platform::outbound {
namespace {

class MailTest : public testing::Test {
 protected:
  static Channel channel(const SmtpServer& server) {
    return {.name = "ops",
            .kind = ChannelKind::kMail,
            .url = server.url(),
            .from = "gpus@example.org",
            .to = {"a@example.org", "b@example.org"}};
  }
  Channel secure_channel(const SmtpServer& server) {
    Channel secure = channel(server);
    secure.ca_file = folder_.write("ca.pem", authority_.pem());
    return secure;
  }
  Channel channel_with_user(const SmtpServer& server) {
    Channel with_user = secure_channel(server);
    with_user.user = "gpus";
    with_user.secret_file = folder_.secret("password", "hunter2\n");
    return with_user;
  }
  http::TestCertificate certificate(const std::string& names) const {
    return http::make_certificate({.alternative_names = names, .issuer = &authority_});
  }
  static Outcome send(Channel channel) {
    return Sender(std::move(channel), -1)
        .send({.channel = "ops",
               .key = "k1",
               .subject = "GPU 3 is hot",
               .body = "first\n.dot\n..dots\nlast",
               .made = base::Instant(1'000'000'000)});
  }
  static Outcome outcome_of(std::map<std::string, std::string> answers) {
    const SmtpServer server({.answers = std::move(answers)});
    return send(channel(server));
  }

  Folder folder_;
  http::TestCertificate authority_ = http::make_authority();
};

TEST_F(MailTest, GoesToAllRecipientsAsItWasWritten) {
  const SmtpServer server({});
  const Outcome outcome = send(channel(server));
  ASSERT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  const SmtpServer::Mail mail = server.mails().at(0);
  EXPECT_TRUE(mail.from.starts_with("<gpus@example.org>")) << mail.from;
  EXPECT_EQ(mail.to, (std::vector<std::string>{"<a@example.org>", "<b@example.org>"}));
  EXPECT_NE(mail.text.find("Subject: GPU 3 is hot\r\n"), std::string::npos) << mail.text;
  EXPECT_TRUE(mail.text.ends_with("\r\n\r\nfirst\r\n.dot\r\n..dots\r\nlast\r\n")) << mail.text;
}

TEST_F(MailTest, OfAnOwnerGoesToTheOwnerAlone) {
  const SmtpServer server({});
  Channel owners = channel(server);
  owners.to = {"{owner}@example.org"};
  const Outcome outcome = Sender(owners, -1)
                              .send({.channel = "ops",
                                     .key = "k1",
                                     .subject = "job 7 is idle",
                                     .body = "look",
                                     .to = recipients_for(owners, "ann")});
  ASSERT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  const SmtpServer::Mail mail = server.mails().at(0);
  EXPECT_EQ(mail.to, std::vector<std::string>{"<ann@example.org>"});
  EXPECT_NE(mail.text.find("To: <ann@example.org>\r\n"), std::string::npos) << mail.text;
  EXPECT_EQ(send(owners).kind, Outcome::Kind::kRefused) << "it names no owner";
}

TEST_F(MailTest, GoesOverTlsWhereTheServerOffersIt) {
  const SmtpServer server({.certificate = certificate(http::kThisMachine)});
  const Outcome outcome = send(secure_channel(server));
  ASSERT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  EXPECT_TRUE(server.mails().at(0).is_tls);
}

TEST_F(MailTest, ToOtherMachinesNeedsTls) {
  const SmtpServer server({});
  base::Result<std::unique_ptr<Transfer>> transfer = Transfer::make(-1);
  ASSERT_TRUE(transfer) << transfer.error().message;
  const Outcome outcome = (*transfer)->mail(
      channel(server), {.url = server.url(), .needs_tls = true, .message = "a\r\n"});
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
  for (const std::string& command : server.commands()) {
    EXPECT_FALSE(command.starts_with("MAIL")) << command;
  }
}

TEST_F(MailTest, APasswordGoesOverTls) {
  const SmtpServer server({.certificate = certificate(http::kThisMachine), .wants_password = true});
  const Outcome outcome = send(channel_with_user(server));
  ASSERT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  const std::string proof = base::to_base64(std::string_view("\0gpus\0hunter2", 13));
  bool is_seen = false;
  for (const std::string& command : server.commands()) {
    if (command.find(proof) == std::string::npos) continue;
    EXPECT_TRUE(command.starts_with("TLS ")) << command;
    is_seen = true;
  }
  EXPECT_TRUE(is_seen);
}

TEST_F(MailTest, APasswordNeverGoesWithoutTls) {
  const SmtpServer server({.wants_password = true});
  EXPECT_EQ(send(channel_with_user(server)).kind, Outcome::Kind::kFailed);
  EXPECT_TRUE(server.mails().empty());
  for (const std::string& command : server.commands()) {
    EXPECT_FALSE(command.starts_with("AUTH")) << command;
  }
}

TEST_F(MailTest, ACertificateOfAnotherNameIsRefused) {
  const SmtpServer server({.certificate = certificate("DNS:other.example.org")});
  EXPECT_EQ(send(secure_channel(server)).kind, Outcome::Kind::kFailed);
  EXPECT_TRUE(server.mails().empty());
}

TEST_F(MailTest, AWrongPasswordIsNoFaultOfTheMessage) {
  const SmtpServer server({.certificate = certificate(http::kThisMachine),
                           .wants_password = true,
                           .answers = {{"AUTH", "535 5.7.8 no"}}});
  const Outcome outcome = send(channel_with_user(server));
  EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome.problem.find("hunter2"), std::string::npos) << outcome.problem;
}

TEST_F(MailTest, WhatTheServerRefusesForGoodIsNotTriedAgain) {
  EXPECT_EQ(outcome_of({{"MAIL", "550 5.7.1 not you"}}).kind, Outcome::Kind::kRefused);
  EXPECT_EQ(outcome_of({{"RCPT", "550 5.1.1 unknown"}}).kind, Outcome::Kind::kRefused);
  const Outcome outcome = outcome_of({{".", "554 5.6.0 not that"}});
  EXPECT_EQ(outcome.kind, Outcome::Kind::kRefused);
  EXPECT_EQ(outcome.problem, "the server answers: 554 5.6.0 not that");
}

TEST_F(MailTest, WhatTheServerRefusesForNowIsTriedAgain) {
  EXPECT_EQ(outcome_of({{"MAIL", "451 4.3.0 later"}}).kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome_of({{"RCPT", "450 4.2.1 later"}}).kind, Outcome::Kind::kFailed);
  EXPECT_EQ(outcome_of({{".", "452 4.3.1 full"}}).kind, Outcome::Kind::kFailed);
}

TEST_F(MailTest, AConnectionThatEndsInTheMiddleIsTriedAgain) {
  for (const char* const last : {"MAIL", "RCPT", "DATA", "."}) {
    const Outcome outcome = outcome_of({{last, ""}});
    EXPECT_EQ(outcome.kind, Outcome::Kind::kFailed) << last;
    EXPECT_FALSE(outcome.problem.empty()) << last;
  }
  const Outcome after_one = outcome_of({{"RCPT TO:<b@", "550 5.1.1 unknown"}, {"DATA", ""}});
  EXPECT_EQ(after_one.kind, Outcome::Kind::kFailed) << after_one.problem;
}

TEST_F(MailTest, ARecipientThatIsRefusedAloneIsLeftOut) {
  const SmtpServer server({.answers = {{"RCPT TO:<a@", "550 5.1.1 unknown"}}});
  const Outcome outcome = send(channel(server));
  ASSERT_EQ(outcome.kind, Outcome::Kind::kSent) << outcome.problem;
  EXPECT_EQ(server.mails().at(0).to, std::vector<std::string>{"<b@example.org>"});
}

}  // namespace
}  // namespace gpu_platform::outbound
