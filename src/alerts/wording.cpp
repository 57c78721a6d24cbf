#include "alerts/wording.h"

#include <string_view>

#include <fmt/format.h>

#include "base/utf8.h"

namespace gpu_platform::alerts {

namespace {

// Names come from hosts and users.
std::string shown(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = base::take_character(text);
    const std::string_view bytes = before.substr(0, before.size() - text.size());
    if (base::is_harmful(c)) {
      out += '?';
    } else {
      out += bytes;
    }
  }
  return out;
}

std::string text_of(const Labels& labels, std::string_view name) {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string() : shown(found->second);
}

std::string limit_of(const Rule& rule) {
  return fmt::format("limit {}{}", rule.threshold, row_of(rule.signal).unit);
}

std::string minutes_of(std::int64_t seconds) {
  return seconds < 120 ? fmt::format("{} s", seconds) : fmt::format("{} min", seconds / 60);
}

// Days are whole ones: 0 is also the day after its end.
std::string certificate_sentence(std::int64_t days) {
  if (days < 0) return "the certificate of the API has expired";
  if (days == 0) return "the certificate of the API expires today";
  return fmt::format("the certificate of the API expires in {} {}", days,
                     days == 1 ? "day" : "days");
}

std::string sentence(const Rule& rule, const Fact& fact) {
  const std::string place = place_of(fact.subject->labels);
  const std::int64_t value = fact.value.value_or(0);
  const std::string count = value == 1 ? std::string("once") : fmt::format("{} times", value);
  switch (rule.signal) {
    case Signal::kGpuTemperature:
      return fmt::format("{} has {} °C ({})", place, value, limit_of(rule));
    case Signal::kGpuMemoryHeat:
      return fmt::format("the memory of {} has {} °C ({})", place, value, limit_of(rule));
    case Signal::kGpuMemory:
      return fmt::format("{} % of the memory of {} is in use ({})", value, place, limit_of(rule));
    case Signal::kGpuUtilization:
      return fmt::format("{} is used to {} % ({})", place, value, limit_of(rule));
    case Signal::kGpuHeatSlowdown:
      return fmt::format("{} is slowed down because it is too hot", place);
    case Signal::kGpuThrottled:
      return fmt::format("the hardware holds down the clocks of {}", place);
    case Signal::kGpuXid:
      return fmt::format("{} reported a critical XID {}", place, count);
    case Signal::kGpuEcc:
      return fmt::format("{} had an uncorrected memory error {}", place, count);
    case Signal::kGpuOutOfService:
      return fmt::format("{} is out of service", place);
    case Signal::kGpuUnmanaged:
      return fmt::format("processes of no job are on {}", place);
    case Signal::kNodeLost:
      return fmt::format("{} does not report any more", place);
    case Signal::kQueueWait:
      return fmt::format("a job has waited for {} (limit {})", minutes_of(value),
                         minutes_of(rule.threshold));
    case Signal::kIdleAllocation:
      return fmt::format("{} holds GPUs and does not use them", place);
    case Signal::kDiskLow:
      return fmt::format("{} % of the file system of the data directory is free ({})", value,
                         limit_of(rule));
    case Signal::kCertificate:
      return certificate_sentence(value);
    case Signal::kHistory:
      return "the history of readings is not kept";
    case Signal::kBudget:
      return fmt::format("{} % of the budget of {} are spent", value, place);
    case Signal::kDelivery:
      break;
  }
  return fmt::format("{} does not take messages", place);
}

}  // namespace

std::string place_of(const Labels& labels) {
  if (labels.contains("job")) return "job " + text_of(labels, "job");
  if (labels.contains("gpu")) {
    return fmt::format("GPU {} of {}", text_of(labels, "gpu_index"), text_of(labels, "node"));
  }
  if (labels.contains("node")) return "node " + text_of(labels, "node");
  if (labels.contains("channel")) return "the channel " + text_of(labels, "channel");
  for (const std::string_view holder : {"project", "user", "team"}) {
    if (labels.contains(holder)) return fmt::format("{} {}", holder, text_of(labels, holder));
  }
  return "the platform";
}

std::string summary_of(const Rule& rule, const Fact& fact) {
  std::string text = sentence(rule, fact);
  if (!fact.detail.empty()) text += ": " + shown(fact.detail);
  return text;
}

}  // namespace gpu_platform::alerts
