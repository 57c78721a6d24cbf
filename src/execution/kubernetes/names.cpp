#include "execution/kubernetes/names.h"

#include <fmt/format.h>

namespace gpu_platform::execution {

std::string object_name(std::string_view cluster, model::AttemptId attempt, std::uint32_t rank) {
  return fmt::format("{}-{}", service_name(cluster, attempt), rank);
}

std::string service_name(std::string_view cluster, model::AttemptId attempt) {
  return fmt::format("gp-{}-{}-{}", cluster, attempt.job.value, attempt.attempt);
}

}  // namespace gpu_platform::execution
