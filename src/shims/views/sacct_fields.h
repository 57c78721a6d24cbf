#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/units.h"
#include "gpu_platform/v1/jobs.pb.h"
#include "shims/text/columns.h"
#include "shims/views/billing_weights.h"
#include "shims/views/step_view.h"

// The columns of sacct: all of Slurm 23.11. What the platform does not know is empty.

namespace gpu_platform::shims {

// How amounts of memory are written.
struct Units {
  bool is_plain = false;  // --noconvert
  char unit = 0;          // --units: one of K, M, G, T, P; 0: as fits
};

// A line: a job, or one of its steps.
struct RecordRow {
  const v1::Job& job;
  const BillingWeights& weights;
  base::Instant now;
  std::optional<StepView> step = {};  // absent: the job itself
  Units units = {};
};

std::span<const Field<RecordRow>> sacct_fields();

// "1-02:03:04", "02:03:04", "03:04.005": as sacct writes CPU time.
std::string cpu_time_text(std::int64_t milliseconds);

// Memory of whole kibibytes: "12K" and the like.
std::string kibibytes_text(std::int64_t kibibytes, const Units& units);

// What the job used of its GPUs, as Slurm's commands name it: "gres/gpumem=15G,gres/gpuutil=87",
// the memory of all of them and the mean utilization in percent. Empty: not known.
std::string gpu_use_of(const v1::Job& job, const Units& units);
// The energy that its GPUs took: "12.30K" joules, or all digits. Empty: not known.
std::string energy_of(const v1::Job& job, bool is_raw);
// The parts that are not empty, with commas between them.
std::string joined_use(std::initializer_list<std::string> parts);

// --helpformat
std::string help_of_format();

}  // namespace gpu_platform::shims
