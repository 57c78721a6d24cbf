#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/capacity.h"
#include "model/gpu_clock.h"
#include "model/gpu_part.h"
#include "model/ids.h"
#include "model/job_spec.h"
#include "model/priority.h"

// The lines of the ledger: what became of the time of each GPU, to the millisecond. Lines are only
// appended; a mistake is put right by a line of its own. All lines of a GPU, with its present
// interval, add up to 7000 shares for each millisecond since it was first seen.
//
// Lines are a projection of the journal: the same events make the same lines.

namespace gpu_platform::model {

// Milliseconds since 1970-01-01T00:00:00Z. Times are cut off, never rounded, so that intervals that
// follow each other still do.
using Millis = std::int64_t;
Millis millis_of(base::Instant at);

enum class LedgerKind : std::uint8_t {
  kHeld,        // a segment of an attempt on one GPU, or without GPUs on one node
  kRest,        // of a GPU that no attempt held
  kCorrection,  // money that a person adds or takes back
};
inline constexpr std::size_t kLedgerKinds = 3;

// Why the use of a segment costs its owner nothing.
enum class NotBilled : std::uint8_t {
  kBilled,    // it does
  kNeverRan,  // it was not started
  kHardware,  // a GPU or its node failed under it
  kPlatform,  // the platform lost it, or could not start it
  // Where accounting.preempted is free:
  kPreempted,  // stopped for another job
  kReclaimed,  // stopped because its GPUs are guaranteed to others, or evicted from spot capacity
};
inline constexpr std::size_t kNotBilledReasons = 6;
std::string_view to_string(NotBilled why);  // "hardware"

struct LedgerLine {
  LedgerKind kind = LedgerKind::kRest;

  // ---- which GPU; of a correction: empty
  std::string node;
  std::string gpu_uuid;  // empty: the line is of a job without GPUs
  std::string gpu_type;
  CapacityClass capacity = CapacityClass::kOnDemand;
  base::GpuShare share;     // that the line is of
  std::uint32_t price = 0;  // PriceEntry::id; 0: it had none

  // ---- kRest: `from` and `to` are its interval, and the two between are `to`. kHeld: from
  // `requested` until `started` the platform prepared it, until `ended` it was used, until
  // `released` cleaned up.
  Millis from = 0;
  Millis started = 0;
  Millis ended = 0;
  Millis to = 0;
  RestKind rest = RestKind::kIdle;

  // ---- kHeld
  AttemptId attempt;
  std::uint32_t segment = 0;
  ShareMode mode = ShareMode::kNone;
  std::string user;  // and of a correction, too, where they are known
  std::string team;
  std::string project;
  std::string job_name;
  JobKind job_kind = JobKind::kBatch;
  PriorityClass priority = PriorityClass::kMedium;
  std::vector<Label> labels;
  NotBilled not_billed = NotBilled::kBilled;
  std::uint32_t discount = 0;   // of its team, in basis points
  std::uint32_t cpus = 0;       // of a job without GPUs
  std::int64_t memory_mib = 0;  // the same; rounded up
  base::MicroUsd core_hour;     // its prices
  base::MicroUsd gib_hour;

  // ---- kCorrection, at `from`, in whose month it counts; the other times are the same
  base::MicroUsd amount;  // may be negative
  std::string text;       // why
  std::string by;

  friend bool operator==(const LedgerLine&, const LedgerLine&) = default;
};

}  // namespace gpu_platform::model
