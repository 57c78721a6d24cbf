#include "outbound/channel.h"

#include <gtest/gtest.h>

namespace gpu_platform::outbound {
namespace {

Channel webhook(const std::string& url) {
  return {.name = "w", .kind = ChannelKind::kWebhook, .url = url};
}

Channel mail() {
  return {.name = "m",
          .kind = ChannelKind::kMail,
          .url = "smtp://mail.example.org:587",
          .from = "gpus@example.org",
          .to = {"a@example.org", "b@example.org"}};
}

std::string wrong_field(const Channel& channel) {
  const base::Status status = check(channel);
  return status ? "" : status.error().field;
}

TEST(ChannelCheck, PlainHttpLeadsToThisMachineAlone) {
  for (const char* url : {"http://127.0.0.1:8080/hook", "http://127.9.9.9/", "http://localhost/",
                          "http://[::1]:80/", "https://hooks.example.org/x"}) {
    EXPECT_EQ(wrong_field(webhook(url)), "") << url;
  }
  for (const char* url : {"http://hooks.example.org/", "http://127.example.org/",
                          "http://localhost.example.org/", "http://0.0.0.0/", "http://10.0.0.1/"}) {
    EXPECT_EQ(wrong_field(webhook(url)), "url") << url;
    Channel channel = webhook(url);
    channel.allow_plain_text = true;
    EXPECT_EQ(wrong_field(channel), "") << url;
  }
}

TEST(ChannelCheck, RefusesOtherSchemes) {
  for (const char* url : {"file:///etc/passwd", "ftp://localhost/", "gopher://localhost/",
                          "smtp://localhost/", "not a url", ""}) {
    EXPECT_EQ(wrong_field(webhook(url)), "url") << url;
  }
  Channel channel = mail();
  channel.url = "https://mail.example.org";
  EXPECT_EQ(wrong_field(channel), "url");
}

TEST(ChannelCheck, RefusesAPasswordInTheUrlAndDoesNotShowIt) {
  for (const char* url : {"https://user:hunter2@hooks.example.org/", "https://hunter2@example.org/",
                          "http://localhost@hooks.example.org/hunter2"}) {
    const base::Status status = check(webhook(url));
    ASSERT_FALSE(status) << url;
    EXPECT_EQ(status.error().message.find("hunter2"), std::string::npos) << status.error().message;
  }
}

TEST(ChannelCheck, WantsOneUrl) {
  Channel channel = webhook("https://hooks.example.org/");
  channel.url_file = "/etc/url";
  EXPECT_EQ(wrong_field(channel), "url");
  channel.url.clear();
  EXPECT_EQ(wrong_field(channel), "");
}

TEST(ChannelCheck, MailAddressesCannotAddACommandOrAHeader) {
  EXPECT_EQ(wrong_field(mail()), "");
  for (const char* address : {"", "a", "@example.org", "a@", "a@b@c", "a b@example.org",
                              "A <a@example.org>", "a@example.org\r\nRCPT TO:<b@example.org>"}) {
    Channel channel = mail();
    channel.to.emplace_back(address);
    EXPECT_EQ(wrong_field(channel), "to") << address;
    channel = mail();
    channel.from = address;
    EXPECT_EQ(wrong_field(channel), "from") << address;
  }
  Channel channel = mail();
  channel.to.clear();
  EXPECT_EQ(wrong_field(channel), "to");
}

TEST(ChannelCheck, TheOwnerIsBeforeTheAtOfAnAddress) {
  const auto field = [](const char* address) {
    Channel channel = mail();
    channel.to = {address};
    return wrong_field(channel);
  };
  EXPECT_EQ(field("{owner}@example.org"), "");
  EXPECT_EQ(field("gpu-{owner}@example.org"), "");
  for (const char* address :
       {"{owner}", "ops@{owner}.example.org", "{user}@example.org", "{owner}{owner}@example.org"}) {
    EXPECT_EQ(field(address), "to") << address;
  }
}

TEST(Recipients, AreThoseOfTheChannelWithTheOwnerFilledIn) {
  Channel channel = mail();
  channel.to = {"ops@example.org"};
  EXPECT_FALSE(tells_owners(channel));
  channel.to = {"{owner}@example.org", "ops@example.org"};
  EXPECT_TRUE(tells_owners(channel));
  EXPECT_EQ(recipients_for(channel, "ann.b-c_1+x"),
            (std::vector<std::string>{"ann.b-c_1+x@example.org", "ops@example.org"}));
}

TEST(Recipients, NoNameOfAUserMakesAnotherAddress) {
  Channel channel = mail();
  channel.to = {"{owner}@example.org"};
  for (const std::string& user :
       {std::string(), std::string("ann@evil.example"), std::string("ann%evil.example"),
        std::string("evil.example!ann"), std::string("a,b"), std::string("a b"),
        std::string("a>\r\nRCPT TO:<b"), std::string("ann\n"), std::string("ann\0x", 5),
        std::string("-oQ"), std::string(".ann"), std::string("ann."), std::string("a..b"),
        std::string("{owner}"), std::string("\xc3\xa4nn"), std::string(65, 'x')}) {
    EXPECT_TRUE(recipients_for(channel, user).empty()) << user;
  }
}

TEST(ChannelCheck, AUserOfMailNeedsAPassword) {
  Channel channel = mail();
  channel.user = "gpus";
  EXPECT_EQ(wrong_field(channel), "secret_file");
  channel.secret_file = "/etc/password";
  EXPECT_EQ(wrong_field(channel), "");
}

TEST(ChannelCheck, ACommandIsAPath) {
  Channel channel{.name = "c", .kind = ChannelKind::kCommand};
  EXPECT_EQ(wrong_field(channel), "command");
  channel.command = {"page-me", "now"};
  EXPECT_EQ(wrong_field(channel), "command");
  channel.command = {"/usr/local/bin/page-me", "now"};
  EXPECT_EQ(wrong_field(channel), "");
  channel.timeout = {};
  EXPECT_EQ(wrong_field(channel), "timeout");
}

TEST(ChannelCheck, AProxyHasNoPasswordAndIsForHttp) {
  Channel channel = webhook("https://hooks.example.org/");
  channel.proxy = "http://proxy.example.org:3128";
  EXPECT_EQ(wrong_field(channel), "");
  channel.proxy = "http://user:hunter2@proxy.example.org:3128";
  EXPECT_EQ(wrong_field(channel), "proxy");
  channel = webhook("http://127.0.0.1/");
  EXPECT_EQ(wrong_field(channel), "");
  channel.proxy = "http://proxy.example.org:3128";
  EXPECT_EQ(wrong_field(channel), "url") << "others can read it on its way to the proxy";
  channel = mail();
  channel.proxy = "http://proxy.example.org:3128";
  EXPECT_EQ(wrong_field(channel), "proxy");
}

}  // namespace
}  // namespace gpu_platform::outbound
