#pragma once

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cli/text/text.h"

namespace gpu_platform::shims {

// "Key=Value" pairs in lines, as scontrol prints a record; in one line with -o.
class RecordText {
 public:
  explicit RecordText(bool is_one_line) : is_one_line_(is_one_line) {}

  RecordText& add(std::string_view key, std::string_view value) {
    if (!is_fresh_) text_.push_back(' ');
    is_fresh_ = false;
    text_ += fmt::format("{}={}", key, cli::harmless(value));
    return *this;
  }
  RecordText& add(std::string_view key, std::int64_t value) {
    return add(key, fmt::format("{}", value));
  }
  // The line lies deeper than the others.
  RecordText& indent() {
    if (!is_one_line_) text_ += "  ";
    return *this;
  }
  // What follows begins a line of its own.
  RecordText& end_line() {
    text_ += is_one_line_ ? " " : "\n   ";
    is_fresh_ = true;
    return *this;
  }
  std::string text() && { return std::move(text_) + (is_one_line_ ? "\n" : "\n\n"); }

 private:
  bool is_one_line_;
  bool is_fresh_ = true;
  std::string text_;
};

}  // namespace gpu_platform::shims
