#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "health/evidence_file/evidence_file.h"

// How others would have judged the same evidence: rules of known products, as far as their sources
// and documents tell them and this evidence has what they look at.

namespace gpu_platform::health {

// What a set of rules says of one story.
struct Opinion {
  std::set<std::string> out;             // the GPUs that are out at the end
  std::set<std::string> ever_out;        // those that were out at any time
  std::set<std::string> innocent_jobs;   // failed jobs that are not charged when they end, by name
  std::set<std::string> innocent_later;  // by all that the story tells
};

struct Baseline {
  std::string_view name;
  Opinion (*judge)(const EvidenceFile& evidence);
};
const std::vector<Baseline>& baselines();

}  // namespace gpu_platform::health
