#include "listener/rest/request_reader.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

#include "listener/rest/browser_session.h"

namespace gpu_platform::listener {

namespace {

namespace http = boost::beast::http;
using boost::system::error_code;

constexpr std::string_view kHeadEnd = "\r\n\r\n";
// The line before a chunk has a number; its extensions are refused anyway.
constexpr std::size_t kMaxChunkLine = 64;
constexpr std::string_view kLastChunk = "0\r\n\r\n";

// What the daemon reads of a request. All other fields end here.
constexpr std::array<std::string_view, 8> kPassedOn = {
    "Accept",          "Content-Type",      "Last-Event-ID",         "If-None-Match",
    "Idempotency-Key", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "X-Request-Id"};
// Fields of which a second one could be read instead of the first.
constexpr std::array<std::string_view, 16> kOnce = {"Host",
                                                    "Cookie",
                                                    "Sec-Fetch-Site",
                                                    "Authorization",
                                                    "Content-Length",
                                                    "Transfer-Encoding",
                                                    "Content-Type",
                                                    "Origin",
                                                    "Upgrade",
                                                    "Expect",
                                                    "Last-Event-ID",
                                                    "If-None-Match",
                                                    "Idempotency-Key",
                                                    "Sec-WebSocket-Key",
                                                    "Sec-WebSocket-Version",
                                                    "X-Request-Id"};

boost::beast::string_view beast(std::string_view text) {
  return {text.data(), text.size()};
}
std::string_view plain(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

bool is_same(std::string_view a, std::string_view b) {
  return boost::beast::iequals(beast(a), beast(b));
}

// Whether the list "a, b" has the word.
bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    std::string_view one = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), one.size() + 1));
    while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
    while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
    if (is_same(one, word)) return true;
  }
  return false;
}

bool is_printable(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\t'; });
}

}  // namespace

RequestReader::RequestReader(const RequestLimits& limits) : limits_(limits) {
  parser_.header_limit(static_cast<std::uint32_t>(limits.header_bytes));
  parser_.body_limit(limits.body_bytes);
  on_chunk_ = [](std::uint64_t, boost::beast::string_view extensions, error_code& error) {
    if (!extensions.empty()) error = http::error::bad_chunk_extension;
  };
  parser_.on_chunk_header(on_chunk_);
}

std::size_t RequestReader::put(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !is_done_ && !refusal_) {
    has_begun_ = true;
    const std::string_view rest = bytes.substr(taken);
    const std::size_t before = taken;
    taken += is_head_done_ ? put_body(rest) : put_head(rest);
    if (taken == before) break;
  }
  return taken;
}

void RequestReader::refuse(int status, std::string why) {
  refusal_ = Refusal{status, {base::ErrorCode::kInvalidArgument, std::move(why), {}}};
}

// ---- the head

std::size_t RequestReader::put_head(std::string_view bytes) {
  const std::size_t before = head_.size();
  const std::size_t from = before < kHeadEnd.size() ? 0 : before - kHeadEnd.size();
  head_.append(bytes.substr(0, limits_.header_bytes + 1 - std::min(before, limits_.header_bytes)));
  const std::size_t end = head_.find(kHeadEnd, from);
  if (end == std::string::npos) {
    if (head_.size() > limits_.header_bytes) {
      refuse(431, fmt::format("the header is larger than {} bytes", limits_.header_bytes));
    } else {
      check_text();  // a client that sends something else than HTTP learns it at once
    }
    return head_.size() - before;
  }
  head_.resize(end + kHeadEnd.size());
  const std::size_t taken = head_.size() - before;
  if (check_text()) read_head();
  std::string().swap(head_);
  return taken;
}

// Lines end with CR LF and with nothing else, no line goes on in the next, and there are no control
// characters.
bool RequestReader::check_text() {
  const std::string_view text = head_;
  std::size_t lines = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool is_line_end = c == '\r' && (i + 1 == text.size() || text[i + 1] == '\n');
    const bool is_second = c == '\n' && i > 0 && text[i - 1] == '\r';
    if (is_second) {
      ++lines;
      if (i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '\t')) {
        refuse(400, "folded header lines are not supported");
        return false;
      }
    }
    const bool is_control = (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f;
    if (is_control && !is_line_end && !is_second) {
      refuse(400, "the header has a control character, or a line that does not end with CR LF");
      return false;
    }
  }
  if (lines > limits_.header_fields + 2) {
    refuse(431, fmt::format("the header has more than {} fields", limits_.header_fields));
    return false;
  }
  return true;
}

void RequestReader::read_head() {
  error_code error;
  parser_.put(boost::asio::buffer(head_), error);
  if (error && error != http::error::need_more) {
    const bool is_large = error == http::error::body_limit;
    return refuse(is_large ? 413 : 400,
                  is_large ? fmt::format("the body is larger than {} bytes", limits_.body_bytes)
                           : fmt::format("the request is not valid HTTP: {}", error.message()));
  }
  if (!parser_.is_header_done()) return refuse(400, "the request is not valid HTTP");
  const auto& message = parser_.get();
  fields_ = static_cast<std::size_t>(std::distance(message.begin(), message.end()));
  request_.method = plain(message.method_string());
  request_.target = plain(message.target());
  request_.keeps_alive = !has_word(plain(message[http::field::connection]), "close");
  if (message.version() != 11) return refuse(505, "only HTTP/1.1 is spoken here");
  if (!has_one_at_most() || !read_framing() || !read_host()) return;
  if (const base::Status target = check_target(request_.target); !target) {
    refusal_ = Refusal{400, target.error()};
    return;
  }
  if (!read_upgrade()) return;
  read_credential();
  if (refusal_) return;
  pass_fields_on();
  if (refusal_) return;
  is_head_done_ = true;
  if (parser_.is_done()) finish();
}

