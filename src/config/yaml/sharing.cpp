#include "config/yaml/sharing.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/letters.h"
#include "base/parse.h"
#include "model/gpu_catalogue.h"

namespace gpu_platform::config {

namespace {

constexpr std::array<std::string_view, 8> kSharingKeys = {
    "gpus", "nodes", "between_users", "max_jobs", "weakest_rung", "slice", "modes", "mps_control"};
constexpr std::array<std::string_view, model::kSharedBetween> kBetween = {"never", "team", "all"};
// In the order of the values: those that keep a job to its memory.
constexpr std::array kRungs = {model::Rung::kAdvisory, model::Rung::kWatchdog,
                               model::Rung::kMpsLimit, model::Rung::kDriverLimit};
constexpr std::array<std::string_view, 4> kRungWords = {"advisory", "watchdog", "mps-limit",
                                                        "driver-limit"};
constexpr std::array kModes = {model::ShareMode::kMps, model::ShareMode::kTimeSlice};
constexpr std::array<std::string_view, 2> kModeWords = {"mps", "time-slice"};
// An MPS server of a GPU takes no more clients.
constexpr std::uint32_t kMaxJobs = 48;

}  // namespace

std::vector<std::string> SharingReader::words(const YAML::Node& list, std::string_view what) {
  std::vector<std::string> found;
  if (!list.IsSequence() || list.size() == 0) {
    report(list, fmt::format("'{}' in '{}' must be a list of names ([A, B]); leave it out for all",
                             what, key_));
    return found;
  }
  for (const auto& item : list) {
    if (auto name = word(item, what)) found.push_back(*std::move(name));
  }
  return found;
}

std::size_t SharingReader::choice(const YAML::Node& node, std::string_view what,
                                  std::span<const std::string_view> allowed) {
  std::string text = node.IsScalar() ? base::to_lower(node.Scalar()) : std::string();
  std::ranges::replace(text, '_', '-');
  const auto found = std::ranges::find(allowed, text);
  if (found == allowed.end()) {
    report(node, fmt::format("'{}' in '{}' must be {} or {}", what, key_,
                             fmt::join(allowed.first(allowed.size() - 1), ", "), allowed.back()));
  }
  return static_cast<std::size_t>(found - allowed.begin());
}

void SharingReader::read_modes(const YAML::Node& list) {
  if (!list.IsSequence() || list.size() == 0) {
    report(list, fmt::format("'modes' in '{}' must be a list of mps and time-slice, the preferred "
                             "one first",
                             key_));
    return;
  }
  sharing_.modes.clear();
  for (const auto& item : list) {
    const std::size_t at = choice(item, "modes", kModeWords);
    if (at == kModeWords.size()) continue;
    if (std::ranges::find(sharing_.modes, kModes[at]) != sharing_.modes.end()) {
      report(item, fmt::format("'{}' is in 'modes' of '{}' twice", kModeWords[at], key_));
      continue;
    }
    sharing_.modes.push_back(kModes[at]);
  }
}

void SharingReader::read_slice(const YAML::Node& node) {
  const auto slice = base::parse_short_duration(node.IsScalar() ? node.Scalar() : std::string());
  if (slice && *slice >= model::kMinSlice && *slice <= model::kMaxSlice) {
    sharing_.slice = *slice;
    return;
  }
  report(node, fmt::format("'slice' in '{}' must be a time from 100ms to 60s", key_));
}

void SharingReader::read_mps_control(const YAML::Node& node) {
  const std::string text = node.IsScalar() ? node.Scalar() : std::string();
  mps_control_ = {.is_off = text == "off", .path = text.starts_with('/') ? text : std::string()};
  if (mps_control_.is_off || !mps_control_.path.empty() || text == "auto") return;
  report(node, fmt::format("'mps_control' in '{}' must be auto, off or the absolute path of "
                           "nvidia-cuda-mps-control",
                           key_));
}

void SharingReader::read_entry(const YAML::Node& name, const YAML::Node& value) {
  const std::string& key = name.Scalar();
  if (key == "gpus") {
    for (const std::string& type : words(value, key)) {
      // A type that is not in the catalogue is named as the driver names its model.
      sharing_.gpu_types.push_back(model::canonical_gpu_type(type).value_or(type));
    }
  } else if (key == "nodes") {
    sharing_.nodes = words(value, key);
  } else if (key == "between_users") {
    const std::size_t at = choice(value, key, kBetween);
    if (at < kBetween.size()) sharing_.between_users = static_cast<model::SharedBetween>(at);
  } else if (key == "max_jobs") {
    const auto jobs = count(value, key, 1);
    if (jobs && *jobs > kMaxJobs) {
      report(value, fmt::format("'{}' in '{}' must be 1 to {}", key, key_, kMaxJobs));
    }
    sharing_.max_jobs = jobs.value_or(sharing_.max_jobs);
  } else if (key == "weakest_rung") {
    const std::size_t at = choice(value, key, kRungWords);
    if (at < kRungs.size()) sharing_.weakest_rung = kRungs[at];
  } else if (key == "slice") {
    read_slice(value);
  } else if (key == "modes") {
    read_modes(value);
  } else if (key == "mps_control") {
    read_mps_control(value);
  } else {
    report_unknown(name, kSharingKeys);
  }
}

void SharingReader::read(const std::string& path, const YAML::Node& map) {
  key_ = path;
  sharing_.is_on = map.IsMap();
  for_each_entry(map,
                 [&](const YAML::Node& name, const YAML::Node& value) { read_entry(name, value); });
}

void SharingReader::finish(Configuration& configuration) {
  configuration.policy.sharing = std::move(sharing_);
  configuration.mps_control = std::move(mps_control_);
}

}  // namespace gpu_platform::config
