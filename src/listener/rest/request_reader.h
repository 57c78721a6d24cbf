#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "listener/rest/request.h"

namespace gpu_platform::listener {

struct RequestLimits {
  std::size_t header_bytes = 16 * 1024;
  std::size_t header_fields = 100;
  std::uint64_t body_bytes = std::uint64_t{1} << 20;
};

// Reads one request from the bytes of a connection, strictly: what servers along a way could read
// in two manners is refused. No input or output of its own.
class RequestReader {
 public:
  explicit RequestReader(const RequestLimits& limits);
  RequestReader(const RequestReader&) = delete;
  RequestReader& operator=(const RequestReader&) = delete;

  // Takes bytes and returns how many of them belong to this request; call it with the rest after
  // the request is done. After a refusal nothing more is taken.
  std::size_t put(std::string_view bytes);

  bool has_begun() const { return has_begun_; }
  bool has_head() const { return is_head_done_; }
  bool is_done() const { return is_done_; }
  const std::optional<Refusal>& refusal() const { return refusal_; }
  // From has_head() on; with its body once is_done().
  Request& request() { return request_; }
  const std::string& host() const { return host_; }
  // Those of the body that are here.
  std::size_t body_bytes() const { return parser_.get().body().size(); }

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  std::size_t put_head(std::string_view bytes);
  std::size_t put_body(std::string_view bytes);
  void refuse(int status, std::string why);
  bool check_text();
  void read_head();
  bool read_framing();
  bool read_host();
  void read_credential();
  bool read_upgrade();
  bool has_one_at_most();
  void pass_fields_on();
  void finish();

  const RequestLimits limits_;
  std::string head_;     // as it comes
  std::string waiting_;  // of the body, until it can be parsed
  std::function<void(std::uint64_t, boost::beast::string_view, boost::system::error_code&)>
      on_chunk_;  // the parser refers to it
  Parser parser_;
  Request request_;
  std::string host_;
  std::optional<Refusal> refusal_;
  std::size_t fields_ = 0;
  bool is_chunked_ = false;
  bool has_begun_ = false;
  bool is_head_done_ = false;
  bool is_done_ = false;
};

}  // namespace gpu_platform::listener
