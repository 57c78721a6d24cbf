#include "listener/rest/answer_reader.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include <fmt/format.h>
#include <boost/asio/buffer.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

namespace gpu_platform::listener {

namespace {

namespace http = boost::beast::http;
using boost::beast::string_view;
using boost::system::error_code;

constexpr std::uint32_t kMaxAnswerHead = 64 * 1024;
// The parser takes a chunk's head when all of it is there.
constexpr std::size_t kMaxChunkHead = 4096;

}  // namespace

// Keeps the head as the client gets it; of the body it finds the end alone.
class AnswerReader::Parser final : public http::basic_parser<false> {
 public:
  explicit Parser(bool has_head_alone) {
    header_limit(kMaxAnswerHead);
    body_limit(boost::none);
    skip(has_head_alone);
  }

  std::string lines;  // the first one and the fields, each with its end
  int status = 0;
  bool daemon_closes = false;

 private:
  void on_request_impl(http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int code, string_view reason, int version, error_code& error) override {
    if (version != 11) error = http::error::bad_version;
    status = code;
    lines = fmt::format("HTTP/1.1 {} {}\r\n", code, std::string_view(reason.data(), reason.size()));
  }
  void on_field_impl(http::field field, string_view name, string_view value,
                     error_code& error) override {
    if (field == http::field::connection && status != 101) {
      daemon_closes = boost::beast::iequals(value, "close");
      return;
    }
    if (field == http::field::transfer_encoding && value != "chunked") {
      error = http::error::bad_transfer_encoding;
    }
    lines.append(name).append(": ").append(value).append("\r\n");
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view bytes, error_code&) override { return bytes.size(); }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view bytes, error_code&) override {
    return bytes.size();
  }
  void on_finish_impl(error_code&) override {}
};

AnswerReader::AnswerReader(Fields added, Options options, Fields if_ok)
    : added_(std::move(added)),
      if_ok_(std::move(if_ok)),
      options_(options),
      parser_(std::make_unique<Parser>(options.has_head_alone)) {}

AnswerReader::~AnswerReader() = default;

bool AnswerReader::put(std::string_view bytes, std::string& out) {
  if (!is_head_done_) {
    held_.append(bytes);
    return read_head(out);
  }
  out.append(bytes);
  if (is_switching()) return true;
  held_.append(bytes);
  return follow();
}

bool AnswerReader::read_head(std::string& out) {
  error_code error;
  held_.erase(0, parser_->put(boost::asio::buffer(held_), error));
  if (error == http::error::need_more) return true;
  if (error) return false;
  if (!parser_->is_header_done()) return true;
  is_head_done_ = true;
  parser_->eager(true);
  write_head(out);
  out.append(held_);
  if (!is_switching()) return follow();
  std::string().swap(held_);
  return true;
}

// Without the held bytes that are complete in themselves.
bool AnswerReader::follow() {
  while (!held_.empty() && !is_done()) {
    error_code error;
    const std::size_t taken = parser_->put(boost::asio::buffer(held_), error);
    held_.erase(0, taken);
    if (error && error != http::error::need_more) return false;
    if (error || taken == 0) return held_.size() <= kMaxChunkHead;
  }
  return held_.empty();
}

void AnswerReader::write_head(std::string& out) const {
  out.append(parser_->lines);
  const auto add = [&out](const Fields& fields) {
    for (const auto& [name, value] : fields) {
      fmt::format_to(std::back_inserter(out), "{}: {}\r\n", name, value);
    }
  };
  add(added_);
  if (status() == 200) add(if_ok_);
  if (options_.is_last && !is_switching()) out += "Connection: close\r\n";
  out += "\r\n";
}

bool AnswerReader::finish() {
  if (!is_head_done_ || is_switching()) return false;
  error_code error;
  if (!is_done()) parser_->put_eof(error);
  return !error && is_done();
}

bool AnswerReader::is_done() const {
  return is_head_done_ && !is_switching() && parser_->is_done();
}

int AnswerReader::status() const {
  return parser_->status;
}

bool AnswerReader::daemon_closes() const {
  return parser_->daemon_closes;
}

}  // namespace gpu_platform::listener
