#include "controller/judge/refusals.h"

#include <utility>

#include <fmt/format.h>

namespace gpu_platform::controller {

std::unexpected<base::Error> refused(std::string message, std::string field) {
  return base::fail(base::ErrorCode::kFailedPrecondition, std::move(message), std::move(field));
}

std::unexpected<base::Error> has_ended(const model::Job& job, std::string_view what) {
  return refused(fmt::format("job {} is {} and cannot be {}; 'jobs rerun' submits it again",
                             job.id.value, to_string(job.state), what));
}

}  // namespace gpu_platform::controller
