#include "cli/text/end_advice.h"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/units.h"
#include "cli/commands/rerun.h"
#include "cli/text/job_text.h"
#include "cli/text/text.h"
#include "client/follow.h"

namespace gpu_platform::cli {

namespace {

// Half as much again, rounded up to a number that people would write.
base::Bytes more_memory(base::Bytes size) {
  const std::int64_t unit = size < base::kGiB * 8 ? base::kMiB.value() : base::kGiB.value();
  const std::int64_t more = size.value() + size.value() / 2;
  return base::Bytes((more + unit - 1) / unit * unit);
}

// Returns "; try 150M: gpu-platform jobs rerun 42 --memory 150M".
std::string to_try(const v1::Job& job, std::string_view option, const std::string& value) {
  std::string text = fmt::format("; try {} {}", option, value);
  if (check_can_be_rerun(job)) {
    text += fmt::format(": gpu-platform jobs rerun {} {} {}", shown_id(job), option, value);
  }
  return text;
}

std::string about_memory(const v1::Job& job) {
  const v1::Attempt* const last = job.attempts().empty() ? nullptr : &*job.attempts().rbegin();
  const bool has_peak = last != nullptr && last->has_peak_memory_bytes();
  if (!job.spec().has_memory_bytes()) {
    return has_peak ? fmt::format(
                          "its processes used {} at most, without a limit of its own "
                          "(--memory)",
                          size_text(last->peak_memory_bytes()))
                    : std::string();
  }
  const base::Bytes asked(static_cast<std::int64_t>(job.spec().memory_bytes()));
  const std::string peak =
      has_peak ? fmt::format(" (peak {})", size_text(last->peak_memory_bytes())) : std::string();
  return fmt::format("used all of --memory {}{}{}", base::written(asked), peak,
                     to_try(job, "--memory", base::written(more_memory(asked))));
}

std::string about_time(const v1::Job& job) {
  if (!job.spec().has_time_limit_seconds()) return {};
  const double seconds = job.spec().time_limit_seconds();
  const base::Duration limit =
      base::milliseconds(static_cast<std::int64_t>(std::llround(seconds * 1000)));
  const std::string used = job.has_time_limit_default_of() ? "the default time limit," : "--time";
  return fmt::format("used all of {} {}{}", used, base::written(limit),
                     to_try(job, "--time", base::written(limit * 2)));
}

std::string about_gpu_memory(const v1::Job& job) {
  if (!job.spec().has_gpu_memory_bytes()) {
    return "used more memory than its part of the GPU has; --gpu-memory says how much it needs";
  }
  const base::Bytes asked(static_cast<std::int64_t>(job.spec().gpu_memory_bytes()));
  return fmt::format("used more of its GPU than --gpu-memory {}{}", base::written(asked),
                     to_try(job, "--gpu-memory", base::written(more_memory(asked))));
}

}  // namespace

std::string advice_on_end(const v1::Job& job) {
  if (!client::is_ended(job.state())) return {};
  switch (job.reason()) {
    case v1::END_REASON_OUT_OF_MEMORY:
      return about_memory(job);
    case v1::END_REASON_GPU_MEMORY:
      return about_gpu_memory(job);
    case v1::END_REASON_TIME_LIMIT:
      return about_time(job);
    default:
      return {};
  }
}

}  // namespace gpu_platform::cli
