#pragma once

#include <string>
#include <vector>

#include "health/breaker.h"
#include "health/evidence_file/evidence_file.h"
#include "health/rules.h"
#include "health/verdict.h"

// Judges a file of evidence in the order of its times, as a daemon would have.

namespace gpu_platform::health {

struct ReplayedChange {
  base::Instant at;
  Action action = Action::kNone;
  std::string rule;
  std::string text;
};

struct ReplayedGpu {
  std::string gpu;
  std::string node;
  std::string type;
  GpuVerdict verdict;             // the last
  base::Instant taken_out_at;     // unset: it never was
  bool is_out = false;            // at the end
  Outage outage = Outage::kNone;  // at the end, as the breaker counts it
  base::Instant out_since;        // the latest time
  GpuVerdict taken_out_by;        // the verdict that took it out first
  std::vector<ReplayedChange> history;
  std::vector<std::size_t> lines;
};

struct ReplayedJob {
  std::string job;
  std::string user;
  std::string program;
  std::vector<std::string> gpus;
  base::Instant at;
  bool failed = false;
  bool is_charged = false;          // by all that the file tells
  bool is_charged_at_once = false;  // by what was known half a second after its end
  JobVerdict verdict;
};

struct StoppedAct {
  base::Instant at;
  std::string gpu;
  std::string text;
};

struct Replay {
  std::vector<ReplayedGpu> gpus;  // by name
  std::vector<ReplayedJob> jobs;  // in the order of their ends
  std::vector<StoppedAct> breaker;
  std::vector<std::string> notes;
};

// A heat that ends sooner is a pause, not an outage.
inline constexpr base::Duration kPause = base::minutes(5);
// What lasts at the end of the file is taken to last so much longer.
inline constexpr base::Duration kLastsOn = base::minutes(15);

Replay replay(const EvidenceFile& file, const Rules& rules);

}  // namespace gpu_platform::health
