#include "api/rest/request_parser.h"

#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>

namespace gpu_platform::api {

namespace {

namespace http = boost::beast::http;

RequestParser::Refusal refusal_of(int status, std::string why) {
  return {status, base::Error{base::ErrorCode::kInvalidArgument, std::move(why), {}}};
}

RequestParser::Refusal refusal_of(const boost::system::error_code& error,
                                  const SessionLimits& limits) {
  if (error == http::error::body_limit) {
    return refusal_of(413, fmt::format("the body is larger than {} bytes", limits.body_bytes));
  }
  if (error == http::error::header_limit) {
    return refusal_of(431, fmt::format("the header is larger than {} bytes", limits.header_bytes));
  }
  return refusal_of(400, fmt::format("the request is not valid HTTP: {}", error.message()));
}

}  // namespace

void RequestParser::begin() {
  parser_.emplace();
  parser_->body_limit(limits_.body_bytes);
  parser_->header_limit(limits_.header_bytes);
  is_head_checked_ = false;
  has_told_expectation_ = false;
}

std::optional<RequestParser::Refusal> RequestParser::parse() {
  boost::system::error_code error;
  while (consumed_ < unparsed_.size() && !parser_->is_done()) {
    const boost::asio::const_buffer rest(unparsed_.data() + consumed_,
                                         unparsed_.size() - consumed_);
    consumed_ += parser_->put(rest, error);
    if (error) break;
  }
  if (consumed_ == unparsed_.size()) {
    unparsed_.clear();
    if (unparsed_.capacity() > kKeptBytes) unparsed_.shrink_to_fit();
    consumed_ = 0;
  } else if (consumed_ > kMaxRest) {
    unparsed_.erase(0, consumed_);
    consumed_ = 0;
  }
  if (error && error != http::error::need_more) return refusal_of(error, limits_);
  return check_head();
}

// Each field takes far more memory than its bytes.
std::optional<RequestParser::Refusal> RequestParser::check_head() {
  if (is_head_checked_ || !has_head()) return std::nullopt;
  is_head_checked_ = true;
  const auto count = static_cast<std::size_t>(std::distance(message().begin(), message().end()));
  if (count <= limits_.header_fields) return std::nullopt;
  return refusal_of(
      431, fmt::format("the header has {} fields; the limit is {}", count, limits_.header_fields));
}

void RequestParser::drop_rest() {
  std::string().swap(unparsed_);
  consumed_ = 0;
}

bool RequestParser::takes_expectation() {
  if (has_told_expectation_ || !has_head()) return false;
  has_told_expectation_ = true;
  return field_of(message(), http::field::expect) == "100-continue";
}

std::string field_of(const RequestParser::Message& message, http::field name) {
  const auto found = message.find(name);
  return found == message.end() ? std::string() : std::string(found->value());
}

std::string field_of(const RequestParser::Message& message, std::string_view name) {
  const auto found = message.find(boost::beast::string_view(name.data(), name.size()));
  return found == message.end() ? std::string() : std::string(found->value());
}

}  // namespace gpu_platform::api
