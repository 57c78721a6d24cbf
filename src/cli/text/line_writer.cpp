#include "cli/text/line_writer.h"

namespace gpu_platform::cli {

namespace {

constexpr std::size_t kLongestLine = 1024 * 1024;

}  // namespace

void LineWriter::write(std::string_view bytes, std::string_view stamp) {
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    begun_ += bytes.substr(0, end + 1);
    bytes.remove_prefix(end + 1);
    write_line(begun_, stamp);
    begun_.clear();
  }
  begun_ += bytes;
  if (begun_.size() >= kLongestLine) finish(stamp);
}

void LineWriter::finish(std::string_view stamp) {
  if (begun_.empty()) return;
  write_line(begun_ + "\n", stamp);
  begun_.clear();
}

void LineWriter::write_line(std::string_view line, std::string_view stamp) {
  std::string text;
  if (!stamp.empty()) text.append(stamp).append(" ");
  text.append(prefix_).append(line);
  console_.out(text);
}

}  // namespace gpu_platform::cli
