#pragma once

#include <cstddef>
#include <string>
#include <string_view>

// Lines out of bytes that come in pieces.

namespace gpu_platform::kubernetes {

class LineSplitter {
 public:
  explicit LineSplitter(std::size_t max_line) : max_line_(max_line) {}

  // Calls take(line) for each line that is complete now, without its end; take() returns whether to
  // go on. Returns false if a line is longer than the limit. What is left over is kept.
  template <class Take>
  bool feed(std::string_view bytes, Take&& take) {
    while (true) {
      const std::size_t end = bytes.find('\n');
      const std::size_t size = end == std::string_view::npos ? bytes.size() : end;
      if (rest_.size() + size > max_line_) return false;
      if (end == std::string_view::npos) {
        rest_ += bytes;
        return true;
      }
      std::string_view line = bytes.substr(0, end);
      std::string whole;
      if (!rest_.empty()) {
        whole.swap(rest_);
        line = whole += line;
      }
      bytes.remove_prefix(end + 1);
      if (!take(line)) return true;
    }
  }

  void clear() { rest_.clear(); }

 private:
  std::size_t max_line_;
  std::string rest_;
};

}  // namespace gpu_platform::kubernetes
