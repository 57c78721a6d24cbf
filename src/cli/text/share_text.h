#pragma once

#include <string>
#include <string_view>

#include "gpu_platform/v1/cluster.pb.h"
#include "gpu_platform/v1/jobs.pb.h"

// Parts of GPUs as text for people. docs/sharing.md explains the words.

namespace gpu_platform::cli {

// "0.5", "2": a number of GPUs, with at most three decimals.
std::string share_text(double share);

// Whether it is less than a whole GPU. A daemon that knows no parts sends none.
bool is_part(const v1::JobSpec& spec);
bool is_part(const v1::GpuUse& gpu);

// "time-slice".
std::string mode_word(v1::ShareMode mode);

// "0.5 of GPU 3 with 40 GiB (time-slice; memory: watchdog, compute: time-slice)"; empty for whole
// GPUs.
std::string part_of(const v1::Attempt& attempt);
std::string part_of(const v1::Job& job);

// "40 GiB, time-slice; memory: watchdog, compute: time-slice"; empty for whole GPUs.
std::string terms_of_part(const v1::Attempt& attempt);

// What the other jobs on the GPU can still do to this one: see, slow down and end it, a sentence
// for each wall. Empty for whole GPUs.
std::string neighbours_of(const v1::Job& job);

// " (0.5)" beside a job that has a part of the GPU; empty for one that has all of it.
std::string share_beside(const v1::Gpu& gpu, const std::string& job);

// "3", and "3 + 0.75" where parts of shared GPUs are free besides.
std::string free_gpus_text(std::uint32_t gpus, double share);

}  // namespace gpu_platform::cli
