#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "api/rest/session_limits.h"
#include "base/result.h"

namespace gpu_platform::api {

// Makes requests of the bytes that a connection reads, one after the other. Bytes behind a request
// wait for the next one.
//
// Ownership: refers to the limits. Thread: one. Memory: what is not parsed yet, and the request.
class RequestParser {
 public:
  using Message = boost::beast::http::request<boost::beast::http::string_body>;
  // Why a request is refused before it is read to its end.
  struct Refusal {
    int status = 400;
    base::Error error;
  };

  // The bytes that may wait unparsed while a request is being answered.
  static constexpr std::size_t kMaxRest = 16 * 1024;

  explicit RequestParser(const SessionLimits& limits) : limits_(limits) { begin(); }

  // Begins the next request. Nothing of the last one may be used any more.
  void begin();
  void add(const char* bytes, std::size_t size) { unparsed_.append(bytes, size); }
  // Parses what has come; the request is refused if that is returned.
  std::optional<Refusal> parse();
  // Drops the bytes that are not parsed yet, and their memory.
  void drop_rest();
  // Drops the body: only what was made of it is left.
  void drop_body() { std::string().swap(parser_->get().body()); }

  // Bytes of this request, or behind it, have come.
  bool has_begun() const { return has_parsed_some() || has_rest(); }
  bool has_parsed_some() const { return parser_->got_some(); }
  bool has_rest() const { return !unparsed_.empty(); }
  bool takes_more() const { return unparsed_.size() < kMaxRest; }
  bool has_head() const { return parser_->is_header_done(); }
  bool is_done() const { return parser_->is_done(); }
  // True once, when the head has come of a client that asks before it sends a large body. What is
  // too large was refused with the head.
  bool takes_expectation();

  // The request as far as it was parsed.
  const Message& message() const { return parser_->get(); }
  // Of the body and of what is not parsed yet.
  std::size_t bytes() const { return unparsed_.size() + message().body().size(); }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  std::optional<Refusal> check_head();

  const SessionLimits& limits_;
  std::optional<Parser> parser_;  // set by begin(), then always
  std::string unparsed_;
  std::size_t consumed_ = 0;  // of unparsed_
  bool is_head_checked_ = false;
  bool has_told_expectation_ = false;
};

// Returns the field's value; empty if the message has none.
std::string field_of(const RequestParser::Message& message, boost::beast::http::field name);
std::string field_of(const RequestParser::Message& message, std::string_view name);

}  // namespace gpu_platform::api
