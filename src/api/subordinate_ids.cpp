#include "api/subordinate_ids.h"

#include <charconv>
#include <fstream>
#include <string_view>
#include <utility>

namespace gpu_platform::api {

namespace {

constexpr std::chrono::seconds kReadAgainAfter{60};
constexpr std::size_t kMaxRanges = 65'536;

bool parse(std::string_view text, std::uint64_t& out) {
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), out);
  return code == std::errc() && end == text.data() + text.size();
}

}  // namespace

// "ann:100000:65536", one on each line; what is none is passed over, as shadow's own tools do.
void SubordinateIds::read_again() {
  ranges_.clear();
  std::ifstream file(path_);
  for (std::string line; ranges_.size() < kMaxRanges && std::getline(file, line);) {
    const std::string_view text = line;
    const std::size_t first = text.find(':');
    const std::size_t second = first == text.npos ? text.npos : text.find(':', first + 1);
    if (first == 0 || second == text.npos) continue;
    Range range;
    range.owner = text.substr(0, first);
    const bool is_range = parse(text.substr(first + 1, second - first - 1), range.first) &&
                          parse(text.substr(second + 1), range.count);
    if (is_range) ranges_.push_back(std::move(range));
  }
}

std::optional<std::string> SubordinateIds::owner_of(std::uint32_t uid) {
  const auto now = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (!read_at_ || now - *read_at_ >= kReadAgainAfter) {
    read_again();
    read_at_ = now;
  }
  for (const Range& range : ranges_) {
    if (uid >= range.first && uid - range.first < range.count) return range.owner;
  }
  return std::nullopt;
}

}  // namespace gpu_platform::api
