#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/units.h"
#include "health/evidence_file/evidence_file.h"

// The stories of this folder. Their form: README.md.

namespace gpu_platform::health {

enum class GpuLabel : std::uint8_t { kFit, kSick, kHealed, kEither };
enum class JobLabel : std::uint8_t { kApplication, kHardware, kEither };

struct Story {
  std::string file;  // its theme
  std::string name;
  std::string split;        // "tune" or "held_out"
  std::string fault_class;  // "application", "hardware", "driver" or "node"
  std::string source;
  EvidenceFile evidence;
  std::map<std::string, GpuLabel> gpus;  // by "node:index"; those without a label are fit
  std::map<std::string, JobLabel> jobs;
  std::map<std::string, JobLabel> jobs_later;  // as `jobs`, where the end of the story tells more

  GpuLabel label_of(const std::string& gpu) const;
};

// Errors end the test program with the file, the story and what is wrong.
std::vector<Story> read_stories(const std::string& folder);

}  // namespace gpu_platform::health
