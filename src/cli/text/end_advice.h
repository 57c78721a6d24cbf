#pragma once

#include <string>

#include "gpu_platform/v1/jobs.pb.h"

namespace gpu_platform::cli {

// What to do about a job that ended because it had used up its memory, its part of a GPU's memory
// or its time: what it asked for, what it used and a larger value to try. Empty for all other jobs.
// "used all of --memory 100M (peak 100 MiB); try 150M: gpu-platform jobs rerun 42 --memory 150M"
std::string advice_on_end(const v1::Job& job);

}  // namespace gpu_platform::cli
