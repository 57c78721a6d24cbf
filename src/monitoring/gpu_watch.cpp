#include "monitoring/gpu_watch.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace gpu_platform::monitoring {

namespace {

using hardware::GpuCondition;
using hardware::GpuEventKind;
using model::Evidence;
using model::EvidenceKind;
using model::EvidenceSource;

constexpr std::uint64_t kHardwareSlowdown =
    model::kThrottleHardware | model::kThrottleHeatHardware | model::kThrottlePowerBrake;
constexpr std::int32_t kHottest = 200;  // a sensor that says more, or less than this below zero,
constexpr std::int32_t kColdest = -50;  // says nothing

bool has_passed(std::int64_t since_ns, base::Duration time, std::int64_t now_ns) {
  return now_ns - since_ns >= time.value();
}

std::string links_down(std::uint32_t down, std::uint32_t all) {
  return fmt::format("{} of {} links", down, all);
}

// How many links there are in all, by what links_down() wrote; 0: it did not write it.
std::uint32_t links_in(std::string_view text) {
  const std::size_t at = text.find(" of ");
  std::uint32_t all = 0;
  if (at == std::string_view::npos) return 0;
  std::from_chars(text.data() + at + 4, text.data() + text.size(), all);
  return all;
}

std::int64_t added(std::int64_t a, std::uint64_t b) {
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  return b > static_cast<std::uint64_t>(kMost - a) ? kMost : a + static_cast<std::int64_t>(b);
}

}  // namespace

std::int32_t heat_limit_c(const HealthLimits& limits, const GpuBuild& build) {
  if (build.slowdown_c.value_or(0) < kLeastSlowdownC) return limits.heat_c;
  if (limits.below_slowdown_c) return *build.slowdown_c - *limits.below_slowdown_c;
  return std::min(limits.heat_c, *build.slowdown_c - kHeatMarginBelowSlowdownC);
}

// The latest piece counts, as it does for the judge. It need not be the last one that is kept:
// where a level flapped, equal pieces were joined at the place of their first.
GpuWatch::GpuWatch(std::span<const Evidence> kept) {
  std::map<EvidenceKind, const Evidence*> latest;
  for (const Evidence& piece : kept) {
    const Evidence*& known = latest[piece.kind];
    if (known == nullptr || piece.last >= known->last) known = &piece;
  }
  for (const auto& [kind, piece] : latest) {
    if (kind == EvidenceKind::kRecoveryAction) recovery_action_ = piece->code;
    if (model::is_level(kind)) levels_[kind] = {!piece->is_over, piece->value};
    if (kind == EvidenceKind::kNvlinkDown && !piece->is_over) max_links_ = links_in(piece->text);
  }
  if (lasts(EvidenceKind::kSlowdown)) slow_readings_ = kSlowReadings;
}

// ---- what is told

Evidence& GpuWatch::add(EvidenceKind kind, EvidenceSource source) {
  Evidence& piece = pieces_.emplace_back();
  piece.kind = kind;
  piece.source = source;
  piece.at = piece.last = now_.at;
  return piece;
}

std::vector<Evidence> GpuWatch::told() {
  return std::exchange(pieces_, {});
}

bool GpuWatch::lasts(EvidenceKind kind) const {
  const auto found = levels_.find(kind);
  return found != levels_.end() && found->second.lasts;
}

void GpuWatch::begin(EvidenceKind kind, Said said) {
  Level& level = levels_[kind];
  if (level.lasts) return;
  level = {true, said.value};
  Evidence& piece = add(kind, said.source);
  piece.value = said.value;
  piece.text = std::move(said.text);
}

void GpuWatch::end(EvidenceKind kind) {
  if (!lasts(kind)) return;
  levels_[kind].lasts = false;
  add(kind, EvidenceSource::kReading).is_over = true;
}

void GpuWatch::set(EvidenceKind kind, std::optional<bool> lasts, Said said) {
  if (!lasts) return;
  *lasts ? begin(kind, std::move(said)) : end(kind);
}

// ---- readings

