#include "alerts/silence.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "base/parse.h"
#include "base/suggest.h"
#include "model/job_selection.h"

namespace gpu_platform::alerts {

namespace {

constexpr std::array<std::string_view, 12> kNames = {"rule",      "severity", "node",    "gpu",
                                                     "gpu_index", "type",     "rack",    "job",
                                                     "user",      "team",     "channel", "project"};

std::string_view value_at(const Alert& alert, std::string_view name) {
  if (name == "rule") return alert.rule;
  const auto found = alert.labels.find(name);
  return found == alert.labels.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace

bool is_matcher_name(std::string_view name) {
  return std::ranges::find(kNames, name) != kNames.end();
}

base::Status check(const Silence& silence, base::Instant now) {
  if (silence.matchers.empty()) {
    return base::invalid("matchers",
                         "a silence needs at least one matcher, such as node=dgx-1 or rule=GpuHot");
  }
  if (silence.matchers.size() > kMaxMatchers) {
    return base::invalid("matchers",
                         fmt::format("a silence has at most {} matchers", kMaxMatchers));
  }
  for (const auto& [name, pattern] : silence.matchers) {
    if (!is_matcher_name(name)) {
      return base::invalid("matchers",
                           fmt::format("'{}' is not one of {}{}", name, fmt::join(kNames, ", "),
                                       base::did_you_mean(name, kNames)));
    }
    if (pattern.empty()) {
      return base::invalid("matchers", fmt::format("the pattern of '{}' is empty", name));
    }
  }
  if (silence.until <= now) {
    return base::invalid("until", "the end of a silence must be in the future");
  }
  if (silence.until - now > kLongestSilence) {
    return base::invalid("until",
                         fmt::format("a silence lasts at most {}", base::written(kLongestSilence)));
  }
  return {};
}

bool is_over(const Silence& silence, base::Instant now) {
  return silence.until <= now;
}

bool silences(const Silence& silence, const Alert& alert, base::Instant now) {
  if (is_over(silence, now)) return false;
  return std::ranges::all_of(silence.matchers, [&](const auto& matcher) {
    const auto& [name, pattern] = matcher;
    // It is shown in small letters, and sent in large ones.
    if (name == "severity") {
      return model::matches_pattern(base::to_lower(pattern),
                                    base::to_lower(to_string(alert.severity)));
    }
    const std::string_view value = value_at(alert, name);
    // An array stands for its members, which are "40_3".
    if (name == "job" && model::matches_pattern(pattern + "_*", value)) return true;
    return model::matches_pattern(pattern, value);
  });
}

}  // namespace gpu_platform::alerts
