#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "model/evidence.h"

// The judgement of GPUs and jobs. A pure function of the kept evidence, the rules and the time:
// nothing else is remembered, so that a daemon that starts again judges the same.

namespace gpu_platform::health {

class Rules;  // rules.h

// Where the cause lies.
enum class FaultClass : std::uint8_t {
  kNone,
  kApplication,
  kDriver,
  kHardware,
  kSymptom,
  kUnknown
};
std::string_view to_string(FaultClass fault);  // "HARDWARE"

// What a GPU needs, ascending.
enum class Action : std::uint8_t {
  kNone,     // it is fit, or what was seen is no fault of the GPU
  kCount,    // shown and counted
  kAvoid,    // no new work until the condition ends by itself (heat)
  kDegrade,  // DEGRADED: work only with --accept-degraded; a burn-in decides
  kDrain,    // DRAINING, then reset or a person
  kReset,    // DRAINING, and a reset when it is empty
  kOffline,  // OFFLINE at once: what runs there is lost
  kReboot,   // OFFLINE, and the node needs a restart
};
std::string_view to_string(Action action);  // "RESET"

struct GpuVerdict {
  Action action = Action::kNone;
  FaultClass fault = FaultClass::kNone;
  std::uint32_t confidence_percent = 0;  // that the GPU, its links or its place are at fault
  std::string text;                      // in a sentence: the fault, when, what happens next
  std::vector<std::string> reasons;  // one sentence for each rule that spoke, the decisive first
  std::string rule;                  // the name of the decisive one: "xid-79"
  std::string next;                  // what brings it back into service
  base::Instant again_at;            // when time alone may change the verdict; unset: never

  friend bool operator==(const GpuVerdict&, const GpuVerdict&) = default;
};

// Whose fault the failed end of a job was.
struct JobVerdict {
  FaultClass fault =
      FaultClass::kNone;  // kHardware: the job is innocent, and queued again for free
  std::uint32_t confidence_percent = 0;
  std::vector<std::string> reasons;
  std::vector<std::string> suspect_gpus;  // by UUID: what it should avoid
};

struct GpuKey {
  std::string_view node;
  std::string_view uuid;
  std::string_view type;  // may be empty
};

// What the judge may look at. The core's state and the replay's case book implement it. Spans are
// ascending by time and stay valid until the next change.
class Records {
 public:
  virtual ~Records() = default;
  virtual std::span<const model::Evidence> of_gpu(std::string_view uuid) const = 0;
  virtual std::span<const model::Evidence> of_node(std::string_view node) const = 0;
  // The other GPUs whose evidence names this job, or a job of this user and program.
  virtual std::vector<std::string_view> gpus_with_job(model::JobId job) const = 0;
  virtual std::vector<std::string_view> gpus_with_program(std::string_view user,
                                                          std::string_view program) const = 0;
  virtual std::vector<std::string_view> gpus_of_node(std::string_view node) const = 0;
};

GpuVerdict judge_gpu(const Records& records, const GpuKey& gpu, const Rules& rules,
                     base::Instant now);

struct FailedJob {
  model::JobId job;
  std::string_view user;
  std::string_view program;
  std::vector<GpuKey> gpus;
  base::Instant started_at;
  base::Instant ended_at;
};
JobVerdict judge_job(const Records& records, const FailedJob& job, const Rules& rules);

// Adds a piece to what is kept of one GPU or node: joins it with an equal one within a short time,
// unless a person brought the GPU online between them, and forgets the oldest beyond kMaxKept, but
// never the beginning of a level that lasts. Returns whether it was joined.
inline constexpr std::size_t kMaxKept = 64;
bool keep(std::vector<model::Evidence>& kept, model::Evidence piece);

}  // namespace gpu_platform::health
