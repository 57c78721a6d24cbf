#include "listener/rest/answer_reader.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include <fmt/format.h>

namespace gpu_platform::listener {

namespace {

constexpr std::size_t kMaxAnswerHead = 64 * 1024;
constexpr std::string_view kAnswerHeadEnd = "\r\n\r\n";

bool is_named(std::string_view name, std::string_view lower) {
  return std::ranges::equal(name, lower, [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

template <class Number>
bool read_number(std::string_view text, Number& number, int base) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

bool AnswerReader::put(std::string_view bytes, std::string& out) {
  if (!is_head_done_) {
    const std::size_t before = head_.size();
    head_.append(bytes);
    const std::size_t end = head_.find(kAnswerHeadEnd, before < 3 ? 0 : before - 3);
    if (end == std::string::npos) return head_.size() <= kMaxAnswerHead;
    const std::size_t size = end + kAnswerHeadEnd.size();
    bytes.remove_prefix(size - before);
    head_.resize(size);
    if (!read_head(out)) return false;
    std::string().swap(head_);
  }
  if (is_switching()) {
    out.append(bytes);
    return true;
  }
  if (bytes.empty()) return true;
  if (is_done_) return false;
  out.append(bytes);
  return follow(bytes);
}

bool AnswerReader::read_head(std::string& out) {
  std::string_view rest = head_;
  const auto next_line = [&rest] {
    const std::string_view line = rest.substr(0, rest.find("\r\n"));
    rest.remove_prefix(line.size() + 2);
    return line;
  };
  const std::string_view first = next_line();
  if (!first.starts_with("HTTP/1.1 ") || first.size() < 12) return false;
  if (!read_number(first.substr(9, 3), status_, 10)) return false;
  const bool has_no_body =
      options_.has_head_alone || status_ < 200 || status_ == 204 || status_ == 304;
  if (has_no_body) body_ = Body::kNone;
  out.append(first).append("\r\n");
  while (!rest.empty()) {
    const std::string_view line = next_line();
    if (line.empty()) break;
    if (!read_field(line, out)) return false;
  }
  const auto add = [&out](const Fields& fields) {
    for (const auto& [name, value] : fields) {
      fmt::format_to(std::back_inserter(out), "{}: {}\r\n", name, value);
    }
  };
  add(added_);
  if (status_ == 200) add(if_ok_);
  if (options_.is_last && !is_switching()) out += "Connection: close\r\n";
  out += "\r\n";
  is_head_done_ = true;
  is_done_ = !is_switching() && (body_ == Body::kNone || (body_ == Body::kLength && left_ == 0));
  return true;
}

bool AnswerReader::read_field(std::string_view line, std::string& out) {
  const std::size_t colon = line.find(": ");
  if (colon == std::string_view::npos) return false;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = line.substr(colon + 2);
  if (is_named(name, "connection") && !is_switching()) {
    daemon_closes_ = is_named(value, "close");
    return true;
  }
  if (is_named(name, "content-length") && body_ != Body::kNone) {
    body_ = Body::kLength;
    if (!read_number(value, left_, 10)) return false;
  } else if (is_named(name, "transfer-encoding") && body_ != Body::kNone) {
    body_ = Body::kChunked;
    if (value != "chunked") return false;
  }
  out.append(line).append("\r\n");
  return true;
}

bool AnswerReader::follow(std::string_view bytes) {
  switch (body_) {
    case Body::kNone:
      return false;
    case Body::kUntilClose:
      return true;
    case Body::kLength:
      if (bytes.size() > left_) return false;
      left_ -= bytes.size();
      is_done_ = left_ == 0;
      return true;
    case Body::kChunked:
      return follow_chunks(bytes);
  }
  return false;
}

bool AnswerReader::follow_chunks(std::string_view bytes) {
  constexpr std::size_t kMaxLine = 18;
  while (!bytes.empty()) {
    if (is_done_) return false;
    if (chunk_ == Chunk::kData) {
      const std::uint64_t here = std::min<std::uint64_t>(left_, bytes.size());
      left_ -= here;
      bytes.remove_prefix(static_cast<std::size_t>(here));
      if (left_ == 0) chunk_ = Chunk::kDataEnd;
      continue;
    }
    line_.push_back(bytes.front());
    bytes.remove_prefix(1);
    if (line_.size() > kMaxLine) return false;
    if (!line_.ends_with("\r\n")) continue;
    line_.resize(line_.size() - 2);
    if (!read_size()) return false;
    line_.clear();
  }
  return true;
}

// At the end of a line that is no data.
bool AnswerReader::read_size() {
  if (chunk_ == Chunk::kDataEnd) {
    chunk_ = Chunk::kSize;
    return line_.empty();
  }
  if (chunk_ == Chunk::kLastEnd) {
    is_done_ = true;
    return line_.empty();
  }
  if (!read_number(line_, left_, 16)) return false;
  chunk_ = left_ == 0 ? Chunk::kLastEnd : Chunk::kData;
  return true;
}

bool AnswerReader::finish() {
  if (is_head_done_ && body_ == Body::kUntilClose) is_done_ = true;
  return is_done_;
}

}  // namespace gpu_platform::listener