bool RequestReader::has_one_at_most() {
  const auto& message = parser_.get();
  for (const std::string_view name : kOnce) {
    if (message.count(beast(name)) > 1) {
      refuse(400, fmt::format("the header has {} twice", name));
      return false;
    }
  }
  return true;
}

bool RequestReader::read_framing() {
  const auto& message = parser_.get();
  const std::string_view coding = plain(message[http::field::transfer_encoding]);
  is_chunked_ = message.find(http::field::transfer_encoding) != message.end();
  if (is_chunked_ && !is_same(coding, "chunked")) {
    refuse(501, "the only transfer encoding is 'chunked'");
    return false;
  }
  // The library also reads a list of equal numbers.
  const std::string_view length = plain(message[http::field::content_length]);
  if (!std::ranges::all_of(length, [](char c) { return c >= '0' && c <= '9'; })) {
    refuse(400, "Content-Length must be one number");
    return false;
  }
  if (is_chunked_ && message.find(http::field::content_length) != message.end()) {
    refuse(400, "the header has both Content-Length and Transfer-Encoding");
    return false;
  }
  const std::string_view expects = plain(message[http::field::expect]);
  request_.expects_continue = is_same(expects, "100-continue");
  if (!expects.empty() && !request_.expects_continue) {
    refuse(417, "the only expectation is '100-continue'");
    return false;
  }
  return true;
}

bool RequestReader::read_host() {
  const auto& message = parser_.get();
  host_ = host_name_of(plain(message[http::field::host]));
  if (!host_.empty()) return true;
  refuse(400, "the header must have one Host, as NAME or NAME:PORT");
  return false;
}

bool RequestReader::read_upgrade() {
  const auto& message = parser_.get();
  const std::string_view upgrade = plain(message[http::field::upgrade]);
  const bool is_asked = has_word(plain(message[http::field::connection]), "upgrade");
  if (!is_asked || upgrade.empty()) return true;  // a field that belongs to one hop only
  if (!is_same(upgrade, "websocket") || request_.method != "GET" || is_chunked_) {
    refuse(400, "the only upgrade is a GET's to 'websocket'");
    return false;
  }
  request_.wants_websocket = true;
  return true;
}

void RequestReader::read_credential() {
  const auto& message = parser_.get();
  request_.origin = plain(message[http::field::origin]);
  request_.authority = plain(message[http::field::host]);
  request_.fetch_site = plain(message["Sec-Fetch-Site"]);
  request_.session = session_of(plain(message[http::field::cookie]));
  request_.asks_for_method =
      message.find(http::field::access_control_request_method) != message.end();
  const auto found = message.find(http::field::authorization);
  if (found == message.end()) return;
  auto bearer = bearer_in(plain(found->value()));
  if (!bearer) {
    refusal_ = Refusal{401, std::move(bearer).error()};
    return;
  }
  request_.bearer = *std::move(bearer);
}

void RequestReader::pass_fields_on() {
  for (const auto& field : parser_.get()) {
    const std::string_view name = plain(field.name_string());
    const auto known =
        std::ranges::find_if(kPassedOn, [&](std::string_view one) { return is_same(one, name); });
    if (known == kPassedOn.end()) continue;
    if (known->starts_with("Sec-") && !request_.wants_websocket) continue;
    if (!is_printable(plain(field.value()))) {
      return refuse(400, fmt::format("the field {} has a character that is not ASCII", *known));
    }
    request_.fields.emplace_back(*known, plain(field.value()));
  }
}

// ---- the body

std::size_t RequestReader::put_body(std::string_view bytes) {
  waiting_.append(bytes);
  // The library's assertions want the last chunk as a whole.
  const bool may_be_last = is_chunked_ && waiting_.starts_with('0');
  if (may_be_last && waiting_.size() < kLastChunk.size()) return bytes.size();
  std::size_t parsed = 0;
  error_code error;
  while (parsed < waiting_.size() && !parser_.is_done() && !error) {
    parsed += parser_.put(
        boost::asio::const_buffer(waiting_.data() + parsed, waiting_.size() - parsed), error);
  }
  const std::size_t left = waiting_.size() - parsed;
  if (error && error != http::error::need_more) {
    const bool is_large = error == http::error::body_limit;
    refuse(is_large ? 413 : 400,
           is_large ? fmt::format("the body is larger than {} bytes", limits_.body_bytes)
                    : fmt::format("the body is not valid HTTP: {}", error.message()));
    return bytes.size();
  }
  if (parser_.is_done()) {
    // What came before these bytes was not enough, so that what is left is of them.
    waiting_.clear();
    finish();
    return bytes.size() - left;
  }
  waiting_.erase(0, parsed);
  if (left > kMaxChunkLine) refuse(400, "the line of a chunk is too long");
  return bytes.size();
}

void RequestReader::finish() {
  const auto& message = parser_.get();
  if (static_cast<std::size_t>(std::distance(message.begin(), message.end())) != fields_) {
    return refuse(400, "trailers are not supported");
  }
  request_.body = std::move(parser_.get().body());
  is_done_ = true;
}

}  // namespace gpu_platform::listener
