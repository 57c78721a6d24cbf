#include "api/rest/raw_client_test.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace gpu_platform::api {

namespace {

void set_timeout(int descriptor, std::chrono::milliseconds timeout) {
  const timeval limit{timeout.count() / 1000, timeout.count() % 1000 * 1000};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

}  // namespace

RawClient::RawClient(int descriptor, std::chrono::milliseconds timeout) : descriptor_(descriptor) {
  set_timeout(descriptor_, timeout);
}

RawClient::RawClient(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  descriptor_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  set_timeout(descriptor_, kTimeout);
  if (::connect(descriptor_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) close();
}

RawClient::~RawClient() {
  close();
}

void RawClient::close() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
}

bool RawClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

void RawClient::finish_sending() {
  ::shutdown(descriptor_, SHUT_WR);
}

bool RawClient::fill() {
  char chunk[65536];
  const ssize_t got = ::recv(descriptor_, chunk, sizeof chunk, 0);
  has_ended_ = got == 0 || (got < 0 && errno == ECONNRESET);
  if (got <= 0) return false;
  buffer_.append(chunk, static_cast<std::size_t>(got));
  return true;
}

bool RawClient::is_closed() {
  return buffer_.empty() && !fill() && has_ended_;
}

std::optional<std::string> RawClient::take_line() {
  for (;;) {
    const std::size_t end = buffer_.find("\r\n");
    if (end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 2);
      return line;
    }
    if (!fill()) return std::nullopt;
  }
}

std::optional<std::string> RawClient::take_bytes(std::size_t count) {
  while (buffer_.size() < count) {
    if (!fill()) return std::nullopt;
  }
  std::string out = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return out;
}

std::optional<RawResponse> RawClient::receive_head() {
  auto line = take_line();
  if (!line || !line->starts_with("HTTP/1.1 ")) return std::nullopt;
  RawResponse response;
  response.status = std::stoi(line->substr(9, 3));
  for (;;) {
    line = take_line();
    if (!line) return std::nullopt;
    if (line->empty()) break;
    const std::size_t colon = line->find(": ");
    std::string name = line->substr(0, colon);
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    response.headers[name] = line->substr(colon + 2);
  }
  is_at_end_ = false;
  return response;
}

std::optional<std::string> RawClient::receive_chunk() {
  const auto size = take_line();
  if (!size) return std::nullopt;
  const std::size_t count = std::stoul(*size, nullptr, 16);
  auto bytes = take_bytes(count);
  const auto end = take_line();
  if (!bytes || !end) return std::nullopt;
  if (count != 0) return bytes;
  is_at_end_ = true;
  return std::nullopt;
}

std::optional<RawResponse> RawClient::receive() {
  auto response = receive_head();
  if (!response) return response;
  if (response->status == 100) return receive();
  // It has no body, and the connection goes on.
  if (response->status == 204 || response->status == 304) {
    response->is_complete = true;
    return response;
  }
  if (response->headers.contains("transfer-encoding")) {
    while (auto chunk = receive_chunk()) response->body += *chunk;
    response->is_complete = is_at_end_;
  } else if (response->headers.contains("content-length")) {
    auto body = take_bytes(std::stoul(response->headers["content-length"]));
    response->is_complete = body.has_value();
    response->body = std::move(body).value_or("");
  } else {
    while (fill()) {
    }
    response->body = std::exchange(buffer_, {});
    response->is_complete = has_ended_;
  }
  return response;
}

std::optional<RawResponse> RawClient::request(std::string_view method, std::string_view target,
                                              std::string_view body, std::string_view more) {
  // A server that refuses a body early may not read all of it.
  (void)send(request_text(method, target, body, more));
  return receive();
}

std::string request_text(std::string_view method, std::string_view target, std::string_view body,
                         std::string_view more_headers) {
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}", method, target, more_headers);
  if (!body.empty()) {
    text += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  text += "\r\n";
  text += body;
  return text;
}

TEST(RawClient, ASilentConnectionIsNotAClosedOne) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  RawClient client(pair[0], std::chrono::milliseconds(20));
  EXPECT_FALSE(client.is_closed());
  ASSERT_EQ(::send(pair[1], "x", 1, MSG_NOSIGNAL), 1);
  EXPECT_FALSE(client.is_closed()) << "something is left";
  ::close(pair[1]);
  EXPECT_FALSE(client.is_closed()) << "something is left";
}

TEST(RawClient, AConnectionThatTheOtherSideEndsIsClosed) {
  for (const bool is_reset : {false, true}) {
    int pair[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    RawClient client(pair[0]);
    if (is_reset) {
      ASSERT_TRUE(client.send("what is never read"));
    }
    ::close(pair[1]);
    EXPECT_TRUE(client.is_closed()) << is_reset;
  }
}

}  // namespace gpu_platform::api
