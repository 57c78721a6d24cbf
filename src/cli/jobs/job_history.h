#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/audit.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

// What happened to a job, made from the job itself and from the audit trail.

namespace gpu_platform::cli {

struct HistoryEntry {
  base::Instant at;
  std::string event;                     // "STARTED"; docs/cli.md has all of them
  std::optional<std::uint32_t> attempt;  // nothing: it is about the job
  std::string by;                        // the person, where a person did it
  std::string detail;                    // a sentence for people; may be empty
};

// By time. `audit`: the entries about this job, in any order; those of refused calls are left out.
// A time that has not arrived yet (of a job that becomes eligible later) is left out, too.
std::vector<HistoryEntry> history_of(const v1::Job& job, std::span<const v1::AuditEntry> audit,
                                     base::Instant now);

}  // namespace gpu_platform::cli