std::vector<Evidence> GpuWatch::take(const Reading& reading, const GpuBuild& build,
                                     const HealthLimits& limits, Moment now) {
  now_ = now;
  const hardware::GpuReading& gpu = reading.gpu;
  if (gpu.condition != GpuCondition::kAnswering) {
    take_refusal(gpu);
    return told();
  }
  refusals_ = 0;
  if (!reading.is_partial && answers_ < kAnswers) ++answers_;
  if (answers_ == kAnswers) {
    end(EvidenceKind::kLost);
    end(EvidenceKind::kNotAnswering);
  }
  take_counters(reading);
  take_heat(EvidenceKind::kHeat, gpu.temperature_c, heat_limit_c(limits, build));
  take_heat(EvidenceKind::kMemoryHeat, gpu.memory_temperature_c, limits.memory_heat_c);
  if (!reading.is_partial) take_slowdown(gpu.throttle_reasons);
  take_recovery(reading);
  if (gpu.slow) {
    take_memory(*gpu.slow);
    take_links(*gpu.slow, build);
  }
  return told();
}

void GpuWatch::take_refusal(const hardware::GpuReading& gpu) {
  answers_ = 0;
  if (refusals_ < kRefusals) ++refusals_;
  const bool may_pass = gpu.condition == GpuCondition::kNotAnswering;
  if (may_pass && refusals_ < kRefusals) return;
  begin(gpu.condition == GpuCondition::kLost ? EvidenceKind::kLost : EvidenceKind::kNotAnswering,
        {.text = gpu.problem.empty() ? "the driver gives no reason" : gpu.problem});
}

void GpuWatch::grow(EvidenceKind kind, Count count, std::optional<std::uint64_t> value,
                    std::int64_t began_ns) {
  if (!value) return;
  const auto before = std::exchange(counts_[static_cast<std::size_t>(count)], value);
  if (!before || *value <= *before) return;
  Growth& growth = growth_[kind];
  growth.untold = added(growth.untold, *value - *before);
  if (began_ns < growth.event_ns) return;
  const std::int64_t known = std::min(growth.by_event, growth.untold);
  growth.untold -= known;
  growth.by_event -= known;
}

void GpuWatch::tell_growth(EvidenceKind kind, bool is_quiet) {
  const auto found = growth_.find(kind);
  if (found == growth_.end()) return;
  Growth& growth = found->second;
  if (growth.untold == 0) return;
  if (is_quiet && growth.told_ns && !has_passed(*growth.told_ns, kQuietFor, now_.boot_ns)) return;
  growth.told_ns = now_.boot_ns;
  add(kind, EvidenceSource::kReading).value = std::exchange(growth.untold, 0);
}

void GpuWatch::take_counters(const Reading& reading) {
  using enum EvidenceKind;
  const hardware::GpuReading& gpu = reading.gpu;
  const std::int64_t began = reading.began_ns;
  grow(kEccCorrected, Count::kEccCorrected, gpu.ecc_corrected, began);
  grow(kEccUncorrected, Count::kEccUncorrected, gpu.ecc_uncorrected, began);
  if (gpu.slow) {
    const model::GpuSlowMetrics& slow = *gpu.slow;
    grow(kRowsRemapped, Count::kRowsCorrected, slow.remapped_rows_corrected, began);
    grow(kRowsRemapped, Count::kRowsUncorrected, slow.remapped_rows_uncorrected, began);
    grow(kPagesRetired, Count::kPagesCorrected, slow.retired_pages_corrected, began);
    grow(kPagesRetired, Count::kPagesUncorrected, slow.retired_pages_uncorrected, began);
    grow(kPcieReplays, Count::kPcieReplays, slow.pcie_replays, began);
    grow(kNvlinkErrors, Count::kLinkCrc, slow.nvlink_crc_errors, began);
    grow(kNvlinkErrors, Count::kLinkReplays, slow.nvlink_replays, began);
    grow(kNvlinkErrors, Count::kLinkRecoveries, slow.nvlink_recoveries, began);
    retires_pages_ = slow.retired_pages_corrected || slow.retired_pages_uncorrected;
  }
  for (const EvidenceKind kind : {kEccUncorrected, kRowsRemapped, kPagesRetired}) {
    tell_growth(kind, false);
  }
  for (const EvidenceKind kind : {kEccCorrected, kPcieReplays, kNvlinkErrors}) {
    tell_growth(kind, true);
  }
  // What no reading has shown by then, none will.
  for (auto& [kind, growth] : growth_) {
    if (has_passed(growth.event_ns, kSlowReadingAge, began)) growth.by_event = 0;
  }
}

