#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/evidence.h"

// Evidence as text: one JSON object a line (docs/health-evidence.md).

namespace gpu_platform::health {

struct GpuName {
  std::string node;
  std::string gpu;   // "node:3", or the UUID of one that is never named by its index
  std::string type;  // empty: not said
  friend bool operator==(const GpuName&, const GpuName&) = default;
};

enum class JobEnd : std::uint8_t { kCompleted, kFailed, kCancelled, kTimeout };

struct EvidenceLine {
  std::size_t line = 0;  // from 1
  std::string node;
  std::vector<GpuName> gpus;  // empty: of the node, or of the job's GPUs
  model::Evidence piece;
  std::optional<JobEnd> end;  // of kJobEnded
};

// How much there is of a type; the breaker asks for it.
struct Inventory {
  std::string gpu_type;
  std::size_t gpus = 0;
  std::size_t nodes = 0;
};

struct EvidenceFile {
  std::vector<EvidenceLine> lines;  // ascending by time, equal times as they came
  std::vector<Inventory> inventory;
  base::Instant until;  // when looking ended; at least the last line's time
  std::map<model::JobId, std::string> job_names;
  std::vector<std::string> notes;  // what was skipped
};

// Errors name the line and the field: "line 3: kind is missing: …".
base::Result<EvidenceFile> read_evidence(std::string_view text);

}  // namespace gpu_platform::health
