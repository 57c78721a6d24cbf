#include "cli/text/state_color.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace gpu_platform::cli {

namespace {

constexpr std::array<std::string_view, 1> kGreen = {"RUNNING"};
constexpr std::array<std::string_view, 6> kYellow = {"HELD",      "STOPPING", "SUSPENDED",
                                                     "PREEMPTED", "DRAINING", "RESETTING"};
constexpr std::array<std::string_view, 5> kRed = {"FAILED", "TIMED_OUT", "LOST", "OFFLINE",
                                                  "DEGRADED"};

template <class Names>
bool is_among(const Names& names, std::string_view state) {
  return std::ranges::find(names, state) != names.end();
}

}  // namespace

std::string_view color_of_state(std::string_view state) {
  if (is_among(kGreen, state)) return "32";
  if (is_among(kYellow, state)) return "33";
  return is_among(kRed, state) ? "31" : "";
}

std::string colored(std::string_view text, std::string_view color) {
  if (color.empty() || text.empty()) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", color, text);
}

std::string without_colors(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find("\x1b["), text.size());
    plain += text.substr(0, begin);
    const std::size_t end = text.find('m', begin);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (begin == text.size()) break;
  }
  return plain;
}

}  // namespace gpu_platform::cli
