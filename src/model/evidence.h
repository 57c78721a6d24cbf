#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/ids.h"

// What was seen of a GPU, a node or a job that tells of its health, without judgement. health/
// judges it, the core keeps it.

namespace gpu_platform::model {

// The numbers are stored: append only. "Level": it lasts from the piece that says so until one of
// the same kind with `is_over`.
enum class EvidenceKind : std::uint8_t {
  // Events of the driver, and lines of its kernel log.
  kXid,             // code: the XID
  kRecoveryAction,  // code: the driver's number of the action (model::RecoveryAction); 0: none
  kUnavailable,     // the driver says that the GPU is not available
  kPoison,          // poisoned data was used
  // Counters: value is what was added since the last piece.
  kEccCorrected,
  kEccUncorrected,
  kRowsRemapped,
  kPagesRetired,
  kPcieReplays,
  kNvlinkErrors,
  // Levels.
  kRemapPending,
  kRemapFailed,
  kRetirementPending,
  kHeat,          // value: degrees Celsius when it began
  kMemoryHeat,    // the same
  kSlowdown,      // the hardware holds the clocks down (heat, power brake); text: the reasons
  kPcieWidth,     // value: lanes in use; fewer than the GPU and its place have
  kNvlinkDown,    // value: links that are down
  kNotAnswering,  // it does not answer; text: the driver's words
  kLost,          // it fell off the bus, or its driver does not list it
  kSlow,          // value: its speed in percent of the median of its peers at the same work
  // Jobs. Each has `job`, and most have `user` and `program`.
  kJobStarted,   // gpus of the job: one piece for each
  kJobEnded,     // code: the exit code, or 128 + the signal; 0: it did well
  kStartFailed,  // nothing of the job could be started there
  kJobHung,      // the job's watchdog: no GPU activity and no output for a time
  // Nodes and people.
  kNodeCondition,  // a level; text: the condition's name and words
  kNodeRestarted,
  kReset,  // code: a TrialCode; text: why it failed, or was refused
  kCheck,  // a burn-in or preflight; code: a TrialCode; text: what failed, or why it was refused
  kComplaint,  // a person says that it is sick; text: in what words
  kCleared,    // a person brought it online: what was before does not count any more
};
inline constexpr std::size_t kEvidenceKinds = 31;
std::string_view to_string(EvidenceKind kind);                           // "XID"
std::optional<EvidenceKind> parse_evidence_kind(std::string_view name);  // any case
bool is_level(EvidenceKind kind);

// The codes of kReset and kCheck. The numbers are stored.
enum class TrialCode : std::uint32_t {
  kPassed = 0,
  kFailed = 1,
  kRefused = 2,  // the rules of its machine do not allow it: nothing was done
  kUntried = 3,  // it could not begin, for example because a process was on the GPU
};
enum class EvidenceSource : std::uint8_t {
  kDriver,   // an event of NVML
  kReading,  // a reading of the probe
  kKernelLog,
  kJob,       // its end, or its watchdog
  kCluster,   // conditions and taints of Kubernetes, its DRA drivers
  kPlatform,  // resets and checks
  kPerson,
};
inline constexpr std::size_t kEvidenceSources = 7;
std::string_view to_string(EvidenceSource source);  // "DRIVER"

// One piece. Equal pieces that follow each other closely are kept as one with a count.
struct Evidence {
  EvidenceKind kind = EvidenceKind::kXid;
  EvidenceSource source = EvidenceSource::kDriver;
  base::Instant at;         // of the first
  base::Instant last;       // of the latest; at least `at`
  std::uint32_t count = 1;  // how many this piece stands for
  std::uint32_t code = 0;
  std::int64_t value = 0;
  bool is_over = false;  // of levels: it ended
  JobId job;             // that held the GPU then; invalid: none
  std::string user;      // the job's; empty: none
  std::string program;   // the job's name, else its command's first word: what "the same job" means
  std::uint32_t pid = 0;  // 0: not known
  // The MIG instance that the driver names; none: the whole GPU.
  std::optional<std::uint32_t> gpu_instance;
  std::vector<std::uint32_t> registers;  // of XID 74 and 144 to 150, where the kernel log has them
  std::string text;

  friend bool operator==(const Evidence&, const Evidence&) = default;
};

// A reset or a check that failed, or with which nothing was done: it was refused, or could not
// begin. Codes of later versions count as failures.
bool is_failed_trial(const Evidence& piece);
bool is_refused_trial(const Evidence& piece);
// One of these that could not begin.
bool is_untried_trial(const Evidence& piece);

}  // namespace gpu_platform::model
