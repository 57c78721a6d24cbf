#include "api/convert/gpu_time.h"

#include <cmath>

#include <fmt/format.h>

#include "base/parse.h"

namespace gpu_platform::api {

namespace {

constexpr const char* kField = "gpu_time_seconds";
constexpr double kMinSeconds = 0.001;
constexpr std::int64_t kMaxSeconds = 315'360'000;  // as of time_limit_seconds
constexpr std::int64_t kWhole = 1000;

std::unexpected<base::Error> refused(std::string_view why) {
  return base::invalid(kField, fmt::format("{}: {}", kField, why));
}

// Thousandths of a GPU.
std::int64_t share_of(const v1::JobSpec& spec) {
  return spec.has_gpu_share() ? std::llround(spec.gpu_share() * static_cast<double>(kWhole))
                              : kWhole;
}

}  // namespace

base::Result<std::optional<base::Duration>> limit_of_gpu_time(const v1::JobSpec& spec) {
  if (!spec.has_gpu_time_seconds()) return std::nullopt;
  if (spec.has_time_limit_seconds()) {
    return refused(
        "the time limit follows from it; leave out time_limit_seconds (--time), or "
        "give that alone");
  }
  // A share without a number of GPUs is one of one GPU.
  const bool has_gpus = spec.has_gpus() ? spec.gpus() > 0 : spec.has_gpu_share();
  if (!has_gpus) {
    return refused(
        "is the time on a GPU, and the job asks for none; ask for GPUs (gpus, --gpus), or give "
        "the time limit instead (time_limit_seconds, --time)");
  }
  const double seconds = spec.gpu_time_seconds();
  const bool is_share = spec.gpu_share() >= 0 && spec.gpu_share() <= 1;
  const std::int64_t share = is_share ? share_of(spec) : 0;
  const bool is_time = seconds >= kMinSeconds && seconds <= static_cast<double>(kMaxSeconds);
  if (!is_time || share < 1) return std::nullopt;
  // Less than 2^39 milliseconds, times a thousand.
  const std::int64_t needed = std::llround(seconds * 1000) * kWhole;
  const std::int64_t limit = (needed + share - 1) / share;
  if (limit > kMaxSeconds * 1000) {
    return refused(
        fmt::format("makes a time limit of more than {}, which is the longest; ask for "
                    "more of the GPU, or for less time",
                    base::written(base::seconds(kMaxSeconds))));
  }
  return base::milliseconds(limit);
}

}  // namespace gpu_platform::api
