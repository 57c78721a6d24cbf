#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace gpu_platform::api {

struct RawResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  bool is_complete = false;  // false: the connection ended before the body did
};

// A blocking HTTP client that sends exactly the bytes it is told to. Gives up after some silence.
class RawClient {
 public:
  static constexpr std::chrono::milliseconds kTimeout{20'000};

  explicit RawClient(const std::string& path);
  explicit RawClient(int descriptor, std::chrono::milliseconds timeout = kTimeout);  // owns it
  ~RawClient();
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool is_connected() const { return descriptor_ >= 0; }
  // False when the other side does not take all of it.
  bool send(std::string_view bytes);
  void finish_sending();
  void close();

  // The next response with its whole body; nothing when the connection ends before its head does.
  std::optional<RawResponse> receive();
  // Only the head; the body is then read by receive_piece().
  std::optional<RawResponse> receive_head();
  // One chunk of a chunked body; nothing at its end (is_at_end() tells a regular one) or when cut.
  std::optional<std::string> receive_chunk();
  bool is_at_end() const { return is_at_end_; }
  // Waits; true when the other side has closed and nothing is left, false when it only says
  // nothing.
  bool is_closed();

  std::optional<RawResponse> request(std::string_view method, std::string_view target,
                                     std::string_view body = {},
                                     std::string_view more_headers = {});

 private:
  bool fill();
  std::optional<std::string> take_line();
  std::optional<std::string> take_bytes(std::size_t count);

  int descriptor_ = -1;
  std::string buffer_;
  bool is_at_end_ = false;
  bool has_ended_ = false;  // the last attempt to read found the connection closed
};

// The request as text; a body is sent as JSON.
std::string request_text(std::string_view method, std::string_view target,
                         std::string_view body = {}, std::string_view more_headers = {});

}  // namespace gpu_platform::api