void GpuWatch::take_heat(EvidenceKind kind, std::optional<std::int32_t> degrees,
                         std::int32_t limit) {
  if (!degrees || *degrees > kHottest || *degrees < kColdest) return;
  if (!lasts(kind)) {
    if (*degrees >= limit) begin(kind, {.value = *degrees});
    return;
  }
  const auto since = cool_since_ns_.find(kind);
  if (*degrees >= limit - kHeatMarginC) {
    if (since != cool_since_ns_.end()) cool_since_ns_.erase(since);
  } else if (since == cool_since_ns_.end()) {
    cool_since_ns_[kind] = now_.boot_ns;
  } else if (has_passed(since->second, kCoolFor, now_.boot_ns)) {
    cool_since_ns_.erase(since);
    end(kind);
  }
}

void GpuWatch::take_slowdown(std::optional<std::uint64_t> reasons) {
  if (!reasons) return;
  const std::uint64_t slow = *reasons & kHardwareSlowdown;
  if (slow == 0) {
    slow_readings_ = 0;
    if (fast_readings_ < kFastReadings) ++fast_readings_;
    if (fast_readings_ == kFastReadings) end(EvidenceKind::kSlowdown);
    return;
  }
  fast_readings_ = 0;
  if (slow_readings_ < kSlowReadings) ++slow_readings_;
  if (slow_readings_ < kSlowReadings) return;
  begin(EvidenceKind::kSlowdown,
        {.text = fmt::format("{}", fmt::join(model::throttle_names(slow), ", "))});
}

// A reading that began before the driver told of another action shows what was before.
void GpuWatch::take_recovery(const Reading& reading) {
  if (!reading.gpu.recovery_action || reading.began_ns < recovery_event_ns_) return;
  const auto action = static_cast<std::uint32_t>(*reading.gpu.recovery_action);
  if (std::exchange(recovery_action_, action) == action) return;
  add(EvidenceKind::kRecoveryAction, EvidenceSource::kReading).code = action;
}

void GpuWatch::take_memory(const model::GpuSlowMetrics& slow) {
  set(EvidenceKind::kRemapPending, slow.remap_pending, {});
  set(EvidenceKind::kRetirementPending, slow.retirement_pending, {});
  const bool may_be_old = remap_failed_event_ns_ != 0 &&
                          !has_passed(remap_failed_event_ns_, kSlowReadingAge, now_.boot_ns);
  if (slow.remap_failed == true || !may_be_old) {
    set(EvidenceKind::kRemapFailed, slow.remap_failed, {});
  }
}

void GpuWatch::take_links(const model::GpuSlowMetrics& slow, const GpuBuild& build) {
  // A link that has lowered its generation saves power, and may save lanes, too.
  const bool is_awake = !slow.pcie_generation || !build.pcie_generation ||
                        *slow.pcie_generation >= *build.pcie_generation;
  if (slow.pcie_width && build.pcie_width) {
    const bool is_narrow = *slow.pcie_width < *build.pcie_width;
    if (!is_narrow) end(EvidenceKind::kPcieWidth);
    if (is_narrow && is_awake && *slow.pcie_width > 0) {
      begin(EvidenceKind::kPcieWidth,
            {.value = *slow.pcie_width,
             .text = fmt::format("{} of {} lanes", *slow.pcie_width, *build.pcie_width)});
    }
  }
  if (!slow.nvlinks_active) return;
  max_links_ = std::max(max_links_, *slow.nvlinks_active);
  // Not all GPUs of a node need be bridged: one that has no link up may have none.
  const bool is_linked = max_links_ > 0 || lasts(EvidenceKind::kNvlinkDown);
  const std::uint32_t wanted = is_linked ? std::max(max_links_, build.nvlinks.value_or(0)) : 0;
  if (wanted <= *slow.nvlinks_active) {
    // After a start without peers it is not known how many there were.
    if (build.nvlinks || *slow.nvlinks_active > 0) end(EvidenceKind::kNvlinkDown);
    return;
  }
  const std::uint32_t down = wanted - *slow.nvlinks_active;
  begin(EvidenceKind::kNvlinkDown, {.value = down, .text = links_down(down, wanted)});
}

