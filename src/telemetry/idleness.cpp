#include "telemetry/idleness.h"

#include <algorithm>

namespace gpu_platform::telemetry {

namespace {

// None if one of them is not known, or there are none.
std::optional<std::uint32_t> mean_of(std::span<const std::optional<std::uint32_t>> percent) {
  if (percent.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const auto& each : percent) {
    if (!each) return std::nullopt;
    sum += std::min<std::uint32_t>(*each, 100);
  }
  // Rounded up: one of eight GPUs that does a little is use.
  return static_cast<std::uint32_t>((sum + percent.size() - 1) / percent.size());
}

}  // namespace

void Idleness::begin_anew() {
  steps_.clear();
  known_ = {};
  percent_ns_ = 0;
  is_idle_ = false;
  idle_since_.reset();
}

void Idleness::count(base::Duration passed, std::uint32_t percent, const IdleRule& rule) {
  if (steps_.empty() || steps_.back().known >= kStep) steps_.push_back({});
  const std::int64_t weighted = passed.value() * percent;
  steps_.back().known += passed;
  steps_.back().percent_ns += weighted;
  known_ += passed;
  percent_ns_ += weighted;
  while (known_ - steps_.front().known >= rule.after) {
    known_ -= steps_.front().known;
    percent_ns_ -= steps_.front().percent_ns;
    steps_.pop_front();
  }
}

void Idleness::take(base::Instant at, base::Duration age,
                    std::span<const std::optional<std::uint32_t>> percent, const IdleRule& rule) {
  const auto mean = mean_of(percent);
  if (last_at_ && at - *last_at_ > kMaxGap) begin_anew();
  if (!mean) {
    is_known_ = false;
    is_idle_ = false;
    return;
  }
  const bool follows = is_known_ && last_at_ && at > *last_at_;
  is_known_ = true;
  if (follows) count(at - *last_at_, last_percent_, rule);
  last_at_ = at;
  last_percent_ = *mean;
  if (!first_use_ && *mean >= rule.below_percent) first_use_ = at;
  const bool is_spared = first_use_ ? at - *first_use_ < rule.grace : age < rule.loading;
  const auto known_mean = mean_percent(rule);
  is_idle_ = !is_spared && known_mean && *known_mean < rule.below_percent;
  if (!is_idle_) idle_since_.reset();
  if (is_idle_ && !idle_since_) idle_since_ = at;
}

base::Duration Idleness::idle_for(base::Instant now) const {
  if (!is_idle_ || now < *idle_since_) return {};
  return now - *idle_since_;
}

std::optional<std::uint32_t> Idleness::mean_percent(const IdleRule& rule) const {
  if (known_ < rule.after || known_ <= base::Duration()) return std::nullopt;
  return static_cast<std::uint32_t>(percent_ns_ / known_.value());
}

}  // namespace gpu_platform::telemetry
