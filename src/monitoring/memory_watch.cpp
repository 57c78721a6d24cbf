#include "monitoring/memory_watch.h"

#include <algorithm>

namespace gpu_platform::monitoring {

namespace {

// A part that is filled to this is read often: a step more, and it is over.
constexpr std::int64_t kClosePercent = 90;

base::Bytes tolerance_of(base::Bytes part) {
  return std::max(MemoryWatch::kTolerance, base::Bytes(part.value() / MemoryWatch::kTolerancePart));
}

bool is_beyond(base::Bytes used, base::Bytes part) {
  return used > part && used - part > tolerance_of(part);
}

// More than the GPU has is nonsense.
bool is_believed(base::Bytes memory, std::optional<base::Bytes> total) {
  return memory >= base::Bytes() && (!total || memory <= *total);
}

}  // namespace

std::optional<base::Bytes> MemoryWatch::Use::of(model::AttemptId attempt) const {
  const auto found = by_attempt.find(attempt);
  return found == by_attempt.end() ? std::nullopt : std::optional(found->second);
}

MemoryWatch::Use MemoryWatch::use_of(const Reading& reading) {
  Use use;
  if (!reading.processes) return use;
  for (const Part& part : reading.parts) use.by_attempt[part.attempt];
  for (const Process& process : *reading.processes) {
    if (!process.attempt || !process.memory) continue;
    const auto found = use.by_attempt.find(*process.attempt);
    if (found == use.by_attempt.end() || !is_believed(*process.memory, reading.total)) continue;
    // What several processes of one attempt are said to use is no more than there is.
    if (is_believed(found->second + *process.memory, reading.total)) {
      found->second += *process.memory;
    }
  }
  return use;
}

std::vector<MemoryWatch::Excess> MemoryWatch::take(const Reading& reading) {
  std::vector<Excess> found;
  const auto [read_at, is_first] = read_at_.try_emplace(reading.gpu, reading.at);
  if (!is_first && reading.at <= read_at->second) return found;
  read_at->second = reading.at;
  forget(reading);
  const Use use = use_of(reading);
  bool& is_close = is_close_[reading.gpu];
  is_close = false;
  for (const Part& part : reading.parts) {
    const auto used = use.of(part.attempt);
    if (!used) {
      attempts_[part.attempt].is_over = false;  // nothing is known of the time from here on
      continue;
    }
    if (!part.is_watched) continue;
    is_close |= used->value() >= part.memory.value() / 100 * kClosePercent;
    if (auto excess = look_at(part, *used, reading.at)) found.push_back(*excess);
  }
  find_who_goes_short(reading, use);
  return found;
}

std::optional<MemoryWatch::Excess> MemoryWatch::look_at(const Part& part, base::Bytes used,
                                                        base::Instant at) {
  Seen& seen = attempts_[part.attempt];
  const bool was_over = seen.is_over && at - seen.read_at <= kLongestGap;
  const base::Duration passed = at - seen.read_at;
  seen.read_at = at;
  seen.is_over = is_beyond(used, part.memory);
  if (!seen.is_over) return std::nullopt;
  const bool is_known = seen.over_at && at - *seen.over_at < kForgivenAfter;
  seen.over_at = at;
  seen.latest = {part.attempt, Step::kWarn, used, part.memory};
  if (!is_known) {
    seen.over_for = {};
    seen.warned_at = used;
    return seen.latest;
  }
  if (was_over) seen.over_for += passed;
  const bool grows = used > seen.warned_at && used - seen.warned_at > tolerance_of(part.memory);
  if (!grows && seen.over_for < kPatience) return std::nullopt;
  seen.latest.step = Step::kStop;
  return seen.latest;
}

// An attempt goes short if less is free than its part still lets it have. If the driver does not
// say what is free, it is given the benefit of the doubt.
void MemoryWatch::find_who_goes_short(const Reading& reading, const Use& use) {
  const Seen* worst = nullptr;
  for (const Part& part : reading.parts) {
    const Seen& seen = attempts_[part.attempt];
    if (!seen.is_over) continue;
    if (worst == nullptr ||
        seen.latest.used - seen.latest.part > worst->latest.used - worst->latest.part) {
      worst = &seen;
    }
  }
  if (worst == nullptr) return;
  const Excess cause = worst->latest;
  for (const Part& part : reading.parts) {
    Seen& seen = attempts_[part.attempt];
    if (seen.is_over) continue;
    const base::Bytes used = use.of(part.attempt).value_or(base::Bytes());
    const bool is_known = reading.used && reading.total && *reading.used <= *reading.total;
    if (is_known && used + (*reading.total - *reading.used) >= part.memory) continue;
    seen.short_at = reading.at;
    seen.cause = cause;
  }
}

// An attempt is on one GPU, and its part goes when it has ended and is released.
void MemoryWatch::forget(const Reading& reading) {
  std::erase_if(attempts_, [&](const auto& entry) {
    const auto& [attempt, seen] = entry;
    if (std::ranges::find(reading.parts, attempt, &Part::attempt) != reading.parts.end()) {
      return false;
    }
    const auto is_old = [&](const std::optional<base::Instant>& at) {
      return !at || reading.at - *at > kForgivenAfter;
    };
    return is_old(seen.over_at) && is_old(seen.short_at);
  });
}

bool MemoryWatch::is_close(const std::string& gpu) const {
  const auto found = is_close_.find(gpu);
  return found != is_close_.end() && found->second;
}

std::optional<MemoryWatch::Excess> MemoryWatch::latest_excess(model::AttemptId attempt) const {
  const auto found = attempts_.find(attempt);
  if (found == attempts_.end() || !found->second.over_at) return std::nullopt;
  return found->second.latest;
}

std::optional<MemoryWatch::Excess> MemoryWatch::cause_of_failure(model::AttemptId attempt,
                                                                 base::Instant now) const {
  const auto found = attempts_.find(attempt);
  if (found == attempts_.end() || !found->second.short_at) return std::nullopt;
  const Seen& seen = found->second;
  // One that was over itself has only itself to blame.
  const bool was_over = seen.over_at && now - *seen.over_at <= kEndsWithin;
  if (was_over || now - *seen.short_at > kEndsWithin) return std::nullopt;
  return seen.cause;
}

}  // namespace gpu_platform::monitoring
