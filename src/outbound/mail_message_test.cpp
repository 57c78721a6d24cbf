#include "outbound/mail_message.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/base64.h"

namespace gpu_platform::outbound {
namespace {

const Channel kChannel{.name = "ops",
                       .kind = ChannelKind::kMail,
                       .url = "smtp://localhost",
                       .from = "gpus@example.org",
                       .to = {"a@example.org", "b@example.org"}};

Delivery delivery(std::string subject, std::string body) {
  return {.channel = "ops",
          .key = "k1",
          .subject = std::move(subject),
          .body = std::move(body),
          .made = base::Instant(1'796'000'001'000'000'000)};
}

// Fails the test where a line does not end with CRLF.
std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find("\r\n");
    EXPECT_NE(end, std::string_view::npos) << text;
    if (end == std::string_view::npos) break;
    lines.emplace_back(text.substr(0, end));
    EXPECT_EQ(lines.back().find_first_of("\r\n"), std::string::npos) << lines.back();
    text.remove_prefix(end + 2);
  }
  return lines;
}

std::string header(const std::string& message, const std::string& name) {
  std::string value;
  bool is_found = false;
  for (const std::string& line : lines_of(message)) {
    if (line.empty()) break;
    if (line.starts_with(name + ": ")) {
      is_found = true;
      value = line.substr(name.size() + 2);
    } else if (is_found && line.starts_with(' ')) {
      value += line;
    } else {
      is_found = false;
    }
  }
  return value;
}

std::string body_of(const std::string& message) {
  return message.substr(message.find("\r\n\r\n") + 4);
}

TEST(MailMessage, HasTheHeadersOfMailAndMime) {
  const std::string message = mail_message(kChannel, delivery("GPU 3 is hot", "91 C\nsee below"));
  EXPECT_EQ(header(message, "From"), "<gpus@example.org>");
  EXPECT_EQ(header(message, "To"), "<a@example.org>, <b@example.org>");
  EXPECT_EQ(header(message, "Subject"), "GPU 3 is hot");
  EXPECT_EQ(header(message, "Date"), "Mon, 30 Nov 2026 00:53:21 +0000");
  EXPECT_EQ(header(message, "MIME-Version"), "1.0");
  EXPECT_EQ(header(message, "Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(header(message, "Content-Transfer-Encoding"), "7bit");
  EXPECT_EQ(body_of(message), "91 C\r\nsee below\r\n");
}

TEST(MailMessage, IsKnownAgainByItsKey) {
  const std::string first = header(mail_message(kChannel, delivery("a", "b")), "Message-ID");
  EXPECT_EQ(first, header(mail_message(kChannel, delivery("c", "d")), "Message-ID"));
  EXPECT_TRUE(first.starts_with('<') && first.ends_with("@example.org>")) << first;
  Delivery other = delivery("a", "b");
  other.key = "k2";
  EXPECT_NE(first, header(mail_message(kChannel, other), "Message-ID"));
}

TEST(MailMessage, NoTextAddsAHeader) {
  Delivery evil = delivery("hot\r\nBcc: c@example.org\n\nnew body", "text");
  evil.content_type = "text/html\r\nBcc: c@example.org";
  const std::string message = mail_message(kChannel, evil);
  EXPECT_EQ(header(message, "Bcc"), "");
  EXPECT_EQ(header(message, "Subject"), "hot  Bcc: c@example.org  new body");
  EXPECT_EQ(header(message, "Content-Type"), "text/plain; charset=utf-8");
  EXPECT_EQ(body_of(message), "text\r\n");
}

TEST(MailMessage, SubjectsThatAreNotAsciiAreWordsOfWholeCharacters) {
  std::string subject;
  for (int i = 0; i < 40; ++i) subject += "Wärme🔥";
  std::string decoded;
  std::string words = header(mail_message(kChannel, delivery(subject, "")), "Subject");
  while (!words.empty()) {
    const std::string word = words.substr(0, words.find(' '));
    words.erase(0, word.size() + 1);
    ASSERT_LE(word.size(), 75U);
    ASSERT_TRUE(word.starts_with("=?UTF-8?B?") && word.ends_with("?=")) << word;
    const auto bytes = base::parse_base64(std::string_view(word).substr(10, word.size() - 12));
    ASSERT_TRUE(bytes) << word;
    EXPECT_NE(static_cast<unsigned char>(bytes->front()) & 0xC0U, 0x80U) << "begins in a character";
    decoded += *bytes;
  }
  EXPECT_EQ(decoded, subject);
}

TEST(MailMessage, BodiesThatMailCannotCarryAreInBase64) {
  for (const std::string& body : {std::string("zu heiß"), std::string(2000, 'x')}) {
    const std::string message = mail_message(kChannel, delivery("s", body));
    EXPECT_EQ(header(message, "Content-Transfer-Encoding"), "base64");
    std::string text;
    for (const std::string& line : lines_of(body_of(message))) {
      EXPECT_LE(line.size(), 76U);
      text += line;
    }
    EXPECT_EQ(base::parse_base64(text), body);
  }
}

}  // namespace
}  // namespace gpu_platform::outbound
