#include "kubernetes/testing/pod_logs.h"

#include <algorithm>

#include "base/units.h"
#include "base/utc.h"

namespace gpu_platform::kubernetes {

void PodLogs::append(const std::string& pod, std::string_view text, std::int64_t now_ns) {
  std::vector<Line>& lines = logs_[pod];
  while (!text.empty()) {
    if (lines.empty() || lines.back().text.ends_with('\n')) {
      // No two lines have one time, so that a reader can go on after the last one it has seen.
      const std::int64_t last_ns = lines.empty() ? 0 : lines.back().at_ns;
      lines.push_back({std::max(now_ns, last_ns + 1), {}});
    }
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.back().text += text.substr(0, end);
    text.remove_prefix(end);
  }
}

std::string PodLogs::read(const std::string& pod, const LogOptions& options,
                          LogPlace& place) const {
  const auto found = logs_.find(pod);
  if (found == logs_.end()) return {};
  const std::vector<Line>& lines = found->second;
  if (!place.is_begun && options.tail_lines >= 0) {
    place.line =
        lines.size() - std::min(lines.size(), static_cast<std::size_t>(options.tail_lines));
  }
  place.is_begun = true;
  std::string text;
  while (place.line < lines.size()) {
    const Line& line = lines[place.line];
    if (line.at_ns >= options.since_ns && place.byte < line.text.size()) {
      if (place.byte == 0 && options.has_timestamps) text += log_time(line.at_ns) + " ";
      text += line.text.substr(place.byte);
    }
    place.byte = line.text.size();
    if (!line.text.ends_with('\n')) break;
    ++place.line;
    place.byte = 0;
  }
  if (options.limit_bytes >= 0) {
    text.resize(std::min(text.size(), static_cast<std::size_t>(std::max<std::int64_t>(
                                          0, options.limit_bytes - place.told))));
  }
  place.told += static_cast<std::int64_t>(text.size());
  return text;
}

std::string log_time(std::int64_t at_ns) {
  return base::utc(base::Instant(at_ns), base::Fraction::kNanoseconds);
}

std::int64_t parse_log_time(const std::string& text) {
  return base::parse_rfc3339(text).value_or(base::Instant()).unix_ns();
}

}  // namespace gpu_platform::kubernetes
