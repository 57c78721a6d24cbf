#pragma once

#include <string>
#include <vector>

#include "cli/text/job_names.h"
#include "cli/text/text.h"
#include "gpu_platform/v1/cluster.pb.h"

// What happened to a GPU, what follows from it and what brings it back, as text for people.

namespace gpu_platform::cli {

// What was seen, in words: "2 uncorrected ECC errors", "XID 79: GPU has fallen off the bus".
std::string evidence_text(const v1::Evidence& piece);

// What brings the GPU back, a sentence for each party that keeps it from work; empty: it is in
// service.
std::vector<std::string> ways_back(const v1::GpuHealth& health);

// The parties that keep it from work, the verdict with its reasons, what brings it back, the
// evidence as a timeline, and the jobs that ran there with their ends. A section without content is
// left out. Each begins with an empty line.
std::string health_story(const v1::GpuHealth& health, const PageStyle& style,
                         const JobLabels& names);

}  // namespace gpu_platform::cli