// ---- what the driver tells

std::vector<Evidence> GpuWatch::take(const hardware::GpuEvent& event, Moment now) {
  now_ = now;
  const auto narrow = [](std::uint64_t value) {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
  };
  switch (event.kind) {
    case GpuEventKind::kXid:
      add(EvidenceKind::kXid, EvidenceSource::kDriver).code = narrow(event.value);
      break;
    case GpuEventKind::kRecoveryAction:
      recovery_event_ns_ = now.boot_ns;
      recovery_action_ = narrow(event.value);
      add(EvidenceKind::kRecoveryAction, EvidenceSource::kDriver).code = recovery_action_;
      break;
    case GpuEventKind::kUnavailable:
      add(EvidenceKind::kUnavailable, EvidenceSource::kDriver);
      break;
    case GpuEventKind::kPoison:
      add(EvidenceKind::kPoison, EvidenceSource::kDriver);
      break;
    case GpuEventKind::kEccCorrected:
      count_event(EvidenceKind::kEccCorrected, event.value, event.count);
      break;
    case GpuEventKind::kEccUncorrected:
      count_event(EvidenceKind::kEccUncorrected, event.value, event.count);
      break;
    case GpuEventKind::kMemoryRetired:
      count_event(retires_pages_ ? EvidenceKind::kPagesRetired : EvidenceKind::kRowsRemapped, 1,
                  event.count);
      break;
    case GpuEventKind::kRetirementFailed:
      remap_failed_event_ns_ = now.boot_ns;
      begin(EvidenceKind::kRemapFailed, {.source = EvidenceSource::kDriver});
      break;
    case GpuEventKind::kClock:       // clocks change all the time: readings say if they are held
    case GpuEventKind::kMigChanged:  // an administrator's doing: the next inventory shows it
    case GpuEventKind::kOther:
      break;
  }
  for (Evidence& piece : pieces_) {
    piece.count = std::max<std::uint32_t>(event.count, 1);
    piece.gpu_instance = event.gpu_instance;
  }
  return told();
}

// Drivers need not say how many errors an event stands for.
void GpuWatch::count_event(EvidenceKind kind, std::uint64_t value, std::uint32_t times,
                           EvidenceSource source) {
  constexpr std::uint64_t kMaxOfOne = 1'000'000;
  const std::uint64_t each = value == 0 || value > kMaxOfOne ? 1 : value;
  const std::uint64_t all = each * std::max<std::uint32_t>(times, 1);
  add(kind, source).value = static_cast<std::int64_t>(all);
  Growth& growth = growth_[kind];
  growth.by_event = added(growth.by_event, all);
  growth.event_ns = now_.boot_ns;
}

std::vector<Evidence> GpuWatch::take(const hardware::KernelLine& line, Moment now) {
  now_ = now;
  switch (line.kind) {
    case hardware::KernelLineKind::kXid:
    case hardware::KernelLineKind::kOffTheBus:
      add(EvidenceKind::kXid, EvidenceSource::kKernelLog).code = line.code;
      break;
    case hardware::KernelLineKind::kPcieError:
      // Most of them are replays, which the counter shows, too.
      count_event(EvidenceKind::kPcieReplays, 1, line.count, EvidenceSource::kKernelLog);
      break;
    case hardware::KernelLineKind::kSwitchError:
      break;  // of no GPU
  }
  for (Evidence& piece : pieces_) {
    piece.count = std::max<std::uint32_t>(line.count, 1);
    piece.pid = line.pid;
    piece.gpu_instance = line.gpu_instance;
    piece.registers = line.registers;
    piece.text = line.text;
  }
  return told();
}

std::vector<Evidence> GpuWatch::take_loss(Moment now) {
  now_ = now;
  answers_ = 0;
  begin(EvidenceKind::kLost, {.text = "its driver does not list it"});
  return told();
}

std::vector<Evidence> GpuWatch::take_speed(bool is_slow, std::uint32_t percent, Moment now) {
  now_ = now;
  set(EvidenceKind::kSlow, is_slow,
      {.value = percent,
       .text = fmt::format("clocks at {} percent of its peers at the same work", percent)});
  return told();
}

}  // namespace gpu_platform::monitoring
