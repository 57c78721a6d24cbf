#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

// What a rule says about one subject, and what people and channels are told of it.

namespace gpu_platform::alerts {

// What is watched. Each has one unit, which the rule's threshold has too (alerts/rule_table.h).
enum class Signal : std::uint8_t {
  kGpuTemperature,   // degrees Celsius
  kGpuMemoryHeat,    // degrees Celsius
  kGpuMemory,        // percent in use
  kGpuUtilization,   // percent
  kGpuHeatSlowdown,  // 1: its clocks are held down because it is too hot
  kGpuThrottled,     // 1: the hardware holds its clocks down
  kGpuXid,           // the count of critical XIDs; each further one fires
  kGpuEcc,           // the count of uncorrected errors; each further one fires
  kGpuOutOfService,  // 1: degraded, resetting or offline, and no operator wants it so
  kGpuUnmanaged,     // 1: processes of no job are on it
  kNodeLost,         // 1
  kQueueWait,        // seconds that the job that waits longest of those that could run has waited
  kIdleAllocation,   // 1: telemetry/idleness.h
  kDiskLow,          // percent free of the daemon's file system
  kCertificate,      // days until the certificate of the daemon expires
  kHistory,          // 1: the history is not kept, or drops frames
  kDelivery,         // 1: a channel has not taken a message for a long time
  kBudget,           // percent that are spent in the present period
};
inline constexpr std::size_t kSignals = 18;

enum class Severity : std::uint8_t { kInfo, kWarning, kCritical };
std::string_view to_string(Severity severity);                  // "WARNING"
std::optional<Severity> parse_severity(std::string_view name);  // any case

enum class State : std::uint8_t {
  kPending,  // the condition holds, not yet for as long as the rule wants
  kFiring,
  kResolved,
};
std::string_view to_string(State state);  // "FIRING"

// Where an alert points: "node", "gpu" (UUID), "gpu_index", "job", "user", "team", "type", "rack",
// "channel", "project". Bounded texts; the names are fixed.
using Labels = std::map<std::string, std::string, std::less<>>;

struct Alert {
  std::string fingerprint;  // of rule and labels: the same one after a restart
  std::string rule;         // its name
  Severity severity = Severity::kWarning;
  State state = State::kPending;
  Labels labels;
  std::string summary;                // one sentence with the value
  std::string advice;                 // what to do: one sentence, or a command
  std::optional<std::int64_t> value;  // the latest; none: nothing is known now
  base::Instant since;                // the condition holds
  base::Instant fired;                // not set: it has not
  base::Instant resolved;             // not set: it is not
  std::string acknowledged_by;        // empty: by no user
  std::string acknowledge_comment;
  // The channels that were told that it fires, and not yet that it is over; ascending.
  std::vector<std::string> told;
  std::uint64_t silence = 0;  // the id of the silence in force; 0: none

  friend bool operator==(const Alert&, const Alert&) = default;
};

// How a channel is told.
enum class Manner : std::uint8_t {
  kGrouped,  // in few messages (alerts/grouping.h)
  // Alertmanager: each change at once, and what fires again and again. It makes groups by itself,
  // forgets alerts when it starts, and takes for over what is not repeated for a time.
  kAtOnce,
  kByOwner,  // alerts of jobs alone: a message has those of one user
};

// How often a channel of kAtOnce is told what fires, and for how long it takes that for true.
inline constexpr base::Duration kRepeatEvery = base::minutes(1);
inline constexpr base::Duration kTrueFor = base::minutes(10);

// What one message to a channel says: alerts of one group.
struct Notification {
  std::string channel;
  std::string user;   // of kByOwner: the owner of the jobs; empty otherwise
  std::string group;  // "node n1", "rack r2", "rule GpuHot"; "many places" of several groups
  std::string key;    // the same one of the same news, also after a restart
  std::vector<Alert> firing;
  std::vector<Alert> resolved;
  std::uint32_t more = 0;    // further alerts of the group that are only counted
  bool is_repeated = false;  // of kAtOnce: it tells nothing new

  friend bool operator==(const Notification&, const Notification&) = default;
};

}  // namespace gpu_platform::alerts
