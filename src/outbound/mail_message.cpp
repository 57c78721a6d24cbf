#include "outbound/mail_message.h"

#include <time.h>

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "outbound/control.h"
#include "outbound/signature.h"

namespace gpu_platform::outbound {

namespace {

constexpr std::size_t kMaxPlainSubject = 200;
constexpr std::size_t kMaxPlainLine = 900;  // RFC 5322: 998
constexpr std::size_t kBase64Line = 76;
constexpr std::size_t kWordBytes = 45;  // 60 characters of Base64: an encoded word has at most 75

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// The characters of the text, each by its bytes; a byte that is none becomes '?'.
std::string_view take_bytes(std::string_view& text) {
  const std::string_view before = text;
  const char32_t character = base::take_character(text);
  if (character == base::kNotUtf8) return "?";
  return before.substr(0, before.size() - text.size());
}

// RFC 2047: words that are decoded alone, so no character is in two.
std::string encoded_words(std::string_view text) {
  std::string words;
  std::string word;
  const auto end_word = [&] {
    if (!words.empty()) words += "\r\n ";
    words += "=?UTF-8?B?" + base::to_base64(word) + "?=";
    word.clear();
  };
  while (!text.empty()) {
    const std::string_view character = take_bytes(text);
    if (word.size() + character.size() > kWordBytes) end_word();
    word += character;
  }
  if (!word.empty()) end_word();
  return words;
}

std::string subject_header(std::string subject) {
  std::ranges::replace_if(subject, is_control, ' ');
  const bool is_plain = is_ascii(subject) && subject.size() <= kMaxPlainSubject &&
                        subject.find("=?") == std::string::npos;
  return is_plain ? subject : encoded_words(subject);
}

// "Sat, 28 Nov 2026 21:00:00 +0000"; the C library's names depend on the locale.
std::string date(base::Instant at) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const time_t seconds = at.unix_ns() / 1'000'000'000;
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} +0000", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min,
                     parts.tm_sec);
}

bool is_plain_body(std::string_view body) {
  std::size_t line = 0;
  for (const char c : body) {
    line = c == '\n' ? 0 : line + 1;
    if (line > kMaxPlainLine || static_cast<unsigned char>(c) >= 0x80 || c == '\0') return false;
  }
  return true;
}

std::string with_line_ends(std::string_view text) {
  std::string lines;
  for (const char c : text) {
    if (c == '\r') continue;
    if (c == '\n') lines += '\r';
    lines += c;
  }
  if (!lines.ends_with('\n')) lines += "\r\n";
  return lines;
}

std::string in_base64(std::string_view bytes) {
  const std::string text = base::to_base64(bytes);
  std::string lines;
  for (std::size_t at = 0; at < text.size(); at += kBase64Line) {
    lines += text.substr(at, kBase64Line) + "\r\n";
  }
  return lines;
}

}  // namespace

std::string mail_message(const Channel& channel, const Delivery& delivery) {
  const bool is_plain = is_plain_body(delivery.body);
  const std::string_view type = delivery.content_type.empty() || has_control(delivery.content_type)
                                    ? "text/plain; charset=utf-8"
                                    : std::string_view(delivery.content_type);
  const std::string domain = channel.from.substr(channel.from.find('@') + 1);
  std::string text =
      fmt::format("From: <{}>\r\nTo: <{}>\r\n", channel.from, fmt::join(channel.to, ">,\r\n <"));
  text += fmt::format("Subject: {}\r\nDate: {}\r\n", subject_header(delivery.subject),
                      date(delivery.made));
  text += fmt::format("Message-ID: <{}@{}>\r\n",
                      sha256(channel.name + '\n' + delivery.key).substr(0, 32), domain);
  text += fmt::format("MIME-Version: 1.0\r\nContent-Type: {}\r\n", type);
  text += fmt::format("Content-Transfer-Encoding: {}\r\n", is_plain ? "7bit" : "base64");
  text += "Auto-Submitted: auto-generated\r\n\r\n";
  return text + (is_plain ? with_line_ends(delivery.body) : in_base64(delivery.body));
}

}  // namespace gpu_platform::outbound
