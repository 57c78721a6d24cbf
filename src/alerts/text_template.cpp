#include "alerts/text_template.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "alerts/silence.h"
#include "base/suggest.h"
#include "base/utc.h"
#include "base/utf8.h"

namespace gpu_platform::alerts {

namespace {

constexpr std::array<std::string_view, 9> kPlaces = {
    "alert.rule",  "alert.severity", "alert.state", "alert.summary", "alert.advice",
    "alert.value", "alert.since",    "alert.id",    "site"};
constexpr std::string_view kLabel = "label.";

bool is_known(std::string_view place) {
  if (place.starts_with(kLabel)) return is_matcher_name(place.substr(kLabel.size()));
  return std::ranges::find(kPlaces, place) != kPlaces.end();
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Of the first character that is none of a text; 0: there is none.
std::int64_t line_of_odd_byte(std::string_view text) {
  std::int64_t line = 1;
  while (!text.empty()) {
    const char32_t c = base::take_character(text);
    if (base::is_harmful(c) && c != '\n' && c != '\t') return line;
    if (c == '\n') ++line;
  }
  return 0;
}

std::string value_of(std::string_view place, const Alert& alert, std::string_view site) {
  if (place == "site") return std::string(site);
  if (place == "alert.id") return alert.fingerprint;
  if (place == "alert.rule") return alert.rule;
  if (place == "alert.severity") return std::string(to_string(alert.severity));
  if (place == "alert.state") return std::string(to_string(alert.state));
  if (place == "alert.summary") return alert.summary;
  if (place == "alert.advice") return alert.advice;
  if (place == "alert.value") return alert.value ? fmt::format("{}", *alert.value) : "unknown";
  if (place == "alert.since") return base::utc(alert.since);
  const auto label = alert.labels.find(place.substr(kLabel.size()));
  return label == alert.labels.end() ? std::string() : label->second;
}

}  // namespace

base::Result<TextTemplate> TextTemplate::parse(std::string_view text) {
  if (text.size() > kMaxBytes) {
    return base::invalid("", fmt::format("a template has at most {} bytes", kMaxBytes));
  }
  if (const std::int64_t odd = line_of_odd_byte(text); odd > 0) {
    return base::invalid(
        "", fmt::format("line {}: a template is UTF-8 without characters of control", odd));
  }
  TextTemplate out;
  std::string_view rest = text;
  const auto line = [&] {
    return 1 + std::ranges::count(text.substr(0, text.size() - rest.size()), '\n');
  };
  while (!rest.empty()) {
    const std::size_t open = rest.find("{{");
    out.pieces_.push_back({std::string(rest.substr(0, open)), false});
    if (open == std::string_view::npos) break;
    rest.remove_prefix(open);
    const std::size_t close = rest.find("}}");
    if (close == std::string_view::npos) {
      return base::invalid("", fmt::format("line {}: '{{{{' without '}}}}'", line()));
    }
    const std::string_view place = trimmed(rest.substr(2, close - 2));
    if (!is_known(place)) {
      return base::invalid(
          "", fmt::format("line {}: there is no place '{}'{}; there are {} and label.NAME", line(),
                          place, base::did_you_mean(place, kPlaces), fmt::join(kPlaces, ", ")));
    }
    out.pieces_.push_back({std::string(place), true});
    rest.remove_prefix(close + 2);
  }
  return out;
}

std::string TextTemplate::of(const Alert& alert, std::string_view site) const {
  std::string text;
  for (const Piece& piece : pieces_) {
    text += piece.is_place ? value_of(piece.text, alert, site) : piece.text;
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

std::string usual_line(const Alert& alert) {
  if (alert.state == State::kResolved) {
    return fmt::format("RESOLVED {}: {}", alert.rule, alert.summary);
  }
  std::string line = fmt::format("{} {}: {}", to_string(alert.severity), alert.rule, alert.summary);
  if (!alert.advice.empty()) line += ". " + alert.advice;
  return line;
}

}  // namespace gpu_platform::alerts
