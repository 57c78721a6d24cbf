#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "hardware/kernel_log.h"
#include "hardware/readings.h"
#include "model/evidence.h"

namespace gpu_platform::monitoring {

// One moment on two clocks: of the day, which may be set, and since the boot, by which times are
// measured.
struct Moment {
  base::Instant at;
  std::int64_t boot_ns = 0;
};

struct HealthLimits {
  std::int32_t heat_c = 85;  // heat begins there, and ends 5 degrees below
  std::int32_t memory_heat_c = 95;
  // Heat begins so many degrees below the GPU's slowdown temperature, and at heat_c only where that
  // is not known.
  std::optional<std::int32_t> below_slowdown_c;
};

// What the driver describes a GPU with, as far as its readings are compared with it.
struct GpuBuild {
  std::optional<std::uint32_t> pcie_generation;  // the greatest of the GPU and its place
  std::optional<std::uint32_t> pcie_width;
  std::optional<std::uint32_t> nvlinks;    // that GPUs like it have up; none: not known
  std::optional<std::int32_t> slowdown_c;  // from this temperature on it lowers its clocks
};

// Returns the temperature at which heat of the GPU begins. A fixed limit holds up to
// kHeatMarginBelowSlowdownC below the GPU's slowdown temperature: a GPU that lowers its clocks
// sooner is hot sooner. A slowdown temperature below kLeastSlowdownC is not believed.
inline constexpr std::int32_t kHeatMarginBelowSlowdownC = 5;
inline constexpr std::int32_t kLeastSlowdownC = 60;
std::int32_t heat_limit_c(const HealthLimits& limits, const GpuBuild& build);

// Turns the readings of one GPU, and what its driver tells of it, into evidence: counters into what
// was added, levels into their begin and end. What the driver withholds changes nothing. A counter
// that goes back was restarted: it counts from there on. Pieces come without a job. Pure; one
// owner.
class GpuWatch {
 public:
  // A refusal that may pass, such as a timeout, must come so often in a row.
  static constexpr std::uint32_t kRefusals = 2;
  // A GPU is back when it has answered so often in a row.
  static constexpr std::uint32_t kAnswers = 6;
  // The hardware holds the clocks down when so many readings in a row say so, and not any more when
  // so many say no.
  static constexpr std::uint32_t kSlowReadings = 3;
  static constexpr std::uint32_t kFastReadings = 6;
  static constexpr std::int32_t kHeatMarginC = 5;
  static constexpr base::Duration kCoolFor = base::seconds(60);
  // Counters that count on healthy GPUs, too, are told so often at most.
  static constexpr base::Duration kQuietFor = base::minutes(5);
  // Slow readings are that old at most: an older one than an event does not take it back.
  static constexpr base::Duration kSlowReadingAge = base::seconds(90);

  // `kept`: what the core has of the GPU, so that a daemon that starts again goes on where the last
  // one ended.
  explicit GpuWatch(std::span<const model::Evidence> kept = {});

  struct Reading {
    const hardware::GpuReading& gpu;
    std::int64_t began_ns = 0;  // on the boot clock
    bool is_partial = false;    // taken between the intervals: does not count where readings count
  };
  std::vector<model::Evidence> take(const Reading& reading, const GpuBuild& build,
                                    const HealthLimits& limits, Moment now);
  // An event of the driver that names this GPU, or none.
  std::vector<model::Evidence> take(const hardware::GpuEvent& event, Moment now);
  // A line of the kernel's log that names this GPU.
  std::vector<model::Evidence> take(const hardware::KernelLine& line, Moment now);
  // The driver does not list the GPU any more.
  std::vector<model::Evidence> take_loss(Moment now);
  // The level of its speed among its peers; see PeerWatch.
  std::vector<model::Evidence> take_speed(bool is_slow, std::uint32_t percent, Moment now);

 private:
  struct Level {
    bool lasts = false;
    std::int64_t value = 0;
  };
  enum class Count : std::uint8_t {
    kEccCorrected,
    kEccUncorrected,
    kRowsCorrected,
    kRowsUncorrected,
    kPagesCorrected,
    kPagesUncorrected,
    kPcieReplays,
    kLinkCrc,
    kLinkReplays,
    kLinkRecoveries,
  };
  static constexpr std::size_t kCounts = 10;
  // What waits to be told of a kind.
  struct Growth {
    std::int64_t untold = 0;
    std::optional<std::int64_t> told_ns;
    std::int64_t by_event = 0;  // told because of events; the counter shows it, too
    std::int64_t event_ns = 0;
  };
  struct Said {
    std::int64_t value = 0;
    std::string text = {};
    model::EvidenceSource source = model::EvidenceSource::kReading;
  };

  model::Evidence& add(model::EvidenceKind kind, model::EvidenceSource source);
  void begin(model::EvidenceKind kind, Said said);
  void end(model::EvidenceKind kind);
  void set(model::EvidenceKind kind, std::optional<bool> lasts, Said said);
  bool lasts(model::EvidenceKind kind) const;

  void take_refusal(const hardware::GpuReading& gpu);
  void take_counters(const Reading& reading);
  void grow(model::EvidenceKind kind, Count count, std::optional<std::uint64_t> value,
            std::int64_t began_ns);
  void tell_growth(model::EvidenceKind kind, bool is_quiet);
  void take_heat(model::EvidenceKind kind, std::optional<std::int32_t> degrees, std::int32_t limit);
  void take_slowdown(std::optional<std::uint64_t> reasons);
  void take_recovery(const Reading& reading);
  void take_memory(const model::GpuSlowMetrics& slow);
  void take_links(const model::GpuSlowMetrics& slow, const GpuBuild& build);
  void count_event(model::EvidenceKind kind, std::uint64_t value, std::uint32_t times,
                   model::EvidenceSource source = model::EvidenceSource::kDriver);
  std::vector<model::Evidence> told();

  Moment now_;  // of the call
  std::vector<model::Evidence> pieces_;
  std::map<model::EvidenceKind, Level> levels_;
  std::map<model::EvidenceKind, Growth> growth_;
  std::array<std::optional<std::uint64_t>, kCounts> counts_;
  std::map<model::EvidenceKind, std::int64_t> cool_since_ns_;
  std::uint32_t refusals_ = 0;
  std::uint32_t answers_ = 0;
  std::uint32_t slow_readings_ = 0;
  std::uint32_t fast_readings_ = 0;
  std::uint32_t recovery_action_ = 0;  // the latest that was told
  std::int64_t recovery_event_ns_ = 0;
  std::int64_t remap_failed_event_ns_ = 0;
  std::uint32_t max_links_ = 0;
  bool retires_pages_ = false;
};

}  // namespace gpu_platform::monitoring
