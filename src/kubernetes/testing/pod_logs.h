#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

// What containers have written. Thread: one at a time.

namespace gpu_platform::kubernetes {

struct LogOptions {
  bool has_timestamps = false;    // before each line
  std::int64_t since_ns = 0;      // lines of this time and later
  std::int64_t tail_lines = -1;   // the last ones alone; -1: all
  std::int64_t limit_bytes = -1;  // -1: all
};

// How far a reader has come.
struct LogPlace {
  bool is_begun = false;
  std::size_t line = 0;
  std::size_t byte = 0;   // of the line
  std::int64_t told = 0;  // bytes
};

class PodLogs {
 public:
  // Appends to the log of "NAMESPACE/POD". A line has the time at which it began.
  void append(const std::string& pod, std::string_view text, std::int64_t now_ns);
  void clear(const std::string& pod) { logs_.erase(pod); }
  // What follows a place, which moves on.
  std::string read(const std::string& pod, const LogOptions& options, LogPlace& place) const;

 private:
  struct Line {
    std::int64_t at_ns = 0;
    std::string text;  // with its newline once it is complete
  };
  std::map<std::string, std::vector<Line>> logs_;
};

// Nanoseconds since 1970, as RFC 3339 has them with nine digits.
std::string log_time(std::int64_t at_ns);
// The reverse, with any number of digits; 0 if it is no such time.
std::int64_t parse_log_time(const std::string& text);

}  // namespace gpu_platform::kubernetes
