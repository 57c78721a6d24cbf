#include "mps/mps_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace gpu_emulator {
namespace {

constexpr std::uint64_t kMibPerGib = 1024;
// More than any GPU has, so that sums stay numbers.
constexpr long long kMaxLimit = 1LL << 40;

}  // namespace

std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return words;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t\r\n"), line.size());
    words.emplace_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

long long number_at(std::string_view text) {
  long long number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? number : 0;
}

std::optional<double> parse_percentage(const std::string& text) {
  const double percentage = std::strtod(text.c_str(), nullptr);
  if (!(percentage > 0 && percentage <= 100)) return std::nullopt;
  return percentage;
}

std::string written_percentage(double percentage) {
  return fmt::format("{:.1f}", percentage);
}

std::uint64_t parse_pinned_limit(std::string_view text) {
  const long long number = std::min(number_at(text), kMaxLimit);
  if (number <= 0) return 0;
  const std::size_t unit = std::min(text.find_first_not_of("0123456789"), text.size());
  const bool is_gib = text.substr(unit).starts_with('G') || text.substr(unit).starts_with('g');
  return static_cast<std::uint64_t>(number) * (is_gib ? kMibPerGib : 1);
}

std::string written_pinned_limit(std::uint64_t mib) {
  return mib >= kMibPerGib ? fmt::format("{}G", mib / kMibPerGib) : fmt::format("{}M", mib);
}

PinnedLimits parse_pinned_limits(std::string_view text) {
  PinnedLimits limits;
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const std::size_t equals = part.find('=');
    if (equals != std::string_view::npos) {
      const std::uint64_t mib = parse_pinned_limit(part.substr(equals + 1));
      if (mib > 0) limits[static_cast<std::uint32_t>(number_at(part.substr(0, equals)))] = mib;
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return limits;
}

std::string written_pinned_limits(const PinnedLimits& limits) {
  std::string text;
  for (const auto& [device, mib] : limits) {
    text += fmt::format("{}{}={}M", text.empty() ? "" : ",", device, mib);
  }
  return text;
}

MpsLimits narrower(const MpsLimits& a, const MpsLimits& b) {
  MpsLimits both{std::min(a.percentage, b.percentage), a.pinned_mib};
  for (const auto& [device, mib] : b.pinned_mib) {
    const auto [at, is_new] = both.pinned_mib.emplace(device, mib);
    if (!is_new) at->second = std::min(at->second, mib);
  }
  return both;
}

}  // namespace gpu_emulator
