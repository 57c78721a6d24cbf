#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <nlohmann/json.hpp>

// A plain HTTP client for the tests of the server: one connection, every wait has a limit.

namespace gpu_platform::kubernetes {

class PlainClient {
 public:
  struct Answer {
    int status = 0;  // 0: the connection ended without an answer, or nothing came in time
    std::string body;
    std::string retry_after;
    bool is_timeout = false;

    nlohmann::json json() const { return nlohmann::json::parse(body, nullptr, false); }
    std::string reason() const { return json().value("reason", ""); }
    std::string message() const { return json().value("message", ""); }
  };

  explicit PlainClient(std::uint16_t port) : port_(port), stream_(io_) {}

  // One call; connects when there is no connection.
  Answer call(const std::string& method, const std::string& target,
              const nlohmann::json& body = nullptr,
              const std::string& content_type = "application/json",
              std::chrono::milliseconds limit = std::chrono::seconds(10));
  Answer get(const std::string& target) { return call("GET", target); }
  bool can_connect();

  // Begins a GET whose answer goes on; its status is returned.
  int open(const std::string& target);
  // The next line of it; nothing at its end, and if nothing comes within the limit.
  std::optional<std::string> next_line(std::chrono::milliseconds limit = std::chrono::seconds(10));
  // The next line as JSON; null if there is none.
  nlohmann::json next_event();
  bool is_clean_end() const { return is_clean_end_; }
  void close();

 private:
  using Parser = boost::beast::http::response_parser<boost::beast::http::string_body>;
  bool connect(std::chrono::milliseconds limit);
  bool send(const std::string& method, const std::string& target, const nlohmann::json& body,
            const std::string& content_type, std::chrono::milliseconds limit);
  // Runs until `error` is set by a handler.
  void run(std::optional<boost::system::error_code>& error);

  boost::asio::io_context io_;
  std::uint16_t port_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::string lines_;
  bool is_connected_ = false;
  bool is_clean_end_ = false;
};

}  // namespace gpu_platform::kubernetes
