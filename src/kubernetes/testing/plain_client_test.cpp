#include "kubernetes/testing/plain_client_test.h"

#include <limits>

namespace gpu_platform::kubernetes {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;

void PlainClient::run(std::optional<error_code>& error) {
  io_.restart();
  while (!error) io_.run_one();
}

bool PlainClient::connect(std::chrono::milliseconds limit) {
  if (is_connected_) return true;
  buffer_.clear();
  stream_.expires_after(limit);
  std::optional<error_code> error;
  stream_.async_connect(asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), port_),
                        [&](error_code result) { error = result; });
  run(error);
  is_connected_ = !*error;
  if (!is_connected_) close();
  return is_connected_;
}

bool PlainClient::can_connect() {
  close();
  return connect(std::chrono::seconds(10));
}

void PlainClient::close() {
  stream_.close();
  is_connected_ = false;
}

bool PlainClient::send(const std::string& method, const std::string& target,
                       const nlohmann::json& body, const std::string& content_type,
                       std::chrono::milliseconds limit) {
  if (!connect(limit)) return false;
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(method);
  request.target(target);
  request.set(http::field::host, "127.0.0.1");
  request.set(http::field::content_type, content_type);
  if (!body.is_null()) request.body() = body.dump();
  request.prepare_payload();
  stream_.expires_after(limit);
  std::optional<error_code> error;
  http::async_write(stream_, request, [&](error_code result, std::size_t) { error = result; });
  run(error);
  return !*error;
}

PlainClient::Answer PlainClient::call(const std::string& method, const std::string& target,
                                      const nlohmann::json& body, const std::string& content_type,
                                      std::chrono::milliseconds limit) {
  Answer answer;
  if (!send(method, target, body, content_type, limit)) {
    close();
    return answer;
  }
  http::response<http::string_body> response;
  stream_.expires_after(limit);
  std::optional<error_code> error;
  http::async_read(stream_, buffer_, response,
                   [&](error_code result, std::size_t) { error = result; });
  run(error);
  if (*error) {
    answer.is_timeout = *error == beast::error::timeout;
    close();
    return answer;
  }
  answer.status = response.result_int();
  answer.retry_after = std::string(response[http::field::retry_after]);
  answer.body = response.body();
  if (!response.keep_alive()) close();
  return answer;
}

int PlainClient::open(const std::string& target) {
  lines_.clear();
  is_clean_end_ = false;
  const std::chrono::seconds limit(10);
  if (!send("GET", target, nullptr, "application/json", limit)) return 0;
  parser_.emplace();
  parser_->body_limit(std::numeric_limits<std::uint64_t>::max());
  stream_.expires_after(limit);
  std::optional<error_code> error;
  http::async_read_header(stream_, buffer_, *parser_,
                          [&](error_code result, std::size_t) { error = result; });
  run(error);
  return *error ? 0 : static_cast<int>(parser_->get().result_int());
}

std::optional<std::string> PlainClient::next_line(std::chrono::milliseconds limit) {
  while (lines_.find('\n') == std::string::npos) {
    if (parser_->is_done()) {
      is_clean_end_ = true;
      return std::nullopt;
    }
    stream_.expires_after(limit);
    std::optional<error_code> error;
    http::async_read_some(stream_, buffer_, *parser_,
                          [&](error_code result, std::size_t) { error = result; });
    run(error);
    lines_ += parser_->get().body();
    parser_->get().body().clear();
    if (*error) return std::nullopt;
  }
  const std::size_t end = lines_.find('\n');
  std::string line = lines_.substr(0, end);
  lines_.erase(0, end + 1);
  return line;
}

nlohmann::json PlainClient::next_event() {
  const auto line = next_line();
  return line ? nlohmann::json::parse(*line, nullptr, false) : nlohmann::json();
}

}  // namespace gpu_platform::kubernetes
